"""Reads and writes with the API server's rules: what `http` serves and the loops call directly.

    body ─▶ draft ─▶ creation ─┐
    body ─▶ replacement ───────┼─▶ Write ─▶ commit ─▶ Store
    change ─▶ patching ────────┘

A Write is a change that every rule allows and that is not stored yet: admission webhooks are asked
between the steps (`http.writing`). The loops of the cluster do all steps at once (`create`,
`patch`). Nothing here awaits, and a write that changes nothing makes no new version.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from app.sandbox.apiserver.rules import (
    custom_resources,
    event_rules,
    job_rules,
    metadata,
    pod_rules,
    webhook_rules,
)
from app.sandbox.apiserver.storage import failures, json_patch, patch
from app.sandbox.apiserver.storage.kinds import (
    BUILT_IN,
    DEFINITION,
    EVENT,
    JOB,
    LEASE,
    MUTATING,
    NAMESPACE,
    POD,
    POD_TEMPLATE,
    PRIORITY_CLASS,
    VALIDATING,
    Key,
    Kind,
    Object,
    key_of,
)
from app.sandbox.apiserver.storage.store import Change, Store, Stored

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # what generateName draws from upstream
_SYSTEM_PRIORITIES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
_CONFIGURATIONS = (MUTATING, VALIDATING)
_NAME_LABEL = "kubernetes.io/metadata.name"  # of namespaces; selectors of webhooks lean on it


@dataclass(frozen=True, slots=True, eq=False)
class Write:
    """A change that every rule allows, not stored yet. before: None for a new object."""

    kind: Kind
    key: Key
    before: Stored | None
    after: Object
    subresource: str = ""


class Registry:
    """The cluster behind the HTTP surface.

    now: the time as RFC 3339 text, for the stamps in objects.
    kinds: all that is served now; another tuple after each change of a definition.
    """

    def __init__(self, store: Store, *, rng: Random, now: Callable[[], str]) -> None:
        self.store = store
        self.now = now
        self.kinds: tuple[Kind, ...] = BUILT_IN
        self._rng = rng
        store.subscribe(DEFINITION, self._on_definition)
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
        return self.commit(self.creation(kind, self.draft(kind, namespace, body)))

    def patch(
        self, kind: Kind, key: Key, change: Any, content_type: str, subresource: str = ""
    ) -> Stored:
        """A PATCH. Raises: Refused: 400, 404, 409 (a version in the patch moved on), 415, 422."""
        return self.commit(self.patching(kind, key, change, content_type, subresource))

    def adopt(self, kind: Kind, body: Object) -> Stored:
        """Store an object of a recorded cluster as it is: nothing is defaulted or refused."""
        own = {"uid": self.uid(), "creationTimestamp": self.now()} | body["metadata"]
        return self.store.put(kind, key_of(body), _without_type(body) | {"metadata": own})

    # --- a new object ----------------------------------------------------------------------

    def draft(self, kind: Kind, namespace: str, body: Object) -> Object:
        """A new object with its defaults, as mutating webhooks see it; the same for a draft.

        Raises: Refused: 400, 403, 404 (no such namespace).
        """
        _check_type(kind, body)
        own = metadata.of_request(kind, namespace, body.get("metadata") or {})
        body = _without_type(body) | {"metadata": own}
        if kind.is_namespaced and self.store.get(NAMESPACE, ("", namespace)) is None:
            raise failures.not_found(NAMESPACE, namespace)
        if kind is POD:
            return pod_rules.with_defaults(self._with_priority(body))
        if kind is POD_TEMPLATE:
            return pod_rules.template_with_defaults(body)
        if kind is EVENT:
            return {"reportingComponent": "", "reportingInstance": "", "source": {}} | body
        if kind is JOB:
            return job_rules.with_defaults(body)
        if kind is DEFINITION:
            return custom_resources.with_defaults(body)
        if kind in _CONFIGURATIONS:
            return webhook_rules.with_defaults(kind, body)
        return body

    def creation(self, kind: Kind, draft: Object) -> Write:
        """Raises: Refused (422)."""
        own = metadata.completed(
            kind, draft["metadata"], suffix=self.suffix(), uid=self.uid(), now=self.now()
        )
        metadata.check(kind, own)
        body = draft | {"metadata": own}
        if kind.has_status and kind.group:
            body.pop("status", None)  # a node brings its own
        if kind is POD:
            body["status"] = pod_rules.first_status(body["spec"], now=self.now())
            pod_rules.check_new(body)
        elif kind is POD_TEMPLATE:
            pod_rules.check_template(body)
        elif kind is NAMESPACE:
            body = _labelled_namespace(body) | {"status": {"phase": "Active"}}
        elif kind is JOB:
            body = job_rules.prepared(body)
        elif kind in (EVENT, LEASE):
            event_rules.check(kind, body)
        elif kind is DEFINITION:
            custom_resources.check(body)
            body["status"] = custom_resources.accepted(body, now=self.now())
        elif kind in _CONFIGURATIONS:
            webhook_rules.check(kind, body)
        return Write(kind, key_of(body), None, body)

    # --- a change of a stored one ----------------------------------------------------------

    def replacement(self, kind: Kind, key: Key, body: Object, subresource: str = "") -> Write:
        """Raises: Refused: 400, 404, 409 (version or uid moved on), 422."""
        _check_type(kind, body)
        before = self.read(kind, key)
        asked, own = body.get("metadata") or {}, before.body["metadata"]
        if asked.get("name", key[1]) != key[1]:
            raise failures.bad_request(
                f"the name of the object ({asked['name']}) does not match the name on the URL"
                f" ({key[1]})"
            )
        if asked.get("uid", own["uid"]) != own["uid"]:
            raise failures.wrong_uid(kind, *key, asked["uid"], own["uid"])
        version = asked.get("resourceVersion", "")
        if not version and kind.must_name_version:
            raise failures.unversioned(kind, key[1])
        if version and version != own["resourceVersion"]:
            raise failures.stale(kind, key[1])
        return self.update(kind, before, body, subresource)

    def patching(
        self, kind: Kind, key: Key, change: Any, content_type: str, subresource: str = ""
    ) -> Write:
        """Raises: Refused: 400, 404, 409 (a version in the patch moved on), 415, 422."""
        before = self.read(kind, key)
        after = _patched(kind, before.body, change, content_type)
        own, asked = before.body["metadata"], after.get("metadata") or {}
        if asked.get("resourceVersion") != own["resourceVersion"]:
            raise failures.stale(kind, key[1])
        if asked.get("uid") != own["uid"]:
            # Unlike a PUT, a patch has no uid precondition: the field is simply immutable.
            why = f'Invalid value: "{asked.get("uid")}": field is immutable'
            raise failures.invalid(kind, key[1], [("metadata.uid", "FieldValueInvalid", why)])
        return self.update(kind, before, after, subresource)

    def update(self, kind: Kind, before: Stored, after: Object, subresource: str = "") -> Write:
        """The part of `after` that this request may write. Raises: Refused (422)."""
        old = before.body
        own = metadata.of_update(after.get("metadata") or {}, old["metadata"])
        metadata.check(kind, own)
        after = {name: value for name, value in _without_type(after).items() if value is not None}
        after["metadata"] = own
        if subresource == "status":
            after = _with_status_of(after, old | ({} if kind.is_custom else {"metadata": own}))
        elif kind.has_status:
            after = _with_status_of(old, after)
        if kind is POD:
            if not subresource:
                after = pod_rules.with_default_tolerations(after)
            elif subresource == "status":
                after = pod_rules.with_new_status(after, old)
            pod_rules.check_update(after, old)
        elif kind is POD_TEMPLATE:
            after = pod_rules.template_with_defaults(after)
            pod_rules.check_template(after)
        elif kind in (EVENT, LEASE):
            event_rules.check(kind, after)
        elif kind.is_custom:
            custom_resources.check_immutable(kind, after, old)
        elif kind is NAMESPACE:
            after = _labelled_namespace(after)
        elif kind is DEFINITION and not subresource:
            after = custom_resources.with_defaults(after)
            custom_resources.check(after, old)
            after["status"] = custom_resources.accepted(after, now=self.now())
        elif kind in _CONFIGURATIONS:
            after = webhook_rules.with_defaults(kind, after)
            webhook_rules.check(kind, after)
        if kind.has_generation and not subresource and _has_new_generation(kind, after, old):
            generation = old["metadata"].get("generation", 1) + 1
            after["metadata"] = after["metadata"] | {"generation": generation}
        return Write(kind, key_of(old), before, after, subresource)

    # --- the end of every write ------------------------------------------------------------

    def is_current(self, write: Write) -> bool:
        """Whether the object is still as it was when the write was made."""
        return self.store.get(write.kind, write.key) is write.before

    def commit(self, write: Write, *, is_dry_run: bool = False) -> Stored:
        """The object as it is stored now, or would be. The write is current or new.

        Raises: Refused (409) if a new object's name is taken.
        """
        kind, key, before, after = write.kind, write.key, write.before, write.after
        if before is None and self.store.get(kind, key) is not None:
            raise failures.already_exists(kind, key[1])
        if before is not None and after == before.body:
            return before
        if is_dry_run:
            return Stored(after, self.store.version)
        stored = self.store.put(kind, key, after)
        if before is not None and _has_ended(after["metadata"]):
            return self._remove(kind, key)
        return stored

    def delete(
        self,
        kind: Kind,
        key: Key,
        preconditions: Object | None = None,
        *,
        grace: int | None = None,
        is_dry_run: bool = False,
    ) -> Stored:
        """Remove the object, or only mark it as going while it has finalizers.

        A pod with a node is marked as well, until its kubelet deletes it without grace.
        grace: seconds that a pod may take to end; None: as many as it says itself.
        Raises: Refused: 404, 409 if uid or resourceVersion of the preconditions differ.
        """
        before = self.read(kind, key)
        own = before.body["metadata"]
        for field, asked in (preconditions or {}).items():
            if asked and own.get(field) != asked:
                if field == "uid":
                    raise failures.other_uid_to_delete(kind, key[1], asked, own["uid"])
                raise failures.stale(kind, key[1])
        if kind is POD:
            return self._end_pod(before, grace, is_dry_run=is_dry_run)
        if is_dry_run or (own.get("finalizers") and own.get("deletionTimestamp")):
            return before
        if not own.get("finalizers"):
            return self._remove(kind, key)
        going = own | {"deletionTimestamp": self.now(), "deletionGracePeriodSeconds": 0}
        if kind.has_generation:
            going["generation"] = own.get("generation", 1) + 1
        return self.store.put(kind, key, before.body | {"metadata": going})

    def _end_pod(self, before: Stored, grace: int | None, *, is_dry_run: bool) -> Stored:
        """Mark the pod as going, and remove it where nothing is to be waited for.

        Those are two writes, as upstream: a watcher may see a pod go that is gone with the next.
        """
        going = pod_rules.ending(before.body, grace, now=self.now())
        if going is None:
            return before
        key, after = key_of(before.body), before.body | {"metadata": going}
        if is_dry_run:
            return Stored(after, self.store.version)
        marked = before if after == before.body else self.store.put(POD, key, after)
        if not _has_ended(going):
            return marked
        left = self.store.get(POD, key)  # a subscriber may have removed it
        is_left = left is not None and left.body["metadata"]["uid"] == going["uid"]
        return self._remove(POD, key) if is_left else marked

    def _remove(self, kind: Kind, key: Key) -> Stored:
        if kind is DEFINITION:
            for each in custom_resources.kinds_of(self.read(kind, key).body)[:1]:
                for stored in self.store.values(each):  # all versions are in one home
                    self.store.remove(each, key_of(stored.body))
        return self.store.remove(kind, key)

    def _on_definition(self, _change: Change) -> None:
        definitions = [stored.body for stored in self.store.values(DEFINITION)]
        custom = (kind for each in definitions for kind in custom_resources.kinds_of(each))
        self.kinds = (*BUILT_IN, *custom)

    def _with_priority(self, pod: Object) -> Object:
        """Resolve the priority class, as the Priority admission plugin does."""
        spec, name = pod.get("spec") or {}, pod["metadata"].get("name", "")
        class_name = spec.get("priorityClassName", "")
        priority, policy = _SYSTEM_PRIORITIES.get(class_name, 0), "PreemptLowerPriority"
        if class_name and class_name not in _SYSTEM_PRIORITIES:
            found = self.store.get(PRIORITY_CLASS, ("", class_name))
            if found is None:
                why = f"no PriorityClass with name {class_name} was found"
                raise failures.forbidden(POD, name, why)
            priority = found.body.get("value", 0)
            policy = found.body.get("preemptionPolicy", policy)
        if spec.get("priority", priority) != priority:
            why = (
                f"the integer value of priority ({spec['priority']}) must not be provided in pod"
                f" spec; priority admission controller computed {priority} from the given"
                " PriorityClass name"
            )
            raise failures.forbidden(POD, name, why)
        settled = {"preemptionPolicy": policy} | spec | {"priority": priority}
        return pod | {"spec": settled}


def _has_ended(own: Object) -> bool:
    """Whether an object is to be removed: it is deleted, and nothing is waited for any more."""
    is_going = own.get("deletionTimestamp") and not own.get("deletionGracePeriodSeconds")
    return bool(is_going and not own.get("finalizers"))


def _check_type(kind: Kind, body: Object) -> None:
    """Raises: Refused (400) for a body of another version; a custom object must name its kind."""
    version = body.get("apiVersion", kind.api_version)
    if version != kind.api_version:
        raise failures.bad_request(
            f"the API version in the data ({version}) does not match the expected API version"
            f" ({kind.api_version})"
        )
    if kind.is_custom and not body.get("kind"):
        why = f"the object provided is unrecognized (must be of type {kind.name})"
        raise failures.bad_request(f"{why}: Object 'Kind' is missing")


def _patched(kind: Kind, body: Object, change: Any, content_type: str) -> Object:
    """The whole object after the patch, type and rules not yet looked at."""
    formats = (json_patch.JSON_PATCH, patch.MERGE, *(() if kind.is_custom else (patch.STRATEGIC,)))
    if content_type not in formats:
        raise patch.unsupported_format(formats)
    if content_type == json_patch.JSON_PATCH:
        if not isinstance(change, list):
            raise failures.bad_request("error decoding patch: a JSON patch is a list of operations")
        try:
            after = json_patch.apply(body, change)
        except json_patch.InvalidPatch as error:
            raise patch.inapplicable() from error
    elif not isinstance(change, dict):
        raise failures.bad_request("a patch is a JSON object")
    elif content_type == patch.MERGE:
        after = patch.merge(body, change)
    else:
        after = patch.strategic_merge(body, change)
    if not isinstance(after, dict):
        raise failures.bad_request("a patch leaves a JSON object")
    return after


def _with_status_of(source: Object, body: Object) -> Object:
    """The body with the status of another one, or without one."""
    rest = {name: value for name, value in body.items() if name != "status"}
    return rest | ({"status": source["status"]} if "status" in source else {})


def _has_new_generation(kind: Kind, after: Object, before: Object) -> bool:
    if not kind.is_custom:
        return any(
            after.get(field) != before.get(field) for field in ("spec", "webhooks", "template")
        )
    # A status with a subresource is the same in both by now.
    return _without(after, "metadata") != _without(before, "metadata")


def _labelled_namespace(body: Object) -> Object:
    own = body["metadata"]
    labels = (own.get("labels") or {}) | {_NAME_LABEL: own["name"]}
    return body | {"metadata": own | {"labels": labels}}


def _without_type(body: Object) -> Object:
    return _without(body, "kind", "apiVersion")


def _without(body: Object, *names: str) -> Object:
    return {name: value for name, value in body.items() if name not in names}
