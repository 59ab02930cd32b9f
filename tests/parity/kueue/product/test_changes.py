"""A change explains a difference only where it leads to the product's very answer."""

from __future__ import annotations

import pytest

from tests.parity.kueue.cases import Json
from tests.parity.kueue.peer import product
from tests.parity.kueue.product.changes import CHANGES
from tests.parity.kueue.product.objects import NotReachable, written
from tests.parity.kueue.written import as_case, on, scenario
from tests.parity.tally import Equal, OnPurpose, OutOfReach, Unexplained

SLICED = {"podSetSliceRequiredTopology": "l/k", "podSetSliceSize": 3}


def test_every_change_has_its_own_name_and_a_reason() -> None:
    assert len({change.name for change in CHANGES}) == len(CHANGES)
    assert all(len(change.reason) > 40 for change in CHANGES)


def test_a_place_in_the_required_rack_is_equal() -> None:
    assert product(as_case(scenario({"required": "l/k"}, 3), on(("n3", 3)))) == Equal()


def test_a_place_that_no_change_leads_to_is_unexplained() -> None:
    found = product(as_case(scenario({"unconstrained": True}, 3), on(("n1", 1), ("n3", 2))))
    assert isinstance(found, Unexplained)


def test_a_node_that_only_its_name_puts_first_is_explained() -> None:
    asked = scenario({"unconstrained": True}, 3)
    asked["nodes"] = [
        {**node, "labels": node["labels"] | {"l/k": rack}}
        for node, rack in zip(asked["nodes"], ("k2", "k1", "k0"), strict=True)
    ]
    assert product(as_case(asked, on(("n3", 3)))) == OnPurpose("pods without a level")


def test_a_remainder_is_refused_and_listed() -> None:
    found = product(as_case(scenario(SLICED, 5), on(("n3", 3))))
    assert found == OnPurpose("a slice size that does not divide")


def test_another_sentence_than_the_numbers_say_is_unexplained() -> None:
    reason = 'topology "default" allows to fit only 4 out of 9 pod(s)'
    asked = scenario({"required": "l/k"}, 9)
    said = {"p": {"ta": None, "reason": reason}}
    assert isinstance(product(as_case(asked, said)), Unexplained)
    said["p"]["reason"] = reason.replace("only 4", "only 8")
    assert product(as_case(asked, said)) == Equal()


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        pytest.param(
            {"previousAssignment": {"Domains": []}}, "grows or shrinks", id="elastic_workload"
        ),
        pytest.param(
            {"podSetGroupName": "g", "topologyRequest": SLICED}, "beside slices", id="sliced_group"
        ),
        pytest.param({"podSetGroupName": "g"}, "not a leader and its", id="group_of_one"),
        pytest.param(
            {"topologyRequest": {"podSetSliceSize": 3}}, "without a size", id="half_a_slice"
        ),
    ],
)
def test_what_no_user_can_write_is_out_of_reach(more: Json, reason: str) -> None:
    asked = scenario({"required": "l/k"}, 3)
    asked["podSets"][0] |= more
    with pytest.raises(NotReachable, match=reason):
        written(asked)
    assert isinstance(product(as_case(asked, on(("n3", 3)))), OutOfReach)
