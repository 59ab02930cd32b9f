"""The resources by which kube-scheduler knows a member of a gang, in the pod's first container.

Extended resources stand in requests and limits alike. What a pod has of them already, in whichever
container, is left as it is: so a second call adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from app.admission.operations import Operation, escaped
from app.errors import DecodeError
from app.kube.decoding.decode import Json
from app.kube.decoding.requests import MARKERS

_FIRST = "/spec/containers/0/resources"
_ONE = "1"


class _Resources(msgspec.Struct):
    requests: dict[str, object] | None = None
    limits: dict[str, object] | None = None


class _Container(msgspec.Struct):
    resources: _Resources | None = None


class _Spec(msgspec.Struct, rename="camel"):
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None


class _Pod(msgspec.Struct):
    spec: _Spec | None = None


_POD = msgspec.json.Decoder(_Pod)


def markers(raw: Json) -> Iterator[Operation]:
    """What to add to a pod that is to be a member of a gang. Raises: DecodeError."""
    try:
        spec = _POD.decode(raw).spec or _Spec()
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"Pod: {error}") from error
    containers = [*(spec.containers or ()), *(spec.init_containers or ())]
    present = {name for each in containers for name in _resources_of(each)}
    wanted = dict.fromkeys((name for name in MARKERS if name not in present), _ONE)
    if not wanted or not spec.containers:
        return
    resources = spec.containers[0].resources
    if resources is None:
        yield Operation("add", _FIRST, {"limits": wanted, "requests": wanted})
        return
    for part, there in (("limits", resources.limits), ("requests", resources.requests)):
        if there is None:
            yield Operation("add", f"{_FIRST}/{part}", wanted)
        else:
            for name, amount in wanted.items():
                yield Operation("add", f"{_FIRST}/{part}/{escaped(name)}", amount)


def _resources_of(container: _Container) -> set[str]:
    if container.resources is None:
        return set()
    return {*(container.resources.requests or ()), *(container.resources.limits or ())}
