"""Pods that were born where their gang cannot start go back to their controller, once.

They are a JobSet's, which Corral does not see itself: pods of Jobs go as `test_suspended.py` says.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import msgspec
import pytest

from app.dialects import corral
from app.dialects.spec import GangKey
from app.kube.core.objects import Owner, PodRecord, Requirement, Shape, Term
from app.metrics import Metrics
from app.state.born import giving_back
from app.state.born.births import FAILED_SECONDS
from app.state.born.giving_back import GONE_SECONDS, REFUSED_SECONDS, SETTLE_SECONDS
from app.state.born.kept_places import KEEP_SECONDS
from app.state.effects import EmitEvent, Evict, Mark, Ungate
from app.state.filter_result import Passed
from app.state.gang.gang import Phase
from app.state.report.events import GIVEN_BACK, NOT_GIVEN_BACK
from app.state.report.evictions import EVICT_AGAIN_SECONDS
from tests.app.state.born.nursery import ASKED, Nursery, fast, nursery, rack
from tests.app.state.world import members
from tests.records import RACK, job, job_owner, job_pods, node, pod
from tests.workload_pods import JOBSET, job_set, training_pods, workload

Crew = tuple[list, list[PodRecord]]


def train(pods: int = 4, name: str = "train") -> Crew:
    """The only Job of a JobSet, and its pods."""
    return job_set(name, {"w": (1, pods)}, RACK)


def wanted(world: Nursery) -> list[str]:
    """The pods whose eviction was asked for, and is still wanted."""
    sent = (each for each in world.told(Evict) if world.engine.is_eviction_wanted(each))
    return sorted({each.uid for each in sent})


def wait(world: Nursery, seconds: float) -> None:
    """Let time pass; gates are taken off as Corral says."""
    for _ in range(int(seconds * 2)):
        world.tick(0.5)
        there = (each for each in world.told(Ungate) if each.uid in world.pods)
        world.patch(each for each in there if world.pods[each.uid].gates)


def placed(world: Nursery) -> set[str]:
    """The racks of all pods, once kube-scheduler has tried them; all have a node."""
    world.schedule(*world.pods.values())
    on = world.schedule(*world.pods.values())
    assert len(on) == len(world.pods)
    return {each[:2] for each in on.values()}


def born(world: Nursery, pods: Iterable[PodRecord]) -> list[PodRecord]:
    """The pods, created one after the other while the webhook asks for each."""
    stored = [world.created(each) for each in pods]
    world.put(*stored)
    return stored


def uids(pods: Iterable[PodRecord]) -> list[str]:
    return sorted(each.uid for each in pods)


def why_kept(world: Nursery) -> str:
    """What the one event says that tells why pods are not given back."""
    (event,) = [each for each in world.told(EmitEvent) if each.reason == NOT_GIVEN_BACK]
    return event.sentence


def train_of(failures_left: int | None, pods: int = 4) -> Crew:
    """A Job whose controller gives up after so many failures, and its pods."""
    made, crew = train(pods)
    return [msgspec.structs.replace(made[0], failures_left=failures_left)], crew


def stranded(crew: Crew | None = None, **settings: object) -> tuple[Nursery, list[PodRecord]]:
    """A gang born in the one rack that there was, of which a node goes; then another rack comes."""
    jobs, pods = crew or train()
    nodes = rack(0)
    world = nursery(nodes, jobs, **settings)
    stored = born(world, pods)
    assert not any(each.gates for each in stored)
    world.delete(nodes[0])
    world.put(*rack(1))
    return world, stored


def made_again(world: Nursery, pods: Iterable[PodRecord], times: int = 1) -> list[PodRecord]:
    """The API server evicts these pods; their controller makes another one of each."""
    again = []
    for each in pods:
        world.delete(each)
        world.evicted(each, "done")
        like = msgspec.structs.replace(
            pod(f"{each.name}-{times}", owner=each.owner, labels=each.labels),
            annotations={**ASKED},
        )
        again.append(world.created(like))
        world.put(again[-1])
    return again


def test_a_gang_whose_node_has_gone_is_evicted_made_again_and_starts_elsewhere():
    world, stored = stranded()
    wait(world, 8)
    assert wanted(world) == uids(stored)
    again = made_again(world, stored)
    assert [each.gates for each in again] == [(corral.GATE,)] * 4
    wait(world, 3)
    assert placed(world) == {"n1"}
    metrics = Metrics()
    for _ in range(2):
        metrics.show_given_back(world.engine.giving_back.given)
    sample = metrics.registry.get_sample_value
    assert sample("corral_given_back_total", {"kind": "gang"}) == 1
    assert sample("corral_given_back_total", {"kind": "pod"}) == 4


def test_its_owner_and_its_pods_are_told_why():
    world, stored = stranded()
    wait(world, 8)
    assert not [each for each in world.told(EmitEvent) if each.reason == GIVEN_BACK]
    for each in stored[:2]:
        world.evicted(each, "done")
    (said,) = {each.sentence for each in world.told(Evict)}
    assert "are given back to the controller (evicted)" in said
    assert said.startswith("gang default/train cannot be placed: ")
    (event,) = [each for each in world.told(EmitEvent) if each.reason == GIVEN_BACK]
    assert (event.about.kind, event.sentence) == ("Job", said)
    assert world.filter(next(iter(world.pods.values()))).sentence == said


def test_no_pod_is_evicted_before_it_has_waited_for_a_moment():
    world, _ = stranded()
    wait(world, SETTLE_SECONDS)
    assert world.told(Evict) == []


def test_of_a_gang_that_would_not_start_elsewhere_either_no_pod_is_evicted():
    jobs, pods = train()
    nodes = rack(0)
    world = nursery(nodes, jobs)
    born(world, pods)
    world.delete(nodes[0])
    world.put(*rack(1, 3))
    wait(world, 30)
    assert world.told(Evict) == []
    world.put(node("b0/r1/n13"))
    wait(world, 8)
    assert len(wanted(world)) == 4


def test_of_a_gang_that_fits_again_no_pod_is_evicted():
    jobs, pods = train()
    nodes = rack(0)
    world = nursery(nodes, jobs)
    born(world, pods)
    world.delete(nodes[0])
    world.put(*rack(1))
    wait(world, 4)
    world.put(nodes[0])
    wait(world, 8)
    assert world.told(Evict) == []
    assert placed(world) == {"n0"}


def test_an_eviction_that_was_not_sent_is_not_wanted_once_the_gang_has_a_place():
    world, stored = stranded()
    wait(world, 8)
    assert wanted(world) == uids(stored)
    world.put(node("b0/r0/n00"))
    wait(world, 3)
    assert wanted(world) == []
    assert placed(world) == {"n0"}


def test_that_nothing_fits_since_a_pod_took_the_room_counts_as_well():
    jobs, pods = train()
    world = nursery(rack(0), jobs)
    stored = born(world, pods)
    world.put(*rack(1))
    world.put(pod("other", on="n00", scheduler="other"))
    wait(world, 8)
    assert wanted(world) == uids(stored)


def test_after_a_restart_as_well():
    world, stored = stranded()
    later = nursery(
        [*rack(0)[1:], *rack(1)], train()[0], pods=[each for each in world.pods.values()]
    )
    wait(later, 8)
    assert wanted(later) == uids(stored)
    assert [each.gates for each in made_again(later, stored)] == [(corral.GATE,)] * 4


def test_a_gang_that_was_given_back_is_not_given_back_again():
    world, stored = stranded()
    wait(world, 8)
    again = made_again(world, stored)
    wait(world, FAILED_SECONDS + 1)
    world.delete(*again)
    late = msgspec.structs.replace(again[0], uid="late", gates=())
    assert world.asked(late) is None, "nor is it born again"


def test_nor_is_its_owner_made_again_under_its_name_born_for_a_while():
    world, _ = stranded()
    wait(world, 8)
    jobs, pods = train()
    world.delete(*world.pods.values(), *jobs)
    labels = {**jobs[0].labels, f"{JOBSET}jobset-uid": "second"}
    world.put(msgspec.structs.replace(jobs[0], uid="second", labels=labels))
    owner = Owner("batch/v1", "Job", jobs[0].name, "second")
    later = msgspec.structs.replace(pods[0], owner=owner, labels={**pods[0].labels, **labels})
    wait(world, KEEP_SECONDS)
    assert world.asked(later) is None
    wait(world, FAILED_SECONDS)
    assert world.asked(later) is not None


def test_a_pod_that_says_of_itself_that_it_was_born_is_evicted_once():
    world, stored = stranded()
    wait(world, 8)
    world.effects.clear()
    for times in range(3):
        for each in stored:
            world.delete(world.pods[each.uid])
        stored = [
            msgspec.structs.replace(each, uid=f"{each.uid}-{times}", name=f"{each.name}-{times}")
            for each in stored
        ]
        world.put(*stored)
        wait(world, EVICT_AGAIN_SECONDS + 10)
        assert world.told(Evict) == []


def test_a_job_that_would_give_up_is_not_born_in_place():
    jobs, pods = train_of(3)
    world = nursery(rack(0), jobs)
    assert world.asked(pods[0]) is None
    assert world.held == {}


@pytest.mark.parametrize(("left", "is_born"), [(4, True), (3, False)])
def test_a_group_is_not_born_in_place_if_the_job_that_made_its_pods_would_give_up(left, is_born):
    said = msgspec.structs.replace(job("j", 4), failures_left=left)
    pods = [msgspec.structs.replace(each, owner=job_owner("j")) for each in members("g", 4)]
    assert (nursery(rack(0), [said]).asked(pods[0]) is not None) is is_born


def test_a_job_that_counts_pods_that_ran_alone_is_born_and_given_back():
    said = workload("TFJob", "t", {"Worker": 4}, level=RACK, failures_left=0, fails_if_lost=True)
    world, stored = stranded(([said], training_pods("TFJob", "t", {"Worker": 4}, RACK)))
    wait(world, 8)
    assert wanted(world) == uids(stored)


def test_a_job_that_would_give_up_is_born_where_its_pods_are_not_given_back_anyway():
    jobs, pods = train_of(3)
    assert nursery(rack(0), jobs, born_pods_given_back=False).asked(pods[0]) is not None


def test_a_job_that_would_give_up_by_now_keeps_its_pods_and_is_told_so():
    world, _ = stranded(train_of(4))
    world.put(*train_of(3)[0])  # another pod of it has failed meanwhile
    wait(world, 20)
    assert world.told(Evict) == []
    assert "backoffLimit" in why_kept(world)
    world.put(node("b0/r0/n00"))
    wait(world, 3)
    assert placed(world) == {"n0"}


def test_a_job_that_may_lose_as_many_is_given_back():
    world, stored = stranded(train_of(4))
    wait(world, 8)
    assert wanted(world) == uids(stored)


def test_where_it_is_switched_off_the_gang_waits_and_its_owner_is_told_why():
    world, _ = stranded(born_pods_given_back=False)
    wait(world, 20)
    assert world.told(Evict) == []
    assert why_kept(world).endswith(
        "born_pods_given_back is off; delete them to have them made again"
    )


def test_pods_that_nobody_makes_anew_are_kept_and_the_gang_is_told_so():
    nodes = rack(0)
    world = nursery(nodes, [])
    born(world, fast(members("g", 4)))
    world.delete(nodes[0])
    world.put(*rack(1))
    wait(world, 30)
    assert world.told(Evict) == []
    assert "no controller is known to make them again" in why_kept(world)


def owned(pods: list[PodRecord], version: str, kind: str) -> list[PodRecord]:
    owner = Owner(version, kind, "own", "uid-own")
    return [msgspec.structs.replace(each, owner=owner) for each in pods]


@pytest.mark.parametrize(
    ("version", "kind", "is_born"),
    [
        ("argoproj.io/v1alpha1", "Workflow", False),
        ("v1", "Pod", False),
        ("v1", "ReplicationController", True),
        ("ray.io/v1", "RayCluster", True),
    ],
)
def test_pods_are_born_whose_controller_is_known_to_make_them_again(version, kind, is_born):
    first, *_ = owned(members("g", 4), version, kind)
    assert (nursery(rack(0), []).asked(first) is not None) is is_born


def test_pods_that_say_they_were_born_stay_if_their_controller_may_not_make_them_again():
    world, _ = stranded(([], owned(members("g", 4), "ray.io/v1", "RayCluster")))
    pods = [*world.pods.values()]
    world.put(*owned(pods, "argoproj.io/v1alpha1", "Workflow"))
    wait(world, EVICT_AGAIN_SECONDS + 10)
    assert world.told(Evict) == []
    assert "no controller is known to make them again" in why_kept(world)


def test_a_gang_of_which_a_pod_runs_is_kept():
    nodes = rack(0)
    jobs, pods = train()
    world = nursery(nodes, jobs)
    stored = born(world, pods)
    world.put(msgspec.structs.replace(stored[3], node="n03"))
    world.delete(nodes[0])
    world.put(*rack(1))
    wait(world, 30)
    assert world.told(Evict) == []


def test_a_gang_that_lacks_a_pod_waits_where_it_is():
    jobs, pods = train()
    nodes = rack(0)
    world = nursery(nodes, jobs)
    born(world, pods[:3])
    world.delete(nodes[0])
    world.put(*rack(1))
    wait(world, 40)
    assert world.told(Evict) == []
    assert world.gang().phase is Phase.GATHERING


def test_when_its_last_pod_comes_behind_the_gate_those_that_were_born_go_and_it_stays():
    jobs, pods = train()
    nodes = rack(0)
    world = nursery(nodes, jobs)
    stored = born(world, pods[:3])
    world.delete(nodes[0])
    world.put(*rack(1))
    wait(world, 40)
    (last,) = born(world, pods[3:])
    assert last.gates == (corral.GATE,)
    wait(world, 8)
    assert wanted(world) == uids(stored)
    made_again(world, stored)
    wait(world, 3)
    assert placed(world) == {"n1"}
    assert last.uid in world.pods


def test_the_pod_behind_the_gate_is_marked_once_while_the_others_are_given_back():
    jobs, pods = train()
    nodes = rack(0)
    world = nursery(nodes, jobs, needs_nodes_seconds=SETTLE_SECONDS)
    stored = born(world, pods[:3])
    world.delete(nodes[0])
    world.put(*rack(1))
    wait(world, 40)
    born(world, pods[3:])
    wait(world, SETTLE_SECONDS + 1)
    assert wanted(world) == uids(stored)
    assert [each.name for each in world.told(Mark)] == [pods[3].name]
    world.evicted(stored[0], "done")  # the watch shows neither that nor the mark
    for each in stored[1:]:  # by kube-scheduler, as they are not behind the gate
        world.put(msgspec.structs.replace(each, is_marked=True))
        wait(world, 1)
        world.put(msgspec.structs.replace(jobs[0], failures_left=5))  # has the gang searched again
    assert [each.name for each in world.told(Mark)] == [pods[3].name]


AGAIN = {
    "failed": EVICT_AGAIN_SECONDS,
    "dropped": EVICT_AGAIN_SECONDS,
    "refused": REFUSED_SECONDS,
}


@pytest.mark.parametrize("outcome", AGAIN)
def test_a_pod_that_stays_is_asked_for_again_later(outcome):
    world, stored = stranded()
    wait(world, 8)
    again = made_again(world, stored[:3])
    world.effects.clear()
    world.evicted(stored[3], outcome)
    said = [each.reason for each in world.told(EmitEvent)]
    assert (NOT_GIVEN_BACK in said) == (outcome != "dropped")
    wait(world, AGAIN[outcome] - 30)
    assert world.told(Evict) == []
    wait(world, 60)
    assert wanted(world) == [stored[3].uid]
    made_again(world, stored[3:])
    wait(world, 3)
    assert placed(world) == {"n1"}
    assert {each.uid for each in again} < world.pods.keys()


def test_the_place_is_not_kept_where_a_pod_may_not_be_evicted():
    world, stored = stranded()
    wait(world, 8)
    other = pod("other")
    world.put(other)
    assert world.filter(other) == Passed(frozenset({"n10", "n11", "n12", "n13"}))
    world.evicted(stored[0], "refused")
    assert world.filter(other) == Passed()


@pytest.mark.parametrize("outcome", ["failed", None], ids=["no answer", "another Corral led"])
def test_where_no_pod_could_be_evicted_all_are_asked_for_again(outcome):
    world, stored = stranded()
    wait(world, 8)
    for each in stored if outcome else ():
        world.evicted(each, outcome)
    world.effects.clear()
    wait(world, EVICT_AGAIN_SECONDS - 8)
    assert world.told(Evict) == []
    wait(world, 12)
    assert wanted(world) == uids(stored)
    assert world.engine.giving_back.given == {}, "none has been evicted"
    for _ in range(2):
        made_again(world, stored)
    assert world.engine.giving_back.given == {"gang": 1, "pod": 4}, "each counts once"


def test_where_evicting_is_forbidden_one_pod_is_tried_and_the_owner_is_told_so_once():
    world, _ = stranded()
    wait(world, 8)
    for _ in range(2):
        world.evicted(world.pods[wanted(world)[0]], "refused")
        assert wanted(world) == []
        sent = len(world.told(Evict))
        wait(world, REFUSED_SECONDS - 10)
        assert len(world.told(Evict)) == sent
        wait(world, 20)
        assert wanted(world)
    events = [each for each in world.told(EmitEvent) if "GivenBack" in each.reason]
    assert [each.reason for each in events] == [NOT_GIVEN_BACK]
    assert "ClusterRole corral-evict" in events[0].sentence
    assert world.engine.giving_back.given == {}


def test_that_a_gang_was_given_back_is_told_though_the_watch_shows_its_end_before():
    world, stored = stranded()
    wait(world, 8)
    world.delete(*stored)
    for each in stored:
        world.evicted(each, "done")
    (event,) = [each for each in world.told(EmitEvent) if each.reason == GIVEN_BACK]
    assert event.about.kind == "Job"
    assert world.engine.giving_back.given == {"gang": 1, "pod": 4}


def test_only_pods_of_the_gang_itself_go():
    world, stored = stranded()
    world.put(*rack(2))
    other = [
        msgspec.structs.replace(each, owner=job_owner("other"))
        for each in job_pods("other", 4, **ASKED)
    ]
    world.put(job("other", 4), *other, pod("ordinary"))
    wait(world, 8)
    assert wanted(world) == uids(stored)


def test_a_pod_that_runs_by_then_is_not_evicted_for_that_and_may_be_for_others():
    world, stored = stranded()
    wait(world, 8)
    world.put(msgspec.structs.replace(stored[3], node="n03"))
    (late,) = [each for each in world.told(Evict) if each.uid == stored[3].uid]
    assert not world.engine.is_eviction_wanted(late)
    assert world.engine.is_eviction_wanted(replace(late, is_given_back=False))


def test_a_pod_that_ends_meanwhile_is_not_evicted():
    world, stored = stranded()
    wait(world, 8)
    world.put(msgspec.structs.replace(stored[0], is_terminating=True))
    assert wanted(world) == uids(stored[1:])


def narrowed(crew: Crew | None = None, **settings: object) -> tuple[Nursery, list[PodRecord]]:
    """A gang that was behind the gate until it had a place, and lost a node of it since."""
    jobs, pods = crew or train()
    nodes = rack(0)
    world = nursery(nodes, jobs, born_seconds=0, **{"narrowed_pods_given_back": True, **settings})
    world.put(*(msgspec.structs.replace(each, gates=(corral.GATE,)) for each in pods))
    wait(world, 2)
    stored = list(world.pods.values())
    assert [corral.is_narrowed(each) for each in stored] == [True] * len(pods)
    world.delete(nodes[0])
    world.put(*rack(1))
    return world, stored


@pytest.mark.parametrize("narrow_nodes", [32, 4])
def test_pods_that_were_narrowed_as_their_gate_was_taken_off_go_as_well(narrow_nodes):
    world, stored = narrowed(narrow_nodes=narrow_nodes)
    wait(world, 8)
    assert wanted(world) == uids(stored)
    made_again(world, stored)
    wait(world, 3)
    assert placed(world) == {"n1"}


def test_pods_with_affinity_of_their_own_are_narrowed_by_labels_and_go_as_well():
    expression = Requirement("kubernetes.io/hostname", "NotIn", ("elsewhere",))
    shape = Shape(terms=(Term(expressions=(expression,)),))
    jobs, pods = train()
    world, stored = narrowed((jobs, [msgspec.structs.replace(each, shape=shape) for each in pods]))
    assert all(corral.narrowed_labels(each) for each in stored)
    wait(world, 8)
    assert wanted(world) == uids(stored)


def test_as_it_comes_they_stay_and_the_owner_is_told_what_would_help():
    world, _ = narrowed(narrowed_pods_given_back=False)
    wait(world, 60)
    assert world.told(Evict) == []
    assert "narrowed_pods_given_back is off" in why_kept(world)


def test_once_that_is_told_no_place_is_searched_for_them_again_and_again(monkeypatch):
    world, _ = narrowed(narrowed_pods_given_back=False)
    searched = []
    search = giving_back.GivingBack._place_elsewhere
    monkeypatch.setattr(
        giving_back.GivingBack,
        "_place_elsewhere",
        lambda self, gang, going: (searched.append(gang.key), search(self, gang, going))[1],
    )
    for at in range(60):
        world.put(node(f"b0/r{at + 3}/more{at}"))  # so that there are new verdicts
        world.tick(0.5)
    assert "narrowed_pods_given_back is off" in why_kept(world)
    assert len(searched) == 1


def test_none_goes_while_the_gate_of_another_one_is_being_taken_off():
    jobs, pods = train()
    nodes = rack(0)
    world = nursery(nodes, jobs, born_seconds=0, narrowed_pods_given_back=True)
    world.put(*(msgspec.structs.replace(each, gates=(corral.GATE,)) for each in pods))
    for _ in range(4):
        world.tick(0.5)
    sent = world.told(Ungate)
    assert len(sent) == 4
    world.patch(sent[:3])
    world.delete(nodes[0])
    world.put(*rack(1))
    for _ in range(30):
        world.tick(0.5)
    assert world.told(Evict) == []
    world.patch(sent[3:])
    wait(world, 8)
    assert len(wanted(world)) == 4


def test_a_gang_that_has_run_since_may_be_given_back_again():
    world, stored = narrowed()
    wait(world, 8)
    again = made_again(world, stored)
    wait(world, 3)
    assert placed(world) == {"n1"}
    wait(world, 1)
    world.delete(*again)
    world.effects.clear()
    world.put(*(msgspec.structs.replace(each, uid=f"{each.uid}-3") for each in again))
    wait(world, 3)
    third = list(world.pods.values())
    assert all(map(corral.is_narrowed, third))
    world.delete(*(node(f"b0/r1/n1{at}") for at in range(4)))
    world.put(*rack(2))
    wait(world, 8)
    assert wanted(world) == uids(third)


def test_a_narrowed_pod_of_which_the_others_have_run_meanwhile_is_given_back():
    jobs, pods = train(2)
    nodes = [node(f"b0/r0/n0{at}") for at in range(2)]
    world = nursery(nodes, jobs, born_seconds=0, narrowed_pods_given_back=True)
    world.put(*(msgspec.structs.replace(each, gates=(corral.GATE,)) for each in pods))
    wait(world, 2)
    runs, waits = world.pods.values()
    world.put(msgspec.structs.replace(runs, node=world.held[runs.uid]))  # its Corral is another now
    wait(world, 1)
    world.delete(*nodes)
    world.put(*rack(1))
    wait(world, 20)
    assert world.told(Evict) == []
    world.delete(world.pods[runs.uid])
    world.put(msgspec.structs.replace(pods[0], uid="uid-again", gates=(corral.GATE,)))
    wait(world, 10)
    assert wanted(world) == [waits.uid]


def test_a_gang_that_has_not_run_since_is_not():
    world, stored = narrowed()
    wait(world, 8)
    made_again(world, stored)
    wait(world, 2)
    world.effects.clear()
    world.delete(*(node(f"b0/r1/n1{at}") for at in range(4)))
    world.put(*rack(2))
    wait(world, 60)
    assert world.told(Evict) == []
    assert "it has not run since" in why_kept(world)


def both_stranded() -> tuple[Nursery, list[PodRecord]]:
    """Two gangs, each born in a rack that loses a node; then there is room for one of them."""
    nodes = [*rack(0), *rack(1)]
    (train_jobs, train_pods), (tune_jobs, tune_pods) = train(), train(name="tune")
    world = nursery(nodes, [*train_jobs, *tune_jobs], narrow_nodes=4)
    stored = born(world, [*train_pods, *tune_pods])
    assert not any(each.gates for each in stored)
    world.delete(nodes[0], nodes[4])
    world.put(*rack(2))
    return world, stored


def test_of_two_gangs_that_would_start_in_one_place_one_is_given_back():
    world, stored = both_stranded()
    wait(world, 20)
    one = wanted(world)
    assert len({each.rsplit("-", 1)[0] for each in one}) == 1
    assert len(one) == 4
    made_again(world, [each for each in stored if each.uid in one])
    wait(world, 60)
    world.schedule(*world.pods.values())
    on = world.schedule(*world.pods.values())
    assert {each[:2] for each in on.values()} == {"n2"}
    assert len(wanted(world)) == 0, "the other one waits for room"


def test_one_that_is_looked_at_in_vain_keeps_no_other_waiting(monkeypatch):
    monkeypatch.setattr(giving_back, "MOST_LOOKED_AT", 1)  # as where a tick has much to do
    nodes = [*rack(0), *rack(1)]
    jobs, tune = train(name="tune")
    world = nursery(nodes, jobs, narrow_nodes=4)
    kept = born(world, fast(members("a", 4)))  # no controller is known to make them again
    stored = born(world, tune)
    world.delete(nodes[0], nodes[4])
    world.put(*rack(2))
    for at in range(40):
        world.put(node(f"b0/r{at + 3}/more{at}"))  # so that there are new verdicts
        world.tick(0.5)
    assert wanted(world) == uids(stored)
    assert kept[0].uid in world.pods


def test_the_other_one_starts_where_there_is_room_as_well():
    world, stored = both_stranded()
    world.put(*rack(3))
    wait(world, 8)
    assert wanted(world) == uids(stored)
    made_again(world, stored)
    wait(world, 3)
    assert placed(world) == {"n2", "n3"}


def test_the_place_is_kept_while_its_pods_are_made_again_and_not_for_long():
    world, stored = stranded()
    wait(world, 8)
    for each in stored:
        world.delete(each)
    other = pod("other")
    world.put(other)
    assert world.filter(other) == Passed(frozenset({"n10", "n11", "n12", "n13"}))
    wait(world, KEEP_SECONDS)
    assert world.filter(other) == Passed()


def test_no_more_is_kept_than_the_namespace_may_have_held_for_pods_that_do_not_exist():
    world, stored = stranded(absent_pods_per_namespace=4, absent_share_per_namespace=0.0)
    another = GangKey("default", "another", "job")
    assert world.engine.absent_pods.keep(another, {"uid-gone": stored[0].request})
    wait(world, 8)
    assert wanted(world) == uids(stored)
    other = pod("other")
    world.put(other)
    assert world.filter(other) == Passed()


def test_what_is_kept_for_pods_to_be_made_again_counts_and_is_named():
    world, stored = stranded(absent_pods_per_namespace=4, absent_share_per_namespace=0.0)
    wait(world, 8)
    for each in stored:
        world.delete(each)
    assert world.engine.absent_pods.fullest() == 1.0
    late = members("late", 4)
    world.put(*late)
    wait(world, 2)
    held = "places are held for 4 pods of default/train that do not exist yet"
    assert held in world.gang("late").reporting.sentence
    wait(world, KEEP_SECONDS)
    assert world.engine.absent_pods.fullest() == 0.0
    assert placed(world) == {"n1"}


def test_a_later_gang_of_the_name_of_one_that_was_given_back_may_be_given_back():
    crew = owned(members("g", 4), "ray.io/v1", "RayCluster")
    first = rack(0)
    world = nursery(first, [])
    stored = born(world, crew)
    world.delete(first[0])
    world.put(*rack(1))
    wait(world, 8)
    assert wanted(world) == uids(stored)
    for each in stored:
        world.delete(each)
        world.evicted(each, "done")
    world.delete(*rack(1))
    world.put(first[0])
    wait(world, 1.2 * GONE_SECONDS)
    later = born(world, [msgspec.structs.replace(each, uid=f"{each.uid}-2") for each in crew])
    assert not any(each.gates for each in later)
    world.delete(first[0])
    world.put(*rack(1))
    wait(world, 8)
    assert wanted(world) == uids(later)
