"""A deviation explains what it describes and nothing beside it."""

from __future__ import annotations

import pytest

from tests.parity.kueue.cases import Json
from tests.parity.kueue.core.answers import answers
from tests.parity.kueue.core.deviations import DEVIATIONS, deviation_of
from tests.parity.kueue.written import as_case, nodes, on, scenario

SLICES_OF_4 = {"podSetSliceRequiredTopology": "l/k", "podSetSliceSize": 4, "required": "l/b"}


def test_every_deviation_has_its_own_name_and_a_reason() -> None:
    assert len({one.name for one in DEVIATIONS}) == len(DEVIATIONS)
    assert all(len(one.reason) > 40 for one in DEVIATIONS)


def explained(asked: Json, kueue: object) -> str:
    """The name of the deviation that explains Kueue's answer; "" if none does."""
    recorded = as_case(asked, kueue)
    found = answers(recorded)
    assert found != recorded.expected
    deviation = deviation_of(recorded, found)
    return "" if deviation is None else deviation.name


@pytest.mark.parametrize(
    ("places", "name"),
    [
        pytest.param([("n4", 3), ("n5", 3)], "equal entropy", id="the_other_rack"),
        pytest.param([("n4", 4), ("n5", 2)], "", id="another_spread"),
        pytest.param([("n7", 3), ("n8", 3)], "", id="a_rack_that_is_less_even"),
        pytest.param([("n1", 3), ("n5", 3)], "", id="both_racks"),
    ],
)
def test_equal_entropy_is_the_same_share_in_an_equal_domain(
    places: list[tuple[str, int]], name: str
) -> None:
    asked = scenario({"preferred": "l/k"}, 6, TASBalancedPlacement=True)
    asked["nodes"] = nodes(k0={"n1": 4, "n2": 3}, k1={"n4": 3, "n5": 4}, k2={"n7": 5, "n8": 2})
    assert set(answers(as_case(asked, on()))["p"]) == {(("n1",), 3), (("n2",), 3)}
    assert explained(asked, on(*places)) == name


def replaced(places: dict[str, int]) -> tuple[Json, object]:
    """Three incomplete slices, a pod of the last one lost, and where Kueue has put it."""
    asked = scenario(SLICES_OF_4, 8)
    asked["levels"] = ["l/b", *asked["levels"]]
    asked["nodes"] = nodes(k0={"n1": 4}, k1={"n2": 4}, k2={"n3": 4, "n4": 0})
    assigned = {"n1": 3, "n2": 3, "n3": 1, "n4": 1}
    values = [{"individual": {"roots": list(assigned)}}]
    part = {"domainCount": 4, "valuesPerLevel": values}
    asked["workload"] = {
        "unhealthyNodes": ["n4"],
        "podSetAssignments": [
            {
                "name": "p",
                "topologyAssignment": {
                    "slices": [part | {"podCounts": {"individual": list(assigned.values())}}]
                },
            }
        ],
    }
    asked["aggregatedDomainUsage"] = {
        node: {"cpu": pods * 1000, "pods": pods} for node, pods in assigned.items() if node != "n4"
    }
    return asked, on(*places.items())


@pytest.mark.parametrize(
    ("places", "name"),
    [
        pytest.param({"n1": 3, "n2": 4, "n3": 1}, "several incomplete slices", id="the_other"),
        pytest.param({"n1": 3, "n2": 3, "n3": 2}, "", id="one_that_it_does_not_complete"),
    ],
)
def test_several_incomplete_slices_are_completed_in_one_of_their_domains(
    places: dict[str, int], name: str
) -> None:
    asked, kueue = replaced(places)
    assert answers(as_case(asked, kueue))["p"] == [(("n1",), 4), (("n2",), 3), (("n3",), 1)]
    assert explained(asked, kueue) == name
