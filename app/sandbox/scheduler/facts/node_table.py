"""The scheduler's own picture of the nodes: what is there, and what bound and assumed pods use.

    arrays, one column per node:  allocatable[R, N]   used[R, N]   scored[2, N]   is_open[N]

Sums are kept per node as pods come and go, so a cycle costs a few passes over arrays and never
a walk over pods. Row 0 is the number of pods; rows are added when a resource first appears.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from app.sandbox.apiserver.rules.quantity import amount
from app.sandbox.apiserver.storage.kinds import Object
from app.sandbox.apiserver.storage.store import Stored
from app.sandbox.scheduler.facts.node_match import matches_node, pinned_names
from app.sandbox.scheduler.facts.pod_facts import PodFacts

Counts = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Columns = npt.NDArray[np.intp]

PODS = "pods"
_SHAPES_KEPT = 256  # how many pod shapes' label masks are remembered


class NodeTable:
    """Invariant: used[:, c] is the sum over `pods_on(name of c)`, assumed pods included.

    Pods bound to a node that is not (yet) known are kept and counted when it appears.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.nodes: list[Stored] = []
        self.column_of: dict[str, int] = {}
        self.rows: dict[str, int] = {PODS: 0, "cpu": 1, "memory": 2}
        self.allocatable: Counts = np.zeros((3, 0), np.int64)
        self.used: Counts = np.zeros((3, 0), np.int64)
        self.scored: Counts = np.zeros((2, 0), np.int64)
        self.is_open: Mask = np.zeros(0, np.bool_)
        self.taint_group: Columns = np.zeros(0, np.intp)
        self.taint_groups: list[tuple[Object, ...]] = []
        self._group_of: dict[str, int] = {}
        self._pods: dict[str, dict[str, PodFacts]] = {}
        self._where: dict[str, str] = {}  # pod uid -> node name
        self._assumed: set[str] = set()
        self._label_masks: OrderedDict[bytes, Mask] = OrderedDict()

    def __len__(self) -> int:
        return len(self.names)

    def set_nodes(self, nodes: Sequence[Stored]) -> None:
        """Add many at once: the arrays grow once."""
        unknown = {each.body["metadata"]["name"] for each in nodes} - self.column_of.keys()
        self._widen(len(self.names) + len(unknown))
        for stored in nodes:
            self.set_node(stored)

    def set_node(self, stored: Stored) -> None:
        """Add a node, or update it."""
        name = stored.body["metadata"]["name"]
        column = self.column_of.get(name)
        if column is None:
            column = self._append(name, stored)
            relabelled = True
        else:
            relabelled = _labels(self.nodes[column]) != _labels(stored)
            self.nodes[column] = stored
        if relabelled:
            self._label_masks.clear()
        self._read_node(column, stored.body)

    def remove_node(self, name: str) -> None:
        """Forget a node; its column closes up. The pods bound to it stay remembered."""
        column = self.column_of.pop(name, None)
        if column is None:
            return
        # A new list: a cycle under way keeps the old one, whose columns it uses.
        self.names = [*self.names[:column], *self.names[column + 1 :]]
        del self.nodes[column]
        self.column_of = {each: place for place, each in enumerate(self.names)}
        self.allocatable = np.delete(self.allocatable, column, axis=1)
        self.used = np.delete(self.used, column, axis=1)
        self.scored = np.delete(self.scored, column, axis=1)
        self.is_open = np.delete(self.is_open, column)
        self.taint_group = np.delete(self.taint_group, column)
        self._label_masks.clear()

    def add_pod(self, facts: PodFacts, node: str, *, is_assumed: bool = False) -> None:
        """Count a pod on a node; a pod known elsewhere or in another version is replaced."""
        self.remove_pod(facts.uid)
        self._where[facts.uid] = node
        self._pods.setdefault(node, {})[facts.uid] = facts
        if is_assumed:
            self._assumed.add(facts.uid)
        self._count(facts, node, 1)

    def remove_pod(self, uid: str) -> bool:
        """Forget a pod; False if it was not counted anywhere."""
        node = self._where.pop(uid, None)
        if node is None:
            return False
        self._assumed.discard(uid)
        self._count(self._pods[node].pop(uid), node, -1)
        return True

    def is_assumed(self, uid: str) -> bool:
        return uid in self._assumed

    def knows(self, uid: str) -> bool:
        return uid in self._where

    def pods_on(self, node: str) -> Iterable[PodFacts]:
        return self._pods.get(node, {}).values()

    def request_rows(self, requests: Mapping[str, int]) -> tuple[list[str], Columns, Counts]:
        """Names, rows and amounts of a request, the pod itself first."""
        names = [PODS, *requests]
        rows = np.array([self._row(name) for name in names], np.intp)
        return names, rows, np.array([1, *requests.values()], np.int64)

    def label_mask(self, facts: PodFacts) -> Mask:
        """Which nodes the pod's node selector and required affinity allow; remembered by shape."""
        mask = self._label_masks.get(facts.shape)
        if mask is None:
            names = pinned_names(facts)  # a narrowed pod has a hundred terms: look at those nodes
            columns = self.column_of.keys() if names is None else names & self.column_of.keys()
            mask = np.zeros(len(self.nodes), np.bool_)
            for column in (self.column_of[name] for name in columns):
                mask[column] = matches_node(facts, self.nodes[column].body)
            self._label_masks[facts.shape] = mask
            if len(self._label_masks) > _SHAPES_KEPT:
                self._label_masks.popitem(last=False)
        else:
            self._label_masks.move_to_end(facts.shape)
        return mask

    def taint_mask(self, tolerates: Callable[[tuple[Object, ...]], bool]) -> Mask:
        """Which nodes' taints are tolerated; judged once per distinct set of taints."""
        allowed = np.array([tolerates(group) for group in self.taint_groups], np.bool_)
        mask: Mask = allowed[self.taint_group]
        return mask

    def _append(self, name: str, stored: Stored) -> int:
        column = len(self.names)
        self.names.append(name)
        self.nodes.append(stored)
        self.column_of[name] = column
        if column >= self.is_open.size:
            self._widen(column + 1)
        for facts in self.pods_on(name):
            self._count(facts, name, 1)
        return column

    def _widen(self, columns: int) -> None:
        more = columns - self.is_open.size
        self.allocatable = np.pad(self.allocatable, ((0, 0), (0, more)))
        self.used = np.pad(self.used, ((0, 0), (0, more)))
        self.scored = np.pad(self.scored, ((0, 0), (0, more)))
        self.is_open = np.pad(self.is_open, (0, more))
        self.taint_group = np.pad(self.taint_group, (0, more))

    def _read_node(self, column: int, body: Object) -> None:
        spec = body.get("spec") or {}
        allocatable = (body.get("status") or {}).get("allocatable") or {}
        rows = [(self._row(name), amount(name, text)) for name, text in allocatable.items()]
        self.allocatable[:, column] = 0
        for row, total in rows:
            self.allocatable[row, column] = total
        self.is_open[column] = not spec.get("unschedulable")
        taints = tuple(spec.get("taints") or [])
        group = self._group_of.setdefault(repr(taints), len(self.taint_groups))
        if group == len(self.taint_groups):
            self.taint_groups.append(taints)
        self.taint_group[column] = group

    def _row(self, name: str) -> int:
        row = self.rows.get(name)
        if row is None:
            row = self.rows[name] = len(self.rows)
            self.allocatable = np.pad(self.allocatable, ((0, 1), (0, 0)))
            self.used = np.pad(self.used, ((0, 1), (0, 0)))
        return row

    def _count(self, facts: PodFacts, node: str, sign: int) -> None:
        column = self.column_of.get(node)
        if column is None:
            return
        _, rows, amounts = self.request_rows(facts.requests)
        self.used[rows, column] += sign * amounts
        self.scored[0, column] += sign * facts.scored[0]
        self.scored[1, column] += sign * facts.scored[1]


def _labels(stored: Stored) -> object:
    return stored.body["metadata"].get("labels")
