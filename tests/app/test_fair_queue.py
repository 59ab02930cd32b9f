"""Turns between namespaces: for every order of puts and takes, nobody waits for a whole crowd."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.fair_queue import FairQueue, Shares

NAMESPACES = ("a", "b", "c", "d")
TAKE = None
schedules = st.lists(st.one_of(st.sampled_from(NAMESPACES), st.just(TAKE)), max_size=200)


def filled(namespaces):
    """A queue with one item per letter, which is its namespace; keys count on."""
    queue = FairQueue()
    for number, namespace in enumerate(namespaces):
        queue.put(namespace, number, f"{namespace}{number}")
    return queue


def taken(queue):
    return [queue.take()[2] for _ in range(len(queue))]


def test_a_late_namespace_waits_for_one_item_of_the_crowd():
    queue = filled("a" * 2500)
    queue.put("b", 0, "late")
    assert [queue.take()[0] for _ in range(4)] == ["a", "b", "a", "a"]


def test_a_newer_item_of_a_key_takes_the_place_of_the_older():
    queue = filled("aaa")
    queue.put("a", 0, "newer")
    queue.put("b", 0, "another's")
    assert taken(queue) == ["newer", "another's", "a1", "a2"]


def test_an_item_is_removed_or_dropped_without_the_turn_of_its_namespace():
    queue = filled("aabbb")
    assert queue.remove("a", 0) == "a0"
    assert queue.remove("a", 0) is None
    assert queue.remove("nobody", 0) is None
    assert queue.drop("b", is_oldest=True) == (2, "b2")
    assert queue.drop("b", is_oldest=False) == (4, "b4")
    assert taken(queue) == ["a1", "b3"]
    assert not queue.has("a")


def test_an_empty_queue_has_nothing_to_take():
    with pytest.raises(KeyError):
        FairQueue().take()


@given(schedules)
def test_between_two_items_of_a_namespace_each_other_one_is_taken_from_once_at_most(schedule):
    queue, lines = FairQueue(), defaultdict(list)
    since = {}  # per namespace that waits: whose items were taken since it came or had its turn
    for step, namespace in enumerate(schedule):
        if namespace is not TAKE:
            if not lines[namespace]:
                since[namespace] = Counter()
            lines[namespace].append(step)
            queue.put(namespace, step, step)
        elif len(queue):
            others = {each for each in NAMESPACES if lines[each]}
            turn, key, item = queue.take()
            assert key == item == lines[turn].pop(0)  # in the order of its own line
            for each in others - {turn}:
                since[each][turn] += 1
                assert since[each][turn] == 1
            since[turn] = Counter()
    assert len(queue) == sum(map(len, lines.values()))


@given(st.lists(st.tuples(st.sampled_from(NAMESPACES), st.booleans()), max_size=100))
def test_the_one_who_leaves_out_has_the_most_and_keeps_as_many_as_the_other_gets(changes):
    shares, items = Shares(), Counter()
    for namespace, is_more in changes:
        if is_more:
            shares.add(namespace)
            items[namespace] += 1
        elif items[namespace]:
            shares.remove(namespace)
            items[namespace] -= 1
        assert {each: shares.of(each) for each in NAMESPACES} == {
            each: items[each] for each in NAMESPACES
        }
        for each in NAMESPACES:
            giving = shares.to_leave_out(each)
            if giving == each:
                assert items[each] + 2 > max(items.values(), default=0)
            else:
                assert items[giving] == max(items.values())
                assert items[giving] - 1 >= items[each] + 1


@given(st.lists(st.sampled_from(NAMESPACES), max_size=100), st.integers(1, 20))
def test_a_namespace_that_asks_for_less_than_its_share_loses_nothing(puts, room):
    """As WorkQueue does: room for so many, and everybody puts as often as he likes."""
    queue, total = FairQueue(), Counter()
    for number, namespace in enumerate(puts):
        total[namespace] += 1
        if len(queue) == room:
            giving = queue.shares.to_leave_out(namespace)
            if giving == namespace:
                continue
            queue.drop(giving, is_oldest=False)
        queue.put(namespace, number, number)
    for namespace in total:
        least = min(total[namespace], room // len(total))
        assert queue.shares.of(namespace) >= least
    assert len(queue) == min(room, len(puts))


STEPS = ("put", "take", "drop", "remove")


@given(
    st.lists(
        st.tuples(
            st.sampled_from(STEPS), st.booleans(), st.sampled_from(NAMESPACES), st.integers(0, 3)
        ),
        max_size=100,
    )
)
def test_queues_with_shares_in_common_count_what_both_of_them_have(steps):
    shares = Shares()
    queues = FairQueue(shares), FairQueue(shares)
    items = set()  # which queue, namespace, key
    for step, is_second, namespace, key in steps:
        queue = queues[is_second]
        own = {each for each in items if each[0] == is_second}
        if step == "put":
            queue.put(namespace, key, None)
            items.add((is_second, namespace, key))
        elif step == "take" and own:
            taken_from, taken_key, _ = queue.take()
            items.remove((is_second, taken_from, taken_key))
        elif step == "drop" and queue.has(namespace):
            items.remove((is_second, namespace, queue.drop(namespace, is_oldest=True)[0]))
        elif step == "remove":
            queue.remove(namespace, key)
            items.discard((is_second, namespace, key))
        counted = Counter(each for _, each, _ in items)
        assert {each: shares.of(each) for each in NAMESPACES} == {
            each: counted[each] for each in NAMESPACES
        }


def test_room_is_made_by_who_has_the_most_and_by_none_where_each_has_one():
    queue = filled("aaab")
    assert queue.make_room("c") == (0, "a0")
    assert taken(queue) == ["a1", "b3", "a2"]
    crowd = filled("ab")
    assert crowd.make_room("c") is None
    assert crowd.make_room("a") == (0, "a0")
    assert taken(crowd) == ["b1"]
