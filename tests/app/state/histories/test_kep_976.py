"""KEP-976, plain pods: its user stories and rules, each with the section it comes from.

What differs by design: where Kueue has a Workload with a quota, Corral has a gang with held places;
what Kueue writes as conditions, Corral tells in one event; and it deletes nobody's pods unless
`delete_excess_pods` says so. Story 3 is in `test_kep_976_driver.py`; `test_absent.py` has more of
what becomes of places.
"""

from __future__ import annotations

import json

import msgspec
import pytest

from app.kube.core.objects import NodeRecord, PodRecord, Shape
from app.state.effects import Delete, EmitEvent, Evict, Ungate
from app.state.filter_result import Passed, Pinned, Rejected
from app.state.gang.gang import Phase
from tests.app.state.stories import go, sentence, turn
from tests.app.state.world import World, four_racks, members, racks
from tests.records import GROUP, RACK, REQUIRED, TOTAL, UNCONSTRAINED, group, node, pod

PREFIX = "kueue.x-k8s.io/"
GATED = ("corral.dev/gang",)
RETRIABLE = PREFIX + "retriable-in-group"
ROLE_HASH = PREFIX + "role-hash"


# -- Story 1: single pods ------------------------------------------------------------------------


def test_story_1_a_single_pod_is_gated_planned_ungated_bound_and_finished():
    world = World(four_racks())
    world.put(pod("foo", annotations={REQUIRED: RACK}, gates=GATED))
    assert world.ungated == ["foo"]
    assert set(go(world)) == {"foo"}
    assert world.gang("foo").phase is Phase.RUNNING
    turn(world, "uid-foo", "Succeeded")
    world.tick()
    assert world.gang("foo").phase is Phase.DONE
    assert world.held == {}


def test_story_1_a_pod_with_a_queue_name_alone_lives_the_same_life():
    world = World(four_racks())
    world.put(pod("foo", labels={PREFIX + "queue-name": "user-queue"}, gates=GATED))
    assert world.ungated == ["foo"]
    assert set(go(world)) == {"foo"}
    assert world.gang("foo").phase is Phase.RUNNING


def test_story_1_a_queue_name_without_a_gate_is_planned_too():
    world = World([node("b0/r0/n00")], [pod("foo", labels={PREFIX + "queue-name": "q"})])
    world.tick()
    assert world.held == {"uid-foo": "n00"}


def test_story_1_where_kueue_manages_queues_it_is_an_ordinary_pod():
    queued = pod("foo", labels={PREFIX + "queue-name": "user-queue"})
    world = World(four_racks(), [queued], kueue_manages=True)
    assert world.held == {}
    assert world.filter(queued) == Passed()


def test_story_1_a_single_pod_waits_behind_its_gate_until_there_is_room():
    world = World([node("b0/r0/n00")], [pod("other", on="n00")])
    world.put(pod("foo", annotations={UNCONSTRAINED: "true"}, gates=GATED))
    world.tick()
    assert world.ungated == []
    turn(world, "uid-other", "Succeeded")
    world.tick()
    assert world.ungated == ["foo"]


def test_story_1_a_single_pod_that_fails_leaves_nothing_held():
    world = World(four_racks(), [pod("foo", annotations={REQUIRED: RACK})])
    go(world)
    turn(world, "uid-foo", "Failed")
    world.tick()
    assert world.held == {}


def test_story_1_a_pod_of_another_scheduler_or_without_annotation_is_not_ours():
    world = World(four_racks())
    for each in (pod("a"), pod("b", annotations={REQUIRED: RACK}, scheduler="default-scheduler")):
        world.put(each)
        assert world.filter(each) == Passed()


# -- Story 2: groups of pods created beforehand --------------------------------------------------


def story_2(gates=GATED):
    """The KEP's own group: a driver without devices and two workers with some."""
    return [
        pod(
            name,
            gpus=gpus,
            labels={GROUP: "pod-group"},
            annotations={TOTAL: "3", REQUIRED: RACK},
            gates=gates,
        )
        for name, gpus in (("job-driver", 0), ("job-worker-0", 8), ("job-worker-1", 8))
    ]


def test_story_2_a_group_of_pods_of_different_shapes_starts_as_a_whole_in_one_rack():
    world = World(four_racks())
    *early, last = story_2()
    world.put(*early)
    world.tick()
    assert world.ungated == []
    world.put(last)
    assert sorted(world.ungated) == ["job-driver", "job-worker-0", "job-worker-1"]
    placed = go(world)
    assert len(placed) == 3
    assert len(racks(placed)) == 1


def test_story_2_a_group_starts_with_no_pod_where_one_of_its_shapes_has_no_room():
    small = [node(f"b0/r0/n{i}", gpus=8 * (i == 0)) for i in range(3)]
    world = World(small, story_2())
    world.tick()
    assert world.ungated == []
    assert world.held == {}
    assert [report.reason for report in world.told(EmitEvent)] == ["GangNotPlaced", "NeedsNodes"]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_story_2_the_order_in_which_the_pods_appear_does_not_matter(order):
    world = World(four_racks())
    pods = story_2()
    world.put(*[pods[index] for index in order])
    first = World(four_racks(), story_2())
    assert world.held == first.held


def roles(count: int, *, hashed: bool = True) -> list[PodRecord]:
    """The pods of a group of so many roles, a pod of each."""
    return [
        pod(
            f"g{number:02}",
            gpus=0,
            cpu=100 + number,
            annotations=group("g", count) | ({ROLE_HASH: f"role-{number}"} if hashed else {}),
        )
        for number in range(count)
    ]


@pytest.mark.parametrize("hashed", [True, False], ids=["by_hash", "by_shape"])
@pytest.mark.parametrize(("rules", "most"), [("kueue", 18), ("kep", 8)])
def test_groups_a_group_of_more_roles_than_may_be_is_refused_by_name(rules, most, hashed):
    world = World(four_racks(), roles(most, hashed=hashed), pod_group_roles=rules)
    assert len(world.held) == most

    too_many = roles(most + 1, hashed=hashed)
    world = World(four_racks(), too_many, pod_group_roles=rules)
    assert world.held == {}
    told = f"gang default/g is invalid: pod group can't include more than {most} roles"
    assert sentence(world, too_many[0].uid) == told
    world.tick(1.0)
    assert world.reports == [told]


def test_groups_a_pod_without_a_hash_is_of_the_role_of_those_like_it():
    pods = [*roles(8), *roles(8, hashed=False)]
    named = [
        msgspec.structs.replace(
            each,
            name=f"{each.name}-{at}",
            uid=f"uid-{at}",
            annotations={**each.annotations, TOTAL: "16"},
        )
        for at, each in enumerate(pods)
    ]
    assert len(World(four_racks(), named, pod_group_roles="kep").held) == 16


def hashed(record: PodRecord, role: str = "a") -> PodRecord:
    """The pod as the webhook has it stored."""
    annotations = {**record.annotations, ROLE_HASH: f"role-{role}"}
    return msgspec.structs.replace(record, annotations=annotations)


def uneven_racks() -> list[NodeRecord]:
    """One node in r0, and three in r1."""
    return [node("b0/r0/n00"), *(node(f"b0/r1/n1{number}") for number in range(3))]


@pytest.mark.parametrize("without", [0, 1, 2])
def test_groups_a_pod_that_was_created_while_no_webhook_answered_is_in_the_same_rack(without):
    pods = members("g", 3)
    world = World(uneven_racks())
    world.put(*(each if each is pods[without] else hashed(each) for each in pods))
    placed = go(world)
    assert set(placed) == {"g0", "g1", "g2"}
    assert racks(placed) == {"n1"}


@pytest.mark.parametrize("is_first", [False, True], ids=["the_others_are", "it_is"])
def test_groups_a_pod_that_is_made_again_is_where_it_was_whether_or_not_hashes_are_set(is_first):
    pods = members("g", 3)
    world = World(uneven_racks(), [each if is_first else hashed(each) for each in pods])
    before = go(world)
    world.delete(world.pods["uid-g2"])
    again = msgspec.structs.replace(pods[2], uid="again")
    world.put(hashed(again) if is_first else again)
    world.tick(1.0)
    assert world.held == {"again": before["g2"]}


def test_groups_of_two_roles_a_pod_without_a_hash_is_of_the_role_of_those_like_it():
    large, small = members("g", 4, gpus=8)[:2], members("g", 4, gpus=1)[2:]
    world = World(four_racks())
    world.put(large[0], large[1], small[0], small[1])
    before = go(world)
    world.delete(world.pods["uid-g1"], world.pods["uid-g3"])
    # One small pod is missing, and one large one.
    again = msgspec.structs.replace(small[1], uid="again")
    excess = msgspec.structs.replace(small[1], uid="excess", name="g4")
    world.put(hashed(again, "small"), hashed(excess, "small"))
    world.tick(1.0)
    assert before.keys() == {"g0", "g1", "g2", "g3"}
    assert world.held["again"] == before["g3"]
    assert "excess" not in world.held


@pytest.mark.parametrize("lost", ["g1", "g2"])
def test_groups_a_pod_without_a_hash_may_stand_for_one_of_any_role_of_pods_like_it(lost):
    pods = [hashed(each, role) for each, role in zip(members("g", 3), "abb", strict=True)]
    world = World(four_racks(), pods)
    go(world)
    world.delete(world.pods["uid-g0"], world.pods[f"uid-{lost}"])
    again = [
        msgspec.structs.replace(each, uid=f"again-{each.name}")
        for each in members("g", 3)
        if each.name in ("g0", lost)
    ]
    world.put(*again)
    world.tick(1.0)
    assert world.held.keys() == {each.uid for each in again}


def test_groups_a_pod_in_excess_brings_in_no_role():
    late = pod("late", gpus=0, annotations=group("g", 8), created="2026-01-02T00:00:00Z")
    world = World(four_racks(), [*roles(8), late], pod_group_roles="kep")
    assert len(world.held) == 8
    assert late.uid not in world.held


def test_groups_a_group_that_has_begun_to_start_goes_on_whatever_its_roles():
    first, *others = roles(10)
    begun = msgspec.structs.replace(first, node="n00", phase="Running")
    world = World(four_racks(), [begun, *others], pod_group_roles="kep")
    assert sorted(world.held) == [each.uid for each in others]


def test_groups_a_driver_declares_no_more_roles_than_there_may_be():
    sets = [{"name": f"w{number}", "count": 1} for number in range(9)]
    declaring = {GROUP: "g", PREFIX + "pod-group-sets": json.dumps(sets)}
    world = World(four_racks(), [pod("driver", annotations=declaring)], pod_group_roles="kep")
    assert world.held == {}
    assert "pod group can't include more than 8 roles" in sentence(world, "uid-driver")


def test_groups_a_group_finished_when_all_its_pods_have_succeeded():
    world = World(four_racks(), story_2())
    go(world)
    for each in list(world.pods.values()):
        turn(world, each.uid, "Succeeded")
        world.tick()
    assert world.gang("pod-group").phase is Phase.DONE
    assert world.held == {}
    assert world.told(Evict) == []


def test_groups_total_counts_that_differ_are_one_event_and_nothing_is_placed():
    one, two, three = members("g", 3, gates=GATED)
    odd = msgspec.structs.replace(two, annotations=group("g", 4, RACK))
    world = World(four_racks(), [one, odd, three])
    for _ in range(50):
        world.tick(1.0)
    (report,) = world.told(EmitEvent)
    assert report.reason == "GangMistaken"
    assert f"members disagree on annotation {TOTAL}" in report.sentence
    assert "pod g0 says 3" in report.sentence
    assert "pod g1 says 4" in report.sentence
    assert world.held == {}
    assert world.ungated == []


def test_groups_the_gang_starts_once_the_pod_with_another_total_count_is_replaced():
    one, two, three = members("g", 3, gates=GATED)
    odd = msgspec.structs.replace(two, uid="uid-odd", annotations=group("g", 4, RACK))
    world = World(four_racks(), [one, odd, three])
    world.delete(odd)
    world.put(two)
    assert len(go(world)) == 3


def test_groups_env_and_command_do_not_split_a_role_but_requests_and_selectors_do():
    annotations = group("g", 3, RACK)
    picky = Shape(selector=(("kubernetes.io/hostname", "n12"),))
    pods = [pod(f"g{i}", annotations=annotations) for i in range(2)]
    pods.append(pod("g2", annotations=annotations, shape=picky))
    world = World(four_racks(), pods)
    assert world.held["uid-g2"] == "n12"
    assert world.held["uid-g0"][:2] == world.held["uid-g1"][:2]
    roles = {member.role for member in world.gang("g").members.values()}
    assert len(roles) == 2


# -- Skipping pods, controllers that create too many -----------------------------------------------


def test_too_many_pods_before_admission_the_youngest_stay_gated_and_are_told():
    pods = [
        pod(
            f"g{i}",
            annotations=group("g", 2, RACK),
            created=f"2026-01-01T00:00:0{i}Z",
            gates=GATED,
        )
        for i in range(4)
    ]
    world = World(four_racks(), reversed(pods))
    assert sorted(world.ungated) == ["g0", "g1"]
    told = {report.about.name: report for report in world.told(EmitEvent)}
    assert sorted(told) == ["g2", "g3"]
    assert {report.reason for report in told.values()} == {"PodNotInGang"}
    assert "is one more than the 2 pods that annotation" in told["g2"].sentence
    assert world.told(Delete) == []


def test_too_many_pods_after_admission_the_newcomers_are_out_and_deleted_only_if_allowed():
    world = World(four_racks(), members("g", 2), delete_excess_pods=True)
    go(world)
    late = [pod(f"late{i}", annotations=group("g", 2, RACK), gates=GATED) for i in range(2)]
    world.put(*late)
    for _ in range(10):
        world.tick()
    deleted = [effect.name for effect in world.told(Delete)]
    assert sorted(deleted) == ["late0", "late1"]
    assert "late0" not in world.ungated
    assert all(world.pods[f"uid-g{i}"].node for i in range(2))


def test_too_many_pods_an_excess_pod_joins_when_a_member_has_failed():
    world = World(four_racks(), members("g", 2))
    go(world)
    late = pod("late", annotations=group("g", 2, RACK), created="2026-01-02T00:00:00Z")
    world.put(late)
    world.tick()
    assert "is one more than" in sentence(world, "uid-late")
    lost = world.pods["uid-g1"].node
    turn(world, "uid-g1", "Failed")
    assert go(world, late) == {"late": lost}


# -- Pods replaced on failure, retrying failed pods ------------------------------------------------


def test_retrying_a_replacement_may_have_any_name():
    world = World(four_racks(), members("g", 3))
    go(world)
    lost = world.pods["uid-g1"].node
    turn(world, "uid-g1", "Failed")
    world.put(pod("anything-else", annotations=group("g", 3, RACK)))
    assert go(world) == {"anything-else": lost}


@pytest.mark.parametrize("already", [0, 8], ids=["of_three", "after_eight_others"])
def test_retrying_a_new_pod_takes_the_place_of_the_pod_that_failed_first(already):
    world = World(four_racks(), members("g", 4))
    go(world)
    for index in range(already):
        turn(world, "uid-g0", "Failed")
        world.delete(world.pods["uid-g0"])
        again = pod("g0", annotations=group("g", 4, RACK), created=f"2026-02-01T00:00:{index:02}Z")
        world.put(again)
        assert set(go(world)) == {"g0"}
    failed = [world.pods[f"uid-g{i}"].node for i in (2, 1, 3)]
    for index in (2, 1, 3):
        turn(world, f"uid-g{index}", "Failed")
        world.tick()
    for number, on in enumerate(failed):
        fresh = pod(f"fresh{number}", annotations=group("g", 4, RACK))
        world.put(fresh)
        assert go(world) == {fresh.name: on}


def test_retrying_a_group_with_an_unretriable_failed_pod_goes_on_while_others_run():
    world = World(four_racks(), members("g", 3))
    go(world)
    marked = {**world.pods["uid-g0"].annotations, RETRIABLE: "false"}
    world.put(msgspec.structs.replace(world.pods["uid-g0"], annotations=marked))
    turn(world, "uid-g0", "Failed")
    world.put(pod("g9", annotations=group("g", 3, RACK)))
    assert set(go(world)) == {"g9"}


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_retrying_ends_when_no_pod_runs_and_one_that_ended_may_not_be_retried(phase):
    world = World(four_racks(), members("g", 2), delete_excess_pods=True)
    go(world)
    marked = {**world.pods["uid-g0"].annotations, RETRIABLE: "false"}
    world.put(msgspec.structs.replace(world.pods["uid-g0"], annotations=marked, phase=phase))
    turn(world, "uid-g1", "Failed")
    world.tick()
    assert world.held == {}
    assert world.gang("g").phase is Phase.DONE
    world.put(pod("g9", annotations=group("g", 2, RACK)))
    world.tick()
    assert "comes after the end of gang default/g" in sentence(world, "uid-g9")
    assert world.held == {}


def test_retrying_a_group_that_was_preempted_as_a_whole_starts_again_as_a_whole():
    world = World(four_racks(), members("g", 3, gates=GATED))
    go(world)
    for each in list(world.pods.values()):
        world.delete(each)
    world.tick()
    assert world.held == {}
    again = [msgspec.structs.replace(each, uid=f"{each.uid}-2") for each in members("g", 3)]
    world.put(*again[:2])
    world.tick()
    assert world.held == {}
    world.put(again[2])
    assert len(racks(go(world))) == 1


# -- Dynamically reclaiming quota ------------------------------------------------------------------


def test_reclaiming_what_succeeded_pods_had_goes_to_the_next_gang():
    world = World([node(f"b0/r0/n{i}") for i in range(4)], members("g", 4))
    go(world)
    world.put(*members("h", 2, gates=GATED))
    world.tick()
    assert world.ungated == []
    turn(world, "uid-g0", "Succeeded")
    world.tick()
    assert world.ungated == []
    turn(world, "uid-g3", "Succeeded")
    world.tick()
    assert sorted(world.ungated) == ["h0", "h1"]


def test_reclaiming_what_a_failed_pod_had_is_kept_from_others_until_its_time_is_over():
    world = World([node(f"b0/r0/n{i}") for i in range(2)], members("g", 2), owed_seconds=60.0)
    go(world)
    world.put(*members("h", 1))
    turn(world, "uid-g1", "Failed")
    world.tick(59.0)
    assert "uid-h0" not in world.held
    world.tick(2.0)
    world.tick()
    assert "uid-h0" in world.held


def test_reclaiming_a_succeeded_pod_is_not_replaceable():
    world = World(four_racks(), members("g", 2))
    go(world)
    turn(world, "uid-g1", "Succeeded")
    world.put(pod("g9", annotations=group("g", 2, RACK)))
    world.tick()
    assert "is one more than the 2 pods" in sentence(world, "uid-g9")


# -- Gating ----------------------------------------------------------------------------------------


def test_gating_foreign_gates_stay_and_the_pod_counts_only_without_them():
    foreign = ("example.com/quota", *GATED)
    world = World(four_racks(), members("g", 2, gates=foreign))
    world.tick()
    assert world.ungated == []
    world.put(*members("g", 2, gates=GATED))
    world.tick()
    assert {effect.gate for effect in world.told(Ungate)} == set(GATED)


def test_gating_an_ungated_pod_of_a_gang_without_plan_passes_nowhere():
    world = World(four_racks(), members("g", 3)[:2])
    answers = {world.filter(each) for each in world.pods.values()}
    (answer,) = answers
    assert isinstance(answer, Rejected)
    assert "waits until all 3 of its pods are there and ungated" in answer.sentence
    world.put(members("g", 3)[2])
    assert isinstance(world.filter(world.pods["uid-g0"]), Pinned)
