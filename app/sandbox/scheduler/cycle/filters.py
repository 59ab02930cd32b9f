"""The in-tree filters, over all candidate nodes at once.

    candidates ─▶ open? ─▶ named? ─▶ taints ─▶ labels ─▶ resources ─▶ first K that pass

Per node the first filter that fails decides, in the stock order; resources report every
shortage. Not here: ports, topology spread, pod affinity; of volumes and resource
claims only whether they are there (`claims.py`).
Source: pkg/scheduler/framework/plugins of kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from app.sandbox.scheduler.facts.node_match import tolerates, tolerates_cordon
from app.sandbox.scheduler.facts.node_table import PODS, Columns, Counts, Mask, NodeTable
from app.sandbox.scheduler.facts.pod_facts import PodFacts

_MIN_NODES = 100  # minFeasibleNodesToFind: below it every node is looked at
_MIN_PERCENTAGE = 5  # minFeasibleNodesPercentageToFind

FIT = "NodeResourcesFit"
# (plugin, reason) of the filters before it, in order; each rejects beyond repair.
_SIMPLE = (
    ("NodeUnschedulable", "node(s) were unschedulable"),
    ("NodeName", "node(s) didn't match the requested node name"),
    ("TaintToleration", "node(s) had untolerated taint(s)"),
    ("NodeAffinity", "node(s) didn't match Pod's node affinity/selector"),
)
_OK, _FIT = 0, len(_SIMPLE) + 1


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why one node is out. is_final: evicting pods there would not help."""

    reasons: tuple[str, ...]
    is_final: bool
    plugin: str


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What filtering some nodes gave.

    Shapes: feasible (F,) and failed (E,) columns in the order they were looked at; stage (E,)
    is 1 + index into the simple filters, or `_FIT`; short and hopeless (Q, E) per resource.
    names: of the columns as they were then; the table may have moved on since.
    """

    names: Sequence[str]
    feasible: Columns
    failed: Columns
    stage: Columns
    resources: list[str]
    short: Mask
    hopeless: Mask

    @property
    def failed_nodes(self) -> int:
        return len(self.failed)

    def feasible_names(self) -> list[str]:
        return [self.names[column] for column in self.feasible.tolist()]

    def rejectors(self) -> set[str]:
        """The plugins that turned some node down."""
        stages = set(self.stage.tolist())
        return {FIT if stage == _FIT else _SIMPLE[stage - 1][0] for stage in stages}

    def verdicts(self) -> dict[str, Verdict]:
        """One verdict per failed node; equal ones are the same object."""
        weights = 1 << np.arange(len(self.resources), dtype=np.int64)
        codes = (self.stage << 48) | (weights @ self.short) | self.hopeless.any(axis=0) << 47
        known: dict[int, Verdict] = {}
        found: dict[str, Verdict] = {}
        for column, code in zip(self.failed.tolist(), codes.tolist(), strict=True):
            verdict = known.get(code)
            if verdict is None:
                verdict = known[code] = self._verdict(code)
            found[self.names[column]] = verdict
        return found

    def _verdict(self, code: int) -> Verdict:
        stage = code >> 48
        if stage != _FIT:
            plugin, reason = _SIMPLE[stage - 1]
            return Verdict((reason,), True, plugin)
        reasons = tuple(
            "Too many pods" if name == PODS else f"Insufficient {name}"
            for place, name in enumerate(self.resources)
            if code >> place & 1
        )
        return Verdict(reasons, bool(code >> 47 & 1), FIT)


def filter_nodes(
    table: NodeTable,
    facts: PodFacts,
    candidates: Columns,
    nodes_to_find: int,
    nominated: Iterable[PodFacts] = (),
) -> Outcome:
    """Filter the candidates in order until enough of them pass.

    nominated: pods that hold their nominated node against this one.
    """
    stage = np.zeros(len(candidates), np.intp)
    simple = (
        table.is_open[candidates] | tolerates_cordon(facts.tolerations),
        _named(table, facts, candidates),
        table.taint_mask(lambda taints: tolerates(facts.tolerations, taints))[candidates],
        table.label_mask(facts)[candidates],
    )
    for place, passes in reversed(tuple(enumerate(simple))):
        stage[~passes] = place + 1
    resources, rows, asked = table.request_rows(facts.requests)
    allocatable = table.allocatable[np.ix_(rows, candidates)]
    used = _used(table, rows, nominated)[:, candidates]
    # As upstream: a request of zero is not judged, the pod's own slot always is.
    short = asked[:, None] > allocatable - used
    stage[(stage == _OK) & short.any(axis=0)] = _FIT
    passing = np.flatnonzero(stage == _OK)
    looked_at = len(candidates)
    if len(passing) > nodes_to_find:
        looked_at = int(passing[nodes_to_find - 1]) + 1
        passing = passing[:nodes_to_find]
    failing = np.flatnonzero(stage[:looked_at] != _OK)
    # Too many pods can be cured by evicting some; more than a node has can not.
    hopeless = (asked[:, None] > allocatable)[:, failing] & (rows != 0)[:, None]
    in_fit = stage[failing] == _FIT
    return Outcome(
        table.names,
        candidates[passing],
        candidates[failing],
        stage[failing],
        resources,
        short[:, failing] & in_fit,
        hopeless & in_fit,
    )


def nodes_to_find(percentage: int, candidates: int) -> int:
    """How many feasible nodes end the search (numFeasibleNodesToFind).

    percentage: 0 is the adaptive rule, 50 - nodes / 125 but at least 5.
    """
    if candidates < _MIN_NODES:
        return candidates
    if percentage == 0:
        percentage = max(50 - candidates // 125, _MIN_PERCENTAGE)
    return max(candidates * percentage // 100, _MIN_NODES)


def _named(table: NodeTable, facts: PodFacts, candidates: Columns) -> Mask:
    if not facts.node:
        return np.ones(len(candidates), np.bool_)
    mask: Mask = candidates == table.column_of.get(facts.node, -1)
    return mask


def _used(table: NodeTable, rows: Columns, nominated: Iterable[PodFacts]) -> Counts:
    used = table.used[rows]
    place_of = {int(row): place for place, row in enumerate(rows)}
    for pod in nominated:
        column = table.column_of.get(pod.nominated_node)
        if column is not None:
            _, pod_rows, amounts = table.request_rows(pod.requests)
            for row, amount in zip(pod_rows.tolist(), amounts.tolist(), strict=True):
                if row in place_of:
                    used[place_of[row], column] += amount
    return used
