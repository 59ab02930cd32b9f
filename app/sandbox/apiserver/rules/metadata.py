"""What the API server does to the metadata of an object: what it checks, fills in and keeps.

Source: kubernetes 1.36 apiserver registry/rest/meta.go, create.go and update.go.
"""

from __future__ import annotations

import re

from app.sandbox.apiserver.storage import failures
from app.sandbox.apiserver.storage.kinds import Kind, Object

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or"
    " '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used"
    f" for validation is '{_NAME.pattern}')"
)
_WORD = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", re.ASCII)
_WORD_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an"
    " alphanumeric character"
)
_LONGEST_WORD, _LONGEST_NAME = 63, 253
_MOST_ANNOTATIONS = 256 * 1024  # bytes of all keys and values together
Causes = list[tuple[str, str, str]]  # (field, type, message)
# Set by the server on creation, whatever the client sends.
_SYSTEM = ("uid", "creationTimestamp", "resourceVersion", "generation", "deletionTimestamp")
# Set by the server for good: an update keeps what is stored.
_SERVER_OWNED = ("name", "namespace", "deletionGracePeriodSeconds", *_SYSTEM)


def of_request(kind: Kind, namespace: str, asked: Object) -> Object:
    """The metadata of a new object as webhooks see it: in its namespace, without system fields.

    Raises: Refused (400) if the object names another namespace than the path.
    """
    if kind.is_namespaced and asked.get("namespace", namespace) != namespace:
        raise failures.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    metadata = {
        field: value
        for field, value in asked.items()
        if value is not None and field not in _SYSTEM and field != "namespace"
    }
    return metadata | ({"namespace": namespace} if kind.is_namespaced else {})


def completed(kind: Kind, metadata: Object, *, suffix: str, uid: str, now: str) -> Object:
    """The metadata under which a new object is stored.

    suffix: makes a generateName unique. Raises: Refused (422) if there is no proper name.
    """
    name = metadata.get("name") or ""
    if not name and metadata.get("generateName"):
        name = metadata["generateName"] + suffix
    if not name:
        why = "Required value: name or generateName is required"
        raise failures.invalid(kind, name, [("metadata.name", "FieldValueRequired", why)])
    if len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
        why = f'Invalid value: "{name}": {_NAME_RULE}'
        raise failures.invalid(kind, name, [("metadata.name", "FieldValueInvalid", why)])
    generation = {"generation": 1} if kind.has_generation else {}
    return metadata | {"name": name, "uid": uid, "creationTimestamp": now} | generation


def check(kind: Kind, metadata: Object) -> None:
    """Raises: Refused: 400 for a label or an annotation that is no text, 422.

    Source: apimachinery api/validation/objectmeta.go.
    """
    for field in ("labels", "annotations"):
        for key, value in (metadata.get(field) or {}).items():
            if not isinstance(value, str):
                raise failures.bad_request(
                    f"json: cannot unmarshal the value of {key} into Go struct field"
                    f" ObjectMeta.metadata.{field} of type string"
                )
    causes = label_causes("metadata.labels", metadata.get("labels") or {})
    annotations = metadata.get("annotations") or {}
    for key in annotations:
        causes += _key_causes("metadata.annotations", key, key.lower())
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > (
        _MOST_ANNOTATIONS
    ):
        why = f"Too long: may not be more than {_MOST_ANNOTATIONS} bytes"
        causes.append(("metadata.annotations", "FieldValueTooLong", why))
    causes += _owner_causes(metadata.get("ownerReferences") or [])
    if causes:
        raise failures.invalid(kind, metadata.get("name", ""), causes)


def label_causes(field: str, labels: Object) -> Causes:
    """What is wrong with labels, or with a node selector."""
    causes: Causes = []
    for key, value in labels.items():
        causes += _key_causes(field, key, key)
        if len(value) > _LONGEST_WORD:
            why = f'Invalid value: "{value}": must be no more than {_LONGEST_WORD} bytes'
            causes.append((field, "FieldValueInvalid", why))
        elif value and not _WORD.fullmatch(value):
            why = f'Invalid value: "{value}": a valid label must be an empty string or'
            why = f"{why} {_WORD_RULE.removeprefix('must ')}"
            causes.append((field, "FieldValueInvalid", why))
    return causes


def _key_causes(field: str, key: str, judged: str) -> Causes:
    prefix, slash, name = judged.rpartition("/")
    if slash and not (len(prefix) <= _LONGEST_NAME and _NAME.fullmatch(prefix)):
        return [(field, "FieldValueInvalid", f'Invalid value: "{key}": prefix part {_NAME_RULE}')]
    if len(name) > _LONGEST_WORD:
        why = f"name part must be no more than {_LONGEST_WORD} bytes"
    elif not _WORD.fullmatch(name):
        why = f"name part {_WORD_RULE}"
    else:
        return []
    return [(field, "FieldValueInvalid", f'Invalid value: "{key}": {why}')]


def _owner_causes(owners: list[Object]) -> Causes:
    causes: Causes = []
    for owner in owners:
        for name in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(name):
                why = 'Invalid value: "": must not be empty'
                causes.append((f"metadata.ownerReferences.{name}", "FieldValueInvalid", why))
    if sum(bool(owner.get("controller")) for owner in owners) > 1:
        why = "Invalid value: Only one reference can have Controller set to true"
        causes.append(("metadata.ownerReferences", "FieldValueInvalid", why))
    return causes


def of_update(asked: Object, own: Object) -> Object:
    """The metadata of an update: the client's, except for what is the server's."""
    kept = {field: own[field] for field in _SERVER_OWNED if field in own}
    fields = {field: value for field, value in asked.items() if field not in _SERVER_OWNED}
    return {field: value for field, value in (fields | kept).items() if value is not None}
