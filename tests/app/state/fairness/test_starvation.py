"""Gangs that have waited too long get a domain to themselves."""

from __future__ import annotations

import msgspec
import pytest

from app.dialects.corral import GATE
from app.dialects.spec import GangKey
from app.kube.core.objects import Owner, Taint
from app.state.filter_result import Rejected
from app.state.reserve.plans import AWAIT_SECONDS
from tests.app.state.reserve.test_absent import FAST
from tests.app.state.reserve.test_before_pods import driver
from tests.app.state.world import World, four_racks, members, racks
from tests.records import BLOCK, RACK, group, node, pod

STARVED = {"starvation_seconds": 60.0}


def busy_racks(free_on_r1=2):
    """Ordinary pods of 8 GPUs on every node, but for some of rack 1."""
    return [
        pod(f"o{r}{i}", on=f"n{r}{i}", phase="Running")
        for r in range(4)
        for i in range(4)
        if not (r == 1 and i < free_on_r1)
    ]


def starving(**settings):
    world = World(four_racks(), [*busy_racks(), *members("big", 4)], **{**STARVED, **settings})
    world.tick(61.0)
    world.tick()
    return world


def test_before_its_time_a_blocked_gang_keeps_nothing_from_anybody():
    world = World(four_racks(), [*busy_racks(), *members("big", 4)], **STARVED)
    world.tick(30.0)
    assert world.filter(pod("stranger")).without == frozenset()


def test_a_starving_gang_earmarks_the_rack_where_most_of_it_fits():
    world = starving()
    assert world.filter(pod("stranger")).without == {"n10", "n11", "n12", "n13"}


def test_a_smaller_gang_that_comes_later_does_not_get_the_earmarked_rack():
    world = starving()
    world.put(*members("small", 2))
    world.tick()
    assert world.held == {}
    assert "kept for a gang that comes before it" in world.reports[-1]


def test_a_gang_of_higher_priority_passes():
    world = starving()
    world.put(*members("urgent", 2, priority=10))
    world.tick()
    assert racks(world.held) == {"n1"}


def test_the_starving_gang_gets_its_rack_when_the_last_node_frees():
    world = starving()
    for name in ("o12", "o13"):
        world.delete(world.pods[f"uid-{name}"])
    world.tick()
    assert racks(world.held) == {"n1"}
    placed = world.schedule(*(world.pods[f"uid-big{i}"] for i in range(4)))
    assert len(placed) == 4


def test_the_earmark_ends_with_the_gang():
    world = starving()
    for index in range(4):
        world.delete(world.pods[f"uid-big{index}"])
    world.tick(5.1)
    assert world.filter(pod("stranger")).without == frozenset()


def test_pods_that_ask_for_nothing_the_gang_needs_may_pass():
    world = starving()
    assert world.filter(pod("web", gpus=0)).without == frozenset()


def test_a_pod_that_says_a_daemon_set_owns_it_does_not_pass():
    world = starving()
    owner = Owner("apps/v1", "DaemonSet", "exporter", "uid-exporter")
    assert world.filter(pod("exporter", owner=owner)).without == {"n10", "n11", "n12", "n13"}
    assert world.filter(pod("needed", owner=owner, priority=1)).without == frozenset()


def test_one_namespace_has_no_more_earmarks_than_it_is_allowed():
    world = World(four_racks(), [*busy_racks(), *members("a", 4), *members("b", 4)], **STARVED)
    world.tick(61.0)
    world.tick()
    assert len(world.engine.starvation.of) == 1
    world = World(
        four_racks(),
        [*busy_racks(), *members("a", 4), *members("b", 4)],
        earmarks_per_namespace=2,
        **STARVED,
    )
    world.tick(61.0)
    world.tick()
    first, second = (each.nodes for each in world.engine.starvation.of.values())
    assert not first & second


def test_with_none_allowed_nothing_is_earmarked():
    world = starving(earmarks_per_namespace=0)
    assert world.filter(pod("stranger")).without == frozenset()


def of_a_resource_that_no_node_has(pods):
    request = (("cpu", 1000), ("example.com/unheard-of", 1), ("pods", 1))
    return [msgspec.structs.replace(each, request=request) for each in members("odd", pods)]


@pytest.mark.parametrize(
    "gang",
    [
        pytest.param(members("huge", 5), id="too_many_pods"),
        pytest.param(of_a_resource_that_no_node_has(2), id="a_resource_that_no_node_has"),
    ],
)
def test_a_gang_that_no_rack_could_ever_take_earmarks_nothing(gang):
    world = World(four_racks(), [*busy_racks(), *gang], **STARVED, earmarked_nodes=4)
    world.tick(61.0)
    world.tick()
    assert world.engine.starvation.of == {}
    assert world.engine.starvation.too_large == {}, "no number of nodes would do"


def starve(nodes, pods, **settings):
    world = World(nodes, pods, **{**STARVED, **settings})
    world.tick(61.0)
    world.tick()
    return world


def of_namespace(namespace, pods):
    return [msgspec.structs.replace(each, namespace=namespace) for each in pods]


@pytest.mark.parametrize("level", ["podset-unconstrained-topology", "podset-preferred-topology"])
def test_a_gang_without_a_required_level_earmarks_nothing(level):
    value = RACK if "preferred" in level else "true"
    annotations = group("any", 3, **{f"kueue.x-k8s.io/{level}": value})
    pods = [pod(f"any{i}", annotations=annotations) for i in range(3)]
    assert starve(four_racks(), [*busy_racks(), *pods]).engine.starvation.of == {}


def one_block(nodes=200, gpus=8):
    """One block whose nodes are all taken."""
    names = [f"n{number}" for number in range(nodes)]
    taken = [pod(f"o-{name}", on=name, phase="Running") for name in names]
    return [
        node(f"b0/r{number // 20}/{name}", gpus=gpus) for number, name in enumerate(names)
    ], taken


@pytest.mark.parametrize("pods", [1, 8, 20])
def test_no_more_nodes_of_a_domain_are_kept_than_the_gang_needs(pods):
    nodes, taken = one_block()
    world = starve(nodes, [*taken, *members("g", pods, required=BLOCK)])
    assert len(world.filter(pod("stranger")).without) == pods


def test_a_gang_that_needs_more_nodes_than_may_be_kept_has_none_and_is_told_so():
    nodes, taken = one_block()
    world = starve(nodes, [*taken, *members("g", 21, required=BLOCK)])
    assert world.engine.starvation.of == {}
    world.delete(taken[0])
    world.tick()
    answer = world.filter(world.pods["uid-g0"])
    assert isinstance(answer, Rejected)
    assert answer.sentence.endswith(
        "; no nodes are kept free for it: it would need 21, and earmarked_nodes and"
        " earmarked_share allow 20"
    )


def test_all_namespaces_together_have_no_more_nodes_kept_than_the_share():
    nodes, taken = one_block()
    gangs = [of_namespace(name, members(name, 15, required=BLOCK)) for name in ("a", "b")]
    five = of_namespace("c", members("c", 5, required=BLOCK))
    world = starve(nodes, [*taken, *gangs[0], *gangs[1], *five])
    kept = {key.namespace: each.nodes for key, each in world.engine.starvation.of.items()}
    assert {name: len(nodes) for name, nodes in kept.items()} == {"a": 15, "c": 5}
    assert not kept["a"] & kept["c"]


def test_a_small_cluster_may_keep_some_nodes_though_they_are_a_large_share():
    world = starving(earmarked_nodes=3)
    assert world.engine.starvation.of == {}
    world = starving(earmarked_nodes=4)
    assert len(world.engine.starvation.nodes()) == 4


def test_pods_that_do_not_exist_have_no_nodes_kept():
    """The driver has room, its workers do not; then only one of two pods has."""
    busy = [pod(f"o{r}{i}", on=f"n{r}{i}", phase="Running") for r in range(4) for i in range(4)]
    first = driver(workers=8, gpus=8)
    assert first.request != pod("x").request
    assert starve(four_racks(), [*busy, first]).engine.starvation.of == {}
    waits = [pod(f"m{i}", annotations=group("m", 4, RACK, **FAST)) for i in range(2)]
    world = starve(four_racks(), [*busy_racks(1), *waits])
    assert world.held == {}
    assert [len(each.nodes) for each in world.engine.starvation.of.values()] == [2]


@pytest.mark.parametrize(("kind", "is_kept"), [("ReplicaSet", False), ("Job", True)])
def test_what_runs_without_end_leaves_no_room_in_time(kind, is_kept):
    owner = Owner("apps/v1", kind, "web", "uid-web")
    runs = [each for each in busy_racks(0) if each.node.startswith("n1")]
    ends = [each for each in busy_racks(0) if not each.node.startswith("n1")]
    lasting = [msgspec.structs.replace(each, owner=owner) for each in ends]
    web = msgspec.structs.replace(runs[0], owner=owner)
    world = starve(four_racks(), [web, *runs[1:], *lasting, *members("big", 4)])
    assert [len(each.nodes) for each in world.engine.starvation.of.values()] == [4] * is_kept


def test_another_domain_is_kept_where_the_first_one_has_pods_without_end():
    owner = Owner("apps/v1", "StatefulSet", "web", "uid-web")
    pods = [
        msgspec.structs.replace(each, owner=owner) if each.node == "n13" else each
        for each in busy_racks()
    ]
    world = starve(four_racks(), [*pods, *members("big", 4)])
    assert world.engine.starvation.nodes() == {"n00", "n01", "n02", "n03"}


def test_no_node_that_is_closed_to_the_gang_is_kept_for_one_with_pods_without_end():
    owner = Owner("apps/v1", "StatefulSet", "web", "uid-web")
    closed = (Taint("example.com/closed", "", "NoSchedule"),)
    nodes = [node(f"b0/r0/n{i}", taints=closed if i == 3 else ()) for i in range(4)]
    taken = [pod(f"o{i}", on=f"n{i}", phase="Running") for i in range(4)]
    world = starve(nodes, [*taken, *members("g", 3)])
    assert world.engine.starvation.nodes() == {"n0", "n1", "n2"}
    lasting = [msgspec.structs.replace(taken[0], owner=owner), *taken[1:]]
    assert starve(nodes, [*lasting, *members("g", 3)]).engine.starvation.of == {}


def test_of_a_domain_the_nodes_with_most_room_now_are_kept_then_the_largest():
    nodes = [node(f"b0/r0/n{i}", gpus=16 if i == 2 else 8) for i in range(4)]
    taken = [
        pod(f"o{i}", on=f"n{i}", gpus=nodes[i].allocatable[1][1], phase="Running") for i in range(4)
    ]
    half = msgspec.structs.replace(
        taken[3], request=(("cpu", 1000), ("nvidia.com/gpu", 4), ("pods", 1))
    )
    gang = members("g", 3, gpus=4)
    assert starve(nodes, [*taken, *gang]).engine.starvation.nodes() == {"n2"}
    kept = starve(nodes, [*taken[:3], half, *gang]).engine.starvation.nodes()
    assert kept == {"n2", "n3"}


def test_pods_of_one_kind_have_other_nodes_kept_than_pods_of_another():
    nodes = [node(f"b0/r0/n{i}") for i in range(3)]
    taken = [pod(f"o{i}", on=f"n{i}", phase="Running") for i in range(3)]
    annotations = group("g", 2, RACK)
    kinds = [pod(f"g{gpus}", gpus=gpus, annotations=annotations) for gpus in (2, 4)]
    world = starve(nodes, [*taken, *kinds])
    assert len(world.engine.starvation.nodes()) == 2
    assert starve(nodes[:1], [taken[0], *kinds]).engine.starvation.nodes() == {"n0"}


def test_a_gang_without_devices_keeps_off_whoever_requests_what_it_does():
    nodes = [node(f"b0/r0/n{i}", cpu=4000) for i in range(2)]
    taken = [pod(f"o{i}", on=f"n{i}", gpus=0, cpu=4000, phase="Running") for i in range(2)]
    world = starve(nodes, [*taken, *members("g", 2, gpus=0, cpu=4000)])
    assert world.filter(pod("stranger", gpus=0, cpu=1)).without == {"n0", "n1"}
    assert world.filter(pod("gpus-alone", gpus=1, cpu=0)).without == frozenset()


def test_an_earmark_holds_until_its_very_end_and_a_rest_too():
    world = World(
        four_racks(), [*busy_racks(), *members("big", 4)], **STARVED, earmark_seconds=100.0
    )
    world.tick(61.0)
    (mark,) = world.engine.starvation.of.values()
    assert (mark.since, mark.until) == (world.now, world.now + 100.0)
    assert world.engine.starvation.rests_until("default") == 0.0
    world.tick(99.0)
    assert world.engine.starvation.nodes() == mark.nodes
    world.tick(6.0)
    assert world.engine.starvation.of == {}
    assert world.engine.starvation.rests_until("default") == world.now + (world.now - mark.since)


@pytest.mark.parametrize(("priority", "racks_kept"), [(1, {"n0"}), (-1, {"n1"})])
def test_no_node_is_earmarked_that_is_kept_as_new_for_a_gang_before_it(priority, racks_kept):
    world = World(four_racks(), [*busy_racks(), *members("big", 4)], **STARVED)
    rank = (True, float(-priority), 0.0, "other", "first")
    key = GangKey("other", "first", "group")
    world.engine.planner.new_nodes = {key: (frozenset({"n10"}), rank)}
    world.tick(61.0)
    assert racks(dict(enumerate(world.engine.starvation.nodes()))) == racks_kept


@pytest.mark.parametrize("lost", ["gone", "closed"])
def test_where_a_node_of_it_takes_no_pods_any_more_others_are_kept_for_as_long_as_it(lost):
    world = starving()
    (before,) = world.engine.starvation.of.values()
    node = world.engine.books.nodes["n10"]
    if lost == "gone":
        world.delete(node)
    else:
        world.put(msgspec.structs.replace(node, is_unschedulable=True))
    world.tick(5.1)
    (mark,) = world.engine.starvation.of.values()
    assert mark.nodes == {"n00", "n01", "n02", "n03"}
    assert (mark.since, mark.until) == (before.since, before.until)


def test_where_no_others_would_do_what_is_left_of_them_is_kept_on():
    world = World(four_racks()[:4], [*busy_racks()[:3], *members("big", 4)], **STARVED)
    world.tick(61.0)
    world.tick()
    (before,) = world.engine.starvation.of.values()
    world.put(msgspec.structs.replace(world.engine.books.nodes["n00"], is_ready=False))
    world.tick(5.1)
    assert list(world.engine.starvation.of.values()) == [before]


@pytest.mark.parametrize(("floor", "earmarks"), [(0, 0), (-1, 1)])
def test_gangs_below_the_floor_have_no_nodes_kept(floor, earmarks):
    pods = [*busy_racks(), *members("low", 4, priority=-1)]
    world = starve(four_racks(), pods, earmark_priority=floor)
    assert len(world.engine.starvation.of) == earmarks


def test_an_earmark_ends_and_the_namespace_has_none_for_as_long():
    settings = {**STARVED, "earmark_seconds": 100.0}
    pods = [*busy_racks(), *members("a", 4), *members("b", 4)]
    other = of_namespace("other", members("c", 4))
    world = World(four_racks(), [*pods, *other], **settings, earmarked_nodes=16)
    world.tick(61.0)
    assert {key.name for key in world.engine.starvation.of} == {"a", "c"}
    world.tick(101.0)
    assert world.engine.starvation.of == {}
    assert world.filter(pod("stranger")).without == frozenset()
    world.tick(90.0)
    assert world.engine.starvation.of == {}
    world.tick(12.0)
    assert {key.name for key in world.engine.starvation.of} == {"b", "c"}


def test_a_gang_that_is_made_again_does_not_have_its_nodes_kept_on():
    world = starving()
    world.tick(200.0)
    for index in range(4):
        world.delete(world.pods[f"uid-big{index}"])
    world.put(*members("again", 4))
    world.tick(5.1)
    world.tick(61.0)
    assert world.engine.starvation.of == {}
    world.tick(200.0)
    assert [key.name for key in world.engine.starvation.of] == ["again"]


def test_one_review_tries_few_gangs_and_all_get_their_turn():
    """None can have nodes kept, but the last of the first namespace and the one of the second."""
    huge = [each for number in range(9) for each in members(f"huge{number}", 5)]
    small = members("small", 4, created="2026-01-01T00:00:01Z")
    other = of_namespace("other", members("c", 4, created="2026-01-01T00:00:02Z"))
    world = World(four_racks(), [*busy_racks(), *huge, *small, *other], **STARVED)
    world.tick(61.0)
    assert [key.name for key in world.engine.starvation.of] == ["c"]
    world.tick(5.1)
    world.tick(5.1)
    assert [key.name for key in world.engine.starvation.of] == ["c", "small"]


def test_no_more_nodes_are_read_in_a_review_than_its_bound(monkeypatch):
    nodes, taken = one_block()
    monkeypatch.setattr("app.state.fairness.starvation.MOST_NODES_READ", 10)
    world = starve(nodes, [*taken, *members("g", 11, required=BLOCK)])
    assert world.engine.starvation.of == {}
    world = starve(nodes, [*taken, *members("g", 9, required=BLOCK)])
    assert len(world.engine.starvation.nodes()) == 9


def test_a_gang_that_was_narrowed_to_a_rack_earmarks_that_one_and_not_one_with_more_room():
    free = {"n10", "n11", "n12", "n13", "n20", "n21", "n22"}
    others = [each for each in busy_racks(0) if each.node not in free]
    world = World(four_racks(), [*others, *members("big", 4, gates=(GATE,))], **STARVED)
    world.patch(world.effects)
    assert racks(world.held) == {"n1"}
    world.put(pod("first", on="n10"), pod("second", on="n11"))
    world.tick(61.0)
    world.tick()
    assert world.held == {}
    assert world.filter(pod("stranger")).without == {"n10", "n11", "n12", "n13"}


def test_a_pod_turned_away_by_an_earmark_is_woken_when_it_ends():
    world = starving()
    stranger = pod("stranger")
    world.put(stranger)
    assert len(world.filter(stranger, ["n10"]).without & {"n10"}) == 1
    for index in range(4):
        world.delete(world.pods[f"uid-big{index}"])
    world.tick(5.1)
    world.tick()
    assert "stranger" in world.woken


def test_an_earmark_that_passes_to_another_gang_has_it_planned_at_once():
    world = starving()
    world.put(*members("next", 2, created="2026-01-02T00:00:00Z"))
    world.tick(61.0)
    world.tick()
    assert world.held == {}
    for index in range(4):
        world.delete(world.pods[f"uid-big{index}"])
    world.tick(5.1)
    world.tick()
    assert racks(world.held) == {"n1"}


def gave_up(**settings):
    """A gang of a whole rack that had it, and lost it as one pod never came; others have half."""
    world = World(four_racks(), [*busy_racks(4), *members("big", 4)], **{**STARVED, **settings})
    for index in range(3):
        world.filter(world.pods[f"uid-big{index}"])
    world.tick(61.0)
    assert world.held == {}
    world.put(*members("small", 2))
    world.tick(10.0)
    return world


def test_a_gang_that_waits_for_its_own_pods_to_come_earmarks_nothing():
    world = gave_up()
    assert world.held.keys() == {"uid-small0", "uid-small1"}
    assert world.engine.starvation.of == {}


def test_a_gang_whose_pods_have_come_earmarks_a_domain_at_once():
    world = gave_up()
    world.filter(world.pods["uid-big3"])
    world.tick(10.0)
    assert [key.name for key in world.engine.starvation.of] == ["big"]


def test_a_gang_whose_pods_kube_scheduler_has_no_node_for_is_passed_for_a_time_only():
    world = gave_up()
    world.schedule(world.pods["uid-small0"], world.pods["uid-small1"])
    world.tick(AWAIT_SECONDS)
    world.tick(10.0)
    assert [key.name for key in world.engine.starvation.of] == ["big"]


def test_no_more_gangs_are_tried_in_a_review_than_its_bound(monkeypatch):
    monkeypatch.setattr("app.state.fairness.starvation.MOST_TRIED", 3)
    world = World(four_racks(), [*busy_racks(0), *(members("g0", 4))], **STARVED)
    for number in range(1, 5):
        gang = members(f"g{number}", 4)
        world.put(*(msgspec.structs.replace(each, namespace=f"team-{number}") for each in gang))
    world.tick(61.0)
    tried = world.engine.starvation._tried
    assert len(tried) == 3
    world.tick(5.1)
    assert len(tried) > 3


def test_looking_for_nodes_to_keep_is_work_of_the_tick():
    """Of each kind of a gang's pods every node is looked at, beside searches for places."""
    huge = [each for number in range(4) for each in members(f"huge{number}", 5)]
    world = World(four_racks(), [*busy_racks(), *huge], **STARVED)
    world.tick(61.0)
    starvation, budget = world.engine.starvation, world.engine.budget
    budget.begin()
    starvation.review(world.engine.gangs.plannable(), world.now)
    assert budget.spent == 4 * 16
    starvation._tried.clear()
    budget.begin()
    budget.spend("other", budget.most)
    starvation.review(world.engine.gangs.plannable(), world.now)
    assert len(starvation._tried) == 1, "the rest waits for the next review"


def test_a_corral_that_follows_another_one_earmarks_nothing():
    world = starving()
    world._take(world.inputs.lead(False, world.now))
    world.tick(10.0)
    assert world.filter(pod("stranger")).without == frozenset()
    world._take(world.inputs.lead(True, world.now))
    world.tick(10.0)
    world.tick(10.0)
    assert world.filter(pod("stranger")).without == {"n10", "n11", "n12", "n13"}


def test_of_the_gangs_of_a_namespace_only_those_are_put_in_order_that_a_review_tries(monkeypatch):
    """And all have their turn, in order, one after the other."""
    ranked = []

    def sorted_by(gangs, key):
        ranked.append(len(gangs))
        return sorted(gangs, key=key)

    monkeypatch.setattr("app.state.fairness.starvation.sorted", sorted_by, raising=False)
    huge = [each for number in range(9) for each in members(f"huge{number}", 5)]
    world = World(four_racks(), [*busy_racks(), *huge], **STARVED)
    world.tick(61.0)
    tried = [{key.name for key in world.engine.starvation._tried}]
    for _ in range(2):
        world.tick(5.1)
        tried.append({key.name for key in world.engine.starvation._tried} - set().union(*tried))
    names = [f"huge{number}" for number in range(9)]
    assert tried == [set(names[:4]), set(names[4:8]), set(names[8:])]
    assert max(ranked) == 4
