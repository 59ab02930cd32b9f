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
    if len(name) > 253 or not _NAME.fullmatch(name):
        why = f'Invalid value: "{name}": {_NAME_RULE}'
        raise failures.invalid(kind, name, [("metadata.name", "FieldValueInvalid", why)])
    generation = {"generation": 1} if kind.has_generation else {}
    return metadata | {"name": name, "uid": uid, "creationTimestamp": now} | generation


def of_update(asked: Object, own: Object) -> Object:
    """The metadata of an update: the client's, except for what is the server's."""
    kept = {field: own[field] for field in _SERVER_OWNED if field in own}
    fields = {field: value for field, value in asked.items() if field not in _SERVER_OWNED}
    return {field: value for field, value in (fields | kept).items() if value is not None}
