"""What an engine decides that has just been told all of a journal's beginning, as a journal.

lines of a dump ──▶ fresh engine behind a recorder ──▶ the same lines with their answers
                          └── ticks until the gangs stand still; then each member that waits
                              asks /filter and /prioritize, and comes to /bind where it may
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from app.dialects.registry import DIALECTS, Dialects
from app.state.cache.books import is_open
from app.state.effects import Effect, SeekPlace
from app.state.engine import Engine
from app.state.filter_result import Pinned
from app.state.journal.record import Recorder
from app.state.journal.replay import Offered, replay
from app.state.settings import EngineSettings

TICK_SECONDS = 0.1
STILL_TICKS = 3  # without a change: all gangs have had their turn
MOST_TICKS = 600
MOST_ASKED = 1_000  # pods that ask


def rehearse(
    lines: Iterable[bytes],
    write: Callable[[bytes], None],
    *,
    note: Callable[[str], None] | None = None,
    asks: bool = True,
    dialects: Dialects = DIALECTS,
) -> None:
    """Write a journal: these inputs, and what follows from them alone, with every answer.

    `note` gets a sentence for each fault that the engine isolated. `asks`: the pods that wait then
    ask as kube-scheduler would bring them; else the journal ends where the lines do.
    Raises: DecodeError naming the invalid line.
    """
    made: list[tuple[Engine, Recorder]] = []
    latest = 0.0

    def build(settings: EngineSettings) -> Recorder:
        engine = Engine(settings, _told(note), dialects)
        recorder = Recorder(engine, settings, write)
        made.append((engine, recorder))
        return recorder

    def seen(now: float) -> None:
        nonlocal latest
        latest = max(latest, now)

    for _ in replay(lines, build=build, dialects=dialects, on_time=seen):
        pass  # answers that differ from those of the journal are written as they are now
    ((engine, recorder),) = made
    if asks:
        _decide(engine, recorder, latest)


def _told(note: Callable[[str], None] | None) -> Callable[[str, Exception], None]:
    def tell(what: str, error: Exception) -> None:
        if note is not None:
            note(f"{what}: {error!r}")

    return tell


def _search_on(engine: Engine, recorder: Recorder, effects: list[Effect], now: float) -> None:
    """Answer what gangs ask, as a thread would, and what they ask then."""
    while asked := [each.gang for each in effects if isinstance(each, SeekPlace)]:
        question = engine.searches_on.request(asked[0])
        answer = None if question is None else question.answer()
        effects = recorder.place_found(asked[0], answer, 0.0, now)


def _decide(engine: Engine, recorder: Recorder, now: float) -> None:
    still, before = 0, engine.gangs_by_phase()
    for _ in range(MOST_TICKS):
        now += TICK_SECONDS
        _search_on(engine, recorder, recorder.tick(now), now)
        phases = engine.gangs_by_phase()
        is_still = phases == before and not engine.gangs.unreviewed
        still, before = (still + 1 if is_still else 0), phases
        if still >= STILL_TICKS:
            break
    nodes = Offered([name for name, node in engine.books.nodes.items() if is_open(node)])
    waiting = [
        member.pod
        for gang in list(engine.gangs.by_key.values())
        for member in gang.members.values()
        if member.is_live and not member.pod.node
    ]
    for pod in waiting[:MOST_ASKED]:
        answer, _ = recorder.filter(pod, nodes, now)
        recorder.prioritize(pod, nodes, now)
        if isinstance(answer, Pinned):
            recorder.bind_arrived(pod.namespace, pod.name, pod.uid, answer.node, now)
    recorder.tick(now + TICK_SECONDS)
