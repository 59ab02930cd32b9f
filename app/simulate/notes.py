"""What decides where pods may go, and Corral does not know: mostly kube-scheduler's own filters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from app.dialects.making import Object

MOST_NAME = 253  # characters
_DECIDES = "kube-scheduler decides on"


def notes_of(pod: Object) -> Iterator[str]:
    """A sentence for each thing that this pod has; none of a pod that is not valid."""
    spec = pod.get("spec")
    return _notes(spec) if isinstance(spec, dict) else iter(())


def _notes(spec: dict[str, Any]) -> Iterator[str]:
    volumes = spec.get("volumes") or ()
    if any("persistentVolumeClaim" in each or "ephemeral" in each for each in _dicts(volumes)):
        yield f"{_DECIDES} volumes: where its claims are bound, or can be, is not known here"
    if spec.get("resourceClaims"):
        yield f"{_DECIDES} resource claims: which devices are free is not known here"
    containers = [*_dicts(spec.get("containers") or ()), *_dicts(spec.get("initContainers") or ())]
    ports = (port for each in containers for port in _dicts(each.get("ports") or ()))
    if spec.get("hostNetwork") or any(port.get("hostPort") for port in ports):
        yield f"{_DECIDES} host ports: which are taken is not known here"
    if spec.get("runtimeClassName"):
        yield (
            f"the API server adds what RuntimeClass {str(spec['runtimeClassName'])[:MOST_NAME]} has"
            " of overhead, node selector and tolerations, which is not known here"
        )
    affinity = spec.get("affinity")
    if isinstance(affinity, dict) and affinity.keys() & {"podAffinity", "podAntiAffinity"}:
        yield f"{_DECIDES} affinity to other pods, which is not counted here"
    if spec.get("topologySpreadConstraints"):
        yield f"{_DECIDES} topologySpreadConstraints, which are not counted here"


def _dicts(things: Any) -> Iterator[dict[str, Any]]:
    return (
        (each for each in things if isinstance(each, dict))
        if isinstance(things, list)
        else iter(())
    )
