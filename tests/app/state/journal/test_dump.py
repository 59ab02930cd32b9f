"""A dump is the beginning of a journal: whoever plays it is as an engine that has restarted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from app.kube.core.objects import Owner
from app.kube.watch.events import Listed
from app.state.engine import Engine
from app.state.journal import dump
from app.state.journal.dump import beginning, known
from app.state.journal.rehearse import rehearse
from app.state.journal.replay import replay
from tests.app.state.world import World, four_racks, members
from tests.records import RACK, group, job, job_pods, pod
from tests.sim.shadow import state_of

HERE = Path(__file__).parents[4]
ENDS = Owner("batch/v1", "Job", "j", "uid-of-j")
LASTS = Owner("apps/v1", "ReplicaSet", "r", "uid-of-r")
SYSTEM = Owner("apps/v1", "DaemonSet", "d", "uid-of-d")


def busy_world(**settings):
    """A gang that runs, one that is placed, one that fits nowhere, and pods outside gangs."""
    ordinary = [
        msgspec.structs.replace(pod("plain", on="n00", gpus=1), owner=ENDS, phase="Running"),
        msgspec.structs.replace(pod("lasting", on="n01", gpus=1), owner=LASTS, priority=7),
        msgspec.structs.replace(pod("system", on="n01", gpus=1), owner=SYSTEM),
        msgspec.structs.replace(pod("ending", on="n10", gpus=1), is_terminating=True),
        msgspec.structs.replace(pod("bare", gpus=1), priority=3),
    ]
    jobs = [job("j", 2)]
    world = World(four_racks(), [*ordinary, *job_pods("j", 2)], jobs, **settings)
    runs = members("runs", 2, gpus=4)
    world.put(*runs)
    assert len(world.schedule(*runs)) == 2
    world.put(*members("placed", 2, gpus=4))
    world.put(*[pod(f"large{at}", annotations=group("large", 5, RACK)) for at in range(5)])
    world.tick()
    return world


def lines_of(world):
    return b"".join(beginning(known(world.engine, world.now))).splitlines(keepends=True)


def played(lines):
    """The engine that has played them."""
    made = []

    def build(settings):
        made.append(Engine(settings))
        return made[0]

    assert list(replay(lines, build=build)) == []
    return made[0]


def restarted(world):
    fresh = Engine(world.settings)
    for kind, records in (
        ("Topology", ()),
        ("Job", tuple(world.engine.objects.by_uid.values())),
        ("Node", tuple(world.engine.books.nodes.values())),
        ("Pod", tuple(world.pods.values())),
    ):
        fresh.apply(Listed(kind, records), world.now)
    return fresh


def test_who_plays_a_dump_is_as_one_that_has_restarted():
    world = busy_world()
    ours, theirs = played(lines_of(world)), restarted(world)
    for engine in (ours, theirs):
        engine.tick(world.now)
    assert ours.is_synced
    assert state_of(ours) == state_of(theirs)
    assert ours.books.lasting == theirs.books.lasting
    bound = world.engine.books.bound
    assert {uid: ours.occupants.by_uid[uid].may_go for uid in bound} == {
        uid: theirs.occupants.by_uid[uid].may_go for uid in bound
    }
    assert ours.occupants.by_uid == theirs.occupants.by_uid
    assert {gang.key: gang.reporting.sentence for gang in ours.gangs.by_key.values()} == {
        gang.key: gang.reporting.sentence for gang in theirs.gangs.by_key.values()
    }


def test_every_pod_is_in_it_once_whatever_is_kept_of_it():
    world = busy_world()
    (line,) = [each for each in lines_of(world) if b'["listed","Pod"' in each]
    listed = msgspec.json.decode(line)["args"][0][2]
    assert sorted(each["uid"] for each in listed) == sorted(world.pods)


def test_pieces_are_small_however_many_pods_there_are(monkeypatch):
    monkeypatch.setattr(dump, "RECORDS_PER_PIECE", 3)
    world = busy_world()
    pieces = list(beginning(known(world.engine, world.now)))
    whole = b"".join(pieces).splitlines(keepends=True)
    assert len(pieces) > len(whole)
    assert state_of(played(whole)) == state_of(played(lines_of(world)))


def test_a_copy_does_not_change_while_the_engine_goes_on():
    world = busy_world()
    copied = known(world.engine, world.now)
    before = b"".join(beginning(copied))
    world.delete(world.pods["uid-plain"])
    world.put(pod("new", on="n11", gpus=1))
    assert b"".join(beginning(copied)) == before


def test_a_member_that_is_bound_while_it_is_copied_takes_its_node():
    world = busy_world()
    steps = dump.copied(world.engine, world.now)
    next(steps)
    next(steps)
    pods = [each for each in world.pods.values() if each.name.startswith("placed")]
    placed = world.schedule(*pods)
    assert len(placed) == 2
    lines = b"".join(beginning(dump.finished(steps))).splitlines(keepends=True)
    engine = played(lines)
    assert engine.books.bound == world.engine.books.bound


def rehearsed(lines):
    written: list[bytes] = []
    rehearse(lines, written.append)
    return written


def test_a_rehearsed_dump_has_an_answer_to_every_input_and_asks_for_every_member_that_waits():
    world = busy_world()
    lines = rehearsed(lines_of(world))
    calls = [msgspec.json.decode(each) for each in lines[1:]]
    ins = [each for each in calls if each["line"] == "in"]
    assert len(ins) == len([each for each in calls if each["line"] == "out"])
    asked = {each["args"][0]["name"] for each in ins if each["call"] == "filter"}
    waiting = {
        member.pod.name
        for gang in world.engine.gangs.by_key.values()
        for member in gang.members.values()
        if not member.pod.node
    }
    assert asked == waiting
    assert {"prioritize", "bind_arrived", "tick"} <= {each["call"] for each in ins}
    assert list(replay(lines)) == []


@pytest.mark.parametrize("seed", ["1", "4711"])
def test_it_replays_bit_for_bit_in_another_process_with_another_hash_seed(tmp_path, seed):
    path = tmp_path / "journal"
    path.write_bytes(b"".join(rehearsed(lines_of(busy_world()))))
    ran = subprocess.run(
        [sys.executable, "-m", "app", "replay", str(path)],
        env={**os.environ, "PYTHONHASHSEED": seed},
        cwd=HERE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("equal: ")


def test_a_changed_answer_of_a_rehearsed_dump_is_found():
    lines = rehearsed(lines_of(busy_world()))
    at = next(i for i, line in enumerate(lines) if b'"call":"filter"' in line)
    lines[at + 1] = b'{"line":"out","digest":"0000000000000000"}\n'
    (found,) = replay(lines)
    assert (found.line, found.call) == (at + 1, "filter")
