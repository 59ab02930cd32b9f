"""`fewest_domains`: a setting for Kueue's vocabulary, and the rule of those that have none."""

from __future__ import annotations

from app.dialects.grove.gangs import POLICY as GROVE
from app.dialects.native.trees import POLICY as NATIVE
from app.dialects.spec import SearchPolicy
from tests.app.state.world import World
from tests.records import PREFERRED, RACK, group, node, pod
from topology import DomainOrder

# The tightest block has its room in broken racks.
NODES = {"b1/r10/n10": 4, "b1/r11/n11": 3, "b1/r12/n12": 1, "b2/r20/n20": 7, "b2/r21/n21": 2}


def racks(**settings: bool) -> set[str]:
    world = World([node(path, gpus=gpus) for path, gpus in NODES.items()], **settings)
    gang = [pod(f"g{i}", gpus=1, annotations=group("g", 8, **{PREFERRED: RACK})) for i in range(8)]
    world.put(*gang)
    return set(world.schedule(*gang).values())


def test_it_is_off_unless_it_is_set_as_kueue_knows_no_such_rule() -> None:
    assert racks() == {"n10", "n11", "n12"}


def test_the_fewest_racks_are_taken_if_it_is_set() -> None:
    assert racks(fewest_domains=True) == {"n20", "n21"}


def test_vocabularies_that_promise_no_domain_get_the_fewest() -> None:
    assert {GROVE.order, NATIVE.order} == {DomainOrder.FEWEST}
    assert SearchPolicy().order is DomainOrder.TIGHTEST
