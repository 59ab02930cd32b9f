"""What one pod of a gang costs the engine alone, by the size of the gang.

    python -m benchmarks.gang_size [--json] [--pods 64,1000,10000]

One gated gang from its creation to its last binding, in virtual time and as fast as the parts of a
real cluster are on two cores: pods are created, ungated, brought by kube-scheduler and bound at
rates of their own. What was refused at /bind comes again after kube-scheduler's back-off, so a gang
that takes longer than `gang_bind_seconds` to pass is asked for more than once per pod.
Baseline: the smallest gang.
"""

from __future__ import annotations

import argparse
import gc
import heapq
import time
from collections import deque
from collections.abc import Callable, Iterable

import msgspec

from app.dialects.corral import GATE
from app.kube.core.objects import PodRecord
from app.kube.watch.events import Applied, Listed
from app.state.effects import Bind, Bound, Effect, RejectBind, Ungate, Ungated
from app.state.engine import Engine
from app.state.filter_result import Pinned
from app.state.settings import EngineSettings
from benchmarks.table import Row, show
from tests.app.state.world import Names, ungated
from tests.records import BLOCK, RACK, group, node, pod

CREATED, UNGATED, BROUGHT, BOUND = 600.0, 450.0, 250.0, 700.0  # pods per second
TICK_SECONDS, WATCH_SECONDS = 0.1, 0.005
GPUS, NODES_PER_RACK, RACKS_PER_BLOCK = 8, 16, 16
MOST_SECONDS = 1000.0  # virtual; a gang that is not bound by then never is


class OneGang:
    """A gang of so many pods with a GPU each, on as many nodes as it fills."""

    def __init__(self, pods: int) -> None:
        self.nodes = max(NODES_PER_RACK, -(-pods // GPUS))
        self.now, self.cpu, self.answers, self.bound = 0.0, 0.0, 0, 0
        settings = EngineSettings(levels=(BLOCK, RACK))
        self._engine = Engine(settings)
        nodes = tuple(node(_path(number), gpus=GPUS) for number in range(self.nodes))
        self._engine.apply(Listed("Node", nodes), self.now)
        for kind in settings.kinds:
            if kind != "Node":
                self._engine.apply(Listed(kind, ()), self.now)
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = 0
        self._free_at = dict.fromkeys((UNGATED, BOUND), 0.0)  # of those who write
        self._queue: deque[str] = deque()  # of kube-scheduler
        self._refused: dict[str, int] = {}
        said = group("g", pods)
        made = [pod(f"g{n}", gpus=1, annotations=said, gates=(GATE,)) for n in range(pods)]
        self._pods = {each.uid: each for each in made}
        for number, each in enumerate(made):
            self._at(number / CREATED, lambda each=each: self._hear(each))

    def run(self) -> None:
        """Play it until every pod is bound. Raises: TimeoutError."""
        self._tick()
        self._schedule()
        while self.bound < len(self._pods):
            self.now, _, action = heapq.heappop(self._agenda)
            if self.now > MOST_SECONDS:
                raise TimeoutError(f"{self.bound} of {len(self._pods)} pods are bound")
            action()

    def _at(self, when: float, action: Callable[[], None]) -> None:
        self._numbers += 1
        heapq.heappush(self._agenda, (when, self._numbers, action))

    def _after(self, seconds: float, action: Callable[[], None]) -> None:
        self._at(self.now + seconds, action)

    def _written(self, per_second: float, action: Callable[[], None]) -> None:
        """Do it when a writer of that rate comes to it."""
        self._free_at[per_second] = max(self._free_at[per_second], self.now) + 1 / per_second
        self._at(self._free_at[per_second], action)

    # -- what the engine is told ---------------------------------------------------------------

    def _take(self, step: Callable[[], Iterable[Effect]]) -> None:
        began = time.process_time()
        effects = step()
        self.cpu += time.process_time() - began
        for effect in effects:
            match effect:
                case Ungate():
                    self._written(UNGATED, lambda effect=effect: self._ungate(effect))
                case Bind():
                    self._written(BOUND, lambda effect=effect: self._bind(effect))
                case RejectBind():
                    self._refuse(effect.uid)

    def _tick(self) -> None:
        self._take(lambda: self._engine.tick(self.now))
        self._after(TICK_SECONDS, self._tick)

    def _hear(self, record: PodRecord) -> None:
        self._pods[record.uid] = record
        self._take(lambda: self._engine.apply(Applied(record), self.now))

    def _schedule(self) -> None:
        """One cycle of kube-scheduler: /filter, and /bind beside the next one."""
        self._after(1 / BROUGHT, self._schedule)
        if not self._queue:
            return
        record = self._pods[self._queue.popleft()]
        terms = record.shape.terms
        names = Names([term.fields[0].values[0] for term in terms])
        began = time.process_time()
        answer, effects = self._engine.filter(record, names, self.now)
        self.cpu += time.process_time() - began
        self.answers += 1
        self._take(lambda: effects)
        if isinstance(answer, Pinned):
            uid, on = record.uid, answer.node
            arrive = self._engine.bind_arrived
            self._after(
                WATCH_SECONDS,
                lambda: self._take(lambda: arrive("default", record.name, uid, on, self.now)),
            )

    # -- what others do ------------------------------------------------------------------------

    def _ungate(self, effect: Ungate) -> None:
        self._take(lambda: self._engine.ungate_finished(effect.uid, Ungated(), self.now))
        record = self._pods[effect.uid]
        if record.gates:
            self._pods[effect.uid] = ungated(record, effect)
            self._after(WATCH_SECONDS, lambda: self._hear(self._pods[effect.uid]))
            self._after(WATCH_SECONDS, lambda: self._queue.append(effect.uid))

    def _bind(self, effect: Bind) -> None:
        self._take(lambda: self._engine.bind_finished(effect.uid, Bound(), self.now))
        record = msgspec.structs.replace(self._pods[effect.uid], node=effect.node)
        self._after(WATCH_SECONDS, lambda: self._hear(record))
        self.bound += 1

    def _refuse(self, uid: str) -> None:
        """kube-scheduler writes a condition, and tries the pod again after its back-off."""
        self._after(WATCH_SECONDS, lambda: self._hear(self._pods[uid]))
        times = self._refused[uid] = self._refused.get(uid, 0) + 1
        self._after(min(2.0 ** (times - 1), 10.0), lambda: self._queue.append(uid))


def _path(number: int) -> str:
    rack = number // NODES_PER_RACK
    return f"b{rack // RACKS_PER_BLOCK}/r{rack}/n{number}"


def rows_of(sizes: Iterable[int]) -> Iterable[Row]:
    """CPU and questions per pod of each size."""
    baseline = None
    for pods in sizes:
        gang = OneGang(pods)
        gc.collect()
        gc.freeze()  # as `corral serve` does
        gang.run()
        spent = 1000 * gang.cpu / pods
        baseline = spent if baseline is None else baseline
        case = f"one gang of {pods}"
        ratio = spent / baseline
        yield Row("gang_size", f"{case}: CPU", gang.nodes, spent, "ms per pod", baseline, ratio)
        asked = gang.answers / pods
        yield Row("gang_size", f"{case}: /filter answers", gang.nodes, asked, "per pod")
        yield Row("gang_size", f"{case}: all bound", gang.nodes, gang.now, "virtual s")


def main() -> None:
    """Measures every size asked for and prints one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    parser.add_argument("--pods", default="64,1000,10000", help="sizes, with commas")
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.pods.split(",")]
    show(list(rows_of(sizes)), as_json=arguments.json)


if __name__ == "__main__":
    main()
