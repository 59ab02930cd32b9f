"""Versions, clocks, and whether Corral's pods are ready."""

from __future__ import annotations

import re
from collections.abc import Iterator

from app.cli.doctor.findings import Check, Found, NotChecked, Problem, error, named, warning
from app.cli.doctor.installed import corral_container, scheduler_container
from app.cli.doctor.seen import Object, Readiness

MOST_SKEW = 5.0  # seconds; Leases last 15, and are compared with the clock of their reader
_TAG = re.compile(r":v?(\d+)\.(\d+)\.[^:/@]+(@|$)")
_VERSION = re.compile(r"v?(\d+)\.(\d+)\b")


def clock(skew: float) -> Iterator[Problem]:
    """Whether times in objects mean here what they mean there."""
    if abs(skew) > MOST_SKEW:
        side = "ahead of" if skew > 0 else "behind"
        yield warning(
            "the API server",
            f"its clock is {abs(skew):.0f} s {side} that of this machine: how long pods wait, and"
            " whether tokens and certificates hold, is judged by both",
            "timedatectl status",
        )


def versions(deployment: Object, version: str, shipped: tuple[str, ...]) -> Iterator[Found]:
    """Whether kube-scheduler fits the API server, and its configuration has been tried."""
    container = scheduler_container(deployment)
    image = str((container or {}).get("image", ""))
    tag, server = _TAG.search(image), _VERSION.match(version)
    name = f"{deployment['metadata']['namespace']}/{deployment['metadata']['name']}"
    if container is None:
        yield NotChecked(f"Deployment {name} has no kube-scheduler: that one is elsewhere")
        return
    if tag is None or server is None:
        unknown = f"the image {image}" if tag is None else f"{version!r} of the API server"
        yield NotChecked(f"{unknown} says no version")
        return
    scheduler, api = _minor(tag), _minor(server)
    field = f"spec.template.spec.containers[{container['name']}].image"
    if scheduler > api or api[1] - scheduler[1] > 1:
        yield warning(
            f"Deployment {name}",
            f"kube-scheduler may be as old as the API server, which is {version}, or one minor"
            " version older",
            f"image: registry.k8s.io/kube-scheduler:{version}",
            field=field,
            value=image,
        )
    if f"{scheduler[0]}.{scheduler[1]}" not in shipped:
        yield warning(
            f"Deployment {name}",
            f"this version of Corral was tried with kube-scheduler {', '.join(shipped)}",
            f"image: registry.k8s.io/kube-scheduler:v{shipped[-1]}.…",
            field=field,
            value=image,
        )


def pods_ready(deployment: Object, pods: tuple[Object, ...]) -> Iterator[Problem]:
    """Whether there are pods, and their containers are ready."""
    namespace = deployment["metadata"]["namespace"]
    if not pods:
        yield error(
            f"Deployment {namespace}/{deployment['metadata']['name']}",
            "it has no pods",
            f"kubectl -n {namespace} describe deployment {deployment['metadata']['name']}",
        )
    for pod in pods:
        name = pod["metadata"]["name"]
        statuses = (pod.get("status") or {}).get("containerStatuses") or []
        ready = {each["name"] for each in statuses if each.get("ready")}
        waiting = [each["name"] for each in pod["spec"]["containers"] if each["name"] not in ready]
        if waiting:
            yield error(
                f"Pod {namespace}/{name}",
                f"its containers {named(waiting)} are not ready",
                f"kubectl -n {namespace} logs {name} -c {waiting[0]}",
            )


def readyz(deployment: Object, readiness: tuple[Readiness, ...]) -> Iterator[Problem]:
    """What Corral itself says."""
    namespace = deployment["metadata"]["namespace"]
    for each in readiness:
        mend = f"kubectl -n {namespace} logs {each.pod} -c {_name(corral_container(deployment))}"
        if each.status == "not ready":
            yield error(f"Pod {namespace}/{each.pod}", f"/readyz says: {each.text}", mend)
        elif each.status == "unreachable":
            yield warning(
                f"Pod {namespace}/{each.pod}",
                f"the API server does not reach its /readyz: {each.text}",
                "kubectl -n " + namespace + " get networkpolicies",
            )


def _name(container: Object | None) -> str:
    return str((container or {}).get("name", "corral"))


def _minor(match: re.Match[str]) -> tuple[int, int]:
    return int(match[1]), int(match[2])


CHECKS = (
    Check("clock", "the API server's clock and this machine's agree", ("skew",), clock),
    Check(
        "versions",
        "kube-scheduler fits the API server",
        ("deployment", "version", "shipped"),
        versions,
    ),
    Check("pods-ready", "Corral's pods are ready", ("deployment", "pods"), pods_ready),
    Check("readyz", "Corral says that it is ready", ("deployment", "readiness"), readyz),
)
