"""Other names for namespaces, pods, nodes and what pods belong to: the same one everywhere.

A name is replaced wherever it stands as a whole text, or as namespace/name: as a name, in a
reference, as the value of a label or of a selector. The numbers in the new names follow the order
of the old ones, so that what is decided by names is decided alike. Kinds, schedulers, resources,
levels and their values stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from app.cli.record.fields import Object
from app.cli.record.recording import EVERYTHING, HOSTNAME, Recording
from app.dialects.devices.dialect import KIND as DEVICE_CLASS
from app.dialects.kueue.driver_sets import SETS
from app.dialects.registry import DIALECTS, Dialects
from app.kube.core.objects import NodeRecord, ObjectRecord, Record
from app.kube.decoding.decode import decode_node, decode_pod
from app.kube.watch.events import Event, Listed

# Texts under these keys are never names, also if they look like some …
_STAY = frozenset(
    (
        "apiVersion",
        "creationTimestamp",
        "effect",
        "kind",
        "operator",
        "phase",
        "preemptionPolicy",
        "resourceVersion",
        "restartPolicy",
        "scheduler",
        "schedulerName",
        "status",
        "type",
    )
)
# … nor is anything below these.
_AMOUNTS = frozenset(("allocatable", "capacity", "overhead", "request", "requests"))
_WORDS = ("true", "false", "default-scheduler", "corral", "applied", "deleted", "listed")


@dataclass(slots=True)
class Names:
    """The names there are, and were; `renamed` gives each another one."""

    dialects: Dialects = field(default_factory=lambda: DIALECTS.configured(EVERYTHING))
    namespaces: set[str] = field(default_factory=set)
    nodes: set[str] = field(default_factory=set)
    pods: set[str] = field(default_factory=set)
    owners: set[str] = field(default_factory=set)
    """Objects of vocabularies, controllers of pods, and gangs."""
    uids: set[str] = field(default_factory=set)

    def hear(self, event: Event) -> None:
        """Learn the names in an event of a journal."""
        for record in event.records if isinstance(event, Listed) else (event.record,):
            self.add(record)

    def add(self, record: Record) -> None:
        """Learn the names in a record."""
        self.uids.add(record.uid)
        if isinstance(record, NodeRecord):
            self.nodes.add(record.name)
            return
        self.namespaces.add(record.namespace)
        if isinstance(record, ObjectRecord):
            if not self.dialects.claimed(record):  # its name is part of a resource's
                self.owners.add(record.name)
            return
        self.pods.add(record.name)
        self.nodes.update((record.node, record.nominated_node))
        if record.owner is not None:
            self.owners.add(record.owner.name)
            self.uids.add(record.owner.uid)
        claim = self.dialects.claim(record)
        if claim is not None:
            self.owners.add(claim.gang.name)

    def add_object(self, made: Object) -> None:
        """Learn the names in an object of the API."""
        metadata = made.get("metadata") or {}
        self.owners.add(metadata.get("name") or "")
        self.namespaces.add(metadata.get("namespace") or "")
        self.uids.add(metadata.get("uid") or "")
        for each in metadata.get("ownerReferences") or ():
            self.owners.add(each.get("name") or "")
            self.uids.add(each.get("uid") or "")

    def renamed(self) -> Mapping[str, str]:
        """Old name -> new name. A name of several kinds is renamed once, as the first of them."""
        found: dict[str, str] = {}
        kinds = (
            ("node", self.nodes),
            ("pod", self.pods),
            ("workload", self.owners),
            ("namespace", self.namespaces),
            ("uid", self.uids),
        )
        for kind, names in kinds:
            left = sorted(each for each in names if each and each not in found)
            digits = max(4, len(str(len(left))))
            found.update((old, f"{kind}-{at:0{digits}}") for at, old in enumerate(left))
        return found


def names_in(recording: Recording) -> Names:
    """Every name in a recording, those of gangs too."""
    names = Names()
    for raw in recording.nodes:
        names.add(decode_node(raw))
    for raw in recording.pods:
        names.add(decode_pod(raw, names.dialects.keeps))
    for raw in (*recording.pods, *recording.objects):
        made: Object = msgspec.json.decode(raw)
        # A pod's owners may be several. A DeviceClass's name is part of a resource's, which stays.
        if made["kind"] in ("Pod", DEVICE_CLASS):
            made = {"metadata": {**made["metadata"], "name": ""}}
        names.add_object(made)
    return names


def renaming(renamed: Mapping[str, str]) -> Callable[[Object], Object]:
    """What gives an object the new names."""
    anywhere = distinct(renamed)

    def change(made: Object) -> Object:
        made = changed(made, anywhere)
        metadata = dict(made.get("metadata") or {})
        for part in ("name", "namespace"):
            if part in metadata:
                metadata[part] = renamed.get(metadata[part], metadata[part])
        labels = metadata.get("labels")
        if made.get("kind") == "Node" and labels and HOSTNAME in labels:
            metadata["labels"] = {**labels, HOSTNAME: metadata["name"]}
        return {**made, "metadata": metadata}

    return change


def distinct(renamed: Mapping[str, str]) -> Mapping[str, str]:
    """Those that are renamed also where a text is not known to be a name: no common words."""
    return {old: new for old, new in renamed.items() if not (old.isdigit() or old in _WORDS)}


def changed(part: Any, renamed: Mapping[str, str]) -> Any:
    """The same with the new names wherever an old one stands as a whole text."""
    if isinstance(part, str):
        return renamed.get(part) or _of_names(part, renamed)
    if isinstance(part, list):
        return [changed(each, renamed) for each in part]
    if isinstance(part, dict):
        return {
            key: each if _stays(key, each) else _inside(key, each, renamed)
            for key, each in part.items()
        }
    return part


def _inside(key: str, value: Any, renamed: Mapping[str, str]) -> Any:
    """The value of a key; the text of driver sets, thinned before, is JSON or cannot be read."""
    if key != SETS or not isinstance(value, str) or not value.startswith("["):
        return changed(value, renamed)
    sets = changed(msgspec.json.decode(value), renamed)
    return msgspec.json.encode(sets).decode()


def _of_names(text: str, renamed: Mapping[str, str]) -> str:
    """A text such as namespace/name."""
    names = text.split("/")
    return "/".join(renamed.get(name, name) for name in names) if _all(names, renamed) else text


def _all(names: Sequence[str], renamed: Mapping[str, str]) -> bool:
    return len(names) > 1 and all(name in renamed for name in names)


def _stays(key: str, value: Any) -> bool:
    return key in _AMOUNTS or (key in _STAY and isinstance(value, str))


def left_over(text: str, names: Iterable[str]) -> list[str]:
    """The names that still stand somewhere, within other texts too."""
    return sorted(name for name in names if len(name) > 3 and name in text)
