"""What a journal shows is judged without the engine: each planted violation is found, and no other.

A journal of what went well is edited by hand, so that what is planted was never decided by anyone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from app.kube.watch.events import Listed
from app.state.engine import Engine
from app.state.gang.gang import Gang
from app.state.journal.checking.check import check
from app.state.journal.record import Recorder
from tests.app.state.world import World, four_racks, members
from tests.records import BLOCK, RACK, group, node, pod
from tests.sim.journal import journals, record

PREFIX = "kueue.x-k8s.io/"
Lines = list[dict[str, Any]]


class Recorded(World):
    """A world with a journal."""

    def built(self) -> Engine:
        self.lines: list[bytes] = []
        engine = Engine(self.settings)
        self.recorder = Recorder(engine, self.settings, self.lines.append)
        return engine


def history(**settings: Any) -> World:
    """A gang of three runs in one rack, beside an ordinary pod; then time passes."""
    world = Recorded(four_racks(), [pod("plain", on="n00", gpus=4)], **settings)
    pods = members("g", 3)
    world.put(*pods)
    world.tick()
    assert len(world.schedule(*pods)) == 3
    world.apply(Listed("Pod", tuple(world.pods.values())))
    world.tick(1_000.0)
    return world


def judged(lines: Lines) -> list[tuple[str, str]]:
    """(promise, what it is about) of each that is broken."""
    raw = [msgspec.json.encode(line) + b"\n" for line in lines]
    return [(each.promise, each.about) for each in check(raw).broken]


def lines_of(world: World) -> Lines:
    return [msgspec.json.decode(each) for each in world.lines]


def test_what_went_well_is_found_well() -> None:
    world = history()
    found = check(world.lines)
    assert found.broken == []
    assert (found.gangs_started, found.pods_bound) == (1, 3)
    assert found.domains > 0
    assert found.unjudged == {}


def calls(lines: Lines, call: str, uid: str = "") -> list[int]:
    """Where a call stands, and its answer after it."""
    return [
        at
        for at, line in enumerate(lines)
        if line.get("call") == call and (not uid or uid in str(line["args"]))
    ]


def without(lines: Lines, *places: int) -> Lines:
    gone = {each for place in places for each in (place, place + 1)}
    return [line for at, line in enumerate(lines) if at not in gone]


def on_another_rack(lines: Lines) -> Lines:
    """One member is asked for, bound and shown in a rack where the others are not."""
    for line in lines:
        if "uid-g1" not in str(line):
            continue
        if line.get("call") == "bind_arrived":
            line["args"][3] = "n10" if line["args"][3].startswith("n0") else "n00"
            there = line["args"][3]
        if line.get("call") == "apply":
            told = line["args"][0][2]
            for each in told if isinstance(told, list) else [told]:
                if each["uid"] == "uid-g1" and each["node"]:
                    each["node"] = there
    return lines


def one_never_came(lines: Lines) -> Lines:
    return without(lines, *calls(lines, "bind_arrived", "uid-g2"))


def bound_again_elsewhere(lines: Lines) -> Lines:
    at = calls(lines, "bind_finished", "uid-g0")[0]
    again = [
        {**lines[at], "call": "bind_arrived", "args": ["default", "g0", "uid-g0", "n11"]},
        {"line": "out"},
        lines[at],
        {"line": "out"},
    ]
    return [*lines[: at + 2], *again, *lines[at + 2 :]]


def shown_elsewhere(lines: Lines) -> Lines:
    """In the same rack, on the node that the gang does not have."""
    nodes = {line["args"][3] for line in lines if line.get("call") == "bind_arrived"}
    rack = min(nodes)[:-1]
    (other,) = {f"{rack}{at}" for at in range(4)} - nodes
    for line in lines:
        if line.get("call") == "apply" and line["args"][0][1] == "Pod":
            told = line["args"][0][2]
            for each in told if isinstance(told, list) else [told]:
                if each["uid"] == "uid-g0" and each["node"]:
                    each["node"] = other
    return lines


def node_is_too_small(lines: Lines) -> Lines:
    for line in lines:
        if line.get("call") == "apply" and line["args"][0][1] == "Node":
            for each in line["args"][0][2]:
                each["allocatable"] = [
                    [name, 4 if name == "nvidia.com/gpu" else amount]
                    for name, amount in each["allocatable"]
                ]
    return lines


def never_completed(lines: Lines) -> Lines:
    """The third one came, and was never bound."""
    lines = without(lines, *calls(lines, "bind_finished", "uid-g2"))
    for line in lines:
        if line.get("call") == "apply" and line["args"][0][1] == "Pod":
            told = line["args"][0][2]
            for each in told if isinstance(told, list) else [told]:
                if each["uid"] == "uid-g2":
                    each["node"] = ""
    return lines


PLANTED: dict[str, tuple[Callable[[Lines], Lines], set[tuple[str, str]]]] = {
    "a_member_in_another_rack": (on_another_rack, {("in its domains", "gang default/g")}),
    "a_start_before_all_came": (
        one_never_came,
        {("whole", "gang default/g"), ("at most once", "pod default/g2")},
    ),
    "bound_twice": (bound_again_elsewhere, {("at most once", "pod default/g0")}),
    "shown_where_nobody_asked": (shown_elsewhere, {("at most once", "pod default/g0")}),
    "more_than_the_node_has": (
        node_is_too_small,
        {("within capacity", f"pod default/g{at}") for at in range(3)},
    ),
    "torn_for_good": (never_completed, {("whole", "gang default/g")}),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_violation_is_found_and_no_other(name: str) -> None:
    plant, expected = PLANTED[name]
    found = judged(plant(lines_of(history())))
    assert expected <= set(found)
    assert {promise for promise, _ in found} == {promise for promise, _ in expected}


def shown_before_the_outcome(lines: Lines) -> Lines:
    """As on a real API server: the watch may be ahead of the answer to the binding."""
    outcomes = {
        line["args"][0]: at for at, line in enumerate(lines) if "bind_finished" in str(line)
    }
    moved = list(lines)
    for uid, at in outcomes.items():
        shown = next(
            later
            for later in calls(lines, "apply", uid)
            if later > at and lines[later]["args"][0][0] == "applied"
        )
        moved[at], moved[shown] = lines[shown], lines[at]
        moved[at + 1], moved[shown + 1] = lines[shown + 1], lines[at + 1]
    return moved


def test_a_start_that_the_watch_shows_first_is_judged_as_well() -> None:
    found = check(
        msgspec.json.encode(line) + b"\n" for line in shown_before_the_outcome(lines_of(history()))
    )
    assert (found.broken, found.gangs_started) == ([], 1)
    lines = shown_before_the_outcome(lines_of(history()))
    assert ("whole", "gang default/g") in judged(one_never_came(lines))


def test_a_gang_whose_pod_was_lost_meanwhile_is_not_torn_by_corral() -> None:
    lines = never_completed(lines_of(history()))
    (*_, gone) = [
        at for at in calls(lines, "apply", "uid-g2") if lines[at]["args"][0][0] == "applied"
    ]
    ending = msgspec.json.decode(msgspec.json.encode(lines[gone]))
    ending["args"][0][0] = "deleted"
    lines = [*lines[:-4], ending, {"line": "out"}, lines[-2], {"line": "out"}]
    assert judged(lines) == []


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_gang_whose_pod_has_ended_meanwhile_is_not_torn_by_corral(phase: str) -> None:
    lines = never_completed(lines_of(history()))
    (*_, shown) = [
        at for at in calls(lines, "apply", "uid-g0") if lines[at]["args"][0][0] == "applied"
    ]
    ended = msgspec.json.decode(msgspec.json.encode(lines[shown]))
    ended["args"][0][2]["phase"] = phase
    lines = [*lines[:-4], ended, {"line": "out"}, lines[-2], {"line": "out"}]
    assert judged(lines) == []


def test_a_pod_that_came_to_the_node_at_the_same_time_is_not_corrals_fault() -> None:
    world = history()
    lines = lines_of(world)
    node = world.pods["uid-g0"].node
    thief = pod("thief", on=node, gpus=8)
    came = {
        "line": "in",
        "now": 1000.2,
        "call": "apply",
        "args": [["applied", "Pod", msgspec.to_builtins(thief)]],
    }
    at = calls(lines, "bind_finished")[0]
    assert judged([*lines[:at], came, {"line": "out"}, *lines[at:]]) == []


def test_a_gang_may_start_with_its_minimum() -> None:
    world = Recorded(four_racks())
    pods = [pod(f"g{at}", annotations=group("g", 3, RACK)) for at in range(3)]
    world.put(*pods)
    world.tick()
    world.schedule(*pods)
    assert check(world.lines).broken == []


def sliced() -> World:
    """A gang of four, in slices of two that are in one rack each."""
    cut = {PREFIX + "podset-slice-required-topology": RACK, PREFIX + "podset-slice-size": "2"}
    said = {**group("g", 4), PREFIX + "podset-required-topology": BLOCK, **cut}
    nodes = [node(f"b0/r{at}/n{at}{i}") for at in range(2) for i in range(2)]
    world = Recorded(nodes)
    pods = [pod(f"g{at}", annotations=said, gpus=8) for at in range(4)]
    world.put(*pods)
    world.tick()
    assert len(world.schedule(*pods)) == 4
    return world


def test_an_engine_that_starts_a_gang_with_its_first_pod_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Gang, "has_arrived", property(lambda gang: True))
    world = Recorded(four_racks())
    first, *_ = pods = members("g", 3)
    world.put(*pods)
    world.tick()
    assert world.schedule(first)
    (found,) = check(world.lines).broken
    assert (found.promise, found.text) == ("whole", "it starts with 1 of the 3 that it needs")


def test_slices_that_are_whole_are_found_well() -> None:
    assert check(sliced().lines).broken == []


def test_a_slice_in_two_racks_is_found() -> None:
    lines = lines_of(sliced())
    for line in lines:
        if line.get("call") == "apply" and line["args"][0][1] == "Node":
            for each in line["args"][0][2]:
                if each["name"] in ("n01", "n10", "n11"):
                    each["labels"][RACK] = "r1"  # of four nodes one is alone
    assert ("in its domains", "gang default/g") in judged(lines)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 18])
def test_nothing_is_found_in_histories_that_the_simulator_finds_clean(tmp_path, seed) -> None:  # type: ignore[no-untyped-def]
    assert not record(seed, tmp_path / "j").violation
    pods_bound = 0
    for path in journals(tmp_path / "j"):
        with path.open("rb") as file:
            found = check(file)
        assert found.broken == [], path.name
        pods_bound += found.pods_bound
    assert pods_bound > 10
