"""What becomes of a gang that loses a pod to one of higher priority: `disruption`.

Racks of 8 nodes of 8 GPUs, gangs of 8 pods of 8, priority 0; `hp` is of priority 1000.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from app.dialects.kueue.pod_groups import SPARES
from app.state.effects import EmitEvent, Evict
from app.state.filter_result import Pinned, Rejected
from tests.app.state.preemptor import Preemptors, hp, rack, running
from tests.app.state.world import World, members
from tests.records import RACK, REQUIRED, group, job, job_owner, job_pods, pod

DISRUPTION = "corral.dev/disruption"


def gang_of(name, pods, disruption=None, **more):
    said = {DISRUPTION: disruption} if disruption else {}
    annotations = {**group(name, pods, RACK), **said}
    return [pod(f"{name}{at}", annotations=annotations, **more) for at in range(pods)]


def preempted(world, attempts=5, *, is_slow=False):
    """One node is needed, and one pod loses it."""
    preemptors = Preemptors(world, hp(), is_slow=is_slow)
    preemptors.play(attempts)
    assert len(preemptors.killed) == 1
    return preemptors


def evicted(world):
    return sorted(effect.name for effect in world.told(Evict))


def begin_to_end(world, names):
    """The eviction API takes them: they terminate."""
    for name in names:
        world.put(replace(world.pods[f"uid-{name}"], is_terminating=True))
    world.tick()


@pytest.mark.parametrize(
    ("setting", "said", "is_whole"),
    [
        pytest.param("single", None, False, id="default"),
        pytest.param("single", "all", True, id="the_gang_says_all"),
        pytest.param("all", None, True, id="set"),
        pytest.param("all", "single", False, id="the_gang_says_single"),
    ],
)
def test_the_rest_of_a_gang_is_evicted_where_the_gang_or_the_setting_says_so(
    setting, said, is_whole
):
    gang = gang_of("g", 8, said)
    world = running(World(rack(), disruption=setting), gang)
    (killed,) = preempted(world).killed
    others = sorted({each.name for each in gang} - {killed})
    assert evicted(world) == (others if is_whole else [])


def test_no_spare_is_held_again_while_a_gang_ends():
    gang = [
        replace(each, annotations={**each.annotations, SPARES: "1"})
        for each in gang_of("g", 6, "all")
    ]
    world = running(World(rack()), gang)
    world.tick()
    assert len(world.held) == 1
    world.put(replace(world.pods["uid-g3"], is_preempted=True, is_terminating=True))
    for _ in range(5):
        world.tick(1.0)
        assert world.held == {}
    assert len(evicted(world)) == 5


@pytest.mark.parametrize("which", [0, 7])
def test_one_member_that_says_all_is_enough_also_if_it_goes_itself(which):
    gang = gang_of("g", 8)
    gang[which] = gang_of("g", 8, "all")[which]
    world = running(World(rack()), gang)
    preempted(world)
    assert len(evicted(world)) == 7


def test_nobody_is_evicted_before_the_first_pod_is_seen_to_end():
    world = running(World(rack()), gang_of("g", 8, "all"))
    waiting = hp()
    world.put(waiting)
    offered = Preemptors(world, waiting).offered(waiting)
    answer, _ = world.engine.preempt(waiting, offered, world.now)
    assert len(answer) == 1
    for _ in range(100):  # kube-scheduler does nothing of it
        world.tick(1.0)
    assert evicted(world) == []


def test_a_pod_that_says_it_is_preempted_and_still_runs_ends_nothing():
    world = running(World(rack()), gang_of("g", 8, "all"))
    world.put(replace(world.pods["uid-g3"], is_preempted=True))  # the deletion may fail
    world.tick(1.0)
    assert evicted(world) == []


def test_a_gang_that_ends_waits_as_a_whole_and_nothing_is_held_for_it():
    gang = gang_of("g", 8, "all")
    world = running(World(rack()), gang)
    preemptors = preempted(world, 2, is_slow=True)
    again = pod("again", annotations=gang[0].annotations)
    world.put(again)
    world.tick(1.0)
    # The others run still, and it joins none of them.
    assert isinstance(answer := world.filter(again), Rejected)
    assert "disruption is all" in answer.sentence
    assert world.held == {}
    begin_to_end(world, evicted(world))
    preemptors.end_victims()
    world.delete(*[each for each in world.pods.values() if each.is_terminating])
    world.tick(1.0)
    preemptors.play()
    assert preemptors.bound.keys() == {"hp"}
    others = gang_of("h", 7, "all")
    whole = [again, *(replace(each, annotations=gang[0].annotations) for each in others)]
    world.put(*whole)
    for _ in range(30):
        world.tick(1.0)
    assert world.schedule(*whole) == {}  # seven nodes are left
    world.delete(world.pods["uid-hp"])
    for _ in range(30):
        world.tick(1.0)
    assert len(world.schedule(*whole)) == 8
    assert len(evicted(world)) == 7


def test_what_a_budget_keeps_is_evicted_again():
    world = running(World(rack()), gang_of("g", 8, "all"))
    preempted(world)
    first = evicted(world)
    world.delete(*[world.pods[f"uid-{name}"] for name in first[:5]])
    world.effects.clear()
    for _ in range(61):
        world.tick(1.0)
    assert evicted(world) == first[5:]


@pytest.mark.parametrize(
    ("outcome", "is_told"), [("failed", 1), ("refused", 1), ("dropped", 0), ("done", 0)]
)
def test_a_gang_is_told_once_which_pod_is_kept_from_ending_with_it(outcome, is_told):
    world = running(World(rack(), disruption="all"), gang_of("g", 8))
    preempted(world)
    sent = world.told(Evict)
    for effect in sent[:2]:
        world.effects += world.engine.eviction_finished(effect.uid, outcome, world.now)
    told = [event for event in world.told(EmitEvent) if event.reason == "EvictionRefused"]
    assert len(told) == is_told
    assert all(f"pod {sent[0].name} is not evicted" in event.sentence for event in told)


def test_a_gang_that_has_started_again_is_told_anew_which_pod_is_kept():
    world = running(World(rack()), gang_of("g", 8, "all"))
    for name in ("g", "h"):
        world.effects.clear()
        others = [each for each in world.pods.values() if each.name != f"{name}3"]
        again = gang_of(chr(ord(name) + 1), 8, "all")
        again = [replace(each, annotations=others[0].annotations) for each in again]
        world.put(replace(world.pods[f"uid-{name}3"], is_preempted=True, is_terminating=True))
        world.tick(1.0)
        sent = world.told(Evict)[0]
        world.effects += world.engine.eviction_finished(sent.uid, "refused", world.now)
        told = [each for each in world.told(EmitEvent) if each.reason == "EvictionRefused"]
        assert len(told) == 1
        world.put(again[0])  # the gang is never without a pod
        begin_to_end(world, [each.name for each in others])
        world.delete(*[each for each in world.pods.values() if each.is_terminating])
        world.put(*again[1:])
        world.tick(30.0)
        assert len(world.schedule(*again)) == 8


def test_a_pod_of_a_gang_that_does_not_end_is_not_said_to_be_kept():
    world = running(World(rack()), gang_of("g", 8))
    world.effects += world.engine.eviction_finished("uid-g0", "failed", world.now)
    assert "EvictionRefused" not in [event.reason for event in world.told(EmitEvent)]


def test_a_job_that_would_fail_for_good_keeps_the_rest_and_is_told():
    said = replace(job("train", 8), failures_left=6)
    pods = job_pods("train", 8, **{REQUIRED: RACK, DISRUPTION: "all"})
    world = World(rack(), pods, [said])
    assert len(world.schedule(*pods)) == 8
    preempted(world)
    assert evicted(world) == []
    told = [each.reason for each in world.told(EmitEvent)]
    assert told.count("GangNotEvicted") == 1
    assert len(world.gang("train").running) == 7


@pytest.mark.parametrize(("left", "gone"), [(7, 7), (6, 0), (None, 7)])
def test_a_group_keeps_the_rest_if_the_job_that_made_its_pods_would_fail(left, gone):
    """By annotations it is a gang of its own; the Job says nothing of it."""
    said = replace(job("j", 8), failures_left=left)
    pods = [replace(each, owner=job_owner("j")) for each in gang_of("g", 8, "all")]
    world = World(rack(), pods, [said])
    assert len(world.schedule(*pods)) == 8
    preempted(world)
    assert len(evicted(world)) == gone
    told = [each.reason for each in world.told(EmitEvent)]
    assert told.count("GangNotEvicted") == (not gone)


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_restart_sees_it_by_the_pod_that_still_ends(is_gone):
    world = running(World(rack()), gang_of("g", 8, "all"))
    (killed,) = preempted(world, 2, is_slow=True).killed
    left = [each for each in world.pods.values() if not (is_gone and each.name == killed)]
    after = World(rack(), left)
    after.tick(1.0)
    # Nothing is left in the cluster that says why a pod is missing that is gone.
    assert len(evicted(after)) == (0 if is_gone else 7)


@pytest.mark.parametrize("is_terminating", [False, True])
def test_a_restart_ends_no_gang_for_a_pod_that_has_ended_long_ago(is_terminating):
    """Its owner made another one since, and keeps the old one for its records."""
    gang = gang_of("g", 8, "all")
    world = running(World(rack()), gang)
    old = replace(
        world.pods["uid-g3"],
        name="g3-old",
        uid="uid-g3-old",
        phase="Failed",
        is_preempted=True,
        is_terminating=is_terminating,
    )
    after = World(rack(), [*world.pods.values(), old])
    after.tick(1.0)
    assert len(after.gang("g").running) == 8
    assert evicted(after) == []


@pytest.mark.parametrize(
    ("made", "at", "evicts"),
    [
        pytest.param("2026-01-01T00:09:00Z", "2026-01-01T00:08:59Z", 0, id="all_made_since"),
        pytest.param("2026-01-01T00:09:00Z", "2026-01-01T00:09:00Z", 0, id="in_the_same_second"),
        pytest.param("2026-01-01T00:09:00Z", "2026-01-01T00:09:01Z", 7, id="all_made_before"),
        pytest.param("2026-01-01T00:09:00Z", "", 7, id="not_known_when"),
    ],
)
def test_a_restart_ends_no_gang_that_has_started_again_beside_a_pod_that_takes_long_to_end(
    made, at, evicts
):
    gang = gang_of("g", 7, "all", created=made)
    old = replace(
        gang_of("g", 8, "all")[7],
        name="g3-old",
        uid="uid-g3-old",
        node=rack()[7].name,
        phase="Running",
        is_terminating=True,
        is_preempted=True,
        preempted_at=at,
        grace_seconds=3600,
    )
    world = running(World(rack()), gang)
    after = World(rack(), [*world.pods.values(), old])
    after.tick(1.0)
    assert len(evicted(after)) == evicts
    # Whoever sees it begin to end knows better than two clocks.
    live = running(World(rack()), gang)
    here = live.pods["uid-g3"]
    live.put(replace(here, is_preempted=True, preempted_at=at, is_terminating=True))
    live.tick(1.0)
    assert len(evicted(live)) == 6


def test_a_restart_ends_no_gang_whose_pods_were_made_before_and_bound_since():
    """The pods that were evicted are made again at once; the one that was preempted hangs."""
    made, at = "2026-01-01T00:08:00Z", "2026-01-01T00:09:00Z"
    gang = gang_of("g", 8, "all", created="2026-01-01T00:01:00Z")
    world = running(World([*rack(), *rack(1)]), gang)
    hanging = world.pods["uid-g7"]
    world.put(replace(hanging, is_preempted=True, preempted_at=at, is_terminating=True))
    world.tick()
    assert len(evicted(world)) == 7
    again = [
        replace(each, name=f"{each.name}-b", uid=f"{each.uid}-b", created=made) for each in gang
    ]
    world.delete(*gang[:7])
    world.put(*again)
    for _ in range(3):
        world.tick(1.0)
    assert len(world.schedule(*again)) == 8
    before = len(evicted(world))
    after = World([*rack(), *rack(1)], world.pods.values())
    for each in (world, after):
        each.tick(1.0)
        assert len(each.gang("g").membership.bound) == 8
    assert (len(evicted(world)), len(evicted(after))) == (before, 0)


def test_a_restart_ends_a_gang_of_which_some_pods_still_run_as_before():
    gang = gang_of("g", 7, "all", created="2026-01-01T00:09:00Z")
    gang[2] = replace(gang[2], created="2026-01-01T00:01:00Z")
    world = running(World(rack()), gang)
    ending = replace(
        world.pods["uid-g3"],
        is_preempted=True,
        preempted_at="2026-01-01T00:08:00Z",
        is_terminating=True,
    )
    after = World(rack(), [*(p for p in world.pods.values() if p.uid != "uid-g3"), ending])
    after.tick(1.0)
    assert len(evicted(after)) == 6


def test_another_gang_loses_nothing_by_it():
    gang, other = gang_of("g", 8, "all"), gang_of("h", 8, "all", created="2025-01-01T00:00:00Z")
    world = running(World([*rack(), *rack(1)]), other, gang)
    preempted(world)
    assert {name[0] for name in evicted(world)} == {"g"}


def test_the_gang_that_loses_fewer_pods_comes_first_of_two():
    whole = gang_of("g", 2, "all")
    single = gang_of("h", 3, created="2025-01-01T00:00:00Z")  # else the newer ones go
    world = running(World([*rack(0, 2), *rack(1, 3)]), single, whole)
    (killed,) = preempted(world).killed
    assert killed[0] == "h"


def test_a_gang_that_its_owner_starts_anew_counts_with_all_its_pods():
    said = replace(job("train", 2), failures_left=0)
    pods = job_pods("train", 2, **{REQUIRED: RACK})
    single = gang_of("h", 3, created="2025-01-01T00:00:00Z")
    world = World([*rack(0, 2), *rack(1, 3)], pods, [said])
    assert len(world.schedule(*pods)) == 2
    running(world, single)
    (killed,) = preempted(world).killed
    assert killed.startswith("train")  # one pod of it counts as one: the newer goes


def test_a_gang_that_ends_and_finishes_is_forgotten():
    gang = gang_of("g", 8, "all")
    world = running(World(rack()), gang)
    preempted(world)
    world.delete(*[each for each in list(world.pods.values()) if each.name != "hp"])
    world.tick(1.0)
    assert world.engine.gangs.by_key == {}
    assert isinstance(world.filter(*members("again", 1)), Pinned | Rejected)
