"""What the pods of a gang of Grove's are told, in the words that Grove's users read.

"Leader" is a word of pod set groups and LeaderWorkerSets: a PodGang has pod groups, of the names of
their cliques.
"""

from __future__ import annotations

import msgspec
import pytest

from tests.app.dialects.grove.objects import gang, pod_group, together, within
from tests.app.state.histories.test_grove import members, started, world_of
from tests.app.state.stories import sentence
from tests.app.state.world import four_racks
from tests.records import RACK

ALONE = pod_group("router", 1)
BOTH = (ALONE, pod_group("worker", 3))


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(gang("g", *BOTH, on=within(RACK)), id="of_the_whole"),
        pytest.param(
            gang("g", *BOTH, groups=(together("p", "router", "worker", on=within(RACK)),)),
            id="of_a_scaling_group",
        ),
        pytest.param(gang("g", *BOTH, on=within("", RACK)), id="preferred"),
    ],
)
def test_a_clique_of_one_pod_that_does_not_fit_beside_the_others_is_no_leader(made):
    world = world_of(made, nodes=four_racks(gpus=4))
    (router,) = members(1, "router")
    router = msgspec.structs.replace(router, request=(("nvidia.com/gpu", 5), ("pods", 1)))
    assert started(world, router, *members(3, "worker")) == {}
    told = sentence(world, "uid-worker-0")
    assert "3 of 3 pods fit" in told
    assert "but not beside pod set router" in told
    assert "leader" not in told
