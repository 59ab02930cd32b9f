"""A pod template read as the pod that is made from it.

    template ──requests from limits──▶ pod ──▶ record

The API server fills in the requests of pods, and of no templates: what is only limited requests as
much as it may have, which is how GPUs are mostly asked for.
Source: kubernetes v1.36 pkg/apis/core/v1/defaults.go, SetDefaults_Pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TypeVar

import msgspec

from app.kube.core.objects import PodRecord
from app.kube.decoding import wire
from app.kube.decoding.decode import Json, Keep, decoded, pod_record
from app.kube.decoding.requests import HUGE_PAGES, counts_per_pod

_Q = TypeVar("_Q")


class Resources(wire.Resources):
    """Those of a template, with what requests follow from."""

    limits: wire.Quantities = None


class Container(wire.Container):
    """A container of a template."""

    resources: Resources | None = None


class PodSpec(wire.PodSpec):
    """The spec of a template."""

    containers: Sequence[Container | None] | None = None
    init_containers: Sequence[Container | None] | None = None
    resources: Resources | None = None


class Template(wire.Pod):
    """A pod template; it is written as a pod is."""

    spec: PodSpec | None = None


_TEMPLATE = msgspec.json.Decoder(Template)


def decode_template(raw: Json, keep: Keep) -> PodRecord:
    """Return the record of a pod that is made from this template.

    Raises: DecodeError naming the pod and the field.
    """
    template = decoded(_TEMPLATE, raw, "Pod")
    fill_in(template)
    return pod_record(template, raw, keep)


def fill_in(template: Template) -> None:
    """Set the requests that the pods have once they are stored."""
    spec = template.spec or PodSpec()
    asked = []
    for each in chain(spec.containers or (), spec.init_containers or ()):
        if each is not None and each.resources is not None:
            its = each.resources
            its.requests = requests_of_container(its.limits or {}, its.requests or {})
            asked.append(its.requests)
    if (own := spec.resources) is not None:
        own.requests = requests_of_pod(own.limits or {}, own.requests or {}, asked)


def requests_of_container(limits: Mapping[str, _Q], requests: Mapping[str, _Q]) -> dict[str, _Q]:
    """What a container requests: its limits where it says nothing else."""
    return {**limits, **requests}


def requests_of_pod(
    limits: Mapping[str, _Q], requests: Mapping[str, _Q], of_containers: Iterable[Iterable[str]]
) -> dict[str, _Q]:
    """What a pod as a whole requests: its limits of what neither it nor a container requests.

    `of_containers`: the resources that each of them requests. Huge pages are never more than is
    requested, so a limit of the pod counts whatever its containers say.
    """
    asked = set(requests).union(*of_containers)
    own = {
        name: limit
        for name, limit in limits.items()
        if counts_per_pod(name)
        and name not in requests
        and (name not in asked or name.startswith(HUGE_PAGES))
    }
    return {**requests, **own}
