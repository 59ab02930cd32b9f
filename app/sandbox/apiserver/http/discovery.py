"""What kubectl asks first: the version, the groups and the resources that are served."""

from __future__ import annotations

from collections.abc import Iterable

from app.sandbox.apiserver.http.addresses import SUBRESOURCES
from app.sandbox.apiserver.storage.kinds import Kind, Object

_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_SHORT_NAMES = {"pods": ["po"], "nodes": ["no"], "namespaces": ["ns"], "events": ["ev"]}
# The release whose behaviour the sandbox follows.
VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.3", "platform": "linux/amd64"}


class Discovery:
    """The documents by path; they never change while the sandbox runs."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        by_prefix: dict[str, list[Kind]] = {}
        for kind in kinds:
            by_prefix.setdefault(kind.prefix, []).append(kind)
        groups = [_group(served[0]) for served in by_prefix.values() if served[0].group]
        self._documents: dict[str, Object] = {
            "/api": {"kind": "APIVersions", "versions": ["v1"]},
            "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups},
        }
        for prefix, served in by_prefix.items():
            self._documents[prefix] = {
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": served[0].api_version,
                "resources": [entry for kind in served for entry in _entries(kind)],
            }

    def find(self, path: str) -> Object | None:
        return self._documents.get(path.rstrip("/"))


def _group(kind: Kind) -> Object:
    version = {"groupVersion": kind.api_version, "version": kind.version}
    return {"name": kind.group, "versions": [version], "preferredVersion": version}


def _entries(kind: Kind) -> list[Object]:
    entry = {
        "name": kind.plural,
        "singularName": kind.name.lower(),
        "namespaced": kind.is_namespaced,
        "kind": kind.name,
        "verbs": _VERBS,
        "shortNames": _SHORT_NAMES.get(kind.plural, []),
    }
    below = [
        entry
        | {
            "name": f"{kind.plural}/{name}",
            "verbs": ["get", "patch", "update"] if name == "status" else ["create"],
            "shortNames": [],
        }
        for name in SUBRESOURCES.get(kind.plural, ())
    ]
    return [entry, *below]
