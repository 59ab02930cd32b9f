"""I10: what fails for one gang or one object fails for nobody else, and is told."""

from __future__ import annotations

import pytest

from app.kube.watch.events import Applied, Listed
from app.state.effects import Evict
from app.state.engine import Engine
from app.state.filter_result import Pinned
from app.state.lifecycle.members import Members
from app.state.lifecycle.passes import Passes
from app.state.lifecycle.roll_call import RollCalls
from app.state.plan.planner import Planner
from app.state.plan.serving import Serving
from app.state.reserve.replacements import Replacements
from app.state.settings import EngineSettings
from tests.app.state.world import LISTED, World, four_racks, members, racks
from tests.records import BLOCK, RACK, group, node, pod


class Boom(Exception):
    pass


class Trips(Planner):
    """A planner with a bug that the gangs named here trip over."""

    __slots__ = ()
    over = ("default/bad",)

    def kept_from(self, gang):
        if str(gang.key) in self.over:
            raise Boom(str(gang.key))
        return Planner.kept_from(self, gang)


class NoView(Serving):
    """The same of what is to be placed, and where."""

    __slots__ = ()

    def view(self, gang):
        if str(gang.key) in Trips.over:
            raise Boom(str(gang.key))
        return Serving.view(self, gang)


class Faulty(World):
    """A world whose engine goes on after a fault, and what it told of them."""

    def __init__(self, *args, **settings):
        self.faults = []
        super().__init__(*args, **settings)

    def built(self):
        engine = Engine(self.settings, lambda what, error: self.faults.append((what, error)))
        engine.planner.__class__ = Trips
        parts = engine.books, engine.node_table, engine.planner.families
        engine.planner.serving = NoView(*parts)
        return engine


def test_a_search_that_fails_leaves_its_gang_without_a_place_and_says_whose_error_it_is():
    world = Faulty(four_racks(), members("bad", 2))
    assert world.held == {}
    assert world.reports == [
        "gang default/bad cannot be placed: the search failed for an error of Corral's own, Boom"
    ]
    (what, error), *_ = world.faults
    assert what == "search for gang default/bad"
    assert isinstance(error, Boom)


def test_gangs_behind_one_whose_search_fails_are_placed_in_the_same_pass():
    world = Faulty(four_racks(), [*members("bad", 2), *members("good", 2), *members("other", 2)])
    assert len(world.held) == 4


def test_a_gang_whose_search_fails_is_tried_again_ever_more_rarely():
    world = Faulty(four_racks(), members("bad", 2), retry_seconds=1.0, retry_seconds_most=60.0)
    for _ in range(600):
        world.tick(0.1)
    assert 4 <= len(world.faults) <= 8


def test_a_gang_whose_search_failed_is_placed_once_it_does_not_fail_any_more(monkeypatch):
    world = Faulty(four_racks(), members("bad", 2), retry_seconds=1.0)
    monkeypatch.setattr(Trips, "over", ())
    for _ in range(50):
        world.tick(0.1)
    assert len(racks(world.held)) == 1


def test_a_gang_that_runs_is_not_evicted_because_our_search_fails(monkeypatch):
    monkeypatch.setattr(Trips, "over", ())
    pods = members("bad", 2)
    world = Faulty(four_racks(), pods, fail_fast=True, owed_seconds=0.0)
    world.schedule(*pods)
    monkeypatch.setattr(Trips, "over", ("default/bad",))
    world.delete(world.pods["uid-bad1"])
    world.put(pod("bad2", annotations=group("bad", 2, RACK)))
    world.tick(5)
    assert world.faults
    assert world.told(Evict) == []


def test_what_a_list_says_behind_an_object_we_trip_over_counts(monkeypatch):
    world = Faulty(four_racks())
    put = world.engine.members.put

    def tripping(record, *args, **more):
        if record.name == "trips":
            raise Boom
        put(record, *args, **more)

    monkeypatch.setattr(Members, "put", lambda _, *args, **more: tripping(*args, **more))
    trips = pod("trips", annotations=group("t", 2, RACK))
    bound = pod("bound", on="n30", phase="Running")
    world.apply(Listed("Pod", (trips, *members("g", 2), bound)))
    world.tick()
    assert world.engine.books.held.keys() == {"uid-g0", "uid-g1"}
    assert "uid-bound" in world.engine.books.bound
    assert [what for what, _ in world.faults] == ["Pod trips of a list"]


def test_a_roll_call_that_fails_keeps_no_other_gang_from_theirs(monkeypatch):
    world = Faulty(four_racks())
    review = Replacements.review

    def trips(places, gang, now):
        if gang.key.name == "bad":
            raise Boom
        review(places, gang, now)

    monkeypatch.setattr(Replacements, "review", trips)
    for name in ("bad", "good"):
        world.put(members(name, 2)[0])  # their roll calls are owed, in this order
    world.tick()
    assert [what for what, _ in world.faults] == ["roll call of gang default/bad"]
    assert world.gang("good").membership.members_live == 1


@pytest.mark.parametrize(("part", "step"), [(RollCalls, "review_all"), (Passes, "expire")])
def test_deadlines_are_kept_where_another_part_of_the_tick_fails(monkeypatch, part, step):
    world = Faulty(four_racks(), members("g", 2), gang_bind_seconds=20.0)
    first = world.pods["uid-g0"]
    assert isinstance(world.filter(first), Pinned)
    world.bind(first, world.held[first.uid])

    def trips(*_):
        raise Boom

    monkeypatch.setattr(part, step, trips)
    world.tick(21)
    assert world.refused == [first.uid]
    assert world.faults


def test_an_earmark_that_cannot_be_found_is_told_and_keeps_nobody_else_from_one():
    settings = {"starvation_seconds": 1.0, "earmarks_per_namespace": 2}
    large = [*members("bad", 4), *members("good", 4)]
    small = [pod(f"s{i}", on=f"n{i}0", phase="Running") for i in range(4)]
    world = Faulty(four_racks(), [*large, *small], **settings)
    for _ in range(100):
        world.tick()
    assert [str(key) for key in world.engine.starvation.of] == ["default/good"]
    assert "earmark for gang default/bad" in {what for what, _ in world.faults}


def test_without_somebody_to_tell_nothing_is_hidden():
    engine = Engine(EngineSettings(levels=(BLOCK, RACK), kinds=LISTED))
    engine.planner.__class__ = Trips
    for listed in (("Topology", ()), ("Job", ()), ("Node", (node("b0/r0/n0"),)), ("Pod", ())):
        engine.apply(Listed(*listed), 1.0)
    first, second = members("bad", 2)
    engine.apply(Applied(first), 2.0)
    engine.apply(Applied(second), 2.0)
    with pytest.raises(Boom):
        engine.tick(2.1)
