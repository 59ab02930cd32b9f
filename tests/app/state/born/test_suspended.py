"""A Job whose pods were born where it cannot start is suspended until they are gone."""

from __future__ import annotations

import msgspec
import pytest

from app.dialects import corral
from app.dialects.workloads import WorkloadRecord
from app.kube.core.objects import PodRecord
from app.kube.watch.events import Listed
from app.state.born.kept_places import KEEP_SECONDS
from app.state.born.suspended import AGAIN_SECONDS, LONGEST_SECONDS, MOST_SECONDS
from app.state.effects import EmitEvent, Evict, EvictOutcome, Suspend, Ungate
from app.state.filter_result import Passed
from app.state.report.events import GIVEN_BACK, NOT_GIVEN_BACK
from tests.app.state.born.nursery import ASKED, Nursery, nursery, rack, train
from tests.records import RACK, job_pods, pod
from tests.workload_pods import job_set, workload

KINDS = ("Topology", "Job", "JobSet", "Node", "Pod")
JOBS = "/apis/batch/v1/namespaces/default/jobs"
LIMIT = 0  # of failures: no pod of the Job may fail


def wait(world: Nursery, seconds: float) -> None:
    """Let time pass; gates are taken off as Corral says."""
    for _ in range(int(seconds * 2)):
        world.tick(0.5)
        there = (each for each in world.told(Ungate) if each.uid in world.pods)
        world.patch(each for each in there if world.pods[each.uid].gates)


def stranded(behind: int = 0, **settings: object) -> tuple[Nursery, WorkloadRecord]:
    """A Job born in the one rack that there was, of which a node goes; then another rack comes.

    `behind`: how many of its pods wait behind the gate.
    """
    (made,), pods = train()
    made = msgspec.structs.replace(made, failures_left=LIMIT)
    nodes = rack(0)
    world = nursery(nodes, [made], **settings)
    stored = [world.created(each) for each in pods]
    assert not any(each.gates for each in stored)
    for each in pods[:behind]:
        stored[pods.index(each)] = msgspec.structs.replace(each, gates=(corral.GATE,))
    world.put(*stored)
    world.delete(nodes[0])
    world.put(*rack(1))
    wait(world, 8)
    return world, made


def suspended(made: WorkloadRecord, version: str = "2") -> WorkloadRecord:
    """The Job as the API server has it once it is."""
    said = {corral.SUSPENDED: "true"}
    return msgspec.structs.replace(made, annotations=said, is_suspended=True, version=version)


def ended(world: Nursery, made: WorkloadRecord, outcome: EvictOutcome) -> None:
    """The API server has answered to the suspension, or has not."""
    world._take(world.inputs.eviction_finished(made.uid, outcome, world.now))


def sent(world: Nursery, *, ends: bool = False) -> list[Suspend]:
    return [each for each in world.told(Suspend) if each.ends == ends]


def test_a_job_of_any_backoff_limit_is_suspended_and_none_of_its_pods_is_evicted():
    world, made = stranded()
    (effect,) = sent(world)
    assert (effect.path, effect.namespace, effect.name) == (JOBS, "default", "train")
    assert (effect.uid, effect.version) == (made.uid, "1")
    assert world.engine.is_eviction_wanted(effect)
    assert world.told(Evict) == []


def test_it_goes_on_once_its_pods_are_gone_and_starts_elsewhere():
    world, made = stranded()
    ended(world, made, "done")
    world.put(suspended(made))
    wait(world, 2)
    assert sent(world, ends=True) == []
    world.delete(*world.pods.values())
    wait(world, 1)
    (effect,) = sent(world, ends=True)
    assert (effect.uid, effect.version) == (made.uid, "2")
    assert world.engine.is_eviction_wanted(effect)
    world.put(msgspec.structs.replace(made, version="3"))
    again = [msgspec.structs.replace(each, uid=f"{each.uid}-2") for each in job_pods("train", 4)]
    again = [msgspec.structs.replace(each, annotations={**ASKED}) for each in again]
    stored = [world.created(each) for each in again]
    assert [each.gates for each in stored] == [(corral.GATE,)] * 4, "it is not born again"
    world.put(*stored)
    wait(world, 3)
    world.schedule(*world.pods.values())
    assert {node[:2] for node in world.schedule(*world.pods.values()).values()} == {"n1"}
    wait(world, AGAIN_SECONDS)
    assert len(sent(world, ends=True)) == 1


def test_its_pods_behind_the_gate_are_made_again_as_well():
    world, made = stranded(behind=1)
    ended(world, made, "done")
    assert world.engine.giving_back.given == {"gang": 1, "pod": 4}
    (event,) = [each for each in world.told(EmitEvent) if each.reason == GIVEN_BACK]
    assert "4 of its pods, which were narrowed to these nodes, are given back" in event.sentence
    assert "its Job is suspended until they are gone" in event.sentence


def test_another_corral_has_it_go_on_that_knows_nothing_else_of_it():
    _, made = stranded()
    later = nursery(rack(1), [suspended(made)])
    later.tick()
    assert [each.uid for each in sent(later, ends=True)] == [made.uid]


def test_a_corral_that_begins_to_lead_has_it_go_on_at_once():
    """What one that follows sends is not written."""
    _, made = stranded()
    later = nursery(rack(1), [])
    later.inputs.lead(is_leading=False, now=later.now)
    later.put(suspended(made))
    wait(later, 8 * AGAIN_SECONDS)
    later.effects.clear()
    later.inputs.lead(is_leading=True, now=later.now)
    later.tick()
    assert [each.uid for each in sent(later, ends=True)] == [made.uid]


def test_that_it_goes_on_is_sent_again_until_the_watch_shows_it():
    _, made = stranded()
    world = nursery(rack(1), [suspended(made)])
    wait(world, AGAIN_SECONDS - 1)
    assert len(sent(world, ends=True)) == 1
    wait(world, 2)
    assert len(sent(world, ends=True)) == 2
    world.put(made)
    wait(world, AGAIN_SECONDS + 1)
    assert len(sent(world, ends=True)) == 2


def test_a_job_that_never_goes_on_is_asked_to_less_and_less_often():
    """We may lack the right, and without the policies anybody may say so of a Job."""
    _, made = stranded()
    world = nursery(rack(1), [suspended(made)])
    wait(world, 31 * AGAIN_SECONDS - 1)
    assert len(sent(world, ends=True)) == 5
    for _ in range(10):
        world.tick(MOST_SECONDS)
    assert len(sent(world, ends=True)) <= 15
    assert len(sent(world, ends=True)) > 10


def test_it_goes_on_after_a_while_though_its_pods_stay():
    world, made = stranded()
    ended(world, made, "done")
    world.put(suspended(made))
    wait(world, LONGEST_SECONDS - 2)
    assert sent(world, ends=True) == []
    wait(world, 3)
    assert len(sent(world, ends=True)) == 1


def test_one_that_another_has_go_on_and_suspends_again_is_not_ours_any_more():
    """As Kueue does, for whom an admitted Job runs and one that gives way does not."""
    world, made = stranded()
    ours = suspended(made)
    world.put(ours)
    wait(world, 1)
    world.put(msgspec.structs.replace(ours, is_suspended=False, version="3"))
    wait(world, 1)
    (forgets,) = sent(world, ends=True)
    assert forgets.version == "3", "it takes only the annotation off, as it goes on in version 3"
    world.put(msgspec.structs.replace(ours, version="4"))
    world.delete(*world.pods.values())
    wait(world, 2 * LONGEST_SECONDS)
    assert sent(world, ends=True) == [forgets]
    world.put(msgspec.structs.replace(ours, is_suspended=False, version="5"))
    wait(world, 1)
    assert [each.version for each in sent(world, ends=True)] == ["3", "5"]
    world.put(msgspec.structs.replace(made, version="6"))
    wait(world, 1)
    world.put(msgspec.structs.replace(ours, version="7"))
    wait(world, 1)
    assert [each.version for each in sent(world, ends=True)] == ["3", "5", "7"], "ours once more"


def test_a_job_that_its_user_has_suspended_stays_so():
    (made,), _ = train()
    world = nursery(rack(0), [msgspec.structs.replace(made, is_suspended=True)])
    wait(world, LONGEST_SECONDS + 1)
    assert sent(world, ends=True) == []


def test_it_is_not_suspended_once_its_gang_has_a_place_or_a_pod_of_it_a_node():
    world, _ = stranded()
    (effect,) = sent(world)
    some = next(iter(world.pods.values()))
    world.put(msgspec.structs.replace(some, node="n11"))
    assert not world.engine.is_eviction_wanted(effect)

    world, _ = stranded()
    (effect,) = sent(world)
    world.put(*rack(0)[:1])
    wait(world, 3)
    assert not world.engine.is_eviction_wanted(effect)


@pytest.mark.parametrize(
    ("outcome", "role"), [("refused", "ClusterRole corral-suspend"), ("failed", "not now")]
)
def test_where_it_is_not_suspended_its_owner_is_told_why_and_nothing_is_kept_for_it(outcome, role):
    world, made = stranded()
    other: PodRecord = pod("other")
    world.put(other)
    assert world.filter(other) != Passed()
    ended(world, made, outcome)
    (event,) = [each for each in world.told(EmitEvent) if each.reason == NOT_GIVEN_BACK]
    assert role in event.sentence
    assert "their Job is not suspended" in event.sentence
    assert world.filter(other) == Passed()
    assert world.engine.giving_back.given == {}


def test_a_job_that_has_changed_meanwhile_is_looked_at_again():
    world, made = stranded()
    world.put(msgspec.structs.replace(made, succeeded=0, failures=1, version="9"))
    ended(world, made, "gone")
    assert [each for each in world.told(EmitEvent) if each.reason == NOT_GIVEN_BACK] == []
    wait(world, 2 * KEEP_SECONDS)
    assert [each.version for each in sent(world)] == ["1", "9"]


@pytest.mark.parametrize("by", ["user", "another Corral"])
def test_a_job_that_is_suspended_already_is_left_alone(by):
    (made,), pods = train()
    nodes = rack(0)
    world = nursery(nodes, [made])
    world.put(*(world.created(each) for each in pods))
    world.delete(nodes[0])
    world.put(*rack(1))
    is_ours = by != "user"
    world.put(
        suspended(made)
        if is_ours
        else msgspec.structs.replace(made, is_suspended=True, version="2")
    )
    wait(world, 20)
    assert sent(world) == []


def test_nor_is_one_that_its_user_has_suspended_just_before_that_is_sent():
    world, made = stranded()
    (effect,) = sent(world)
    world.put(msgspec.structs.replace(made, is_suspended=True, version="2"))
    assert not world.engine.is_eviction_wanted(effect)


def test_no_job_is_suspended_where_that_is_switched_off():
    world, _ = stranded(born_pods_given_back=False)
    assert sent(world) == []


def in_order() -> tuple[WorkloadRecord, list[WorkloadRecord], list[PodRecord]]:
    """A JobSet whose second Job is made once the first one's pods are ready, its Jobs and pods."""
    jobs, pods = job_set("js", {"a": (1, 2), "b": (1, 2)}, RACK)
    parts = {"a": 2, "b": 2}
    whole = workload("JobSet", "js", parts, level=RACK, like=pod("l"), jobs=1, is_gradual=True)
    return whole, jobs, pods


def test_a_job_set_in_order_goes_on_as_it_began_though_it_has_all_its_jobs_by_then():
    """While it is suspended its controller makes those that it would have made later."""
    whole, (first, second), pods = in_order()
    nodes, settings = rack(0), {"born_seconds": 0, "narrowed_pods_given_back": True}
    world = nursery(nodes, [first], kinds=KINDS, **settings)
    world.apply(Listed("JobSet", (whole,)))
    world.put(*(msgspec.structs.replace(each, gates=(corral.GATE,)) for each in pods[:2]))
    wait(world, 2)
    assert [each.gates for each in world.pods.values()] == [()] * 2
    world.delete(*nodes[:3])
    world.put(*rack(1))
    wait(world, 8)
    (effect,) = sent(world)
    assert (effect.uid, effect.path.rpartition("/")[2]) == (whole.uid, "jobsets")
    assert world.engine.is_eviction_wanted(effect)
    ended(world, whole, "done")
    world.put(suspended(whole))
    world.put(*(msgspec.structs.replace(each, is_suspended=True) for each in (first, second)))
    world.delete(*world.pods.values())
    wait(world, 1)
    assert [each.uid for each in sent(world, ends=True)] == [whole.uid]
    world.put(msgspec.structs.replace(whole, version="3"))
    again = [msgspec.structs.replace(each, uid=f"{each.uid}-2") for each in pods[:2]]
    stored = [world.created(each) for each in again]
    assert [each.gates for each in stored] == [(corral.GATE,)] * 2, "it is not born in place"
    world.put(*stored)
    wait(world, 1)
    assert world.held == {}
    world.put(first)
    wait(world, 3)
    placed = world.schedule(*world.pods.values())
    assert {node[:2] for node in placed.values()} == {"n1"}
    assert len(placed) == len(world.held) == 2, "places are kept for the second Job"
