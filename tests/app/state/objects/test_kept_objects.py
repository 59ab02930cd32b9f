"""Objects that are kept: when there is something to compare, and what is written when."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from app.dialects.written import Difference, ObjectWrite
from app.kube.core.objects import ObjectRecord
from app.kube.watch.events import Applied, Deleted, Listed
from app.state.objects.kept_objects import (
    GRACE_SECONDS,
    LONGEST_PAUSE_SECONDS,
    LONGEST_REFUSED_SECONDS,
    MOST_AT_ONCE,
    KeptObjects,
)
from tests.records import node

PATH = "/apis/toys.example.org/v1/boxes"


def box(name: str, version: str = "1") -> ObjectRecord:
    return ObjectRecord(kind="Box", namespace="", name=name, uid=f"uid-{name}", version=version)


class Boxes:
    """A box for each value of a label, with so many nodes; those of no node are deleted."""

    kind, path = "Box", PATH

    def difference(self, nodes: Any, there: Any) -> Difference:
        wanted = Counter(labels["box"] for labels in nodes.values() if "box" in labels)
        absent = sorted(wanted.keys() - there.keys())
        made = [ObjectWrite(name, {"nodes": wanted[name]}) for name in absent]
        gone = [there[name] for name in sorted(there.keys() - wanted.keys())]
        deleted = [ObjectWrite(each.name, None, each.uid, each.version) for each in gone]
        return Difference((*made, *deleted))


class World:
    """Nodes with boxes, boxes, and what is written at which time."""

    def __init__(self, nodes: dict[str, str] | None = None, boxes: tuple[str, ...] = ()) -> None:
        self.kept = KeptObjects(Boxes())
        self.kept.apply(Listed("Node", tuple(self.node(*each) for each in (nodes or {}).items())))
        self.kept.apply(Listed("Box", tuple(map(box, boxes))))

    @staticmethod
    def node(name: str, value: str) -> Any:
        return node(name, labels={"box": value} if value else {})

    def label(self, name: str, value: str) -> None:
        self.kept.apply(Applied(self.node(name, value)))

    def look(self, now: float) -> list[str] | None:
        """The names that are due, `-` before those to be deleted; None: nothing is compared."""
        comparison = self.kept.comparison(now)
        if comparison is None:
            return None
        due = self.kept.due(comparison.difference(), now)
        for each in due:
            self.kept.sent(each, now)
        return [each.name if each.body is not None else f"-{each.name}" for each in due]

    def write_times(self, until: float, *, step: float = 1.0) -> list[float]:
        """When something is written, if it is looked every `step` seconds."""
        steps = (at * step for at in range(round(until / step) + 1))
        return [now for now in steps if self.look(now)]


def test_nothing_is_compared_before_nodes_and_objects_are_listed() -> None:
    kept = KeptObjects(Boxes())
    kept.apply(Applied(World.node("n1", "a")))
    assert kept.comparison(0.0) is None
    kept.apply(Listed("Node", (World.node("n1", "a"),)))
    assert kept.comparison(1.0) is None
    kept.apply(Listed("Box", ()))
    assert kept.comparison(2.0) is not None


def test_nothing_is_compared_while_nothing_changes() -> None:
    world = World({"n1": "a"}, ("a",))
    assert [world.look(0.0), world.look(1.0), world.look(999.0)] == [[], None, None]
    heartbeat = msgspec.structs.replace(World.node("n1", "a"), version="9", is_ready=False)
    world.kept.apply(Applied(heartbeat))
    assert world.look(1_000.0) is None
    world.label("n1", "b")
    assert world.look(1_001.0) == ["b"]


def test_many_events_are_one_comparison() -> None:
    world = World()
    for at in range(100):
        world.label(f"n{at}", "a")
    assert world.look(0.0) == ["a"]
    world.kept.apply(Applied(box("a")))
    assert [world.look(1.0), world.look(2.0)] == [[], None]


def test_a_list_takes_the_place_of_what_was_there() -> None:
    world = World({"n1": "a"}, ("a",))
    world.kept.apply(Listed("Node", (World.node("n2", "b"),)))
    world.kept.apply(Listed("Box", (box("c"),)))
    assert world.look(0.0) == ["b"]
    assert world.look(GRACE_SECONDS) == ["b", "-c"]


# -- the grace -------------------------------------------------------------------------------------


def test_an_object_is_deleted_once_it_was_unwanted_for_the_grace() -> None:
    world = World({"n1": "a"}, ("a",))
    world.kept.apply(Deleted(World.node("n1", "a")))
    assert [world.look(100.0), world.look(99.0 + GRACE_SECONDS)] == [[], None]
    assert world.look(100.0 + GRACE_SECONDS) == ["-a"]


def test_a_node_that_is_deleted_and_made_anew_within_the_grace_changes_nothing() -> None:
    world = World({"n1": "a"}, ("a",))
    for at in range(20):
        world.kept.apply(Deleted(World.node("n1", "a")))
        assert world.look(at * GRACE_SECONDS) == []
        world.label("n1", "a")
        assert world.look((at + 0.9) * GRACE_SECONDS) == []


def test_a_corral_that_leads_again_gives_the_whole_grace() -> None:
    world = World({"n1": ""}, ("a",))
    assert world.look(0.0) == []
    world.kept.rest()
    assert world.look(GRACE_SECONDS) == []
    assert world.look(2 * GRACE_SECONDS) == ["-a"]


# -- how often ------------------------------------------------------------------------------------


def test_a_look_has_a_bounded_number_of_writes_and_the_next_has_the_others() -> None:
    world = World({f"n{at}": f"box{at:03}" for at in range(2 * MOST_AT_ONCE + 1)})
    due = [world.look(at / 4) or [] for at in range(3)]
    assert [len(each) for each in due] == [MOST_AT_ONCE, MOST_AT_ONCE, 1]
    assert len({name for each in due for name in each}) == 2 * MOST_AT_ONCE + 1


def test_the_same_is_written_later_and_later_however_often_the_watch_shows_something() -> None:
    """Another controller deletes it again and again."""
    world = World({"n1": "a"})
    times = []
    for now in range(4_000):
        if world.look(float(now)):
            times.append(now)
            world.kept.written()
        world.kept.apply(Applied(box("a")))
        world.kept.apply(Deleted(box("a")))
    assert times == [0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 1023, 2047]


def test_something_else_of_the_same_name_is_written_at_once() -> None:
    world = World({"n1": "a"})
    assert world.write_times(10.0) == [0, 1, 3, 7]
    assert world.look(11.0) is None
    world.label("n2", "a")
    assert world.look(11.0) == ["a"]


def test_what_is_refused_is_written_again_within_a_minute_for_ever() -> None:
    world = World({"n1": "a"})
    now, (write,) = 0.0, Boxes().difference({"n1": {"box": "a"}}, {}).writes
    for _ in range(2_000):  # more than doublings that a float holds
        assert world.look(now) == ["a"]
        world.kept.refused(write)
        assert world.look(now + 0.9) is None
        now += LONGEST_REFUSED_SECONDS


def test_what_was_there_for_long_is_forgotten() -> None:
    world = World({"n1": "a"})
    assert world.write_times(4.0) == [0, 1, 3]
    world.kept.apply(Applied(box("a")))
    assert world.look(5.0 + LONGEST_PAUSE_SECONDS) == []
    world.kept.apply(Deleted(box("a")))
    later = 6.0 + LONGEST_PAUSE_SECONDS
    assert [world.look(later + at) for at in range(3)] == [["a"], ["a"], None]


# -- an API server that does not answer -----------------------------------------------------------


def test_nothing_is_compared_while_the_api_server_does_not_answer() -> None:
    world, now = World({"n1": "a"}), 0.0
    pauses = []
    for _ in range(8):
        assert world.look(now) == ["a"]
        world.kept.refused(ObjectWrite("a", {"nodes": 1}))
        world.kept.pause(now)
        began = now
        while world.kept.comparison(now) is None:
            world.kept.apply(Applied(node("n2", labels={"other": str(now)})))
            now += 1.0
        pauses.append(now - began)
    assert pauses == [1, 2, 4, 8, 16, 32, LONGEST_REFUSED_SECONDS, LONGEST_REFUSED_SECONDS]


def test_a_pause_ends_when_the_kind_is_listed_and_the_next_one_is_short_after_a_write() -> None:
    world = World({"n1": "a"})
    for _ in range(5):
        world.look(0.0)
        world.kept.pause(0.0)
    world.kept.apply(Listed("Box", (box("a"),)))
    assert world.look(0.5) == []
    world.kept.written()
    world.kept.pause(1.0)
    assert [world.kept.is_paused(1.9), world.kept.is_paused(2.0)] == [True, False]
