"""The status of a vocabulary's objects: written when it is another, and only by who has one."""

from __future__ import annotations

from itertools import pairwise

from msgspec.structs import replace

from app.dialects import kueue
from app.dialects.registry import Dialects
from app.kube.watch.events import Listed
from app.state.effects import WriteStatus
from app.state.engine import Engine
from app.state.report.statuses import MOST_AT_ONCE, ONE_MORE_SECONDS
from tests.app.dialects import toy
from tests.app.state.world import LISTED, World, four_racks, members
from tests.records import BLOCK, RACK, job_owner, pod

PATH = f"/apis/{toy.GROUP}/v1/namespaces/default/bands"
SECTION = toy.Section("horns", 2, RACK)
BAND = toy.Band(
    kind="Band",
    namespace="default",
    name="duo",
    uid="uid-duo",
    version="1",
    spec=toy.Spec(BLOCK, (SECTION,)),
)
PLAYERS = [pod(f"p{i}", labels={toy.BAND: "duo", toy.SECTION: "horns"}) for i in range(2)]


class BandWorld(World):
    """A cluster in which bands are read as well."""

    def built(self):
        return Engine(self.settings, dialects=Dialects((kueue.DIALECT, toy.DIALECT)))

    def written(self):
        return [(each.path, each.uid, dict(each.status)) for each in self.told(WriteStatus)]


def with_a_band(**settings):
    world = BandWorld(four_racks(), kinds=(*LISTED, "Band"), **settings)
    world.apply(Listed("Band", (BAND,)))
    world.tick()
    return world


def test_a_status_that_stands_there_is_not_written_again():
    world = with_a_band()
    world.put(PLAYERS[0])
    world.tick()
    before = len(world.written())
    (key,) = world.engine.gangs.by_key
    world.engine.statuses.note(key)
    world.tick()
    assert before
    assert len(world.written()) == before


def test_no_status_is_written_for_a_pod_that_is_only_about_to_be_created():
    world = BandWorld(four_racks(), kinds=(*LISTED, "Band"), born_seconds=10.0)
    world.apply(Listed("Band", (BAND,)))
    world.tick()
    before = len(world.written())
    unborn = replace(PLAYERS[0], name="", uid="", owner=job_owner("duo"))
    answer, effects = world.engine.admit(unborn, "default", world.now)
    assert answer
    world.effects.extend(effects)
    world.tick(5.0)
    assert len(world.written()) == before


def test_an_objects_status_follows_its_gang_from_gathering_to_running():
    world = with_a_band()
    for player in PLAYERS:
        world.put(player)
        world.tick()
    assert len(world.schedule(*PLAYERS)) == 2
    world.tick()
    statuses = [status for _, _, status in world.written()]
    assert {(path, uid) for path, uid, _ in world.written()} == {(f"{PATH}/duo/status", "uid-duo")}
    phases = list(dict.fromkeys(status["phase"] for status in statuses))
    assert [phases[0], phases[-1]] == ["gathering", "running"]
    assert "duo" in statuses[0]["reason"]
    assert statuses[-1] == {"phase": "running", "seated": 2, "reason": ""}


def test_a_gang_of_which_a_pod_is_lost_and_finds_no_place_says_why():
    world = with_a_band()
    world.put(*PLAYERS)
    placed = world.schedule(*PLAYERS)
    world.tick()
    lost = PLAYERS[0]
    world.put(*(replace(each, is_unschedulable=True) for each in four_racks()))
    world.delete(world.pods[lost.uid])
    world.put(replace(lost, name="again", uid="uid-again"))
    for _ in range(5):  # it is tried again after a back-off
        world.tick(1.0)
    status = world.written()[-1][2]
    assert (status["phase"], status["seated"]) == ("repairing", len(placed) - 1)
    assert "runs without 1 of its pods" in status["reason"]


def test_a_gang_that_ends_as_a_whole_says_why_the_pods_wait_that_have_come_for_it():
    world = with_a_band(disruption="all")
    world.put(*PLAYERS)
    world.schedule(*PLAYERS)
    lost = world.pods[PLAYERS[0].uid]
    world.put(replace(lost, is_preempted=True, is_terminating=True))
    world.tick(1.0)
    world.delete(lost)
    # The other one still runs: a PodDisruptionBudget keeps it.
    world.put(replace(PLAYERS[0], name="again", uid="uid-again"))
    world.tick(1.0)
    assert "goes for a pod of higher priority" in world.written()[-1][2]["reason"]


def test_a_status_that_was_written_is_not_written_again():
    world = with_a_band()
    world.put(*PLAYERS)
    world.schedule(*PLAYERS)
    for _ in range(3):
        world.put(BAND)
        world.tick(1.0)
    statuses = world.written()
    assert all(earlier != later for earlier, later in pairwise(statuses))
    assert statuses[-1][2]["phase"] == "running"


def test_a_gang_of_a_vocabulary_without_a_status_writes_none():
    world = with_a_band()
    gang = members("g", 2)
    world.put(*gang)
    assert len(world.schedule(*gang)) == 2
    world.tick()
    assert world.written() == []


def test_another_controller_that_writes_otherwise_is_not_answered_for_ever_at_once():
    world = with_a_band()
    world.put(*PLAYERS)
    world.schedule(*PLAYERS)
    world.tick()
    ours, before = world.written()[-1][2], len(world.written())
    theirs = {"phase": "idle", "seated": 0, "reason": ""}

    def contested(number: int) -> None:
        world.put(replace(BAND, version=f"{number}a", status=ours))
        world.put(replace(BAND, version=f"{number}b", status=theirs))

    for number in range(100):
        contested(number)
    at_once = len(world.written()) - before
    assert at_once <= MOST_AT_ONCE
    for number in range(100, 220):
        world.tick(0.5)
        contested(number)
    assert len(world.written()) - before <= at_once + 60 / ONE_MORE_SECONDS + 1
    assert len(world.written()) - before > at_once
    world.tick(ONE_MORE_SECONDS)
    assert world.written()[-1][2] == ours
