"""Pods that have succeeded are never replaced, also once they are deleted and after a restart."""

from __future__ import annotations

from collections import Counter

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from app.dialects import corral
from app.dialects.spec import MOST_KINDS
from app.kube.watch.events import Listed
from app.state.effects import Annotate
from app.state.filter_result import Rejected
from app.state.gang.members.succeeded import SucceededPods
from app.state.report.notes import GONE_SECONDS, PRESENT_SECONDS, SEEN_SECONDS
from tests.app.state.lost import PREFIX, failed, replacement, started
from tests.app.state.world import World, four_racks, racks
from tests.records import RACK, REQUIRED, group, job, job_pods, pod
from tests.workload_pods import group_pods

# -- the record ---------------------------------------------------------------------------------

UIDS = [f"uid-{number}" for number in range(6)]


class Model:
    """A gang's pods as the API server has them, and a Corral that is away at times."""

    def __init__(self) -> None:
        self.succeeded = SucceededPods()
        self.is_up, self.note = True, ""
        self.ended: set[str] = set()  # of those that exist
        self.gone = 0

    def succeed(self, uid: str) -> None:
        self.ended.add(uid)
        if self.is_up:
            self.succeeded.note(uid, "w")

    def delete(self, uid: str) -> None:
        # Nobody can know of a pod that ended and went while Corral was away.
        is_known = self.is_up or uid in self.known
        self.ended.discard(uid)
        self.gone += is_known
        if self.is_up:
            self.succeeded.drop(uid)

    def stop(self) -> None:
        self.is_up, self.note, self.known = False, self.succeeded.text, set(self.ended)

    def start(self, older: str) -> None:
        self.is_up, self.succeeded = True, SucceededPods()
        for text in sorted((older, self.note)):
            self.succeeded.learn(text)
        for uid in self.ended:
            self.succeeded.note(uid, "w")
        self.succeeded.settle()


@given(st.lists(st.sampled_from([*UIDS, "restart"]), max_size=30), st.lists(st.sampled_from(UIDS)))
def test_each_pod_counts_once_whatever_happens_while_corral_is_away(steps, while_away):
    model, older = Model(), ""
    left = list(UIDS)
    away = iter(while_away)
    for step in steps:
        older = model.succeeded.text if len(steps) % 2 else older
        if step == "restart":
            model.stop()
            for uid in [each for each in (next(away, ""),) if each]:
                _live_or_die(model, left, uid)
            model.start(older)
        else:
            _live_or_die(model, left, step)
        assert model.succeeded.gone.total() == model.gone
        assert set(model.succeeded.present) == model.ended


def _live_or_die(model: Model, left: list[str], uid: str) -> None:
    """A pod that runs succeeds, one that has succeeded is deleted."""
    if uid in left:
        left.remove(uid)
        model.succeed(uid)
    elif uid in model.ended:
        model.delete(uid)


def test_pods_are_counted_by_pod_set():
    succeeded = SucceededPods()
    for uid, pod_set in (("a", "driver"), ("b", "w"), ("c", "w")):
        succeeded.note(uid, pod_set)
    assert [succeeded.drop(uid) for uid in ("b", "x")] == [True, False]
    again = SucceededPods()
    again.learn(succeeded.text)
    again.note("c", "w")
    again.settle()
    assert again.gone == Counter(w=1, driver=1)  # the driver went meanwhile


@pytest.mark.parametrize("text", ["w", "w=x", "=1", "w=1,", "w=1234567890", "w=1" * 10_000])
def test_a_text_that_is_not_ours_says_nothing(text):
    assert corral.succeeded_from_text(text) == ({}, {})


def test_a_note_is_no_longer_than_what_is_read_back():
    many = {f"{number:08x}": "w" for number in range(5_000)}
    text = corral.succeeded_text({"w": 7}, many)
    assert len(text) <= corral.MOST_SUCCEEDED_TEXT
    gone, present = corral.succeeded_from_text(text)
    assert (gone, len(present)) == ({"w": 7}, corral.MOST_LISTED)
    assert corral.succeeded_text({"w" * 20_000: 1}, {}) == ""


# -- a gang -------------------------------------------------------------------------------------


def succeeded(world: World, uid: str):
    return msgspec.structs.replace(world.pods[uid], phase="Succeeded")


def with_notes(world: World) -> World:
    """The watch shows what was to be annotated."""
    for effect in world.told(Annotate):
        if effect.uid in world.pods:
            known = world.pods[effect.uid]
            said = {**known.annotations, **dict(effect.annotations)}
            world.put(msgspec.structs.replace(known, annotations=said))
    return world


def restarted(world: World) -> World:
    again = World(four_racks(), world.pods.values())
    again.tick()
    return again


@pytest.mark.parametrize("restarts", [False, True], ids=["", "after_a_restart"])
def test_kep_976_a_succeeded_pod_that_is_deleted_is_not_replaced(restarts):
    world = started()
    world.put(succeeded(world, "uid-g2"))
    world.delete(world.pods["uid-g2"])
    world.tick(GONE_SECONDS)
    world = restarted(with_notes(world)) if restarts else world
    world.put(replacement())
    world.tick()
    answer = world.filter(world.pods["uid-g9"])
    assert isinstance(answer, Rejected)
    assert "is one more than the 4 pods" in answer.sentence


@pytest.mark.parametrize("restarts", [False, True], ids=["", "after_a_restart"])
def test_kep_976_a_group_does_not_wait_for_those_that_succeeded_and_were_deleted(restarts):
    world = started(total=3)
    world.put(succeeded(world, "uid-g0"))
    world.delete(world.pods["uid-g0"])
    world.tick(GONE_SECONDS)
    world = restarted(with_notes(world)) if restarts else world
    world.put(failed(world, "uid-g1"), failed(world, "uid-g2"))
    new = [replacement(f"n{number}", total=3) for number in range(2)]
    world.put(*new)
    world.tick()
    world.tick(1.1)
    assert len(racks(world.schedule(*new))) == 1
    assert all(world.pods[each.uid].node for each in new)


def test_a_pod_that_went_while_corral_was_away_is_counted_though_the_gang_looks_full():
    """As many pods are listed as are declared, so the roll call is taken before the list ends."""
    world = started()
    for uid in ("uid-g0", "uid-g1"):
        world.put(succeeded(world, uid))
    world.tick()
    world.tick(PRESENT_SECONDS)
    with_notes(world)
    world.delete(world.pods["uid-g1"])  # its note is not written any more
    world.put(replacement())
    again = restarted(world)
    answer = again.filter(again.pods["uid-g9"])
    assert isinstance(answer, Rejected)
    assert "is one more than the 4 pods" in answer.sentence


def test_a_note_of_another_corral_is_read_when_the_watch_shows_it():
    """The note was written after this Corral had listed the pods: it never saw that pod."""
    world = started()
    world.put(succeeded(world, "uid-g2"))
    world.delete(world.pods["uid-g2"])
    again = restarted(world)
    world.tick(GONE_SECONDS)
    again.put(*with_notes(world).pods.values())
    again.put(replacement())
    again.tick()
    assert isinstance(again.filter(again.pods["uid-g9"]), Rejected)


def test_two_corrals_count_a_pod_once_that_one_of_them_has_noted():
    """One notes a pod that has succeeded; both see it go, and its note comes late."""
    world = started()
    world.put(succeeded(world, "uid-g2"))
    other = restarted(world)
    world.tick()
    world.tick(PRESENT_SECONDS)
    assert noted(world)
    noted_pods = tuple(with_notes(world).pods.values())
    for each in (world, other):
        each.delete(each.pods["uid-g2"])
    other.put(*(pod for pod in noted_pods if pod.uid != "uid-g2"))
    other.tick()
    (gang,) = other.engine.gangs.by_key.values()
    assert gang.succeeded.gone.total() == 1


def test_a_note_is_compared_with_pods_that_come_later_in_the_same_list():
    """The pod that completes the gang has the roll call taken in the middle of the list."""
    other = started()
    other.delete(other.pods["uid-g2"])
    world = started()
    world.put(succeeded(world, "uid-g3"))
    world.tick()
    world.tick(PRESENT_SECONDS)
    pods = with_notes(world).pods
    first = (pods["uid-g0"], pods["uid-g1"], replacement())
    other.apply(Listed("Pod", (*first, pods["uid-g3"])))
    other.tick()
    (gang,) = other.engine.gangs.by_key.values()
    assert (gang.succeeded.gone.total(), list(gang.succeeded.present)) == (0, ["uid-g3"])


def test_a_pod_that_succeeds_because_it_was_told_to_stop_may_be_replaced():
    world = started()
    stopping = msgspec.structs.replace(world.pods["uid-g2"], is_terminating=True)
    world.put(stopping)
    world.put(msgspec.structs.replace(stopping, phase="Succeeded"))
    world.delete(world.pods["uid-g2"])
    world.put(replacement())
    world.tick()
    assert world.schedule(world.pods["uid-g9"])["g9"] == stopping.node


def test_only_replacements_of_the_same_pod_set_are_one_too_many():
    workers = {**group("g", 3, RACK), PREFIX + "role-hash": "w"}
    driver = {**group("g", 3, RACK), PREFIX + "role-hash": "d"}
    pods = [pod("d", annotations=driver), *(pod(f"w{i}", annotations=workers) for i in (0, 1))]
    world = World(four_racks(), pods)
    world.schedule(*pods)
    world.tick()
    world.put(succeeded(world, "uid-w0"))
    world.delete(world.pods["uid-w0"], world.pods["uid-d"])
    world.put(pod("w9", annotations=workers), pod("d9", annotations=driver))
    world.tick()
    assert isinstance(world.filter(world.pods["uid-w9"]), Rejected)
    assert world.schedule(world.pods["uid-d9"])


def finished_and_made_again(pods=3):
    """A group that has succeeded, of which one pod is left; all of another of its name exist."""
    world = started(total=3)
    for uid in ("uid-g0", "uid-g1", "uid-g2"):
        world.put(succeeded(world, uid))
    world.delete(world.pods["uid-g1"], world.pods["uid-g2"])
    new = [replacement(f"n{number}", total=3) for number in range(pods)]
    world.put(*new)
    world.tick(GONE_SECONDS)
    assert world.held == {}
    return with_notes(world), new


@pytest.mark.parametrize("restarts", [False, True], ids=["", "after_a_restart"])
def test_a_group_made_again_under_its_name_starts_once_the_pods_before_are_gone(restarts):
    world, new = finished_and_made_again()
    world.delete(world.pods["uid-g0"])
    world = restarted(world) if restarts else world
    world.tick(1.1)
    assert len(racks(world.schedule(*new))) == 1
    assert all(world.pods[each.uid].node for each in new)


def test_a_group_made_again_waits_for_all_of_its_own_pods():
    world, new = finished_and_made_again(pods=2)
    world.delete(world.pods["uid-g0"])
    world.tick(1.1)
    assert world.held == {}
    world.put(replacement("n2", total=3))
    assert world.held.keys() == {*(each.uid for each in new), "uid-n2"}


def test_no_pod_of_a_group_made_again_says_what_the_one_before_had_done():
    world, new = finished_and_made_again()
    world.delete(world.pods["uid-g0"])
    world.tick(1.1)
    world.schedule(*new)
    world.tick(SEEN_SECONDS)
    with_notes(world)
    assert not any(world.pods[each.uid].annotations.get(corral.SUCCEEDED) for each in new)
    again = restarted(world)
    again.put(failed(again, "uid-n0"))
    again.put(replacement("n9", total=3))
    again.tick(1.1)
    assert again.schedule(again.pods["uid-n9"])


# -- notes --------------------------------------------------------------------------------------


def noted(world: World) -> list[str]:
    return [effect.name for effect in world.told(Annotate)]


def test_a_gang_that_ends_as_a_whole_needs_no_note():
    world = started()
    for uid in ("uid-g0", "uid-g1", "uid-g2", "uid-g3"):
        world.put(succeeded(world, uid))
        world.tick(PRESENT_SECONDS / 5)
    for _ in range(10):
        world.tick(PRESENT_SECONDS)
    assert noted(world) == []


def test_what_succeeded_is_noted_on_two_of_those_that_run():
    world = started()
    world.put(succeeded(world, "uid-g0"))
    world.tick(PRESENT_SECONDS / 2)
    assert noted(world) == []
    world.tick(PRESENT_SECONDS)
    assert noted(world) == ["g1", "g2"]


def test_a_note_that_does_not_show_is_written_again_and_one_that_does_is_not():
    world = started()
    world.put(succeeded(world, "uid-g0"))
    world.tick()
    for _ in range(3):
        world.tick(PRESENT_SECONDS)
    assert noted(world) == ["g1", "g2"] * 3
    with_notes(world)
    for _ in range(3):
        world.tick(PRESENT_SECONDS)
    assert noted(world) == ["g1", "g2"] * 3


def test_a_note_that_has_not_been_taken_in_yet_is_not_written_over():
    world = started()
    world.put(succeeded(world, "uid-g2"))
    world.delete(world.pods["uid-g2"])
    world.tick(GONE_SECONDS)
    again = started()
    again.put(*with_notes(world).pods.values())  # what another Corral has noted
    gang, notes = again.gang(), again.engine.notes
    notes.note_room(gang.key, "b0/r0", again.now)
    written = list(notes.written(again.engine.gangs.by_key, again.now))
    assert not any(corral.SUCCEEDED in dict(each.annotations) for each in written)


def test_a_note_is_read_once_and_not_with_every_event():
    world = started()
    world.put(succeeded(world, "uid-g0"))
    world.tick()
    world.tick(PRESENT_SECONDS)
    with_notes(world).tick()
    gang, carrier = world.gang(), world.pods["uid-g1"]
    assert corral.SUCCEEDED in carrier.annotations
    version = gang.version
    said = {**carrier.annotations, "example.com/said": "of no interest"}
    world.put(msgspec.structs.replace(carrier, annotations=said))
    world.tick()
    assert gang.version == version


@pytest.mark.parametrize("is_deleted", [False, True], ids=["it_is_there", "it_is_deleted"])
def test_when_a_pod_with_the_note_goes_another_one_gets_it(is_deleted):
    world = started()
    world.put(succeeded(world, "uid-g0"))
    if is_deleted:
        world.delete(world.pods["uid-g0"])
    world.tick()
    world.tick(PRESENT_SECONDS)
    with_notes(world)
    world.tick(PRESENT_SECONDS)
    world.delete(world.pods["uid-g1"])
    world.tick()
    world.tick(PRESENT_SECONDS)
    assert noted(world) == ["g1", "g2", "g3"]


def test_a_pod_in_excess_carries_the_note_where_no_other_pod_is_left():
    world = started()
    for uid in ("uid-g0", "uid-g1", "uid-g2", "uid-g3"):
        world.put(succeeded(world, uid))
    world.put(replacement())
    world.delete(world.pods["uid-g0"])
    world.tick(GONE_SECONDS)
    assert noted(world) == ["g9"]
    again = restarted(with_notes(world))
    assert isinstance(again.filter(again.pods["uid-g9"]), Rejected)


def test_the_pods_of_a_job_get_no_note():
    pods = job_pods("j", 2, **{REQUIRED: RACK})
    world = World(four_racks(), jobs=[job("j", 2)])
    world.put(*pods)
    world.tick()
    world.schedule(*pods)
    world.put(succeeded(world, pods[0].uid))
    world.delete(world.pods[pods[0].uid])
    for _ in range(3):
        world.tick(PRESENT_SECONDS)
    assert noted(world) == []


def test_a_pod_of_a_leader_worker_set_that_has_ended_is_replaced_by_its_controller():
    pods = group_pods("lws", 0, 3, RACK)
    world = World(four_racks(), pods)
    world.schedule(*pods)
    world.put(succeeded(world, pods[1].uid))
    world.delete(world.pods[pods[1].uid])
    again = msgspec.structs.replace(pods[1], uid="uid-again")
    world.put(again)
    world.tick()
    assert world.schedule(again)
    for _ in range(3):
        world.tick(PRESENT_SECONDS)
    assert noted(world) == []


def test_so_many_pod_sets_are_remembered_and_no_more():
    pods = SucceededPods()
    for number in range(1_000):
        pods.note(f"uid-{number}", f"set-{number}")
        pods.drop(f"uid-{number}")
    assert len(pods.gone) == MOST_KINDS
    pods.note("again", "set-0")
    pods.drop("again")
    assert pods.gone["set-0"] == 2
    pods.learn(corral.succeeded_text({f"other-{number}": 1 for number in range(9)}, {}))
    pods.settle()
    assert len(pods.gone) == MOST_KINDS
