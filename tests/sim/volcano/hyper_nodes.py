"""HyperNodes over the racks and blocks of a simulated cluster, and what happens to them.

    rack r0 ─▶ hn-r0, tier 1: its nodes by name, or by the label of the rack
    block b0 ─▶ hn-b0, tier 2 or 3: hn-r0, hn-r1; where a rack has none, the nodes themselves

A rack without a HyperNode, and a block without one, make trees that are uneven. In some seeds one
is deleted and made again, or a node moves to another one; no node is ever in two of one tier.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.records import RACK
from tests.sim.api import HYPER_NODE
from tests.sim.clock import Clock, History
from tests.sim.faults import Hits
from tests.sim.objects import Json, Objects

UNEVEN_SHARE = 0.4  # of the seeds
BARE_SHARE = 0.3  # there: of racks, and of blocks, without a HyperNode
CHANGED_SHARE = 0.6  # of the seeds: HyperNodes change in the run
PER_MINUTE = 6.0  # changes
SECONDS = (1.0, 25.0)  # until a change is undone


class HyperNodes:
    """Those of one world, until it is healed."""

    def __init__(
        self, clock: Clock, objects: Objects, rng: Random, history: History, hits: Hits
    ) -> None:
        self._clock, self._objects, self._rng = clock, objects, rng
        self._history, self._hits = history, hits
        self._specs: dict[str, Json] = {}  # as they are to be, of those that are deleted too
        self._sound: dict[str, Json] = {}
        self._is_healed = False
        self.changes = rng.random() < CHANGED_SHARE

    def create(
        self, racks: dict[str, list[str]], blocks: dict[str, list[str]], *, names_nodes: bool
    ) -> None:
        """Make them. `racks`: the nodes of each rack; `blocks`: the racks of each block.

        Without `names_nodes` each rack has one, with its nodes by label.
        """
        rng = self._rng
        by_label, is_uneven = rng.random() < 0.4, rng.random() < UNEVEN_SHARE
        by_label, is_uneven = by_label or not names_nodes, is_uneven and names_nodes
        tier = rng.choice((2, 2, 3))
        bare = {rack for rack in racks if is_uneven and rng.random() < BARE_SHARE}
        for rack, nodes in racks.items():
            if rack not in bare:
                members = [_by_label(rack)] if by_label else _exact("Node", nodes)
                self._put(f"hn-{rack}", {"tier": 1, "members": members})
        for block, its in blocks.items():
            if is_uneven and rng.random() < BARE_SHARE:
                continue
            members = _exact("HyperNode", [f"hn-{rack}" for rack in its if rack not in bare])
            for rack in its:
                members += _exact("Node", racks[rack]) if rack in bare else []
            self._put(f"hn-{block}", {"tier": tier, "members": members})
        self._sound = dict(self._specs)

    def begin(self) -> None:
        """Change them from now on, in seeds where they change."""
        if self.changes and self._specs:
            self._clock.after(self._rng.expovariate(PER_MINUTE / 60.0), self._happen)

    def heal(self) -> None:
        """No more changes; they are what they were."""
        self._is_healed = True
        for name, spec in self._sound.items():
            self._put(name, spec)

    def _happen(self) -> None:
        if self._is_healed:
            return
        self._rng.choice((self._delete, self._delete, self._move))()
        self._clock.after(self._rng.expovariate(PER_MINUTE / 60.0), self._happen)

    def _delete(self) -> None:
        name = self._rng.choice(sorted(self._specs))
        if self._objects.get(HYPER_NODE, name) is None:
            return
        self._hits.hit("F13 HyperNode deleted")
        self._history.say(f"HyperNode {name} is deleted")
        self._objects.remove(HYPER_NODE, name)
        self._later(lambda: self._put(name, self._specs[name]))

    def _move(self) -> None:
        """A node goes from one rack's HyperNode to another's, and comes back."""
        racks = sorted(name for name, spec in self._specs.items() if _nodes(spec))
        givers = [name for name in racks if len(_nodes(self._specs[name])) > 1]
        if len(racks) < 2 or not givers:
            return
        giver = self._rng.choice(givers)
        taker = self._rng.choice([name for name in racks if name != giver])
        if self._specs[taker]["tier"] != self._specs[giver]["tier"]:
            return  # of a bare rack: its block may be the taker of what its own rack has
        node = self._rng.choice(_nodes(self._specs[giver]))
        self._hits.hit("F13 HyperNode changed")
        self._carry(node, giver, taker)
        self._later(lambda: self._carry(node, taker, giver))

    def _carry(self, node: str, giver: str, taker: str) -> None:
        if node not in _nodes(self._specs[giver]) or len(_nodes(self._specs[giver])) == 1:
            return
        self._history.say(f"HyperNode {taker} takes {node} from {giver}")
        (member,) = _exact("Node", [node])
        for name, members in (
            (giver, [each for each in self._specs[giver]["members"] if each != member]),
            (taker, [*self._specs[taker]["members"], member]),
        ):
            self._specs[name] = {**self._specs[name], "members": members}
            if self._objects.get(HYPER_NODE, name) is not None:
                self._put(name, self._specs[name])

    def _later(self, action: Callable[[], None]) -> None:
        def act() -> None:
            if not self._is_healed:
                action()

        self._clock.after(self._rng.uniform(*SECONDS), act)

    def _put(self, name: str, spec: Json) -> None:
        self._specs[name] = spec
        there = self._objects.get(HYPER_NODE, name)
        if there is None:
            self._objects.create(HYPER_NODE, name, spec=spec)
        elif there["spec"] != spec:
            self._objects.change(HYPER_NODE, name, spec=spec)


def _exact(kind: str, names: list[str]) -> list[Json]:
    return [{"type": kind, "selector": {"exactMatch": {"name": name}}} for name in names]


def _by_label(rack: str) -> Json:
    return {"type": "Node", "selector": {"labelMatch": {"matchLabels": {RACK: rack}}}}


def _nodes(spec: Json) -> list[str]:
    """The nodes that a HyperNode names."""
    exact = [each["selector"].get("exactMatch") for each in spec["members"]]
    kinds = [each["type"] for each in spec["members"]]
    return [
        each["name"] for each, kind in zip(exact, kinds, strict=True) if each and kind == "Node"
    ]
