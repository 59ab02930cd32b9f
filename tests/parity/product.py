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
from app.state.effects import ReadAgain
from app.state.engine import Engine
from app.state.filter_result import Passed, Pinned, Rejected
from app.state.objects.pod_lists import GATHER_SECONDS
from app.state.settings import EngineSettings

Object = dict[str, Any]

NOW = 1_000.0  # seconds; nothing here depends on when it is
MOST_ANSWERS = 1_000


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
    engine = Engine(EngineSettings(**settings))
    labels = engine.kept_keys.labels
    resources = {each.kind: each for each in DIALECTS.resources(labels=labels)}
    written: dict[str, list[bytes]] = {kind: [] for kind in resources}
    for each in objects:
        written[each["kind"]].append(msgspec.json.encode(each))
    records: dict[str, list[Any]] = {}
    again = tuple(resources)
    for now in (NOW, NOW + GATHER_SECONDS):  # the second time with what objects made worth reading
        for kind in again:
            resource, edition = resources[kind], labels.edition
            records[kind] = [resource.decode(raw) for raw in written[kind]]
            engine.apply(Listed(kind, tuple(records[kind]), edition), now)
        engine.tick(now)
        effects = engine.tick(now + GATHER_SECONDS)
        again = tuple(each.kind for each in effects if isinstance(each, ReadAgain))
    assert not again
    _search_on(engine, NOW + 2 * GATHER_SECONDS)
    nodes = _Everything(tuple(record.name for record in records["Node"]))
    waiting = [pod for pod in records["Pod"] if not pod.node]
    answers = {pod.name: _told(engine, pod, nodes) for pod in waiting}
    return {name: answer for name, answer in answers.items() if answer is not None}


def _search_on(engine: Engine, now: float) -> None:
    """Answer, as the thread would, what gangs ask whose search took the loop too long."""
    for _ in range(MOST_ANSWERS):
        questions = ((key, engine.searches_on.request(key)) for key in list(engine.gangs.by_key))
        asked = next(((key, question) for key, question in questions if question is not None), None)
        if asked is None:
            return
        key, question = asked
        engine.place_found(key, question.answer(), 0.0, now)
        now += 1.0
        engine.tick(now)
    raise AssertionError("gangs ask again and again")


def _told(engine: Engine, pod: PodRecord, nodes: _Everything) -> Told | None:
    answer, _ = engine.filter(pod, nodes, NOW)
    if isinstance(answer, Pinned):
        return Told(node=answer.node)
    if isinstance(answer, Rejected):
        return Told(sentence=answer.sentence)
    if isinstance(answer, Passed):
        return None  # an ordinary pod
    raise AssertionError(f"pod {pod.key}: {answer}")
