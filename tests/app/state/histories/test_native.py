"""Gangs of native PodGroups, as PodGroups and pods come, change and go."""

from __future__ import annotations

import msgspec
import pytest

from app.kube.watch.events import Applied, Listed
from app.state.effects import Evict, WriteStatus
from app.state.filter_result import Passed, Rejected
from app.state.journal.record import Recorder
from app.state.journal.replay import replay
from tests.app.dialects.native.objects import (
    ALPHA,
    BETA,
    KIND,
    group,
    member,
    members,
)
from tests.app.state.stories import GATED, finish, go, sentence, turn
from tests.app.state.world import LISTED, Names, World, racks
from tests.records import (
    BLOCK,
    PREFERRED,
    RACK,
    REQUIRED,
    SLICE_LEVEL,
    SLICE_SIZE,
    job,
    job_owner,
    node,
    pod,
)

ON = {"native_pod_groups": "on", "kinds": (*LISTED, KIND)}
PLACE = "example.com/place"  # a label of nodes that is a level of no topology


def two_racks(nodes=4, **more):
    return [node(f"b0/r{rack}/r{rack}n{at}", **more) for rack in range(2) for at in range(nodes)]


def world_of(*pod_groups, nodes=None, pods=(), **settings):
    """Two racks of four nodes with room for one pod each; the PodGroups are read last."""
    world = World(two_racks() if nodes is None else nodes, pods, **{**ON, **settings})
    world.apply(Listed(KIND, pod_groups))
    world.tick()
    return world


def placed(world, *pods):
    """These pods come, and all go as far as they may; what starts with the last of them, by name.

    The pods that a gang needs start when they are there, and the others after them.
    """
    world.put(*pods)
    found = {}
    for _ in range(4):
        found |= go(world)
    return found


def conditions(world):
    """Those that were written, as (type, status, reason, message)."""
    return [
        tuple(condition[part] for part in ("type", "status", "reason", "message"))
        for effect in world.told(WriteStatus)
        for condition in effect.status["conditions"]
    ]


def nodes_of(world, of="train"):
    return {each.name: each.node for each in world.pods.values() if each.pod_group == of}


# -- whole or nothing ------------------------------------------------------------------------------


def test_a_gang_starts_whole_in_one_domain_of_its_key():
    world = world_of(group(least=4, key=RACK))
    on = placed(world, *members(4))
    assert len(on) == 4
    assert len(racks(on)) == 1


def test_pods_that_name_other_levels_for_all_of_them_wait_and_are_told_which():
    key = "corral.dev/workload-required-topology"
    first, second = members(2)
    pods = [
        msgspec.structs.replace(each, annotations={key: level})
        for each, level in ((first, BLOCK), (second, RACK))
    ]
    world = world_of(group(least=2))
    assert placed(world, *pods) == {}
    assert sentence(world, first.uid) == (
        f"gang default/train is invalid: pod default/{second.name}: metadata.annotations[{key}]:"
        f' Invalid value: "{RACK}": must be consistent with'
        f" 'metadata.annotations[{key}]' of pod default/{first.name}: \"{BLOCK}\""
    )


def test_a_gang_of_which_pods_are_missing_waits_and_says_so():
    world = world_of(group(least=4, key=RACK))
    assert placed(world, *members(3)) == {}
    assert world.held == {}
    told = "gang default/train waits until all 4 of its pods are there and ungated"
    assert sentence(world, "uid-train-0") == told
    assert len(placed(world, member("train-3"))) == 4


def test_a_gang_that_no_domain_of_its_key_has_room_for_waits():
    """Each rack has room for four, both together for eight."""
    world = world_of(group(least=5, key=RACK))
    assert placed(world, *members(5)) == {}
    assert "4 of 5 pods fit in one" in sentence(world, "uid-train-0")
    other = world_of(group(least=5))
    assert len(placed(other, *members(5))) == 5


def test_pods_beyond_min_count_follow_as_they_fit_into_the_same_domain():
    world = world_of(group(least=2, key=RACK))
    on = placed(world, *members(6))
    assert len(on) == 4
    assert len(racks(on)) == 1
    turn(world, f"uid-{min(on)}", "Succeeded")
    more = placed(world)
    assert len(more) == 1
    assert racks(more) == racks(on)


def test_min_count_may_change_before_the_gang_starts():
    world = world_of(group(least=4, api=BETA))
    assert placed(world, *members(3)) == {}
    world.put(group(least=3, api=BETA))
    assert len(go(world)) == 3


@pytest.mark.parametrize("gates", [(), GATED], ids=["gateless", "gated"])
def test_pods_may_come_before_their_pod_group(gates):
    its = members(4, gates=gates)
    world = world_of(pods=its)
    assert go(world) == {}
    if not gates:
        told = "gang default/train waits until PodGroup train is there"
        assert world.filter(its[0]) == Rejected(told)
    world.put(group(least=4, key=RACK))
    on = go(world) | go(world)
    assert len(on) == 4
    assert len(racks(on)) == 1


# -- a key that is in no topology ------------------------------------------------------------------


def rooms(**more):
    """Two places of four nodes: their label is a level of no topology."""
    return [
        msgspec.structs.replace(each, labels={**each.labels, PLACE: each.name[:2]})
        for each in two_racks(**more)
    ]


@pytest.mark.parametrize("levels", [(), (BLOCK, RACK)], ids=["no_levels", "other_levels"])
def test_the_key_may_be_a_level_of_no_topology(levels):
    for least, started in ((4, 4), (5, 0)):
        world = world_of(group(least=least, key=PLACE), nodes=rooms(), levels=levels)
        on = placed(world, *members(least))
        assert len(on) == started
        assert len(racks(on)) == min(started, 1)
    assert f"4 of 5 pods fit in one {PLACE}" in sentence(world, "uid-train-0")


def test_the_key_may_be_the_node():
    world = world_of(group(least=2, key="kubernetes.io/hostname"), nodes=two_racks(gpus=16))
    assert len(set(placed(world, *members(2)).values())) == 1


def test_a_key_that_no_node_has_is_a_reason_to_wait():
    world = world_of(group(least=2, key="example.com/absent"))
    assert placed(world, *members(2)) == {}
    assert "example.com/absent" in sentence(world, "uid-train-0")


def test_such_a_level_lasts_as_long_as_an_object_names_it():
    one, other = group(least=2, key=PLACE), group("other", 2, key=PLACE)
    world = world_of(one, other, nodes=rooms())
    topologies = world.engine.books.topologies
    assert f"~{PLACE}" in topologies
    world.delete(one)
    assert f"~{PLACE}" in world.engine.books.topologies
    world.put(group("other", 2, key=RACK))
    assert f"~{PLACE}" not in world.engine.books.topologies
    world.put(other)
    world.apply(Listed(KIND, ()))
    assert f"~{PLACE}" not in world.engine.books.topologies


def test_where_ordinary_pods_go_does_not_depend_on_keys_that_tenants_name():
    used = pod("used", gpus=1, on="r1n0", phase="Running")
    plain, named = (
        world_of(*groups, nodes=rooms(gpus=8), pods=[used], levels=())
        for groups in ((), (group(least=2, key=PLACE),))
    )
    names = list(plain.engine.books.nodes)
    one = pod("one", gpus=1)
    assert scores_of(named, one, names) == scores_of(plain, one, names)


def test_a_tenant_has_few_levels_of_his_own_and_takes_none_from_others():
    keys = [f"example.com/k{at}" for at in range(1000)]
    hostile = [
        msgspec.structs.replace(group(f"g{at}", 2, key=key), namespace="ill")
        for at, key in enumerate(keys)
    ]
    world = world_of(*hostile, group(least=4, key=PLACE), nodes=rooms())
    assert [name for name in world.engine.books.topologies if name.startswith("~")] == [
        *sorted(f"~{key}" for key in keys[:2]),
        f"~{PLACE}",
    ]
    assert len(placed(world, *members(4))) == 4


# -- basic -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("gates", [(), GATED], ids=["gateless", "gated"])
def test_each_pod_of_a_basic_group_starts_as_it_fits(gates):
    world = world_of(group())
    assert len(placed(world, *members(10, gates=gates))) == 8
    turn(world, next(each.uid for each in world.pods.values() if each.node), "Succeeded")
    assert len(placed(world)) == 1


def test_the_pods_of_a_basic_group_that_exist_are_kept_in_one_domain_of_its_key():
    world = world_of(group(key=RACK))
    first = placed(world, *members(1))
    rest = placed(world, *members(4, first=1))
    assert (len(first), len(rest)) == (1, 3)
    assert racks(first) == racks(rest)


@pytest.mark.parametrize("group_first", [True, False])
def test_a_job_of_a_basic_group_is_a_gang_where_its_annotations_say_so(group_first):
    world = world_of(*([group()] if group_first else []))
    world.apply(Applied(job("j", 4)))
    its = members(4, annotations={REQUIRED: RACK}, owner=job_owner("j"))
    assert placed(world, *its[:3]) == {}
    if not group_first:
        world.apply(Applied(group()))
    on = placed(world, its[3])
    assert (len(on), len(racks(on))) == (4, 1)


# -- annotations for what native lacks -------------------------------------------------------------


def test_a_preferred_level_inside_the_required_one():
    nodes = [node(f"b0/r0{at}/n0{at}") for at in range(3)] + [node("b0/r02/n03")]
    world = world_of(group(least=2, key=BLOCK, annotations={PREFERRED: RACK}), nodes=nodes)
    assert set(placed(world, *members(2)).values()) == {"n02", "n03"}
    world = world_of(group(least=3, key=BLOCK, annotations={PREFERRED: RACK}), nodes=nodes)
    assert len(placed(world, *members(3))) == 3


@pytest.mark.parametrize("on_pods", [True, False], ids=["of_the_pods", "of_the_pod_group"])
def test_a_preferred_level_is_looked_for_in_every_domain_of_the_required_one(on_pods):
    """The block with the least room that is enough has no such rack."""
    nodes = [node(f"b0/r0{at}/n0{at}") for at in range(2)] + [node(f"b1/r1/n1{at}") for at in "012"]
    said = {PREFERRED: RACK}
    world = world_of(group(least=2, key=BLOCK, annotations={} if on_pods else said), nodes=nodes)
    its = members(2, annotations=said if on_pods else {})
    assert set(placed(world, *its).values()) < {"n10", "n11", "n12"}


def test_slices_each_in_a_domain_of_their_own():
    said = {SLICE_LEVEL: RACK, SLICE_SIZE: "2"}
    nodes = [node(f"b0/r{rack}/r{rack}n{at}") for rack in range(3) for at in range(3)]
    world = world_of(group(least=6, key=BLOCK), nodes=nodes)
    its = members(6, annotations={**said, "kueue.x-k8s.io/podset-required-topology": BLOCK})
    on = placed(world, *its)
    assert len(on) == 6
    assert all(list(on.values()).count(each) == 1 for each in on.values())
    per_rack = [sum(where.startswith(f"r{rack}") for where in on.values()) for rack in range(3)]
    assert all(pods % 2 == 0 for pods in per_rack)


# -- what happens to a gang that runs --------------------------------------------------------------


def test_a_restart_changes_nothing():
    record = group(least=4, key=RACK)
    world = world_of(record)
    placed(world, *members(4))
    before = nodes_of(world)
    again = world_of(record, pods=world.pods.values())
    finish(again)
    assert nodes_of(again) == before
    assert again.held == {}
    assert again.told(Evict) == []


def test_a_gang_that_was_begun_is_completed_where_it_was_begun():
    record = group(least=4, key=RACK)
    world = world_of(record)
    placed(world, *members(4))
    on = nodes_of(world)
    half = [
        each if at < 2 else msgspec.structs.replace(each, node="")
        for at, each in enumerate(world.pods.values())
    ]
    again = world_of(record, pods=half)
    finish(again)
    assert racks(nodes_of(again)) == racks(on)


def test_a_pod_that_is_made_anew_returns_to_its_domain():
    world = world_of(group(least=3, key=RACK))
    on = placed(world, *members(3))
    turn(world, "uid-train-0", "Failed")
    again = placed(world, member("train-9"))
    assert racks(again) == racks(on)
    assert len(again) == 1


def test_a_gang_runs_on_when_its_pod_group_is_deleted_and_new_pods_wait():
    record = group(least=3, key=RACK)
    world = world_of(record)
    placed(world, *members(3))
    before = nodes_of(world)
    world.delete(record)
    finish(world)
    assert nodes_of(world) == before
    assert world.told(Evict) == []
    assert placed(world, member("train-9")) == {}
    assert "PodGroup train is there" in sentence(world, "uid-train-9")
    world.put(msgspec.structs.replace(record, uid="made-anew"))
    again = go(world)
    assert len(again) == 1
    assert racks(again) <= racks(before)


def test_what_was_planned_is_given_up_when_the_pod_group_goes_before_it_starts():
    record = group(least=3, key=RACK)
    world = world_of(record)
    world.put(*members(3))
    world.tick()
    assert len(world.held) == 3
    world.delete(record)
    world.tick()
    assert world.held == {}


def test_one_that_is_preempted_takes_the_others_along_where_the_pod_group_says_so():
    for mode, evicted in (("Pod", 0), ("PodGroup", 2)):
        world = world_of(group(least=3, disruptionMode=mode))
        placed(world, *members(3))
        lost = world.pods["uid-train-0"]
        world.put(msgspec.structs.replace(lost, is_preempted=True, is_terminating=True))
        world.tick()
        assert len({each.uid for each in world.told(Evict)}) == evicted, mode


# -- what is written back --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("api", "kind"), [(ALPHA, "PodGroupScheduled"), (BETA, "PodGroupInitiallyScheduled")]
)
def test_the_condition_says_why_it_waits_and_then_that_it_is_scheduled(api, kind):
    world = world_of(group(least=5, key=RACK, api=api))
    placed(world, *members(5))
    told = conditions(world)[-1]
    assert told[:3] == (kind, "False", "Unschedulable")
    assert "4 of 5 pods fit in one" in told[3]
    path = f"/apis/scheduling.k8s.io/{api}/namespaces/default/podgroups/train/status"
    assert {each.path for each in world.told(WriteStatus)} == {path}
    world.put(node("b0/r0/r0n4"))
    assert len(go(world)) == 5
    assert conditions(world)[-1] == (kind, "True", "Scheduled", "")


def test_nothing_is_written_on_a_pod_group_without_pods():
    world = world_of(*(group(f"g{at}", 2) for at in range(1000)))
    world.tick(60)
    assert world.told(WriteStatus) == []
    assert world.engine.gangs.by_key == {}


# -- tenants who mean ill --------------------------------------------------------------------------


def test_a_gang_larger_than_any_is_told_so_and_holds_nothing():
    world = world_of(group(least=2**31))
    assert placed(world, *members(3)) == {}
    assert world.held == {}
    assert "minCount: Invalid value: 2147483648: must be less" in sentence(world, "uid-train-0")
    assert "minCount" in conditions(world)[-1][3]


def test_a_gang_of_as_many_pods_as_may_be_holds_nothing_before_they_are_there():
    world = world_of(group(least=100_000))
    assert placed(world, *members(3)) == {}
    assert world.held == {}
    assert "until all 100000 of its pods" in sentence(world, "uid-train-0")


def test_the_pod_group_of_another_namespace_is_another_one():
    world = world_of(group(least=1))
    thief = msgspec.structs.replace(member("thief"), namespace="other")
    assert placed(world, thief) == {}
    assert sentence(world, "uid-thief") == "gang other/train waits until PodGroup train is there"
    assert world.gang().key.namespace == "other"


# -- journal ---------------------------------------------------------------------------------------


def test_a_journal_of_it_can_be_played_again():
    lines: list[bytes] = []

    class Recorded(World):
        def built(self):
            engine = super().built()
            self.recorder = Recorder(engine, engine.settings, lines.append)
            return engine

    world = Recorded(two_racks(), **ON)
    world.apply(Listed(KIND, (group(least=2, key=RACK),)))
    assert len(placed(world, *members(3))) == 3
    assert list(replay(lines)) == []


# -- while kube-scheduler does it ------------------------------------------------------------------


def test_the_trial_calls_of_kube_schedulers_own_gangs_are_pure_questions():
    """Two pods, three racks: /filter and /prioritize of each pod in each rack, 12 calls."""
    nodes = [node(f"b0/r{rack}/r{rack}n{at}") for rack in range(3) for at in range(2)]
    world = World(nodes)  # with the settings as they are by default
    its = members(2)
    other = pod("other", gpus=1)
    world.put(*its, other)
    world.tick()
    names = list(world.engine.books.nodes)
    before = scores_of(world, other, names)
    told = len(world.effects)
    for rack in range(3):
        inside = [each for each in names if each.startswith(f"r{rack}")]
        for each in its:
            assert world.filter(each, inside) == Passed(frozenset())
            assert scores_of(world, each, inside) == scores_of(world, pod("alike"), inside)
            inside = inside[1:]  # the second one is asked about without the first one's node
    world.tick(60)
    assert world.effects[told:] == []
    assert (world.held, world.engine.gangs.by_key) == ({}, {})
    assert scores_of(world, other, names) == before
    assert [effect.node for effect in world.bind(its[0], "r1n0")] == ["r1n0"]  # none is waited for


def test_a_pod_that_requests_what_kube_scheduler_would_not_keep_is_refused_and_nothing_is_held():
    world = World(two_racks())
    its = members(2, annotations={REQUIRED: RACK})
    assert placed(world, *its) == {}
    for each in its:
        for inside in (["r0n0", "r0n1"], ["r1n0", "r1n1"]):
            answer = world.filter(each, inside)
            assert isinstance(answer, Rejected)
            assert "native_pod_groups is off" in answer.sentence
    assert (world.held, world.told(WriteStatus)) == ({}, [])
    assert any("native_pod_groups is off" in sentence for sentence in world.reports)


def scores_of(world, one, names):
    return world.engine.prioritize(one, Names(names), world.now)


def test_why_a_gang_waits_is_not_said_before_a_place_was_searched_for():
    """At a start its PodGroup may be read last: that it is not there is true no more."""
    world = World(two_racks(), members(5), **ON)
    world.apply(Listed(KIND, (group(least=5, key=RACK),)))
    for _ in range(5):
        world.tick()
    (written,) = world.told(WriteStatus)
    assert "cannot be placed: 4 of 5 pods fit" in str(written.status)


@pytest.mark.parametrize("is_on_group", [True, False], ids=["on_the_group", "on_its_pods"])
def test_a_level_of_all_pods_together_is_kept_wherever_it_is_said(is_on_group):
    said = {"corral.dev/workload-required-topology": RACK}
    made = group(least=6, annotations=said if is_on_group else {})
    world = world_of(made)
    assert placed(world, *members(6, annotations={} if is_on_group else said)) == {}
    assert "in one cloud.provider.com/topology-rack" in sentence(world, "uid-train-0")
    world = world_of(group(least=4, annotations=said if is_on_group else {}))
    assert len(placed(world, *members(4, annotations={} if is_on_group else said))) == 4


def test_pods_that_request_another_level_than_their_pod_group_wait_and_say_so():
    world = world_of(group(least=6, annotations={PREFERRED: RACK}))
    assert placed(world, *members(6, annotations={REQUIRED: RACK})) == {}
    assert "do not say the same as those of PodGroup default/train" in sentence(
        world, "uid-train-0"
    )
    world = world_of(group(least=4, annotations={REQUIRED: RACK}))
    assert len(placed(world, *members(4, annotations={REQUIRED: RACK}))) == 4
