"""Reads and writes with the API server's rules: what `api.py` serves and the loops call directly.

Every write is create, replace, patch, delete or bind; each is atomic (nothing here awaits) and
ends in `Store.put` or `Store.remove`. A write that changes nothing makes no new version.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from app.sandbox.apiserver.rules import job_rules, pod_rules
from app.sandbox.apiserver.storage import failures, patch
from app.sandbox.apiserver.storage.failures import Refused
from app.sandbox.apiserver.storage.kinds import (
    BUILT_IN,
    EVENT,
    JOB,
    NAMESPACE,
    POD,
    PRIORITY_CLASS,
    Key,
    Kind,
    Object,
    key_of,
)
from app.sandbox.apiserver.storage.store import Store, Stored

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or"
    " '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used"
    f" for validation is '{_NAME.pattern}')"
)
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # what generateName draws from upstream
_SYSTEM_PRIORITIES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
# Metadata that belongs to the server: an update keeps what is stored.
_SERVER_OWNED = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "resourceVersion",
)


class Registry:
    """The cluster behind the HTTP surface.

    now: the time as RFC 3339 text, for the stamps in objects.
    """

    def __init__(
        self,
        store: Store,
        *,
        rng: Random,
        now: Callable[[], str],
        custom: Iterable[Kind] = (),
    ) -> None:
        self.store = store
        self.now = now
        self.kinds = (*BUILT_IN, *custom)
        self._rng = rng
        for name in ("default", "kube-system", "kube-public", "kube-node-lease"):
            self.create(NAMESPACE, "", {"metadata": {"name": name}})

    def uid(self) -> str:
        return str(uuid.UUID(int=self._rng.getrandbits(128), version=4))

    def suffix(self) -> str:
        """Five letters that make a generated name unique."""
        return "".join(self._rng.choices(_SUFFIX_LETTERS, k=5))

    def read(self, kind: Kind, key: Key) -> Stored:
        """Raises: Refused (404)."""
        stored = self.store.get(kind, key)
        if stored is None:
            raise failures.not_found(kind, key[1])
        return stored

    def create(self, kind: Kind, namespace: str, body: Object) -> Stored:
        """Raises: Refused: 400, 403, 404 (no such namespace), 409 AlreadyExists, 422."""
        metadata = self._new_metadata(kind, namespace, body.get("metadata") or {})
        body = _without_type(body) | {"metadata": metadata}
        key = key_of(body)
        self._check_namespace(kind, namespace)
        if kind is POD:
            body = pod_rules.with_defaults(self._with_priority(body), now=self.now())
            pod_rules.check_new(body)
        elif kind is EVENT:
            body = {"reportingComponent": "", "reportingInstance": "", "source": {}} | body
        elif kind is NAMESPACE:
            body = body | {"status": {"phase": "Active"}}
        elif kind.has_status and kind.group:
            body.pop("status", None)  # a node brings its own
        if kind is JOB:
            body = job_rules.with_defaults(body)
        if self.store.get(kind, key) is not None:
            raise failures.already_exists(kind, key[1])
        return self.store.put(kind, key, body)

    def adopt(self, kind: Kind, body: Object) -> Stored:
        """Store an object of a recorded cluster as it is: nothing is defaulted or refused."""
        metadata = {"uid": self.uid(), "creationTimestamp": self.now()} | body["metadata"]
        return self.store.put(kind, key_of(body), _without_type(body) | {"metadata": metadata})

    def replace(self, kind: Kind, key: Key, body: Object, subresource: str = "") -> Stored:
        """A PUT. Raises: Refused: 400, 404, 409 (version or uid moved on), 422."""
        before = self.read(kind, key)
        metadata = body.get("metadata") or {}
        own = before.body["metadata"]
        if metadata.get("name", key[1]) != key[1]:
            raise failures.bad_request(
                f"the name of the object ({metadata['name']}) does not match the name on the URL"
                f" ({key[1]})"
            )
        if metadata.get("uid", own["uid"]) != own["uid"]:
            raise failures.wrong_uid(kind, *key, metadata["uid"], own["uid"])
        version = metadata.get("resourceVersion", "")
        if not version and kind.must_name_version:
            raise failures.unversioned(kind, key[1])
        if version and version != own["resourceVersion"]:
            raise failures.stale(kind, key[1])
        return self._write(kind, key, before, _without_type(body), subresource)

    def patch(
        self, kind: Kind, key: Key, change: Any, content_type: str, subresource: str = ""
    ) -> Stored:
        """A PATCH. Raises: Refused: 400, 404, 409 (a version in the patch moved on), 415, 422."""
        before = self.read(kind, key)
        if not isinstance(change, dict):
            raise failures.bad_request("a patch is a JSON object")
        if content_type == patch.MERGE:
            after = patch.merge(before.body, change)
        elif content_type == patch.STRATEGIC and not kind.is_custom:
            after = patch.strategic_merge(before.body, change)
        else:
            raise patch.unsupported_format()
        own, asked = before.body["metadata"], after.get("metadata") or {}
        if asked.get("resourceVersion") != own["resourceVersion"]:
            raise failures.stale(kind, key[1])
        if asked.get("uid") != own["uid"]:
            # Unlike a PUT, a patch has no uid precondition: the field is simply immutable.
            why = f'Invalid value: "{asked.get("uid")}": field is immutable'
            raise failures.invalid(kind, key[1], [("metadata.uid", "FieldValueInvalid", why)])
        return self._write(kind, key, before, _without_type(after), subresource)

    def delete(self, kind: Kind, key: Key, preconditions: Object | None = None) -> Stored:
        """Remove the object, or only mark it as going while it has finalizers.

        Raises: Refused: 404, 409 if uid or resourceVersion of the preconditions differ.
        """
        before = self.read(kind, key)
        metadata = before.body["metadata"]
        for field, asked in (preconditions or {}).items():
            if asked and metadata.get(field) != asked:
                if field == "uid":
                    raise failures.other_uid_to_delete(kind, key[1], asked, metadata["uid"])
                raise failures.stale(kind, key[1])
        if not metadata.get("finalizers"):
            return self.store.remove(kind, key)
        if metadata.get("deletionTimestamp"):
            return before
        going = metadata | {"deletionTimestamp": self.now(), "deletionGracePeriodSeconds": 0}
        if kind.has_generation:
            going["generation"] = metadata.get("generation", 1) + 1
        return self.store.put(kind, key, before.body | {"metadata": going})

    def bind(self, namespace: str, name: str, binding: Object) -> Stored:
        """Assign a pod to a node, once. The node need not exist, as upstream.

        Raises: Refused: 400, 404, 409 (other uid, going, already assigned, gated).
        Source: kubernetes registry/core/pod/storage/storage.go, setPodNodeAndMetadata.
        """
        metadata = binding.get("metadata") or {}
        if metadata.get("name", name) != name:
            raise failures.bad_request("name in URL does not match name in Binding object")
        target = binding.get("target") or {}
        if not target.get("name") or target.get("kind", "Node") not in ("", "Node"):
            raise Refused(500, "", "target.name: Required value")
        before = self.read(POD, (namespace, name))
        pod, own = before.body, before.body["metadata"]
        if metadata.get("uid") and metadata["uid"] != own["uid"]:
            raise failures.wrong_uid(POD, namespace, name, metadata["uid"], own["uid"])
        if why := _why_not_bindable(name, pod):
            raise failures.conflict(POD, name, why, subresource="binding")
        labels = (own.get("labels") or {}) | (metadata.get("labels") or {})
        annotations = (own.get("annotations") or {}) | (metadata.get("annotations") or {})
        status = {k: v for k, v in pod["status"].items() if k != "nominatedNodeName"}
        status = with_condition(status, {"type": "PodScheduled", "status": "True"}, now=self.now())
        bound = pod | {
            "metadata": own | {"labels": labels, "annotations": annotations},
            "spec": pod["spec"] | {"nodeName": target["name"]},
            "status": status,
        }
        return self.store.put(POD, (namespace, name), bound)

    def _write(
        self, kind: Kind, key: Key, before: Stored, after: Object, subresource: str
    ) -> Stored:
        own = before.body["metadata"]
        metadata = dict(after.get("metadata") or {})
        for field in _SERVER_OWNED:
            metadata.pop(field, None)
            if field in own:
                metadata[field] = own[field]
        after = {name: value for name, value in after.items() if value is not None}
        after["metadata"] = {name: value for name, value in metadata.items() if value is not None}
        if subresource == "status":
            after = before.body | {"metadata": after["metadata"], "status": after.get("status")}
        elif kind.has_status:
            after.pop("status", None)
            if "status" in before.body:
                after["status"] = before.body["status"]
        if kind is POD:
            if not subresource:
                after = pod_rules.with_default_tolerations(after)
            pod_rules.check_update(after, before.body)
        if after == before.body:
            return before
        if kind.has_generation and after.get("spec") != before.body.get("spec"):
            after["metadata"]["generation"] = own.get("generation", 1) + 1
        stored = self.store.put(kind, key, after)
        if own.get("deletionTimestamp") and not after["metadata"].get("finalizers"):
            return self.store.remove(kind, key)
        return stored

    def _new_metadata(self, kind: Kind, namespace: str, asked: Object) -> Object:
        name = asked.get("name") or ""
        if not name and asked.get("generateName"):
            name = asked["generateName"] + self.suffix()
        metadata = {key: value for key, value in asked.items() if value is not None}
        if kind.is_namespaced and metadata.get("namespace", namespace) != namespace:
            raise failures.bad_request(
                "the namespace of the provided object does not match the namespace sent on the"
                " request"
            )
        if not name:
            why = "Required value: name or generateName is required"
            cause = ("metadata.name", "FieldValueRequired", why)
            raise failures.invalid(kind, name, [cause])
        if len(name) > 253 or not _NAME.fullmatch(name):
            cause = ("metadata.name", "FieldValueInvalid", f'Invalid value: "{name}": {_NAME_RULE}')
            raise failures.invalid(kind, name, [cause])
        metadata |= {"name": name, "uid": self.uid(), "creationTimestamp": self.now()}
        for field in ("resourceVersion", "deletionTimestamp"):
            metadata.pop(field, None)
        if kind.is_namespaced:
            metadata["namespace"] = namespace
        if kind.has_generation:
            metadata["generation"] = 1
        return metadata

    def _check_namespace(self, kind: Kind, namespace: str) -> None:
        if kind.is_namespaced and self.store.get(NAMESPACE, ("", namespace)) is None:
            raise failures.not_found(NAMESPACE, namespace)

    def _with_priority(self, pod: Object) -> Object:
        """Resolve the priority class, as the Priority admission plugin does."""
        spec = pod.get("spec") or {}
        class_name = spec.get("priorityClassName", "")
        priority, policy = _SYSTEM_PRIORITIES.get(class_name, 0), "PreemptLowerPriority"
        if class_name and class_name not in _SYSTEM_PRIORITIES:
            found = self.store.get(PRIORITY_CLASS, ("", class_name))
            if found is None:
                why = f"no PriorityClass with name {class_name} was found"
                raise failures.forbidden(POD, pod["metadata"]["name"], why)
            priority = found.body.get("value", 0)
            policy = found.body.get("preemptionPolicy", policy)
        if spec.get("priority", priority) != priority:
            why = (
                f"the integer value of priority ({spec['priority']}) must not be provided in pod"
                f" spec; priority admission controller computed {priority} from the given"
                " PriorityClass name"
            )
            raise failures.forbidden(POD, pod["metadata"]["name"], why)
        settled = {"preemptionPolicy": policy} | spec | {"priority": priority}
        return pod | {"spec": settled}


def _without_type(body: Object) -> Object:
    return {name: value for name, value in body.items() if name not in ("kind", "apiVersion")}


def _why_not_bindable(name: str, pod: Object) -> str:
    if pod["metadata"].get("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if node := pod["spec"].get("nodeName"):
        return f'pod {name} is already assigned to node "{node}"'
    if pod["spec"].get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def with_condition(status: Object, condition: Object, *, now: str) -> Object:
    """The status with this condition set; the same status if it says so already.

    The transition time moves only when the condition's status does (podutil.UpdatePodCondition).
    """
    present = status.get("conditions") or []
    old: Object = next((each for each in present if each["type"] == condition["type"]), {})
    stamps = ("lastTransitionTime", "lastProbeTime")
    if {name: value for name, value in old.items() if name not in stamps} == condition:
        return status
    is_same = old.get("status") == condition["status"]
    stamped = condition | {
        "lastProbeTime": None,
        "lastTransitionTime": old.get("lastTransitionTime") if is_same else now,
    }
    conditions = [stamped if each is old else each for each in present]
    return status | {"conditions": conditions if old else [*conditions, stamped]}
