"""The discovery documents: the version, the groups and the resources that are served."""

from __future__ import annotations

from collections.abc import Iterable

from app.sandbox.apiserver.storage.kinds import Kind, Object

_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
# The release whose behaviour the sandbox follows.
VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.3", "platform": "linux/amd64"}


class Discovery:
    """The documents about these kinds, by path."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        by_prefix: dict[str, list[Kind]] = {}
        versions: dict[str, dict[str, Kind]] = {}
        for kind in kinds:
            by_prefix.setdefault(kind.prefix, []).append(kind)
            if kind.group:
                versions.setdefault(kind.group, {}).setdefault(kind.version, kind)
        groups = [_group(list(each.values())) for each in versions.values()]
        self._documents: dict[str, Object] = {
            "/api": {"kind": "APIVersions", "versions": ["v1"]},
            "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups},
        }
        for group in groups:
            about = {"kind": "APIGroup", "apiVersion": "v1"}
            self._documents[f"/apis/{group['name']}"] = about | group
        for prefix, served in by_prefix.items():
            self._documents[prefix] = {
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": served[0].api_version,
                "resources": [entry for kind in served for entry in _entries(kind)],
            }

    def find(self, path: str) -> Object | None:
        return self._documents.get(path.rstrip("/"))


def _group(served: list[Kind]) -> Object:
    """served: one kind per version of the group, the preferred version first."""
    versions = [{"groupVersion": each.api_version, "version": each.version} for each in served]
    return {"name": served[0].group, "versions": versions, "preferredVersion": versions[0]}


def _entries(kind: Kind) -> list[Object]:
    entry = {
        "name": kind.plural,
        "singularName": kind.singular or kind.name.lower(),
        "namespaced": kind.is_namespaced,
        "kind": kind.name,
        "verbs": _VERBS,
    }
    below = [
        entry
        | {
            "name": f"{kind.plural}/{name}",
            "verbs": ["create"] if name in kind.actions else ["get", "patch", "update"],
            "singularName": "",
        }
        for name in kind.subresources
    ]
    return [entry | {"shortNames": list(kind.short_names)}, *below]
