"""PodGroups on several Topologies in one world: what a seed draws of them, and what happens."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, ClassVar

from tests.sim.kai.checks import PartsChecks
from tests.sim.kai.drawn import draw, tree, whole, with_other_numbers
from tests.sim.kai.life import Kai, KaiController, create_topology
from tests.sim.kai.pod_group import PARTS_WORDS
from tests.sim.kai.rest import AtRest
from tests.sim.kai.tree import HALL, LEVELS, ROW, SUB_GROUP
from tests.sim.native.controller import PodGroupController
from tests.sim.native.life import MOST_IN_RACK
from tests.sim.native.pod_group import Words
from tests.sim.objects import Json
from tests.sim.owners import Said

if TYPE_CHECKING:
    from tests.sim.kinds import Template, Workload

MOST_ROWS = 4  # two to a hall
MOVED_SECONDS = (5.0, 40.0)
UNNAMED_SHARE = 0.3  # of the nodes that leave their row: they are in none


class PartsController(KaiController):
    """It names the sub-group in a label of each pod."""

    def said_on(self, made: Workload, name: str, template: Template) -> Said:
        """What one pod says about where it belongs."""
        annotations, labels, owner = super().said_on(made, name, template)
        return annotations, {**labels, SUB_GROUP: template.part}, owner

    def required(self, made: Workload) -> object:
        """What it requires, as the history has it."""
        return self.spec(made)

    def spec(self, made: Workload) -> Json:
        """What it requires, as the PodGroup has it."""
        assert made.kai is not None
        return made.kai.spec()


class InParts(Kai):
    """All of it."""

    words: ClassVar[Words] = PARTS_WORDS
    source: ClassVar[str] = PARTS_WORDS.source
    controller: ClassVar[type[PodGroupController]] = PartsController
    in_parts: ClassVar[bool] = True

    def _judge_by(self) -> None:
        self.checks = PartsChecks(self._objects, self._world.hits)
        self._at_rest = AtRest(self._world.api, self._objects)

    def create(self) -> None:
        """Make the Topologies, and have each node in a row, which has one of each rack."""
        for name, levels in LEVELS.items():
            create_topology(self._objects, name, levels)
        api = self._world.api
        for rack, nodes in enumerate(self._world.profile.racks):
            for index in range(nodes):
                name = f"n{rack}{index}"
                labels = {**api.nodes[name].labels, **row_of(rack + index)}
                api.change("Node", name, labels=labels)

    def drawn(self, rng: Random, most_pods: int) -> Workload:
        """A new workload of at most so many pods, or of one for each of its leaves."""
        profile = self._world.profile
        return draw(rng, min(profile.most_pods, most_pods), profile.gpus, profile.gated_share)

    def fresh(self) -> Workload:
        """A gang that needs all of the devices of a rack, or so many, and of a row two others."""
        profile = self._world.profile
        self._controller.first_share = 1.0
        return whole(min(max(profile.racks) * profile.gpus, MOST_IN_RACK), 2)

    # -- faults --------------------------------------------------------------------------------

    def _faults(self) -> tuple[Callable[[Workload], None], ...]:
        return (self._delete, self._change, self._move)

    def _require_other(self, made: Workload) -> None:
        assert made.kai is not None
        made.kai = tree(self._rng, made.kai.drawn)

    def _change(self, made: Workload) -> None:
        """What its sub-groups need becomes another number."""
        assert made.kai is not None
        self._world.hits.hit("F13 kai changed")
        made.kai = with_other_numbers(self._rng, made.kai)
        self._controller.change(made)

    def _move(self, made: Workload) -> None:
        """A node that one of its pods is on, or another, leaves its row for a while."""
        world, rng = self._world, self._rng
        there = sorted(
            {each.node for each in world.workloads.live_pods(made)} & set(world.api.nodes)
        )
        name = rng.choice(there or sorted(world.api.nodes))
        others = {HALL: "", ROW: ""}
        if rng.random() >= UNNAMED_SHARE:
            others = row_of(rng.randrange(MOST_ROWS))
        labels = {**world.api.nodes[name].labels, **others}
        world.chaos.move_node(name, rng.uniform(*MOVED_SECONDS), labels)


def row_of(number: int) -> dict[str, str]:
    """The labels of a node in a row."""
    row = number % MOST_ROWS
    return {HALL: f"h{row // 2}", ROW: f"w{row}"}
