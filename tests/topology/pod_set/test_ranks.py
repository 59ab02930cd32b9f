from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topology import Pairs, PodSetPlacement
from topology.pod_set.ranks import NO_SLOT, Member, Numbering, by_rank, rank_of

PLACEMENT = PodSetPlacement(
    "w", 1, domains=Pairs.of([(0, 4)]), slots=Pairs.of([(2, 2), (5, 1), (6, 1)])
)


def seats(*members: Member) -> list[int]:
    return by_rank(PLACEMENT, members).slots.tolist()


def test_each_rank_has_its_slot_in_the_order_of_the_tree() -> None:
    found = by_rank(PLACEMENT, [Member(3), Member(0), Member(2), Member(1)])
    assert (found.slots.tolist(), found.fallback) == ([6, 2, 5, 2], "")


def test_a_pod_that_runs_where_its_rank_belongs_does_not_disturb_the_others() -> None:
    found = by_rank(PLACEMENT, [Member(2, slot=5), Member(3)])
    assert (found.slots.tolist(), found.fallback) == ([5, 6], "")


@pytest.mark.parametrize(
    ("members", "fallback", "slots"),
    [
        pytest.param([Member(1), Member(None)], "pod 1 has no rank", [2, 2], id="none"),
        pytest.param([Member(1), Member(1)], "two pods have rank 1", [2, 2], id="twice"),
        pytest.param([Member(0), Member(4)], "pod 1 has rank 4 of 4", [2, 2], id="out_of_range"),
        pytest.param([Member(0), Member(-1)], "pod 1 has rank -1 of 4", [2, 2], id="below_zero"),
        pytest.param(
            [Member(3), Member(0, slot=5), Member(2)],
            "pod 1 is not where its rank 0 belongs",
            [2, 5, 2],
            id="runs_elsewhere",
        ),
    ],
)
def test_one_doubtful_rank_and_pods_are_seated_in_order(
    members: list[Member], fallback: str, slots: list[int]
) -> None:
    found = by_rank(PLACEMENT, members)
    assert (found.fallback, found.slots.tolist()) == (fallback, slots)


def test_more_pods_than_places_leave_the_last_ones_without() -> None:
    assert seats(*[Member(None)] * 6) == [2, 2, 5, 6, NO_SLOT, NO_SLOT]


@pytest.mark.parametrize(
    ("numbering", "index", "part", "rank"),
    [
        pytest.param(Numbering(4), 3, None, 3, id="job_completion_index"),
        pytest.param(Numbering(4), 4, None, None, id="index_out_of_range"),
        pytest.param(Numbering(4), None, None, None, id="no_label"),
        pytest.param(Numbering(4, offset=1), 1, None, 0, id="workers_after_their_leader"),
        pytest.param(Numbering(4, offset=1), 0, None, None, id="the_leader_is_no_worker"),
        pytest.param(Numbering(6, parts=2), 1, 1, 4, id="second_replica_of_a_jobset"),
        pytest.param(Numbering(6, parts=2), 3, 1, None, id="index_beyond_its_replica"),
        pytest.param(Numbering(6, parts=2), 0, 2, None, id="replica_out_of_range"),
        pytest.param(Numbering(6, parts=2), 0, None, None, id="no_replica_label"),
    ],
)
def test_the_rank_of_a_pod_follows_from_its_labels(
    numbering: Numbering, index: int | None, part: int | None, rank: int | None
) -> None:
    assert rank_of(numbering, index, part) == rank


@given(st.permutations(range(4)), st.lists(st.booleans(), min_size=4, max_size=4))
def test_no_slot_gets_more_pods_than_were_placed_there(
    ranks: list[int], has_rank: list[bool]
) -> None:
    members = [Member(rank if here else None) for rank, here in zip(ranks, has_rank, strict=True)]
    assert sorted(seats(*members)) == [2, 2, 5, 6]
