"""How long HyperNodes take to be read and to change, PodGroups to be placed in them, and ordinary
pods to be scored by them.

6,000 nodes, 9,600 HyperNodes in three tiers.

    python -m benchmarks.hyper_nodes [--json] [--repeat 5]

The engine is given lists and events, as the watch gives them, and its trees are brought up to date.
The baseline is the tree of the same nodes where their labels say the same. Each PodGroup has 64
pods in one HyperNode of tier 3; and the same again with sub-groups of 8, each in one of tier 1.
The baseline of scores are those of the same nodes by their labels; every node is a candidate.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence

import msgspec

from app.dialects.volcano import pod_groups as volcano_pod_groups
from app.dialects.volcano.hyper_nodes import HyperNodeRecord, decode_hyper_node
from app.dialects.volcano.pod_groups import decode_pod_group
from app.kube.core.objects import NodeRecord, ObjectRecord, PodRecord
from app.kube.watch.events import Applied, Listed
from app.state.engine import Engine
from app.state.settings import EngineSettings
from benchmarks.table import Row, show
from tests.app.dialects.volcano.objects import by_labels, by_pattern, exact, hyper_node
from tests.app.dialects.volcano.workloads import (
    GROUP_NAME,
    PARTITION,
    TASK,
    network_topology,
    pod_group,
    sub_group,
)
from tests.records import node, pod, topology

NODES, LEAVES, MIDDLES, TOPS = 6_000, 7_200, 1_800, 600
LEVELS = ("example.com/top", "example.com/middle", "example.com/leaf")
GROUPS, PODS, PARTITION_PODS = 100, 64, 8
MOST_TICKS = 1_000
Members = Callable[[int], list[dict[str, object]]]


def nodes() -> tuple[NodeRecord, ...]:
    """The nodes; each has the name of its leaf as a label, and those of what is around it."""
    made = []
    for at in range(NODES):
        leaf = at * LEAVES // NODES
        values = (f"top-{leaf // 12}", f"middle-{leaf // 4}", f"leaf-{leaf}")
        made.append(node(f"n{at:05d}", labels=dict(zip(LEVELS, values, strict=True))))
    return tuple(made)


def first_node(leaf: int) -> str:
    """The name of the node in a leaf; there is a leaf in six without one."""
    return f"n{-(-leaf * NODES // LEAVES):05d}"


NAMED: dict[str, Members] = {
    "by name": lambda leaf: exact("Node", first_node(leaf)),
    "by pattern": lambda leaf: by_pattern(f"^{first_node(leaf)}$"),
    "by label": lambda leaf: by_labels(**{LEVELS[-1]: f"leaf-{leaf}"}),
}


def record(name: str, tier: int, members: list[dict[str, object]]) -> HyperNodeRecord:
    """A HyperNode as the watch shows it."""
    return decode_hyper_node(msgspec.json.encode(hyper_node(name, tier, members)))


def hyper_nodes(members: Members) -> tuple[HyperNodeRecord, ...]:
    """All of them; the leaves name their nodes in one way."""
    leaves = [record(f"leaf-{at}", 1, members(at)) for at in range(LEAVES)]
    middles = [middle(at, 4) for at in range(MIDDLES)]
    tops = [
        record(f"top-{at}", 3, exact("HyperNode", *(f"middle-{at * 3 + one}" for one in range(3))))
        for at in range(TOPS)
    ]
    return (*leaves, *middles, *tops)


def middle(at: int, leaves: int) -> HyperNodeRecord:
    """One of tier 2 with the first few of its leaves."""
    inner = (f"leaf-{at * 4 + one}" for one in range(leaves))
    return record(f"middle-{at}", 2, exact("HyperNode", *inner))


def seconds(work: Callable[[], object]) -> float:
    """How long a piece of work takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def engine(*objects: ObjectRecord, kind: str) -> tuple[Engine, float]:
    """An engine that has read everything, and how long the objects and the trees took."""
    made = Engine(EngineSettings(levels=(), kinds=(kind, "Node", "Pod")))
    made.apply(Listed("Node", nodes()), 1.0)
    made.apply(Listed("Pod", ()), 1.0)
    made.books.refresh()

    def read() -> None:
        made.apply(Listed(kind, objects), 1.0)
        made.books.refresh()

    return made, seconds(read)


def change(made: Engine, records: Sequence[NodeRecord | ObjectRecord]) -> float:
    """The longest of these events, with the trees brought up to date."""
    worst = 0.0
    for each in records:

        def take(record: NodeRecord | ObjectRecord = each) -> None:
            made.apply(Applied(record), 2.0)
            made.books.refresh()

        worst = max(worst, seconds(take))
    return worst


def pod_groups(policies: Sequence[dict[str, object]]) -> tuple[ObjectRecord, ...]:
    """All PodGroups as the watch shows them."""
    made = []
    for at in range(GROUPS):
        group = pod_group(f"g{at}", PODS, topology=network_topology(3), sub_groups=policies)
        group["metadata"]["uid"] = f"uid-g{at}"
        made.append(decode_pod_group(msgspec.json.encode(group)))
    return tuple(made)


def pods() -> tuple[PodRecord, ...]:
    """The pods of all PodGroups, of one GPU each; a node has eight."""
    return tuple(
        pod(
            f"g{group}-{at}",
            gpus=1,
            labels={TASK: "worker", PARTITION: str(at // PARTITION_PODS)},
            annotations={GROUP_NAME: f"g{group}"},
        )
        for group in range(GROUPS)
        for at in range(PODS)
    )


def placed(policies: Sequence[dict[str, object]]) -> tuple[float, float]:
    """Seconds until every PodGroup has its places, for one of them, and the longest tick.

    From when all lists are in; the pods are sorted into their gangs on the way.
    """
    tree = hyper_nodes(NAMED["by name"])
    kinds = ("HyperNode", volcano_pod_groups.KIND, "Node", "Pod")
    made = Engine(EngineSettings(levels=(), kinds=kinds))
    made.apply(Listed("Node", nodes()), 1.0)
    made.apply(Listed("HyperNode", tree), 1.0)
    made.apply(Listed(volcano_pod_groups.KIND, pod_groups(policies)), 1.0)
    every = pods()
    ticks = [seconds(lambda: made.apply(Listed("Pod", every), 1.0))]
    for at in range(MOST_TICKS):
        ticks.append(seconds(lambda now=1.0 + at / 10: made.tick(now)))  # type: ignore[misc]
        if all(len(gang.plan.nodes) == PODS for gang in made.gangs.by_key.values()):
            return sum(ticks) / GROUPS, max(ticks[1:])
    raise RuntimeError(f"after {MOST_TICKS} ticks some PodGroups have no places")


class Names(tuple[str, ...]):
    """Candidates that are simply there."""

    def names(self) -> Sequence[str]:
        """All of them."""
        return self


def scored(objects: Sequence[ObjectRecord], *, kind: str) -> float:
    """The least seconds that the scores of every node for an ordinary pod take."""
    made, _ = engine(*objects, kind=kind)
    asks, names = pod("asks", gpus=1), Names(each.name for each in nodes())
    for at in range(0, NODES, 3):
        made.apply(Applied(pod(f"runs-{at}", gpus=1 + at % 7, on=names[at])), 1.0)
    return min(seconds(lambda: made.prioritize(asks, names, 1.0)) for _ in range(50))


def rows(repeat: int) -> Iterator[Row]:
    """Every figure, the best of several runs."""
    labels = topology("labels", *LEVELS)
    barest = min(engine(labels, kind="Topology")[1] for _ in range(repeat))
    for how, members in NAMED.items():
        read, changed, moved = [], [], []
        for _ in range(repeat):
            made, took = engine(*hyper_nodes(members), kind="HyperNode")
            read.append(took)
            changes = [middle(7, 3), record("leaf-9", 1, members(30)), middle(7, 4)]
            changed.append(change(made, changes))
            moved.append(change(made, [node("n00011", labels={LEVELS[-1]: "leaf-77"})]))
        case = f"nodes named {how}"
        yield _row(f"{case}: all are read", min(read), barest, "<= 2,000 ms")
        yield _row(f"{case}: one HyperNode changes", min(changed), barest, "<= 20 ms")
        yield _row(f"{case}: a node's labels change", min(moved), barest, "<= 20 ms")
    by_tiers = scored(hyper_nodes(NAMED["by name"]), kind="HyperNode")
    by_labels_alone = scored((labels,), kind="Topology")
    yield _row("ordinary pod: every node is scored", by_tiers, by_labels_alone, "<= 2 ms")
    for case, policies in (
        ("PodGroup of 64", []),
        ("PodGroup of 8 sub-groups of 8", [sub_group("worker", 8, topology=network_topology(1))]),
    ):
        each, longest = map(min, zip(*(placed(policies) for _ in range(repeat)), strict=True))
        yield _row(f"{case}: placed", each, barest, "<= 20 ms")
        yield _row(f"{case}: the longest tick of 100", longest, barest, "<= 50 ms")


def _row(case: str, value: float, barest: float, target: str) -> Row:
    return Row(
        benchmark="hyper_nodes",
        case=case,
        nodes=NODES,
        value=value * 1e3,
        unit="ms",
        baseline=barest * 1e3,
        ratio=value / barest,
        target=target,
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hyper_nodes", description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--repeat", type=int, default=5)
    asked = parser.parse_args()
    show(list(rows(asked.repeat)), as_json=asked.json)


if __name__ == "__main__":
    main()
