"""For how many pods that do not exist a namespace may have places held."""

from __future__ import annotations

from heapq import nlargest

import msgspec
import pytest

from app.dialects.quota.dialect import QuotaRecord
from app.kube.watch.events import Listed
from app.state.effects import EmitEvent
from app.state.fairness import absent_pods
from app.state.filter_result import Rejected
from app.state.gang.gang import Phase
from tests.app.state.lost import not_ready, started
from tests.app.state.reserve.test_absent import FAST, runs
from tests.app.state.reserve.test_before_pods import driver
from tests.app.state.world import LISTED, World, four_racks, members
from tests.records import GPU, RACK, group, node, pod

NONE = {"absent_pods_per_namespace": 0, "absent_share_per_namespace": 0.0}


def first_of(name: str, total: int, namespace="default", gpus=8, **more):
    """The first pod of a group that starts with places held for the others."""
    said = group(name, total, **FAST)
    first = pod(f"{name}-0", annotations=said, gpus=gpus, **more)
    return msgspec.structs.replace(first, namespace=namespace)


def refusal(world: World, uid: str) -> str:
    answer = world.filter(world.pods[uid])
    assert isinstance(answer, Rejected)
    return answer.sentence


def test_a_gang_is_refused_by_name_that_would_hold_more_than_its_namespace_may():
    limits = {"absent_pods_per_namespace": 2, "absent_share_per_namespace": 0.1}
    world = World(four_racks(), [first_of("g", 4)], **limits)
    assert world.held == {}
    assert refusal(world, "uid-g-0") == (
        "gang default/g cannot be placed: places would be held for 3 pods that do not exist yet,"
        " and namespace default may hold 2 or 10% of the cluster for all of these together"
    )


def test_a_pod_that_requests_little_and_declares_much_does_not_get_the_cluster():
    nodes = [node(f"b0/r{i // 8}/n{i}") for i in range(32)]
    leader = msgspec.structs.replace(driver(workers=255, gpus=1), namespace="evil")
    world = World(nodes, [leader])
    assert world.held == {}
    world.put(*(pod(f"m{i}", annotations=group("mine", 32)) for i in range(32)))
    world.tick()
    assert len(world.held) == 32


@pytest.mark.parametrize("total", [1_000, 100_000])
def test_a_gang_that_may_never_be_placed_costs_nothing_for_the_pods_it_declares(total):
    world = World(four_racks(), [first_of("g", total, gpus=0)], absent_share_per_namespace=0.5)
    assert world.gang().placeholders == {}
    assert refusal(world, "uid-g-0") == (
        f"gang default/g cannot be placed: places would be held for {total - 1} pods that do not"
        " exist yet, and namespace default may hold 32 or 50% of the cluster for all of these"
        " together"
    )


def test_a_gang_that_could_not_be_placed_leaves_nothing_behind_when_it_is_deleted():
    mine = [pod(f"m{i}", annotations=group("mine", 4)) for i in range(4)]
    world = World(four_racks(), [first := first_of("g", 1_000, gpus=0), *mine])
    world.delete(first)
    failed = world.held["uid-m0"]
    world.put(node(f"b0/r0/{failed}", is_ready=False))
    assert failed not in world.held.values()
    assert world.engine.gangs.with_placeholders == {}


@pytest.mark.parametrize("kind", ["fast admission", "driver"])
def test_no_gang_has_places_for_more_than_1_000_unless_its_namespace_has_a_number(kind):
    many = 1_002
    first = driver(workers=many, gpus=0) if kind == "driver" else first_of("g", many, gpus=0)
    nodes = [node(f"b0/r{at // 16}/n{at}") for at in range(128)]
    world = World(nodes, [first], absent_share_per_namespace=1.0)
    assert world.gang().placeholders == {}
    assert "may hold 1000 for all of these together" in refusal(world, first.uid)


def test_a_namespace_with_a_number_of_its_own_may_have_that_many():
    nodes = [node(f"b0/r{at // 16}/n{at}") for at in range(128)]
    world = World(nodes, [first_of("g", 1_002, gpus=0, cpu=1)], absent_pods_in="default=2000")
    assert len(world.held) == 1_002


def test_a_gang_is_placed_once_the_cluster_has_grown_enough_for_what_it_declares():
    world = World(four_racks(), [first_of("g", 801, gpus=0, cpu=1)])
    assert world.held == {}
    world.put(*(node(f"b9/r9/n{at}") for at in range(100)))
    world.tick()
    world.tick()
    assert len(world.held) == 801


def test_spares_are_only_looked_for_up_to_the_bound():
    first = pod("g-0", annotations={**group("g", 1), "corral.dev/spare-pods": "100"}, gpus=1)
    world = World(four_racks(), [first], absent_share_per_namespace=0.05)
    world.schedule(first)
    world.tick()
    assert len(world.gang().placeholders) == 88  # 5 % of 16 nodes with 110 pods each


# A gang that finds no place holds none, and yet each of its pods to come costs memory.


def waiting_for_each_other(gangs: int, monkeypatch, most: int = 20) -> World:
    """Gangs whose nine absent pods would find no place, in a namespace that may await so many."""
    monkeypatch.setattr(absent_pods, "MOST_AWAITED", most)
    limits = {"absent_pods_per_namespace": 10, "absent_share_per_namespace": 0.0}
    world = World(four_racks(), [first_of(f"g{at}", 10, gpus=9) for at in range(gangs)], **limits)
    world.tick()
    return world


def test_the_gangs_of_a_namespace_await_so_many_pods_whether_or_not_they_hold_places(monkeypatch):
    world = waiting_for_each_other(4, monkeypatch)
    awaited = [len(gang.placeholders) for gang in world.engine.gangs.by_key.values()]
    assert awaited == [9, 9, 0, 0]
    assert refusal(world, "uid-g3-0") == (
        "gang default/g3 cannot be placed: places would be held for 9 pods that do not exist yet,"
        " and gangs of namespace default wait for 18 of at most 20 already"
    )
    world.put(first_of("o", 10, namespace="other"))
    world.tick()
    assert len(world.gang("o").placeholders) == 9


@pytest.mark.parametrize("how", ["deleted", "smaller"])
def test_a_gang_of_a_crowded_namespace_has_its_turn_when_another_one_is_gone(monkeypatch, how):
    world = waiting_for_each_other(2, monkeypatch)
    world.put(fits := first_of("fits", 10, gpus=1))
    world.tick()
    assert world.held == {}
    if how == "deleted":
        world.delete(world.pods["uid-g0-0"])
    else:
        world.put(first_of("g0", 2, gpus=9))
    for _ in range(3):
        world.tick()
    assert len(world.held) == 10
    assert fits.uid in world.held


def crowded_at_the_start(first, monkeypatch) -> World:
    """A gang that is seen running after one that waits for nineteen pods in vain."""
    monkeypatch.setattr(absent_pods, "MOST_AWAITED", 20)
    limits = {"absent_pods_per_namespace": 19, "absent_share_per_namespace": 0.0}
    before = runs(World(four_racks(), [first], **limits), first.uid)
    crowd = first_of("crowd", 20, gpus=9)
    world = World(four_racks(), [crowd], **limits)
    world.tick()
    world.put(before.pods[first.uid])
    world.tick()
    return world


def with_spares(spares: int):
    said = {**group("run", 1), "corral.dev/spare-pods": str(spares)}
    return pod("run-0", annotations=said, gpus=1)


@pytest.mark.parametrize(
    ("first", "places"), [(first_of("run", 10, gpus=1), 9), (with_spares(4), 4)]
)
def test_a_gang_that_runs_has_its_places_once_its_namespace_is_less_crowded(
    monkeypatch, first, places
):
    world = crowded_at_the_start(first, monkeypatch)
    gang = world.gang("run")
    assert gang.phase is Phase.RUNNING
    assert len(world.held) <= 1
    world.delete(world.pods["uid-crowd-0"])
    for _ in range(3):
        world.tick()
    assert len(world.held) == len(gang.placeholders) == places


def test_a_gang_is_told_nothing_while_the_cluster_grows_enough_for_it():
    world = World(four_racks(), [first_of("g", 801, gpus=0, cpu=1)])
    world.tick()
    told = len(world.told(EmitEvent))
    world.put(*(node(f"b9/r9/n{at}") for at in range(100)))
    for _ in range(3):
        world.tick()
    assert len(world.held) == 801
    assert [event.reason for event in world.told(EmitEvent)[told:]] == ["GangPlaced"]


def test_a_crowded_namespace_costs_no_roll_call_each_tick(monkeypatch):
    world = waiting_for_each_other(4, monkeypatch)
    for _ in range(3):
        world.tick()
    before = [gang.roll_calls for gang in world.engine.gangs.by_key.values()]
    for _ in range(20):
        world.tick()
    assert [gang.roll_calls for gang in world.engine.gangs.by_key.values()] == before


def test_nobody_is_counted_any_more_once_all_pods_are_gone(monkeypatch):
    world = waiting_for_each_other(4, monkeypatch)
    assert world.engine.absent_pods.awaited_in("default") == 18
    world.delete(*world.pods.values())
    world.tick()
    assert world.engine.absent_pods.awaited_in("default") == 0
    assert world.engine.differences() == []


def test_what_takes_held_capacity_is_found_after_a_gang_that_waited_for_too_many_is_gone(
    monkeypatch,
):
    world = waiting_for_each_other(4, monkeypatch)
    world.delete(*world.pods.values())
    world.put(*members("other", 2))
    world.tick()
    taken = world.held["uid-other0"]
    world.put(pod("thief", on=taken))
    assert taken not in world.held.values()


@pytest.mark.parametrize(("share", "fits"), [(0.5, True), (0.49, False), (1.0, True)])
def test_a_share_of_every_resource_may_be_held_where_that_is_more(share, fits):
    limits = {"absent_pods_per_namespace": 0, "absent_share_per_namespace": share}
    world = World(four_racks(), [first_of("g", 9)], **limits)  # 8 places on 16 nodes
    assert len(world.held) == (9 if fits else 0)


def test_a_share_of_what_no_node_has_is_nothing():
    first = first_of("g", 2)
    limits = {"absent_pods_per_namespace": 0, "absent_share_per_namespace": 0.5}
    rare = msgspec.structs.replace(first, request=(*first.request, ("example.com/rare", 1)))
    world = World(four_racks(), [rare], **limits)
    assert "may hold 0 or 50% of the cluster" in refusal(world, "uid-g-0")


def test_a_share_of_one_is_no_bound_and_a_verdict_says_what_fits():
    world = World(four_racks(), [first_of("g", 100)], absent_share_per_namespace=1.0)
    assert "16 of 100 pods fit" in refusal(world, "uid-g-0")


def test_gangs_of_a_namespace_share_the_bound_and_those_of_others_do_not():
    limits = {"absent_pods_per_namespace": 3, "absent_share_per_namespace": 0.0}
    pods = [first_of("a", 3), first_of("b", 3), first_of("c", 3, namespace="other")]
    world = World(four_racks(), pods, **limits)
    assert sorted(uid for uid in world.held if uid in world.pods) == ["uid-a-0", "uid-c-0"]


def test_a_refused_gang_is_placed_when_pods_of_the_other_have_come():
    limits = {"absent_pods_per_namespace": 3, "absent_share_per_namespace": 0.0}
    world = World(four_racks(), [first_of("a", 3), first_of("b", 3)], **limits)
    runs(world, "uid-a-0")
    assert "uid-b-0" not in world.held
    world.put(pod("a-1", annotations=group("a", 3, **FAST)))
    world.tick()
    assert "uid-b-0" in world.held


def test_a_gang_that_is_counted_as_before_leaves_no_place_to_a_refused_one():
    limits = {"absent_pods_per_namespace": 3, "absent_share_per_namespace": 0.0}
    world = World(four_racks(), [first_of("a", 3), first_of("b", 3)], **limits)
    assert isinstance(world.filter(world.pods["uid-b-0"]), Rejected)
    assert not world.engine.absent_pods.count_awaited(world.gang("a"))


def test_a_refused_gang_is_placed_when_the_time_of_the_others_places_is_up():
    limits = {"absent_pods_per_namespace": 3, "absent_share_per_namespace": 0.0}
    world = World(four_racks(), [first_of("a", 4)], absent_seconds=50.0, **limits)
    runs(world, "uid-a-0")
    world.put(first_of("b", 4))
    world.tick(20.0)
    assert "uid-b-0" not in world.held
    world.tick(31.0)
    world.tick()
    assert "uid-b-0" in world.held


@pytest.mark.parametrize(("own", "fits"), [(3, True), (2, False)])
def test_a_namespace_may_have_a_number_of_its_own(own, fits):
    limits = {"absent_pods_per_namespace": 100, "absent_pods_in": (("default", own),)}
    world = World(four_racks(), [first_of("g", 4)], **limits)
    assert bool(world.held) is fits


def test_a_gang_whose_pods_are_all_there_is_not_counted():
    world = World(four_racks(), [pod(f"g{i}", annotations=group("g", 4)) for i in range(4)], **NONE)
    assert len(world.held) == 4


@pytest.mark.parametrize(
    ("limits", "share"),
    [
        pytest.param({"absent_pods_per_namespace": 32}, 3 / 32, id="of_its_pods"),
        pytest.param(
            {"absent_pods_per_namespace": 0, "absent_share_per_namespace": 0.5},
            24 / 64,
            id="of_the_resource_that_it_has_most_of",
        ),
        pytest.param({"absent_pods_in": "default=6"}, 3 / 6, id="of_its_own_number"),
        pytest.param(
            {"absent_pods_per_namespace": 4, "absent_share_per_namespace": 0.5},
            24 / 64,
            id="whichever_leaves_it_more",
        ),
    ],
)
def test_how_near_the_fullest_namespace_is_to_its_bound_is_told(limits, share):
    world = World(four_racks(), [first_of("g", 4)], **limits)  # three absent pods of 8 GPUs
    assert world.engine.absent_pods.fullest() == pytest.approx(share)


def test_where_nothing_is_held_no_namespace_is_near_its_bound():
    assert World(four_racks()).engine.absent_pods.fullest() == 0.0


def test_the_place_of_a_lost_member_is_not_counted():
    world = started(total=4, **NONE)
    world.delete(world.pods["uid-g2"])
    world.tick()
    assert len(world.held) == 1


@pytest.mark.parametrize("goes", ["its pod", "its node"])
def test_the_place_of_a_spare_that_stands_in_for_a_lost_member_is_not_counted(goes):
    limits = {**NONE, "absent_pods_per_namespace": 1, "replace_on_pod_termination": False}
    world = started(total=2, annotations={"corral.dev/spare-pods": "1"}, **limits)
    lost = world.pods["uid-g0"]
    world.put(not_ready(lost.node))
    if goes == "its pod":
        world.delete(lost)
    for _ in range(100):
        world.tick(1.0)
    (place,) = world.held
    assert world.gang("g").placeholders[place].instead_of == lost.uid
    assert world.engine.absent_pods.held == {}
    assert world.engine.differences() == []


def test_spares_beyond_the_bound_are_not_held_and_keep_nobody_waiting():
    world = started(total=1, annotations={"corral.dev/spare-pods": "3"}, **NONE)
    assert world.held == {}
    assert world.gang("g").phase is Phase.RUNNING
    limits = {**NONE, "absent_pods_per_namespace": 2}
    again = started(total=1, annotations={"corral.dev/spare-pods": "3"}, **limits)
    assert len(again.held) == 2


def test_a_gang_that_runs_gets_its_waiting_pods_placed_whatever_the_bound_is():
    said = group("g", 4, RACK, **FAST)
    runs_already = msgspec.structs.replace(pod("g0", annotations=said), node="n00", phase="Running")
    world = World(four_racks(), [runs_already, pod("g1", annotations=said)], **NONE)
    assert list(world.held) == ["uid-g1"]


def test_of_those_that_hold_it_a_verdict_names_the_other_gang_with_most_places(monkeypatch):
    """It is found out once, however many verdicts there are."""
    ranked = []

    def largest(most, holders, key):
        ranked.append(len(holders))
        return nlargest(most, holders, key=key)

    monkeypatch.setattr("app.state.fairness.absent_pods.nlargest", largest)
    pods = [first_of("a", 8), first_of("b", 5), first_of("c", 3)]  # 16 nodes in all
    world = World(four_racks(), pods, absent_pods_per_namespace=100)
    runs(world, *(f"uid-{name}-0" for name in "abc"))
    world.put(*[pod(f"{name}0", annotations=group(name, 1), gpus=8) for name in "xyz"])
    absent = world.engine.absent_pods
    assert [key.name for key, _ in absent._most(GPU)] == ["a", "b"]
    ranked.clear()
    for name in "xyz":
        assert absent.in_the_way(world.gang(name)) == (world.gang("a").key, 7)
    assert ranked == []
    world.delete(world.pods["uid-a-0"])
    world.tick()
    assert [(key.name, places) for key, places in absent._most(GPU)] == [("b", 4), ("c", 2)]


def test_a_verdict_says_whose_absent_pods_hold_what_is_missing():
    world = World(four_racks(), [first_of("evil", 16)])
    runs(world, "uid-evil-0")
    world.put(pod("g0", annotations=group("g", 1), gpus=8))
    world.tick()
    assert refusal(world, "uid-g0").endswith(
        "places are held for 15 pods of default/evil that do not exist yet"
    )
    small = msgspec.structs.replace(
        pod("h0", annotations=group("h", 1)), request=(("cpu", 10**9), ("pods", 1))
    )
    world.put(small)
    world.tick()
    assert "do not exist" in refusal(world, "uid-h0")


def test_a_verdict_does_not_name_who_holds_something_else():
    world = World(four_racks(), [first_of("evil", 15, gpus=0)])
    runs(world, "uid-evil-0")
    world.put(pod("g0", annotations=group("g", 1), gpus=9))
    world.tick()
    assert "do not exist" not in refusal(world, "uid-g0")


def test_after_the_last_pod_has_gone_nothing_is_counted():
    world = World(four_racks(), [first_of("g", 4)])
    assert len(world.engine.absent_pods) == 3
    world.delete(world.pods["uid-g-0"])
    world.tick()
    assert len(world.engine.absent_pods) == 0


def test_the_audit_tells_where_the_count_differs_from_the_plans():
    world = World(four_racks(), [first_of("g", 3)])
    counted = world.engine.absent_pods
    first, second = list(counted.held)
    del counted.held[first]
    assert world.engine.differences() == [
        f"gang default/g: the place of {first} is not counted",
        "what namespaces hold for absent pods is not the sum of those",
    ]
    counted.held[first] = counted.held[second]
    counted.held["stranger"] = counted.held.pop(second)
    assert world.engine.differences() == [
        f"gang default/g: the place of {second} is not counted",
        "the place of stranger is counted, and is in no plan",
    ]


# -- what the namespace may have at all ----------------------------------------------------------


def quota(gpus: int, used: int, name="q", namespace="default") -> QuotaRecord:
    lines = ((GPU, gpus, used),)
    return QuotaRecord("ResourceQuota", namespace, name, f"uid-{name}", "", lines)


def test_no_place_is_held_for_pods_that_a_quota_would_refuse():
    world = World(four_racks())
    world.put(quota(gpus=31, used=8), first_of("g", 4))
    world.tick()
    assert world.held == {}
    assert refusal(world, "uid-g-0") == (
        "gang default/g cannot be placed: ResourceQuota default/q allows 31 nvidia.com/gpu in all,"
        " which leaves too little for 3 pods that do not exist yet"
    )


@pytest.mark.parametrize(
    "allowed",
    [
        pytest.param([quota(gpus=32, used=8)], id="enough"),
        pytest.param([quota(gpus=31, used=8), quota(gpus=32, used=8)], id="raised"),
        pytest.param([quota(gpus=31, used=8), quota(gpus=31, used=7)], id="less_is_used"),
        pytest.param([quota(gpus=0, used=0, namespace="other")], id="of_another_namespace"),
    ],
)
def test_places_are_held_as_soon_as_the_quota_leaves_enough(allowed):
    world = World(four_racks())
    world.put(allowed[0], first_of("g", 4))
    world.tick()
    world.put(*allowed[1:])
    world.tick()
    assert len(world.held) == 4


@pytest.mark.parametrize("by_list", [False, True])
def test_a_quota_that_is_deleted_bounds_nothing(by_list):
    kinds = (*LISTED, "ResourceQuota")
    world = World(four_racks(), kinds=kinds)
    world.apply(Listed("ResourceQuota", (quota(gpus=31, used=8),)))
    world.put(first_of("g", 4))
    world.tick()
    assert world.held == {}
    if by_list:
        world.apply(Listed("ResourceQuota", ()))
    else:
        world.delete(quota(gpus=31, used=8))
    world.tick()
    assert len(world.held) == 4


def test_every_quota_of_the_namespace_counts_and_what_is_held_already():
    world = World(four_racks())
    world.put(quota(gpus=100, used=0, name="large"), quota(gpus=40, used=8, name="small"))
    world.put(first_of("a", 4))
    world.tick()
    assert len(world.held) == 4
    world.put(first_of("b", 2))
    world.tick()
    assert len(world.held) == 6
    world.put(first_of("c", 2))
    world.tick()
    assert "ResourceQuota default/small allows 40 nvidia.com/gpu" in refusal(world, "uid-c-0")


def test_a_place_given_up_says_once_that_a_refused_gang_may_be_placed():
    limits = {"absent_pods_per_namespace": 2, "absent_share_per_namespace": 0.0}
    world = World(four_racks(), [first_of("a", 3), first_of("b", 3)], **limits)
    absent = world.engine.reservations.absent_pods
    one, other = absent.held
    assert not absent.release("uid-of-no-place")
    assert absent.release(one)
    assert not absent.release(other)
