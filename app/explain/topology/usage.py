"""What the domains of a topology have, what is taken of it, and how many pods would still fit.

    engine ──Books.of, on the event loop──▶ one topology's books, copied ──usage, a thread──▶ page

Amounts are sums over the nodes of a domain, and a sum promises more than there is: two remainders
make no place for one pod. So a client that asks how much is free names a shape: `free_for` counts
pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import msgspec
import numpy as np

from app.errors import DecodeError
from app.explain.topology.usage_view import Amount, DomainUsage, Free, TopologyNames, TopologyPage
from app.explain.view import Excluded
from app.kube.core.objects import Amounts, NodeRecord, Shape
from app.kube.core.quantity import InvalidQuantity, amount
from app.kube.core.turns import turn
from app.kube.decoding.decode import decode_pod
from app.state.cache.books import is_leaving, is_open
from app.state.cache.eligibility.node_table import NodeTable
from app.state.engine import Engine
from app.state.gang.gang import Gang
from topology.fit.fit import pods_per_node
from topology.model.capacity import Capacity
from topology.model.resources import Counts, Mask, Rows
from topology.model.tree import Tree

MOST_SHAPES = 8  # in one question, and of one gang
MOST_RESOURCES = 16  # that are told of a domain: those that nodes have, in the order of their rows
MOST_EXAMPLES = 2
MOST_REASONS = 8
UNLABELLED = "without a label of every level"
_UNITS = {"cpu": 1000}  # counted in thousandths
_ANY = Shape()


class NoSuch(DecodeError):
    """What was asked about is not there, or cannot be read; names it."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Pods of one kind, of which it is asked how many more fit."""

    name: str
    request: Amounts
    shape: Shape = _ANY


@dataclass(frozen=True, slots=True)
class Books:
    """One topology's books as they are, and the nodes of the cluster."""

    name: str
    topologies: tuple[TopologyNames, ...]
    tree: Tree
    capacity: Capacity
    resources: tuple[str, ...]
    nodes: Mapping[str, NodeRecord]
    wanted: tuple[Wanted, ...]

    @classmethod
    def of(cls, engine: Engine, name: str, wanted: tuple[Wanted, ...]) -> Books:
        """`name`: of the topology; "": the first that has levels. Raises: NoSuch."""
        engine.planner.refresh()
        books = engine.books
        names = tuple(
            TopologyNames(name=each.name, levels=each.levels)
            for each in books.topologies.values()
            if each.name
        )
        found = books.topologies.get(name or (names[0].name if names else ""))
        if found is None:
            known = ", ".join(each.name for each in names) or "none"
            raise NoSuch(f"name: {name}: no topology has this name; there is {known}")
        return cls(
            found.name,
            names,
            found.tree,
            found.capacity.copy(),
            books.axis.names,
            dict(books.nodes),
            wanted,
        )


@dataclass(frozen=True, slots=True)
class Part:
    """Which of the domains are told."""

    level: str = ""
    """The narrowest; "": the one above the nodes."""
    under: str = ""
    """Only this domain, such as `b1/r7`, and those inside."""
    after: str = ""
    limit: int = 250


def wanted_of(text: str) -> Wanted:
    """A shape as users write it: `cpu=4,nvidia.com/gpu=1`. Raises: NoSuch."""
    requests: dict[str, str] = {}
    for each in text.split(","):
        name, is_there, quantity = each.strip().rpartition("=")
        if not is_there or not name or not quantity:
            raise NoSuch(f"free_for: {text}: expected RESOURCE=AMOUNT,… or a gang's name")
        try:
            amount(name, quantity, rounding="up")
        except InvalidQuantity as error:
            raise NoSuch(f"free_for: {text}: {error}") from error
        requests[name] = quantity
    container = {"name": "x", "resources": {"requests": requests}}
    try:
        pod = decode_pod(msgspec.json.encode({"spec": {"containers": [container]}}), _nothing)
    except DecodeError as error:
        raise NoSuch(f"free_for: {text}: {error}") from error
    if pod.problem:
        raise NoSuch(f"free_for: {text}: {pod.problem}")
    return Wanted(text, pod.request)


def wanted_of_gang(gang: Gang) -> Iterator[Wanted]:
    """Each kind of the gang's pods once, named after its pod set; the only one after the gang."""
    found: dict[tuple[Amounts, Shape], str] = {}
    for member in gang.members.values():
        kind = member.pod.request, member.shape
        found.setdefault(kind, member.leaf or member.pod.name)
        if len(found) >= MOST_SHAPES:
            break
    if len(found) == 1 and not next(iter(gang.members.values())).leaf:
        found = dict.fromkeys(found, gang.key.name)
    for (request, shape), name in found.items():
        yield Wanted(name, request, shape)


def vector_of(request: Amounts, capacity: Capacity) -> Sequence[int] | None:
    """What is requested in each row of these books; None: of something that no node has."""
    vector, rows = capacity.axis.request(request), len(capacity.free_now)
    return None if any(vector[rows:]) else (*vector[:rows], *(0,) * (rows - len(vector)))


def unit_of(resource: str) -> int:
    """How many of what the books count are one of what people read."""
    return _UNITS.get(resource, 1)


def why_closed(node: NodeRecord) -> str:
    """Why a node takes no pods; "": it takes some."""
    if is_open(node):
        return ""
    if node.is_unschedulable:
        return "cordoned"
    if is_leaving(node):
        return "about to be removed"
    return "not ready" if not node.is_ready else node.problem or "not ready"


def _nothing(_key: str) -> bool:
    return False


# -- in a thread -----------------------------------------------------------------------------------


def usage(books: Books, part: Part) -> TopologyPage:
    """The page of the tree that was asked for. Raises: NoSuch."""
    tree = books.tree
    deepest = _deepest(tree, part.level)
    inside = slice(0, len(tree.nodes))
    if part.under:
        depth, domain = _found(tree, part.under)
        inside = tree.slots(depth, domain)
        deepest = max(deepest, depth)
    every = _in_order(tree, deepest, inside)
    first = 0
    if part.after:
        first = 1 + _index(tree, every, part.after)
    page = every[first : first + part.limit]
    sums = _Sums(books)
    last = page[-1] if first + len(page) < len(every) else None
    return TopologyPage(
        name=books.name,
        levels=tree.levels,
        topologies=books.topologies,
        total=sums.domain("", "", inside, is_whole=not part.under),
        domains=tuple(
            sums.domain(tree.levels[depth], _path(tree, depth, domain), tree.slots(depth, domain))
            for depth, domain in page
        ),
        next="" if last is None else _token(tree, *last),
    )


_Domain = tuple[int, int]
"""Level and index."""


def _deepest(tree: Tree, level: str) -> int:
    if not level:
        return max(len(tree.levels) - 2, 0)
    if level not in tree.levels:
        raise NoSuch(f"level: {level}: the levels are {', '.join(tree.levels)}")
    return tree.levels.index(level)


def _path(tree: Tree, depth: int, domain: int) -> str:
    return "/".join(tree.path(depth, domain))


def _found(tree: Tree, path: str) -> _Domain:
    for depth in range(len(tree.levels)):
        for domain in range(len(tree.starts[depth])):
            if _path(tree, depth, domain) == path:
                return depth, domain
    raise NoSuch(f"under: {path}: no domain has this path")


def _in_order(tree: Tree, deepest: int, inside: slice) -> list[_Domain]:
    """A domain, then those inside it: as a tree is printed."""
    found: list[tuple[int, int, int]] = []
    for depth in range(deepest + 1):
        starts, ends = tree.starts[depth], tree.ends[depth]
        here = np.flatnonzero((starts >= inside.start) & (ends <= inside.stop))
        found.extend((int(starts[domain]), depth, domain) for domain in here.tolist())
    return [(depth, domain) for _, depth, domain in sorted(found)]


def _token(tree: Tree, depth: int, domain: int) -> str:
    return f"{depth}:{_path(tree, depth, domain)}"


def _index(tree: Tree, every: Sequence[_Domain], after: str) -> int:
    for at, (depth, domain) in enumerate(every):
        if after.startswith(f"{depth}:") and _token(tree, depth, domain) == after:
            return at
    raise NoSuch(f"after: {after}: no domain of this part: the topology has changed, begin again")


class _Sums:
    """What is added up for a range of slots."""

    def __init__(self, books: Books) -> None:
        self._books, self._capacity = books, books.capacity
        has = [bool(amounts.any()) for amounts in books.capacity.allocatable]
        of_devices = books.capacity.axis.of_devices
        rows = (row for row, there in enumerate(has) if there and row not in of_devices)
        self._rows = [*islice(rows, MOST_RESOURCES)]
        table = NodeTable()
        for node in books.nodes.values() if books.wanted else ():
            turn()
            table.put_node(node)
        self._wanted = [(each, *self._pods(each, table)) for each in books.wanted]
        self._away = self._reasons()

    def domain(self, level: str, path: str, slots: slice, *, is_whole: bool = False) -> DomainUsage:
        """`is_whole`: with the nodes that are in no domain."""
        turn()
        excluded = list(self._excluded(slots))
        missing = len(self._books.nodes) - len(self._books.tree.nodes)
        if is_whole and missing:
            outside = (name for name in self._books.nodes if name not in self._books.tree.slot_of)
            examples = tuple(name for name, _ in zip(outside, range(MOST_EXAMPLES), strict=False))
            excluded.append(Excluded(reason=UNLABELLED, nodes=missing, examples=examples))
        return DomainUsage(
            level=level,
            domain=path,
            nodes=slots.stop - slots.start,
            resources=tuple(self._amount(row, slots) for row in self._rows),
            free_for=tuple(self._free(slots)),
            excluded=tuple(excluded),
        )

    def _amount(self, row: int, slots: slice) -> Amount:
        capacity, name = self._capacity, self._books.resources[row]
        unit = unit_of(name)
        is_free = capacity.is_open[slots]
        free = np.clip(capacity.free_now[row, slots][is_free], 0, None).sum()
        return Amount(
            resource=name,
            capacity=int(capacity.allocatable[row, slots].sum()) / unit,
            used=int(capacity.used[row, slots].sum()) / unit,
            reserved=int(capacity.held[row, slots].sum()) / unit,
            free=int(free) / unit,
        )

    def _pods(self, wanted: Wanted, table: NodeTable) -> tuple[Counts, Rows, tuple[str, ...]]:
        """How many pods each node takes; why it takes none by its labels and taints."""
        books, capacity = self._books, self._capacity
        code, reasons = table.why_not(wanted.shape, books.tree)
        vector = vector_of(wanted.request, capacity)
        if vector is None:
            return np.zeros(len(books.tree.nodes), dtype=np.int64), code, reasons
        allowed: Mask = capacity.is_open & (code == 0)
        pods = np.where(allowed, pods_per_node(capacity.free_now, vector), 0)
        return pods, code, reasons

    def _free(self, slots: slice) -> Iterator[Free]:
        for wanted, pods, code, reasons in self._wanted:
            here = pods[slots]
            barred = Counter(code[slots][self._capacity.is_open[slots]].tolist())
            yield Free(
                shape=wanted.name,
                pods=int(here.sum()),
                nodes=int(np.count_nonzero(here)),
                excluded=tuple(
                    Excluded(reason=reasons[each], nodes=barred[each])
                    for each in sorted(barred)
                    if each
                )[:MOST_REASONS],
            )

    def _reasons(self) -> Mapping[int, str]:
        """Slots of nodes that take no pods, and why."""
        found = {}
        for slot in np.flatnonzero(~self._capacity.is_open).tolist():
            node = self._books.nodes.get(self._books.tree.nodes[slot])
            if node is not None and (why := why_closed(node)):
                found[slot] = why
        return found

    def _excluded(self, slots: slice) -> Iterator[Excluded]:
        here: dict[str, list[int]] = {}
        for slot, why in self._away.items():
            if slots.start <= slot < slots.stop:
                here.setdefault(why, []).append(slot)
        for why, its in sorted(here.items()):
            names = tuple(self._books.tree.nodes[slot] for slot in its[:MOST_EXAMPLES])
            yield Excluded(reason=why, nodes=len(its), examples=names)
