"""What is recorded of a cluster, and how it is written: `cluster-snapshot/v1`."""

from __future__ import annotations

import errno
import gzip
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from app.cli.record.fields import Object, with_labels
from app.dialects.presets import PRESETS
from app.dialects.topograph import ACCELERATORS, EARLIER_ACCELERATORS, EARLIER_FABRIC, FABRIC
from app.settings import EngineOptions

SCHEMA = "cluster-snapshot/v1"  # as `corral sandbox` reads it
HOSTNAME = "kubernetes.io/hostname"
STDOUT = "-"
EVERYTHING = EngineOptions(native_pod_groups="on")  # every vocabulary there is
NOT_RECORDED = (
    "env, args, commands, images, volumes and names of containers",
    "annotations and labels that no vocabulary of Corral reads and no recorded pod selects",
    "affinity and spread between pods, host ports, volumes: kube-scheduler alone looks at them",
    "pods that have ended",
)
_TIERS = FABRIC.partition("{")[0]
_LEVELS = frozenset((HOSTNAME, *ACCELERATORS, *EARLIER_ACCELERATORS, *EARLIER_FABRIC)).union(
    *PRESETS.values()
)


@dataclass(slots=True)
class Recording:
    """Nodes, pods and objects, as JSON each: a cluster of 150,000 pods is 100 MB of it."""

    name: str
    nodes: list[bytes] = field(default_factory=list)
    pods: list[bytes] = field(default_factory=list)
    objects: list[bytes] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What of the cluster could not be read."""
    _label_keys: set[str] = field(default_factory=set)
    _selected: set[str] = field(default_factory=set)
    """The label keys of nodes that something recorded names."""

    def add_node(self, node: Object) -> None:
        """Add a node; nodes come before all that may name their labels."""
        self._label_keys.update(node["metadata"].get("labels", ()))
        self.nodes.append(msgspec.json.encode(node))

    def add_pod(self, pod: Object) -> None:
        """Add a pod."""
        self.note_selected(pod)
        self.pods.append(msgspec.json.encode(pod))

    def add_object(self, made: Object) -> None:
        """Add an object of a vocabulary."""
        self.note_selected(made)
        self.objects.append(msgspec.json.encode(made))

    def select(self, keys: Iterable[str]) -> None:
        """Keep labels of these keys, named by others or not: the levels that are set."""
        self._selected.update(keys)

    def note_selected(self, made: Any) -> None:
        """Keep the labels of nodes whose keys are texts in this: a selector's, a level's."""
        for text in texts(made):
            if text in self._label_keys:
                self._selected.add(text)

    def keeps_label(self, key: str) -> bool:
        """Whether a label of nodes is recorded."""
        return key in self._selected or key in _LEVELS or key.startswith(_TIERS)

    def pieces(self, change: Callable[[Object], Object] | None = None) -> Iterator[bytes]:
        """The snapshot as JSON. `change`: what is done to each object before it is written."""
        head = {"schema": SCHEMA, "name": self.name, "notRecorded": [*NOT_RECORDED, *self.notes]}
        yield msgspec.json.encode(head)[:-1]
        for part in ("nodes", "pods", "objects"):
            yield b',\n"%b":[' % part.encode()
            for at, raw in enumerate(getattr(self, part)):
                made: Object = msgspec.json.decode(raw)
                if part == "nodes":
                    made = with_labels(made, self.keeps_label)
                if change is not None:
                    made = change(made)
                yield (b",\n" if at else b"\n") + msgspec.json.encode(made)
            yield b"]"
        yield b"}\n"


def texts(made: Any) -> Iterator[str]:
    """Every text in it, keys too."""
    waiting = [made]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict):
            waiting.extend(part)
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)


def is_device(path: str) -> bool:
    """Whether something is there that is no file, and no folder either."""
    there = Path(path)
    return there.exists() and not there.is_file() and not there.is_dir()


def require_place(path: str) -> None:
    """Raises: OSError naming the path, if no file can be there; before all that is read for it."""
    if path == STDOUT or is_device(path):
        return
    if Path(path).is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not Path(path).parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def write(path: str, pieces: Iterable[bytes]) -> None:
    """Write a file, gzipped if its name says so, whole or not at all; - is stdout. Raises: OSError.

    Its owner alone may read it, also where another user has put a file or a link of the other name
    there before. What is no file, such as /dev/null, is written to and stays what it is.
    """
    if path == STDOUT:
        import sys

        for piece in pieces:
            sys.stdout.buffer.write(piece)
        return
    if is_device(path):
        with Path(path).open("wb") as device:
            for piece in pieces:
                device.write(piece)
        return
    partial = Path(f"{path}.partial")
    partial.unlink(missing_ok=True)
    try:
        made = os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        with made, gzip.open(made, "wb") if path.endswith(".gz") else nullcontext(made) as file:
            for piece in pieces:
                file.write(piece)
        partial.replace(path)
    except BaseException:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise
