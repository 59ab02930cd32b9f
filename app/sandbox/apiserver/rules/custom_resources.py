"""Custom resources: from a CustomResourceDefinition to the kinds that are served because of it.

    CustomResourceDefinition ──check──▶ kinds_of: one Kind per served version, all in one home

A kind is served as soon as its definition is stored. Deleting the definition removes the kind and
its objects. As in kube-apiserver with the conversion strategy `None`, all versions show the same
object and differ in apiVersion only.
A field whose schema has the rule `self == oldSelf` may not change once it is set.
Left out: all else that schemas say (nothing is pruned, defaulted or refused by them), webhook
conversion, the scale subresource, selectable fields, printer columns, server-side apply, and
definitions that compete for a name. Finalizers of the objects do not delay the deletion.
Source: kubernetes 1.36 apiextensions-apiserver.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from app.sandbox.apiserver.storage.failures import invalid
from app.sandbox.apiserver.storage.kinds import DEFINITION, Kind, Object

_Causes = list[tuple[str, str, str]]  # (field, type, message)
_SCOPES = ("Cluster", "Namespaced")
_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_Path = tuple[str, ...]
_UNCHANGED = "self == oldSelf"  # the one rule of x-kubernetes-validations that is enforced
_TYPES: dict[type, str] = {dict: "object", list: "array", str: "string"}  # as schemas name them
_STAGES = {"alpha": 0, "beta": 1, None: 2}


def kinds_of(definition: Object) -> tuple[Kind, ...]:
    """One kind per served version, the preferred version first."""
    spec = definition["spec"]
    versions = [each for each in spec["versions"] if each.get("served")]
    versions.sort(key=lambda each: _version_rank(each["name"]), reverse=True)
    return tuple(_kind(spec, each) for each in versions)


def _kind(spec: Object, version: Object) -> Kind:
    names = spec["names"]
    return Kind(
        spec["group"],
        version["name"],
        names["plural"],
        names["kind"],
        is_namespaced=spec["scope"] == "Namespaced",
        is_custom=True,
        has_status=(version.get("subresources") or {}).get("status") is not None,
        has_generation=True,
        must_name_version=True,
        immutable=tuple(_immutable(version["schema"]["openAPIV3Schema"])),
        singular=names["singular"],
        list_name=names["listKind"],
        short_names=tuple(names.get("shortNames") or ()),
    )


def _version_rank(version: str) -> tuple[int, int, int, str]:
    """v10 > v2 > v1 > v2beta1 > v1beta2 > v1alpha1 > anything else, as discovery sorts them.

    Source: apimachinery version.CompareKubeAwareVersionStrings.
    """
    match = _VERSION.fullmatch(version)
    if match is None:
        return (-1, 0, 0, version)
    major, stage, minor = match.groups()
    return (_STAGES[stage], int(major), int(minor or 0), "")


def with_defaults(definition: Object) -> Object:
    """The definition with the names filled in that it leaves to the API server."""
    spec = definition.get("spec") or {}
    names = spec.get("names") or {}
    if kind := names.get("kind"):
        names = {"singular": kind.lower(), "listKind": f"{kind}List"} | names
    return definition | {"spec": {"conversion": {"strategy": "None"}} | spec | {"names": names}}


def accepted(definition: Object, *, now: str) -> Object:
    """The status of a stored definition: established, with all its names accepted."""
    before = definition.get("status") or {}
    stored = before.get("storedVersions") or []
    storage = _storage_versions(definition["spec"])
    conditions = [
        {
            "type": type_,
            "status": "True",
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        }
        for type_, reason, message in (
            ("NamesAccepted", "NoConflicts", "no conflicts found"),
            ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        )
    ]
    return {
        "conditions": before.get("conditions") or conditions,
        "acceptedNames": definition["spec"]["names"],
        "storedVersions": [*stored, *(each for each in storage if each not in stored)],
    }


def _storage_versions(spec: Object) -> list[str]:
    return [each.get("name", "") for each in spec.get("versions") or [] if each.get("storage")]


def check(definition: Object, before: Object | None = None) -> None:
    """Raises: Refused (422) naming every field that is wrong; before: the stored definition."""
    spec, name = definition.get("spec") or {}, definition["metadata"]["name"]
    names = spec.get("names") or {}
    causes: _Causes = [
        (f"spec.{field}", "FieldValueRequired", "Required value")
        for field, value in (
            ("group", spec.get("group")),
            ("names.plural", names.get("plural")),
            ("names.kind", names.get("kind")),
        )
        if not value
    ]
    if not causes and name != f"{names['plural']}.{spec['group']}":
        why = f'Invalid value: "{name}": must be spec.names.plural+"."+spec.group'
        causes.append(("metadata.name", "FieldValueInvalid", why))
    causes += _scope_causes(spec, (before or {}).get("spec") or spec)
    causes += _version_causes(spec)
    if causes:
        raise invalid(DEFINITION, name, causes)


def _scope_causes(spec: Object, old: Object) -> _Causes:
    scope, kind = spec.get("scope"), (spec.get("names") or {}).get("kind")
    if scope not in _SCOPES:
        values = ", ".join(f'"{each}"' for each in _SCOPES)
        why = f'Unsupported value: "{scope or ""}": supported values: {values}'
        return [("spec.scope", "FieldValueNotSupported", why)]
    return [
        (field, "FieldValueInvalid", f'Invalid value: "{now}": field is immutable')
        for field, now, was in (
            ("spec.scope", scope, old.get("scope")),
            ("spec.names.kind", kind, (old.get("names") or {}).get("kind")),
        )
        if now != was
    ]


def _version_causes(spec: Object) -> _Causes:
    causes: _Causes = []
    for place, version in enumerate(spec.get("versions") or []):
        field = f"spec.versions[{place}]"
        if not version.get("name"):
            causes.append((f"{field}.name", "FieldValueRequired", "Required value"))
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            schema = f"{field}.schema.openAPIV3Schema"
            causes.append((schema, "FieldValueRequired", "Required value"))
    if len(_storage_versions(spec)) != 1:
        why = "Invalid value: must have exactly one version marked as storage version"
        causes.append(("spec.versions", "FieldValueInvalid", why))
    return causes


def check_immutable(kind: Kind, after: Object, before: Object) -> None:
    """Raises: Refused (422) naming every field that must stay as it is and does not.

    A rule about the value before holds only where there is one before and after: such a field may
    still be set for the first time, or go.
    """
    causes: _Causes = []
    for path in kind.immutable:
        now, was = _at(after, path), _at(before, path)
        if now is not None and was is not None and now != was:
            causes.append((".".join(path), "FieldValueInvalid", _changed(now)))
    if causes:
        raise invalid(kind, before["metadata"]["name"], causes)


def _changed(now: Any) -> str:
    type_ = _TYPES.get(type(now), "integer")
    return f'Invalid value: "{type_}": Value is immutable'


def _at(body: Object, path: _Path) -> Any:
    found: Any = body
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _immutable(schema: Object, path: _Path = ()) -> Iterator[_Path]:
    """The paths of fields that may not change, those inside lists left out."""
    rules = schema.get("x-kubernetes-validations") or []
    if path and any(rule.get("rule") == _UNCHANGED for rule in rules):
        yield path
    for name, field in (schema.get("properties") or {}).items():
        yield from _immutable(field, (*path, name))
