"""The objects of vocabularies as the API server has them: JSON; watches are told the records.

Whoever judges looks at the JSON: `told` gives that of a record which a watch has shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from app.dialects.written import AT_WRITE
from app.kube.watch.events import Kind
from app.kube.watch.resource import Resource
from tests.sim.api import OF_ALL, ApiServer, Refused
from tests.sim.clock import Clock
from tests.sim.dialects import DIALECTS

Json = dict[str, Any]

_RESOURCES: dict[Kind, Resource] = {each.kind: each for each in DIALECTS.resources()}


class Objects:
    """All of them, by kind and name."""

    def __init__(self, clock: Clock, api: ApiServer) -> None:
        self._clock, self._api = clock, api
        self._served = dict(_RESOURCES)
        self._bodies: dict[tuple[Kind, str], Json] = {}
        self._told: dict[str, Json] = {}  # by version, which no two objects share

    def of(self, kind: Kind) -> dict[str, Json]:
        """All objects of a kind as they are now, by name."""
        return {name: self._bodies[kind, name] for name in sorted(self._api.objects[kind])}

    def get(self, kind: Kind, name: str) -> Json | None:
        """One object as it is now."""
        return self._bodies.get((kind, name))

    def told(self, record: Any) -> Json:
        """What the object said when this record of it was made."""
        return self._told[record.version]

    def serve_older(self, kind: Kind) -> None:
        """Serve a kind in the oldest version of its API."""
        self._served[kind] = _RESOURCES[kind].older[-1]

    # -- writes --------------------------------------------------------------------------------

    def create(self, kind: Kind, name: str, **fields: object) -> Json:
        """Add an object with a new uid; `metadata` may have more than that.

        Raises: Refused (409) where the name is taken.
        """
        if name in self._api.objects[kind]:
            raise Refused(409, "AlreadyExists")
        metadata: Json = {
            "name": name,
            "uid": self._api.new_uid(),
            "creationTimestamp": self._clock.wall_time(),
        }
        if kind not in OF_ALL:
            metadata["namespace"] = "default"
        more: Any = fields.pop("metadata", {})
        return self._write(kind, {"metadata": {**metadata, **more}, **fields})

    def change(self, kind: Kind, name: str, **fields: object) -> None:
        """Replace some fields of an object that exists."""
        self._write(kind, {**self._bodies[kind, name], **fields})

    def remove(self, kind: Kind, name: str) -> None:
        """Delete an object if it exists."""
        if self._bodies.pop((kind, name), None) is not None:
            self._api.remove(kind, name)
            gone = self._api.changes[kind][-1].record
            self._told[gone.version] = {}

    def patch_status(self, path: str, uid: str, status: Mapping[str, object], version: str) -> None:
        """Merge a status into the object at a path of the API.

        Raises: Refused (404, or 409 where the object has another uid or version).
        """
        kind, name = self.named_by(path)
        body = self._bodies.get((kind, name))
        if body is None:
            raise Refused(404, "NotFound")
        is_other = version not in ("", self._api.objects[kind][name].version)
        if body["metadata"]["uid"] != uid or is_other:
            raise Refused(409, "Conflict")
        there = body.get("status") or {}
        self.change(kind, name, status={**there, **self._timed(dict(status))})

    def named_by(self, path: str) -> tuple[Kind, str]:
        """The kind and the name of what is at a path of the API."""
        every, name = path.removesuffix("/status").rsplit("/", 1)
        every = every.replace("/namespaces/default", "")
        kind = next(kind for kind, each in self._served.items() if each.path == every)
        return kind, name

    def _timed(self, said: Any) -> Any:
        """The same with the time where it stands for it: see `controllers/objects/status.py`."""
        if said == AT_WRITE:
            return self._clock.wall_time()
        if isinstance(said, Mapping):
            return {key: self._timed(value) for key, value in said.items()}
        if isinstance(said, list | tuple):
            return [self._timed(each) for each in said]
        return said

    def _write(self, kind: Kind, body: Json) -> Json:
        name = body["metadata"]["name"]
        record = self._api.put(kind, self._served[kind].decode(msgspec.json.encode(body)))
        self._bodies[kind, name] = self._told[record.version] = body
        return body
