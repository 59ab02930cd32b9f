"""What is true of every answer, whatever the gang looks like: groups, slices, leaders, preferences.

Which set is the least is `test_victims_oracle.py`'s; here the search itself is asked.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.topology.random_clusters import random_cluster
from tests.topology.relax.test_relax_oracle import of_groups, one_pod_set, with_slices_or_leader
from topology import Capacity, Gang, Options, Placement, find
from topology.victims.choose import victims
from topology.victims.table import Table
from topology.victims.victim import NoVictims, Victim, Victims

CASES, SEEDS = 150, 4
OPTIONS = Options(tries=100)


def candidates(chance: random.Random, capacity: Capacity) -> list[Victim]:
    """Some that may go, of one pod or two, used or held; others take room beside them and stay."""
    found: list[Victim] = []
    for index in range(chance.randint(1, 12)):
        book = chance.choice([capacity.use, capacity.hold])
        pods = tuple(
            (chance.randrange(len(capacity.tree.nodes)), (1, chance.randint(0, 3)))
            for _ in range(chance.choice([1, 1, 1, 2]))
        )
        for slot, request in pods:
            book(slot, request)
        if chance.random() < 0.8:
            is_gang = len(pods) > 1
            found.append(Victim(f"v{index}", pods, chance.choice([0, 0, 5]), is_gang=is_gang))
    return found


def less(capacity: Capacity, gone: Sequence[Victim]) -> Capacity:
    """The books without some of them; what is held is booked as used before."""
    books = capacity.move(capacity.tree)
    books.used, books.held = books.used + books.held, books.held * 0
    for victim in gone:
        for slot, request in victim.pods:
            books.unuse(slot, request)
    return books


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("gang", [one_pod_set, with_slices_or_leader, of_groups])
def test_those_named_make_room_each_is_needed_and_none_is_missed(
    seed: int, gang: Callable[[random.Random], Gang]
) -> None:
    chance = random.Random(900 + seed)
    told = 0
    for _ in range(CASES):
        tree, capacity = random_cluster(
            chance, nodes_max=7, pods=[3, 4, 9], amount_max=6, open_share=0.9
        )
        who, asked = candidates(chance, capacity), gang(chance)

        def fits(
            gone: Sequence[Victim],
            tree: Any = tree,
            capacity: Capacity = capacity,
            asked: Gang = asked,
        ) -> bool:
            return isinstance(find(tree, less(capacity, gone), asked, {}, OPTIONS), Placement)

        answer = victims(tree, capacity, asked, {}, Table(capacity, who), {}, OPTIONS)
        if isinstance(answer, NoVictims):
            assert answer.is_cut_short or not fits(who), asked
            continue
        assert isinstance(answer, Victims)
        gone = [each for each in who if each.key in answer.keys]
        assert fits(gone), asked
        if not gone:
            continue
        told += 1
        for each in gone:
            assert not fits([one for one in gone if one is not each]), (asked, each)
        lower = [each for each in who if each.rank < answer.priority]
        assert not fits(lower), asked
    assert told > CASES // 12
