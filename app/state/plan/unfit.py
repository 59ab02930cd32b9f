"""Requests that found no place, until something has changed that could give them one.

    a search finds no place ──▶ remembered ──nodes gain room──▶ does one of them take a pod of it?
                                                                no: it would find none again

With thousands of gangs waiting and pods ending all the time most searches would only say again
what the last one said. A node that takes none of a gang's pods now changes nothing for it, however
much room it has gained. The verdict's numbers may be others by now; who wants them searches again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import numpy as np

from app.dialects.spec import GangKey
from app.kube.core.cached import KIB, weight
from app.state.cache.books import ALL_NODES, Books
from app.state.cache.eligibility.node_refusals import Shaped
from app.state.cache.eligibility.node_table import NodeTable
from app.state.cache.eligibility.one_node import may_host
from app.state.plan.verdict import NoPlan
from topology.model.resources import Counts, Rows

MOST_REQUESTS = 4_096  # remembered; the one asked for longest ago is forgotten first …
MOST_BYTES = 16 * KIB  # … none that weighs more, …
MOST_KNOWN_BYTES = 16 * 1024 * KIB  # … and so much in all
MOST_EXACT = 256  # verdicts kept with what their reasons are looked up in, 10 KB and more each, …
MOST_EXACT_BYTES = 64 * KIB  # … of a request that weighs no more
FEW_SETS = 64  # pod sets: of more, as of pods narrowed to a node each, no verdict is kept …
MOST_OWN = 4  # … and of one gang so many such requests are remembered: it asks in three ways
NAME_BYTES = 8  # of a node's name in a request, which is the books' own
MOST_NODES = 1_024  # that have gained room are known one by one; of more, any may have
FEW_NODES = 4  # whose labels are looked at one by one

Signature = tuple[object, ...]


@dataclass(slots=True)
class _Known:
    pods: frozenset[Shaped]
    is_rest: bool
    holds_at: int
    weight: int


@dataclass(frozen=True, slots=True)
class _Gained:
    """Nodes and what was free there. Shapes: slots (K,), at (K,), free (R, K)."""

    version: tuple[int, int]
    slots: Rows
    at: Rows
    free: Counts


@dataclass(slots=True)
class Unfit:
    """The verdicts by signature, and which nodes have gained room since."""

    books: Books
    node_table: NodeTable
    _known: OrderedDict[Signature, _Known] = field(default_factory=OrderedDict)
    _known_bytes: int = 0
    _exact: dict[Signature, tuple[int, NoPlan, GangKey]] = field(default_factory=dict)
    """Since something gained room, each with the generation of the trees and whose it is."""
    _own: dict[GangKey, dict[Signature, None]] = field(default_factory=dict)
    """Those that weigh as much as their gang has pods, and that no other gang makes."""
    _now: int = 0  # how often something has gained room
    _grew: dict[str, int] = field(default_factory=dict)  # node -> when
    _anything_at: int = 0  # when it was not known which node had
    _last: _Gained | None = None

    def __len__(self) -> int:
        return len(self._known)

    @property
    def exact(self) -> int:
        """How many verdicts are kept."""
        return len(self._exact)

    @property
    def known_bytes(self) -> int:
        """What the requests weigh that are remembered."""
        return self._known_bytes

    @property
    def now(self) -> int:
        """How often something has gained room."""
        return self._now

    def note(
        self,
        signature: Signature,
        verdict: NoPlan,
        pods: Iterable[Shaped],
        key: GangKey,
        *,
        settled: int = 0,
        at: int | None = None,
    ) -> None:
        """Remember that a request has found no place.

        `settled`: so many pods of the gang have nodes already, so that any change may help.
        `at`: on books as they were when `now` was that; None: as they are.
        """
        pod_sets = list(pods)
        shaped, has_few_sets = frozenset(pod_sets), len(pod_sets) <= FEW_SETS
        at = self._now if at is None else at
        bytes_of = weight(shaped, MOST_EXACT_BYTES)
        if len(self._exact) >= MOST_EXACT:
            self._exact.clear()
        if at == self._now and bytes_of <= MOST_EXACT_BYTES and has_few_sets:
            self._exact[signature] = self.books.generation, verdict, key
        self._forget(signature)
        if bytes_of <= MOST_BYTES:
            bytes_of += NAME_BYTES * settled
            self._known[signature] = _Known(shaped, settled > 0, at, bytes_of)
            self._known_bytes += bytes_of
            while len(self._known) > MOST_REQUESTS or self._known_bytes > MOST_KNOWN_BYTES:
                self._forget(next(iter(self._known)))
        if not has_few_sets:
            self._note_own(key, signature)

    def _note_own(self, key: GangKey, signature: Signature) -> None:
        own = self._own.setdefault(key, {})
        own.pop(signature, None)
        own[signature] = None
        while len(own) > MOST_OWN:
            oldest = next(iter(own))
            del own[oldest]
            self._forget(oldest)
            self._exact.pop(oldest, None)

    def _forget(self, signature: Signature) -> None:
        known = self._known.pop(signature, None)
        if known is not None:
            self._known_bytes -= known.weight

    def leave(self, key: GangKey) -> None:
        """Let go of a gang that is gone: verdicts of its own searches, which hold on to it."""
        for signature in self._own.pop(key, ()):
            self._forget(signature)
        for signature in [each for each, (_, _, whose) in self._exact.items() if whose == key]:
            del self._exact[signature]

    def grew(self, nodes: Collection[str]) -> None:
        """Note that nodes may have room for more than before; none: any of them may."""
        self._now += 1
        self._exact.clear()
        self._grew.update(dict.fromkeys(nodes, self._now))
        if not nodes or len(self._grew) > MOST_NODES:
            self._anything_at = self._now
            self._grew.clear()

    def verdict(self, signature: Signature) -> NoPlan | None:
        """The verdict on a request if nothing at all has gained room since: it is exact.

        It is of the trees as they are, for it may look up its reasons when it is read.
        """
        at, verdict, _ = self._exact.get(signature, (0, None, None))
        return verdict if at == self.books.generation else None

    def still_holds(self, signature: Signature) -> bool:
        """Whether the request found no place and would find none now."""
        known = self._known.get(signature)
        if known is None or known.holds_at < self._anything_at:
            return False
        if known.holds_at == self._now:
            return True
        if known.is_rest or self.books.is_stale or self._may_take_one(known):
            return False
        known.holds_at = self._now
        self._known.move_to_end(signature)
        return True

    def _may_take_one(self, known: _Known) -> bool:
        """Whether some node that has gained room since may take one of the request's pods."""
        grown, tree = self._gained(), self.books.topologies[ALL_NODES].tree
        is_newer = grown.at > known.holds_at
        for request, shape in known.pods:
            vector = self.books.vector(request)
            if len(vector) > len(grown.free):
                continue  # no node offers all it requests
            has_room = is_newer.copy()
            for row, amount in enumerate(vector):
                if amount:
                    has_room &= grown.free[row] >= amount
            slots = grown.slots[has_room]
            if len(slots) > FEW_NODES:
                takes = bool(self.node_table.mask(shape, tree)[slots].any())
            else:
                takes = any(may_host(self.books.nodes[tree.nodes[slot]], shape) for slot in slots)
            if takes:
                return True
        return False

    def _gained(self) -> _Gained:
        """The nodes that have gained room, with what they had when the last of them did.

        They may have less by now.
        """
        version = (self._now, self.books.generation)
        if self._last is None or self._last.version != version:
            every = self.books.topologies[ALL_NODES]
            slot_of = every.tree.slot_of
            there = [(slot_of[node], at) for node, at in self._grew.items() if node in slot_of]
            slots, at = np.array(there, dtype=np.intp).reshape(-1, 2).T
            rows = range(len(self.books.axis))
            free = np.where(every.capacity.is_open[slots], every.capacity.free(rows, slots), 0)
            self._last = _Gained(version, slots, at, free)
        return self._last
