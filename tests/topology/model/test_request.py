from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from topology import Constraint, Gang, Group, InvalidRequest, Leader, PodSet, Slice
from topology.model.request import PODS_MAX
from topology.model.resources import AMOUNT_MAX


def pod_set(**fields: Any) -> PodSet:
    return PodSet(**({"name": "w", "pods": 4, "request": (1, 500)} | fields))


def test_requests_are_values_equal_and_hashable() -> None:
    one = Gang("ns/a", Group("root", (pod_set(constraint=Constraint(required="rack")),)))
    other = Gang("ns/a", Group("root", (pod_set(constraint=Constraint(required="rack")),)))
    assert one == other
    assert len({one, other}) == 1


def test_pod_sets_come_in_the_order_they_are_written_at_any_depth() -> None:
    inner = Group("inner", (pod_set(name="b"), Group("deep", (pod_set(name="c"),))))
    gang = Gang("ns/a", Group("root", (pod_set(name="a"), inner, pod_set(name="d"))))
    assert [found.name for found in gang.pod_sets()] == ["a", "b", "c", "d"]


def test_layers_of_slices_that_divide_are_accepted() -> None:
    layers = (Slice(8, "block"), Slice(4, "rack"), Slice(4, "host"))
    assert pod_set(pods=16, slices=layers).slices == layers


def test_names_are_of_all_that_gets_a_place_leaders_after_their_workers() -> None:
    led = pod_set(name="b", leader=Leader("boss", (1,)))
    gang = Gang("ns/a", Group("root", (pod_set(name="a"), Group("inner", (led,)))))
    assert list(gang.names()) == ["a", "b", "boss"]


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: pod_set(pods=1), id="one_pod"),
        pytest.param(lambda: pod_set(pods=PODS_MAX), id="as_many_pods_as_an_int32"),
        pytest.param(lambda: pod_set(request=(1, 0)), id="nothing_of_a_resource"),
        pytest.param(lambda: pod_set(request=(1, AMOUNT_MAX)), id="the_largest_amount"),
        pytest.param(lambda: pod_set(needed=0), id="none_needed"),
        pytest.param(lambda: pod_set(needed=4), id="all_needed"),
        pytest.param(
            lambda: pod_set(pods=5, slices=(Slice(2, "rack"),), partial_last_slice=True),
            id="a_smaller_last_slice",
        ),
        pytest.param(lambda: pod_set(slices=(Slice(4, "rack"),)), id="one_slice_of_all"),
        pytest.param(lambda: Slice(1, "rack"), id="slices_of_one_pod"),
        pytest.param(lambda: Group("g", (pod_set(),), needed=0), id="group_needs_none"),
        pytest.param(lambda: Group("g", (pod_set(),), needed=1), id="group_needs_all"),
        pytest.param(lambda: Gang("a", Group("g", (pod_set(),)), priority=-(10**9)), id="priority"),
        pytest.param(
            lambda: Gang("a", Group("g", (pod_set(), Group("w", (pod_set(name="b"),))))),
            id="a_group_named_like_a_pod_set",
        ),
    ],
)
def test_a_request_that_can_be_meant_is_made(make: Callable[[], object]) -> None:
    make()


@pytest.mark.parametrize(
    ("make", "names"),
    [
        pytest.param(lambda: pod_set(name=""), "pod set: name ''", id="pod_set_without_a_name"),
        pytest.param(lambda: pod_set(pods=0), "pod set w: pods 0", id="no_pods"),
        pytest.param(lambda: pod_set(pods=-1), "pod set w: pods -1", id="negative_pods"),
        pytest.param(lambda: pod_set(pods=True), "pod set w: pods True", id="pods_not_a_number"),
        pytest.param(
            lambda: pod_set(pods=PODS_MAX + 1), f"pods {PODS_MAX + 1}", id="more_pods_than_an_int32"
        ),
        pytest.param(lambda: pod_set(request=()), r"request \(\) is empty", id="empty_request"),
        pytest.param(lambda: pod_set(request=(1, -5)), "row 1 is -5", id="negative_amount"),
        pytest.param(lambda: pod_set(request=(1, 0.5)), "row 1 is 0.5", id="fractional_amount"),
        pytest.param(
            lambda: pod_set(request=(1, AMOUNT_MAX + 1)), "row 1", id="amount_beyond_the_largest"
        ),
        pytest.param(lambda: pod_set(request=(0, 500)), "row 0", id="no_pod_slot"),
        pytest.param(lambda: pod_set(shape=[]), "shape", id="shape_not_hashable"),
        pytest.param(lambda: pod_set(needed=-1), "needed -1", id="less_than_none_needed"),
        pytest.param(lambda: pod_set(needed=5), "needed 5", id="more_needed_than_pods"),
        pytest.param(
            lambda: pod_set(slices=(Slice(3, "rack"),)),
            "slices of 3 .* count 4",
            id="uneven_slices",
        ),
        pytest.param(
            lambda: pod_set(pods=12, slices=(Slice(6, "block"), Slice(4, "rack"))),
            "slices of 4 .* layer size 6",
            id="layers_that_do_not_divide",
        ),
        pytest.param(
            lambda: pod_set(slices=(Slice(2, "rack"), Slice(4, "block"))),
            "slices of 4 .* layer size 2",
            id="layers_from_fine_to_coarse",
        ),
        pytest.param(
            lambda: pod_set(slices=(Slice(4, "rack"), Slice(2, "rack"))),
            "rack twice",
            id="two_layers_of_one_level",
        ),
        pytest.param(
            lambda: pod_set(slices=(Slice(4, "rack"), Slice(2, "host"), Slice(1, "rack"))),
            "pod set w: slices name the level rack twice",
            id="a_layer_again_below_another",
        ),
        pytest.param(
            lambda: pod_set(partial_last_slice=1), "partial_last_slice 1", id="partial_not_a_claim"
        ),
        pytest.param(
            lambda: pod_set(pods=5, slices=(Slice(2, "rack"),), partial_last_slice=False),
            "slices of 2 pods must evenly divide pod set count 5",
            id="a_smaller_last_slice_is_refused",
        ),
        pytest.param(lambda: pod_set(name=7), "pod set: name 7", id="name_not_a_text"),
        pytest.param(lambda: pod_set(needed=True), "needed True", id="needed_not_a_number"),
        pytest.param(lambda: pod_set(request=[1, 5]), "request", id="request_that_may_change"),
        pytest.param(lambda: pod_set(request=(True,)), "row 0 is True", id="amount_not_a_number"),
        pytest.param(lambda: Slice(0, "rack"), "slice: pods 0", id="empty_slice"),
        pytest.param(lambda: Slice(2, ""), "slice: level ''", id="slice_without_a_level"),
        pytest.param(lambda: Constraint(required=""), "required ''", id="empty_required"),
        pytest.param(lambda: Constraint(preferred=""), "preferred ''", id="empty_preferred"),
        pytest.param(lambda: Leader("l", (0, 1)), "leader l: request row 0", id="leader_no_pod"),
        pytest.param(lambda: Leader("", (1,)), "leader: name ''", id="leader_without_a_name"),
        pytest.param(
            lambda: Leader("l", (1,), shape=[]), "leader l: shape", id="leader_shape_not_hashable"
        ),
        pytest.param(
            lambda: Constraint(balanced=1),  # type: ignore[arg-type]
            "balanced 1",
            id="balanced_not_a_claim",
        ),
        pytest.param(lambda: Group("", (pod_set(),)), "group: name ''", id="group_without_a_name"),
        pytest.param(lambda: Group("g", ()), "group g: members", id="empty_group"),
        pytest.param(
            lambda: Group("g", (pod_set(),), needed=-1), "group g: needed -1", id="group_needs_less"
        ),
        pytest.param(
            lambda: Group("g", [pod_set()]), "group g: members", id="members_that_may_change"
        ),
        pytest.param(
            lambda: Group("g", (pod_set(),), needed=2), "group g: needed 2", id="group_needs_more"
        ),
        pytest.param(lambda: Gang("", Group("g", (pod_set(),))), "key ''", id="gang_without_a_key"),
        pytest.param(
            lambda: Gang("ns/a", Group("g", (pod_set(), Group("h", (pod_set(),))))),
            "gang ns/a: pod set w is named twice",
            id="pod_set_named_twice",
        ),
        pytest.param(
            lambda: Gang("a", Group("g", (pod_set(leader=Leader("w", (1,))),))),
            "gang a: pod set w is named twice",
            id="leader_named_like_its_workers",
        ),
        pytest.param(
            lambda: Gang("a", Group("g", (pod_set(),)), priority=True),
            "gang a: priority True",
            id="priority_not_a_number",
        ),
    ],
)
def test_a_request_nobody_could_mean_is_refused_by_name(
    make: Callable[[], object], names: str
) -> None:
    with pytest.raises(InvalidRequest, match=names):
        make()
