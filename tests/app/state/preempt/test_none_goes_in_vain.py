"""Who need not go for a gang does not, and where making room leads nowhere it ends.

As in `test_room_plans`: nodes of 8 GPUs, pods of 8 unless it says otherwise; `T` is a gang of
priority 1000 that requires a rack, all others have priority 0, a controller, and run.
"""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from tests.app.state.preempt.test_making_room import gang, single
from tests.app.state.preempt.test_room_plans import Evicting
from tests.app.state.preemptor import rack
from tests.app.state.world import members
from tests.records import pod


@pytest.mark.parametrize("nodes", [8, 24])
def test_pods_of_a_rack_stay_where_one_gang_alone_frees_another(nodes):
    """P4: the gang has a node of the first rack and all of the second; small pods have the rest."""
    chance = random.Random(1)
    running = gang("a", "n10", *(f"n2{at}" for at in range(nodes)))
    for at in range(1, nodes):
        gpus = 8
        while gpus:
            its = min(gpus, chance.choice((1, 2, 3)))
            gpus -= its
            running.append(single(f"p{at}-{gpus}", f"n1{at}", gpus=its))
    request = pod("", gpus=5).request
    waiting = [replace(each, priority=1000, request=request) for each in members("T", nodes)]
    world = Evicting([*rack(1, nodes), *rack(2, nodes)], running, waiting=waiting)
    assert sorted(world.evicted) == sorted(f"a{at}" for at in range(nodes + 1))
