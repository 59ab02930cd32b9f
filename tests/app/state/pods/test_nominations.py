"""Nodes that kube-scheduler has nominated for pods are not free for gangs that give way to them."""

from __future__ import annotations

import msgspec
import pytest

from app.state.cache.books import Books
from app.state.pods.nominations import Nomination, Nominations, Together
from tests.app.state.failures import remove, running, where
from tests.app.state.world import World, four_racks, members
from tests.records import group, node, pod


def nominated(name: str, on: str, **more):
    return msgspec.structs.replace(pod(name, **more), nominated_node=on)


def test_a_nomination_lasts_until_its_pod_is_bound_ends_or_goes():
    nominations = Nominations()
    waiting = nominated("p", "n1", priority=5)
    known = Nomination("n1", waiting.request, 5)
    assert nominations.put(waiting) == ""
    assert [*nominations.above(5)] == [known]
    assert nominations.put(msgspec.structs.replace(waiting, nominated_node="n2")) == "n1"
    assert nominations.put(msgspec.structs.replace(waiting, node="n2")) == "n2"
    assert [*nominations.above(5)] == []
    nominations.put(waiting)
    assert nominations.put(msgspec.structs.replace(waiting, is_terminating=True)) == "n1"
    nominations.put(waiting)
    assert nominations.drop(waiting.uid) == "n1"
    assert [*nominations.above(5)] == []


def test_pods_of_higher_priority_and_known_ones_do_not_give_way():
    nominations = Nominations()
    nominations.put(nominated("p", "n1", priority=5))
    assert [*nominations.above(6)] == []
    assert [*nominations.above(5, {}, {"uid-p": None})] == []


def test_nominations_are_gathered_once_until_one_of_them_changes():
    """Each search of each gang that waits is compared with those before it by them."""
    nominations = Nominations()
    nominations.put(nominated("p", "n1", priority=5))
    first = nominations.above(5, {"uid-q": None})
    assert nominations.above(5) is first
    nominations.keep({"uid-q": Nomination("n2", (("cpu", 1),), 7)})
    assert [each.node for each in nominations.above(5)] == ["n1", "n2"]
    assert nominations.above(5, {"uid-q": None}) == first
    assert hash(nominations.above(5, {"uid-q": None})) == hash(first)
    assert nominations.kept(5) == {"n2": [(("cpu", 1),)]}
    nominations.end_kept(["uid-q"])
    assert nominations.kept(5) == {}
    assert nominations.above(5) == first


def test_pods_that_are_not_nominated_change_nothing_that_was_gathered():
    """Each pod that is bound, changes or goes is one that may have been nominated."""
    nominations = Nominations()
    nominations.keep({f"uid-{at}": Nomination(f"n{at}", (("cpu", 1),), 7) for at in range(9)})
    gathered, kept = nominations.above(5), nominations.kept(5)
    nominations.put(pod("ordinary"))
    nominations.drop("uid-ordinary")
    assert nominations.above(5) is gathered
    assert nominations.kept(5) is kept


class Counted(dict):
    """How often all its keys were looked at."""

    times = 0

    def keys(self):
        self.times += 1
        return super().keys()


def test_what_the_books_hold_is_looked_through_once_until_something_changes():
    """Not for each gang that waits: there may be thousands of pods on either side."""
    nominations, books = Nominations(), Books()
    books.held = Counted()
    nominations.keep({f"uid-{at}": Nomination(f"n{at}", (("cpu", 1),), 7) for at in range(9)})
    books.hold("uid-3", "n3", (("cpu", 1),))
    gathered = {id(nominations.above(5, {}, nominations.booked(books))) for _ in range(300)}
    assert books.held.times == 1
    assert len(gathered) == 1
    assert nominations.booked(books).keys() == {"uid-3"}
    books.release("uid-3")
    assert nominations.booked(books).keys() == set()
    books.hold("uid-other", "n3", (("cpu", 1),))
    nominations.end_kept(["uid-4"])
    assert nominations.booked(books).keys() == set()
    assert len(nominations.above(5, {}, nominations.booked(books))) == 8


def test_nominations_are_added_up_by_request_and_node():
    alike = [Nomination("n1", (("cpu", 1),), 7)] * 2
    some = Together([*alike, Nomination("n2", (("cpu", 2),), 7)])
    assert some.pods == {(("cpu", 1),): {"n1": 2}, (("cpu", 2),): {"n2": 1}}
    assert some.pods is some.pods


ONE_NODE = [node("b0/r0/n00", gpus=8)]


@pytest.mark.parametrize(
    ("priority", "is_planned"),
    [
        pytest.param(0, False, id="a_lower_one"),
        pytest.param(100, False, id="an_equal_one"),
        pytest.param(101, True, id="a_higher_one"),
    ],
)
def test_a_gang_gives_way_to_a_pod_nominated_with_no_lower_priority(priority, is_planned):
    world = World(ONE_NODE, [nominated("p", "n00", priority=100)])
    world.put(pod("g", annotations=group("g", 1), priority=priority))
    world.tick()
    assert bool(world.held) is is_planned


@pytest.mark.parametrize(
    ("priority", "is_planned"),
    [
        pytest.param(-1, True, id="a_lower_one"),
        pytest.param(0, False, id="the_default"),
    ],
)
def test_a_place_for_a_pod_to_come_gives_way_as_a_pod_of_default_priority_does(
    priority, is_planned
):
    world = running(pods=2, nodes=[node(f"b0/r0/n{i}") for i in range(3)])
    (spare,) = {"n0", "n1", "n2"} - {each.node for each in world.pods.values()}
    world.put(nominated("p", spare, priority=priority))
    remove(world, where(world, "g1"))
    world.delete(world.pods["uid-g1"])
    world.tick()
    assert bool(world.held) is is_planned


def test_nominated_pods_that_request_more_than_there_can_be_leave_nothing():
    """Eight times 2 Ei is 0 to an integer of 64 bits."""
    world = World([node("b1/r1/n1")])
    world.put(*(nominated(f"p{at}", "n1", cpu=2**61, gpus=0, priority=9) for at in range(8)))
    world.put(*members("g", 1, gpus=1))
    assert world.held == {}


def test_what_is_left_beside_a_nominated_pod_is_free():
    world = World(ONE_NODE, [nominated("p", "n00", priority=100, gpus=4)])
    world.put(pod("g", gpus=4, annotations=group("g", 1)))
    world.tick()
    assert len(world.held) == 1


def test_a_gang_is_tried_again_when_the_nominated_pod_goes_elsewhere():
    world = World(ONE_NODE, [nominated("p", "n00", priority=100)])
    world.put(pod("g", annotations=group("g", 1)))
    world.tick()
    assert world.held == {}
    world.put(pod("p", priority=100))
    world.tick()
    assert len(world.held) == 1


def test_a_nomination_of_its_own_member_keeps_no_gang_away():
    first, second = members("g", 2)
    world = World(four_racks())
    world.put(msgspec.structs.replace(first, nominated_node="n00"), second)
    world.tick()
    assert world.held[first.uid] == "n00"


def test_a_planned_member_of_another_gang_counts_once():
    world = World(ONE_NODE)
    world.put(pod("a", gpus=4, annotations=group("a", 1)))
    world.tick()
    world.put(nominated("a", "n00", gpus=4, annotations=group("a", 1)))
    world.put(pod("b", gpus=4, annotations=group("b", 1)))
    world.tick()
    assert sorted(world.held) == ["uid-a", "uid-b"]


def test_members_that_need_one_domain_go_around_a_nominated_node():
    taken = nominated("p", "n01", priority=100)
    world = World(four_racks(), [taken, *members("g", 4)])
    assert len({on[:2] for on in world.held.values()}) == 1
    assert not {on for on in world.held.values() if on.startswith("n0")}
