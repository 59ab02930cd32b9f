"""Whose turn it is: passes over the gangs that wait, and back-offs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop
from random import Random

import pytest

from app.dialects.spec import GangKey
from app.state.gang.gang import Gang
from app.state.settings import EngineSettings
from app.state.turns.budget import GANG, Budget
from app.state.turns.queue import FIRST_SECONDS, MOST_TURNS, Queue

COST = 10 * GANG  # of a gang's search, in these tests


def gang(name: str, *, complete_at: float = 0.0, namespace: str = "default") -> Gang:
    return Gang(GangKey(namespace, name, "group"), complete_at=complete_at)


def queue(most: int = 1_000_000) -> Queue:
    return Queue(EngineSettings(retry_seconds=1.0, retry_seconds_most=60.0), Budget(most))


def room_for(searches: int) -> int:
    """A budget that is spent when so many gangs had their turn."""
    return searches * (GANG + COST)


def begin(waiting: Queue, gangs: list[Gang], others: list[GangKey]) -> None:
    namespaces: dict[str, list[GangKey]] = {}
    for each in gangs:
        namespaces.setdefault(each.key.namespace, []).append(each.key)
    waiting.begin_pass(namespaces, {each.key: each for each in gangs}, others)


def tick(waiting: Queue, gangs: list[Gang], others: list[GangKey] | None = None) -> list[str]:
    """Who has its turn on a tick, each at the same cost."""
    waiting.budget.begin()
    begin(waiting, gangs, others or [])
    had = []
    for key in waiting.turns():
        waiting.budget.spend(key.namespace, COST)
        had.append(key.name)
    return had


def test_a_pass_takes_the_gangs_in_order_and_the_others_behind_them():
    waiting, late, early = queue(), gang("late", complete_at=2.0), gang("early", complete_at=1.0)
    waiting.want_pass()
    assert tick(waiting, [late, early], [gang("a").key]) == ["early", "late", "a"]


def test_a_long_pass_is_continued_and_not_begun_anew():
    waiting, gangs = queue(room_for(2)), [gang(f"g{number}") for number in range(3)]
    waiting.want_pass()
    first = tick(waiting, gangs)
    waiting.want_pass()
    assert [first, tick(waiting, gangs)] == [["g0", "g1"], ["g2"]]
    assert tick(waiting, gangs) == ["g0", "g1"]  # the pass that was wanted meanwhile
    assert tick(waiting, gangs) == ["g2"]
    assert tick(waiting, gangs) == []


def test_without_a_wanted_pass_there_are_no_turns():
    waiting = queue()
    assert tick(waiting, [gang("g")]) == []
    assert not waiting.is_busy()


def test_gangs_of_all_namespaces_come_in_one_order_while_the_budget_suffices():
    waiting = queue()
    gangs = [gang(f"g{at}", complete_at=at, namespace="ab"[at % 2]) for at in range(6)]
    waiting.want_pass()
    assert tick(waiting, gangs) == [f"g{at}" for at in range(6)]


def test_a_namespace_with_many_gangs_makes_nobody_else_wait_for_its_pass():
    many = [gang(f"a{at:03}", namespace="many") for at in range(100)]
    waiting = queue(room_for(4))
    waiting.want_pass()
    tick(waiting, many)
    few = [gang(f"z{at}", complete_at=9.0, namespace="few") for at in range(2)]
    waiting.want_pass()
    assert tick(waiting, [*many, *few]) == ["z0", "a004", "z1", "a005"]
    waiting.want_pass()
    # A pass of its own is over for the one, and the other goes on with its first.
    assert set(tick(waiting, [*many, *few])) == {"z0", "z1", "a006", "a007"}


def test_one_search_that_costs_more_than_a_tick_does_not_keep_another_namespace_waiting():
    costly, waiting = [gang(f"a{at}", namespace="costly") for at in range(9)], queue(GANG)
    waiting.want_pass()
    assert len(tick(waiting, costly)) == 1
    waiting.want_turn(gang("z", complete_at=9.0, namespace="other"))
    assert tick(waiting, costly) == ["z"]


def test_everybody_has_a_turn_within_as_many_ticks_as_there_are_namespaces():
    gangs = [gang(f"g{at}", namespace=f"n{number}") for number in range(8) for at in range(50)]
    waiting, seen = queue(room_for(2)), set()
    waiting.want_pass()
    for _ in range(8):
        waiting.budget.begin()
        begin(waiting, gangs, [])
        for key in waiting.turns():
            waiting.budget.spend(key.namespace, COST)
            seen.add(key.namespace)
        waiting.want_pass()
    assert len(seen) == 8


def test_a_gang_that_is_new_has_its_turn_in_the_pass_under_way():
    gangs = [gang(f"g{at}", complete_at=at) for at in range(4)]
    waiting = queue(room_for(2))
    waiting.want_pass()
    assert tick(waiting, gangs) == ["g0", "g1"]
    waiting.want_turn(gang("new", complete_at=2.5))
    assert waiting.is_busy()
    assert tick(waiting, gangs) == ["g2", "new"]


def test_newcomers_do_not_keep_the_pass_from_ending_that_another_one_waits_for():
    old = gang("old", complete_at=0.0)
    gangs, waiting = [old, gang("g1", complete_at=1.0)], queue(room_for(1))
    waiting.want_pass()
    assert tick(waiting, gangs) == ["old"]
    waiting.want_pass()  # now there would be room for it
    had = []
    for number in range(4):
        gangs.append(gang(f"new{number}", complete_at=2.0 + number))
        waiting.want_turn(gangs[-1])
        had += tick(waiting, gangs)
    assert had[:2] == ["g1", "old"]


def test_nobody_is_planned_out_of_turn_between_two_passes():
    gangs, waiting = [gang("g0"), gang("g1")], queue(room_for(1))
    waiting.want_pass()
    assert tick(waiting, gangs) == ["g0"]
    waiting.want_pass()
    assert tick(waiting, gangs) == ["g1"]
    waiting.budget.begin()
    assert waiting.is_busy()  # the second pass begins on the next tick


def test_turns_of_gangs_that_are_gone_do_not_pile_up():
    stays, waiting = gang("stays"), queue(room_for(1))
    for number in range(500):
        waiting.want_turn(gang(f"gone{number}", complete_at=1.0))
        tick(waiting, [stays])
        assert waiting.turns_left <= MOST_TURNS + 2 + 1


def test_the_turns_of_a_namespace_that_were_too_many_begin_anew():
    stays, waiting, had = gang("stays", complete_at=2.0), queue(room_for(1)), []
    for number in range(MOST_TURNS + 5):
        waiting.want_turn(gang(f"gone{number}", complete_at=1.0))
    for _ in range(3):
        had += tick(waiting, [stays])
    assert had == ["stays"]


def test_a_back_off_that_was_forgotten_is_waited_for_again():
    waiting, lost = queue(), gang("g")
    waiting.back_off(lost, 100.0, losses=3)
    waiting.retry([], 104.0)  # it was not among those that wait
    waiting.await_end(lost)
    assert tick(waiting, []) == []
    waiting.retry([lost], 104.0)
    assert waiting.is_busy()


def test_a_new_gang_wants_no_pass_of_the_others():
    waiting, gangs = queue(), [gang("g0"), gang("g1")]
    waiting.want_turn(gangs[1])
    assert tick(waiting, gangs) == ["g1"]
    assert tick(waiting, gangs) == []


def test_gangs_of_one_name_in_two_vocabularies_both_have_their_turn():
    keys = [GangKey("default", "g", source) for source in ("job", "group")]
    waiting = queue()
    waiting.want_pass()
    assert tick(waiting, [Gang(key) for key in keys]) == ["g", "g"]


def test_nobody_is_planned_out_of_turn_once_the_tick_has_done_its_work():
    waiting = queue(GANG)
    assert not waiting.is_busy()
    waiting.budget.spend("a", GANG)
    assert waiting.is_busy()


@pytest.mark.parametrize(("losses", "seconds"), [(1, 1), (2, 2), (4, 8), (7, 60), (1000, 60)])
def test_a_back_off_doubles_with_each_loss_up_to_its_limit(losses, seconds):
    waiting, lost = queue(), gang("g")
    for _ in range(losses):
        waiting.back_off(lost, 100.0)
    assert lost.back_off.not_before == 100.0 + seconds
    assert waiting.is_due(lost, 100.0 + seconds)
    assert not waiting.is_due(lost, 99.0 + seconds)


def test_a_gang_that_runs_is_put_off_no_longer():
    waiting, lost = queue(), gang("g")
    waiting.back_off(lost, 100.0, losses=5)
    waiting.reset(lost)
    assert waiting.is_due(lost, 100.0)


def test_a_gang_that_runs_begins_its_back_off_anew():
    waiting, lost = queue(), gang("g")
    waiting.back_off(lost, 100.0, losses=5)
    waiting.reset(lost)
    waiting.back_off(lost, 200.0)
    assert lost.back_off.not_before == 201.0


def test_the_end_of_a_back_off_wants_a_pass_once():
    waiting, lost = queue(), gang("g")
    waiting.back_off(lost, 100.0)
    waiting.retry([lost], 100.5)
    assert not waiting.is_busy()
    waiting.retry([lost], 101.0)
    assert waiting.is_busy()
    assert tick(waiting, []) == []
    waiting.retry([lost], 102.0)
    assert not waiting.is_busy()


def test_gangs_that_are_let_first_come_before_all_others_of_every_namespace():
    waiting = queue(room_for(1))
    other, mine = gang("a", namespace="x"), gang("z", complete_at=9.0, namespace="y")
    more = gang("zz", complete_at=9.0, namespace="y")
    waiting.want_pass()
    begin(waiting, [other, mine, more], [])  # a pass is under way
    waiting.let_first([mine, more], 0.0)
    assert waiting.is_busy()
    turns = [tick(waiting, [other, mine, more]) for _ in range(3)]
    assert turns == [["z"], ["zz"], ["a"]]


def test_nobody_has_a_turn_before_it_is_known_whether_those_first_need_a_place():
    waiting, late, other = queue(), gang("late"), gang("other")
    waiting.let_first([late], 0.0)
    waiting._new.clear()  # it is not complete, as far as is known
    assert [tick(waiting, [other]) for _ in range(2)] == [[], []]
    waiting.let_go(late.key)
    assert tick(waiting, [other]) == ["other"]
    assert not waiting.is_busy()


def test_a_gang_that_runs_in_part_keeps_none_of_those_first_from_their_turn():
    waiting, first, part = queue(), gang("first", complete_at=9.0), gang("part")
    part.binding.posted.add("uid")
    waiting.let_first([first], 0.0)
    assert tick(waiting, [part, first, gang("other")]) == ["part", "first", "other"]


def test_one_of_those_first_has_its_turn_though_a_pass_is_owed_after_the_one_that_awaits_it():
    waiting, first, other = queue(), gang("first"), gang("other")
    waiting.let_first([first], 0.0)
    waiting._new.clear()  # it is not complete, as far as is known
    assert tick(waiting, [other]) == []
    waiting.want_pass()  # a pod ends
    assert tick(waiting, [other]) == []
    waiting.want_turn(first)
    assert tick(waiting, [other, first])[0] == "first"
    assert tick(waiting, []) == []
    assert not waiting.is_busy()


def test_those_first_are_awaited_for_a_while():
    waiting, first, other = queue(), gang("first"), gang("other")
    waiting.let_first([first], 0.0)
    waiting._new.clear()  # it is not complete, as far as is known
    waiting.let_late_go(FIRST_SECONDS - 0.1)
    assert tick(waiting, [other]) == []
    waiting.let_late_go(FIRST_SECONDS)
    assert tick(waiting, [other]) == ["other"]


def looking_at_all(waiting: Queue) -> Iterator[GangKey]:
    """The turns as they are defined: each time all namespaces are looked at."""
    is_fair = waiting._is_short
    while waiting._lines:
        by = waiting.budget.spent_by if is_fair and not waiting._first else waiting._next_rank
        found = min(filter(waiting._has_turn, waiting._lines), key=by, default=None)
        if found is None or (waiting._first and waiting._next_rank(found)[0]):
            break
        *_, key = heappop(waiting._lines[found])
        if not waiting._lines[found]:
            del waiting._lines[found]
        waiting._first.pop(key, None)
        waiting.budget.spend(found, GANG)
        yield key
        if waiting.budget.is_spent:
            break
        is_fair = waiting._is_short and not is_fair
    waiting._is_short = bool(waiting._lines)


@pytest.mark.parametrize("seed", range(40))
def test_turns_are_those_of_whoever_looks_at_all_namespaces_each_time(seed):
    def played(turns: Callable[[Queue], Iterator[GangKey]]) -> list[str]:
        chance, waiting, had = Random(seed), queue(room_for(4)), []
        gangs = [
            gang(f"g{at}", complete_at=chance.randrange(9), namespace=f"ns{chance.randrange(6)}")
            for at in range(40)
        ]
        if chance.random() < 0.3:
            waiting.let_first(chance.sample(gangs, 3), 0.0)
        for number in range(30):
            waiting.budget.begin()
            if chance.random() < 0.3:
                waiting.want_pass()
            if chance.random() < 0.3:
                waiting.want_turn(chance.choice(gangs))
            waiting.let_late_go(float(number))
            begin(waiting, gangs, [])
            for key in turns(waiting):
                other = chance.choice(gangs).key.namespace
                waiting.budget.spend(other, chance.choice((0, 0, COST)))
                waiting.budget.spend(key.namespace, chance.choice((0, COST, 9 * COST)))
                had.append(key.name)
        return had

    assert played(Queue.turns) == played(looking_at_all)
