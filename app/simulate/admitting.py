"""What the API server would do with objects before Corral sees them.

    object ──defaults, uid──▶ webhook's rules ──flaws──▶ Invalid
    pod ────defaults────────▶ webhook's changes ───────▶ as it would be stored

Priorities of pods follow from the PriorityClasses in the body, then from those of the cluster, and
from those of Kubernetes itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from app.admission.mutating.mutate import mutate
from app.admission.operations import Operation
from app.admission.scope import Scope
from app.admission.validating.validate import Thing, Validator
from app.dialects.dialect import Known
from app.dialects.grove.priority_classes import PriorityClassRecord
from app.dialects.making import Object
from app.dialects.making.parts import mapping
from app.dialects.registry import Dialects
from app.errors import DecodeError
from app.kube.core.objects import ObjectRecord
from app.kube.decoding.template import requests_of_container, requests_of_pod
from app.settings import RoleRules
from app.simulate.view import Error

DEFAULT_SCHEDULER = "default-scheduler"
SYSTEM_PRIORITIES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
MOST_VALUE = 120  # characters of a value that are shown


@dataclass(slots=True)
class Admission:
    """The webhook as it is set up, and the classes of the cluster and of the body."""

    scope: Scope
    dialects: Dialects
    roles: RoleRules
    topology: Known
    priorities: dict[str, int] = field(default_factory=lambda: dict(SYSTEM_PRIORITIES))
    default_priority: int = 0
    unknown_classes: dict[str, None] = field(default_factory=dict)

    def note_classes(self, objects: Iterable[ObjectRecord]) -> None:
        """Learn of the PriorityClasses among these objects; the last default counts."""
        for each in objects:
            if isinstance(each, PriorityClassRecord):
                self.priorities[each.name] = each.value
                if each.is_default:
                    self.default_priority = each.value

    def note_named(self, class_name: str) -> None:
        """An object other than a pod names this class; "": none."""
        if class_name and class_name not in self.priorities:
            self.unknown_classes[class_name] = None

    def errors(self, group: str, kind: str, name: str, content: Object) -> Iterator[Error]:
        """Every rule of the webhook that an object breaks."""
        validator = Validator(self.scope, self.dialects, self.topology)
        if not validator.is_known(group, kind):
            return
        namespace = str((content.get("metadata") or {}).get("namespace") or "")
        try:
            found = validator.errors(Thing(group, kind, namespace, content))
        except DecodeError as error:
            yield Error(object=name, field="", message=str(error))
            return
        for each in found:
            value = each.flaw.value
            yield Error(
                object=name,
                field=each.field,
                value="" if value is None else str(value)[:MOST_VALUE],
                message=each.body,
            )

    def pod(self, content: Object) -> Object:
        """A pod as it would be stored. Raises: DecodeError naming the field."""
        made = self._defaulted(content)
        raw = msgspec.json.encode(made)
        namespace = made["metadata"]["namespace"]
        change = mutate(raw, namespace, self.scope, self.dialects, self.roles)
        return patched(made, change.operations)

    def _defaulted(self, content: Object) -> Object:
        spec = dict(mapping(content, "spec"))
        spec.setdefault("schedulerName", DEFAULT_SCHEDULER)
        for name in ("containers", "initContainers"):
            if isinstance(spec.get(name), list):
                spec[name] = [_with_requests(each) for each in spec[name]]
        _set_requests_of_pod(spec)
        if not isinstance(spec.get("priority"), int):
            spec["priority"] = self._priority(spec.get("priorityClassName"))
        return {**content, "spec": spec}

    def _priority(self, name: object) -> int:
        if not isinstance(name, str) or not name:
            return self.default_priority
        if name not in self.priorities:
            self.unknown_classes[name] = None
        return self.priorities.get(name, self.default_priority)


def _with_requests(container: Any) -> Any:
    """The container with its limits as requests where it has no others."""
    resources = container.get("resources") if isinstance(container, dict) else None
    if not isinstance(resources, dict) or not isinstance(resources.get("limits"), dict):
        return container
    own = resources.get("requests") or {}
    if not isinstance(own, dict):
        return container
    requests = requests_of_container(resources["limits"], own)
    return {**container, "resources": {**resources, "requests": requests}}


def _set_requests_of_pod(spec: Object) -> None:
    """The limits of the pod itself as its requests, of resources that no container requests."""
    resources = spec.get("resources")
    if not isinstance(resources, dict) or not (limits := _quantities(resources, "limits")):
        return
    containers = [*_listed(spec, "containers"), *_listed(spec, "initContainers")]
    own = _quantities(resources, "requests")
    requests = requests_of_pod(limits, own, map(_requests_of, containers))
    spec["resources"] = {**resources, "requests": requests}


def _requests_of(container: Any) -> Object:
    resources = container.get("resources") if isinstance(container, dict) else None
    return _quantities(resources, "requests")


def _quantities(resources: Any, name: str) -> Object:
    found = resources.get(name) if isinstance(resources, dict) else None
    return found if isinstance(found, dict) else {}


def _listed(spec: Object, name: str) -> list[Any]:
    found = spec.get(name)
    return found if isinstance(found, list) else []


def patched(content: Object, operations: list[Operation]) -> Object:
    """The object with the webhook's changes, which are made at two depths at most."""
    if not operations:
        return content
    made: Object = msgspec.json.decode(msgspec.json.encode(content))
    for each in operations:
        if each.op == "test":
            continue
        *above, last = (_unescaped(name) for name in each.path.split("/")[1:])
        holder: Any = made
        for name in above:
            holder = holder[int(name)] if isinstance(holder, list) else holder.setdefault(name, {})
        if each.op == "remove":
            del holder[int(last) if isinstance(holder, list) else last]
        elif isinstance(holder, list):
            holder.append(each.value)
        else:
            value = each.value
            holder[last] = dict(value) if isinstance(value, Mapping) else value
    decoded: Object = msgspec.json.decode(msgspec.json.encode(made))
    return decoded


def _unescaped(name: str) -> str:
    return name.replace("~1", "/").replace("~0", "~")
