"""What Corral tells kube-scheduler about the pods of a cluster written as Kubernetes objects.

    objects ─JSON─▶ the reflector's decoders ─Listed─▶ Engine ─tick─▶ /filter, pod by pod ─▶ Told

The one place of these tests that knows the app: objects go in as the API server sends them, and
what comes out is what a user sees, a node or a sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from app.dialects.registry import DIALECTS
from app.kube.core.objects import PodRecord
from app.kube.watch.events import Listed
from app.state.engine import Engine
from app.state.filter_result import Passed, Pinned, Rejected
from app.state.settings import EngineSettings

Object = dict[str, Any]

RESOURCES = {resource.kind: resource for resource in DIALECTS.resources()}
NOW = 1_000.0  # seconds; nothing here depends on when it is


@dataclass(frozen=True, slots=True)
class Told:
    """The answer for one pod: its node, or why it has none."""

    node: str = ""
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class _Everything:
    """kube-scheduler offers every node."""

    nodes: tuple[str, ...]

    def __contains__(self, name: object) -> bool:
        return name in self.nodes

    def __len__(self) -> int:
        return len(self.nodes)

    def names(self) -> Sequence[str]:
        return self.nodes


def told(objects: Iterable[Object], settings: Mapping[str, bool]) -> dict[str, Told]:
    """The answer for each member of a gang that has no node, by its name.

    `settings` beside the defaults.

    Raises: DecodeError for an object that the watch would leave out.
    """
    records: dict[str, list[Any]] = {kind: [] for kind in RESOURCES}
    for each in objects:
        kind = each["kind"]
        records[kind].append(RESOURCES[kind].decode(msgspec.json.encode(each)))
    engine = Engine(EngineSettings(**settings))
    for kind, resource in RESOURCES.items():
        engine.apply(Listed(resource.kind, tuple(records[kind])), NOW)
    engine.tick(NOW)
    nodes = _Everything(tuple(record.name for record in records["Node"]))
    waiting = [pod for pod in records["Pod"] if not pod.node]
    answers = {pod.name: _told(engine, pod, nodes) for pod in waiting}
    return {name: answer for name, answer in answers.items() if answer is not None}


def _told(engine: Engine, pod: PodRecord, nodes: _Everything) -> Told | None:
    answer, _ = engine.filter(pod, nodes, NOW)
    if isinstance(answer, Pinned):
        return Told(node=answer.node)
    if isinstance(answer, Rejected):
        return Told(sentence=answer.sentence)
    if isinstance(answer, Passed):
        return None  # an ordinary pod
    raise AssertionError(f"pod {pod.key}: {answer}")
