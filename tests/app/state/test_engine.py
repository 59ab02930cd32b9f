"""What the engine promises, one sentence a test; the world around it runs in virtual time."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest

from app.kube.events import Listed
from app.kube.objects import Shape, Taint, TopologyRecord
from app.state.answers import Failed, Passed, Pinned, Rejected
from app.state.effects import Bind, BindFailed, Refuse, Report
from app.state.engine import Engine
from tests.app.state.world import Names, World
from tests.records import BLOCK, PREFERRED, RACK, UNCONSTRAINED, group, job, job_owner, node, pod


def four_racks(**more):
    """4 racks × 4 nodes × 8 GPUs in two blocks."""
    return [node(f"b{r // 2}/r{r}/n{r}{i}", **more) for r in range(4) for i in range(4)]


def members(name, total, required=RACK, gpus=8, **more):
    annotations = group(name, total, required)
    return [pod(f"{name}{i}", gpus=gpus, annotations=annotations, **more) for i in range(total)]


def racks(placed):
    return {on[:2] for on in placed.values()}


def test_a_complete_gang_lands_whole_in_the_tightest_rack_that_fits():
    world = World(four_racks())
    filler = [pod(f"f{i}", on=on) for i, on in enumerate(["n00", "n10", "n11", "n20"])]
    world.put(*filler)
    gang = members("g", 2)
    world.put(*gang)
    assert racks(world.schedule(*gang)) == {"n1"}


def test_no_member_passes_before_the_last_one_exists():
    world = World(four_racks())
    gang = members("g", 3)
    world.put(*gang[:2])
    assert isinstance(world.filter(gang[0]), Rejected)
    assert world.held == {}


def test_members_rejected_early_are_woken_once_the_gang_is_placed():
    world = World(four_racks())
    gang = members("g", 3)
    world.put(gang[0])
    world.filter(gang[0])
    world.put(*gang[1:])
    assert world.woken == ["g0"]


def test_a_member_asked_for_before_the_watch_shows_it_is_rejected_and_woken_later():
    world = World(four_racks())
    gang = members("g", 2)
    assert isinstance(world.filter(gang[0]), Rejected)
    world.put(*gang)
    assert world.woken == ["g0"]


def test_every_member_is_pinned_to_its_own_planned_node():
    world = World(four_racks())
    gang = members("g", 4)
    world.put(*gang)
    answers = [world.filter(member) for member in gang]
    assert {answer.node for answer in answers} == {world.held[member.uid] for member in gang}


def test_asking_again_changes_nothing():
    world = World(four_racks())
    gang = members("g", 4)
    world.put(*gang)
    before = dict(world.held)
    assert [world.filter(gang[0]) for _ in range(3)] == [Pinned(before[gang[0].uid])] * 3
    assert world.held == before


def test_bind_is_held_until_the_last_member_arrives_and_then_all_are_bound():
    world = World(four_racks())
    gang = members("g", 3)
    world.put(*gang)
    nodes = [world.filter(member).node for member in gang]
    early = [world.bind(member, on) for member, on in zip(gang[:2], nodes[:2], strict=True)]
    assert early == [[], []]
    last = world.bind(gang[2], nodes[2])
    assert {effect.uid for effect in last if isinstance(effect, Bind)} == set(world.held)


def test_a_gang_of_one_binds_at_once():
    world = World(four_racks())
    single = pod("solo", annotations={UNCONSTRAINED: "true"})
    world.put(single)
    assert list(world.schedule(single)) == ["solo"]


def test_the_barrier_gives_up_after_its_time_and_the_gang_is_tried_again():
    world = World(four_racks(), gang_bind_seconds=20.0)
    gang = members("g", 2)
    world.put(*gang)
    world.bind(gang[0], world.filter(gang[0]).node)
    world.tick(21.0)
    assert world.refused == [gang[0].uid]
    world.tick(2.0)
    assert len(world.schedule(*gang)) == 2


def test_a_gang_that_fits_nowhere_holds_nothing_and_says_why_in_one_sentence():
    world = World(four_racks())
    gang = members("big", 5)
    world.put(*gang)
    answers = {world.filter(member) for member in gang}
    assert world.held == {}
    (answer,) = answers
    assert "gang default/big" in answer.sentence
    assert "4 of 5 pods fit" in answer.sentence
    assert world.reports == [answer.sentence]


def test_a_stuck_gang_is_placed_and_woken_on_the_tick_after_capacity_is_freed():
    world = World(four_racks())
    fillers = [pod(f"f{r}", on=f"n{r}0") for r in range(4)]
    world.put(*fillers)
    gang = members("g", 4)
    world.put(*gang)
    for member in gang:
        world.filter(member)
    world.delete(fillers[2])
    world.tick()
    assert sorted(world.woken) == ["g0", "g1", "g2", "g3"]
    assert racks(world.schedule(*gang)) == {"n2"}


def test_two_gangs_that_need_the_same_rack_never_mix():
    world = World(four_racks())
    world.put(*(pod(f"f{r}{i}", on=f"n{r}{i}") for r in range(3) for i in range(4)))
    one, other = members("one", 4), members("other", 4)
    for pair in zip(one, other, strict=True):
        world.put(*pair)
    placed = world.schedule(*(p for pair in zip(one, other, strict=True) for p in pair))
    assert sorted(placed) == ["one0", "one1", "one2", "one3"]


def test_preferred_falls_back_to_the_block_and_then_to_the_cluster():
    world = World(four_racks())
    in_block = [pod(f"p{i}", annotations=group("p", 6, **{PREFERRED: RACK})) for i in range(6)]
    world.put(*in_block)
    placed = world.schedule(*in_block)
    assert len(racks(placed)) == 2
    assert racks(placed) in ({"n0", "n1"}, {"n2", "n3"})
    anywhere = [pod(f"q{i}", annotations=group("q", 10, **{PREFERRED: RACK})) for i in range(10)]
    world.put(*anywhere)
    assert len(world.schedule(*anywhere)) == 10


def test_an_unconstrained_gang_may_use_nodes_without_level_labels():
    world = World([node("n1"), node("n2")])
    gang = members("g", 2, required=None)
    world.put(*gang)
    assert sorted(world.schedule(*gang).values()) == ["n1", "n2"]


# -- ordinary pods --------------------------------------------------------------------------------


def test_an_ordinary_pod_passes_with_every_node():
    world = World(four_racks())
    assert world.filter(pod("plain")) == Passed()


def test_an_ordinary_pod_loses_the_nodes_where_it_would_eat_held_capacity():
    world = World(four_racks())
    gang = members("g", 4, gpus=6)
    world.put(*gang)
    held = frozenset(world.held.values())
    assert world.filter(pod("big", gpus=4)) == Passed(without=held)
    assert world.filter(pod("small", gpus=2)) == Passed()


def test_an_ordinary_pod_that_reaches_bind_after_its_node_was_held_is_refused():
    world = World([node("b0/r0/n00")])
    plain = pod("plain")
    assert world.filter(plain) == Passed()
    world.put(*members("g", 1))
    assert [type(effect) for effect in world.bind(plain, "n00")] == [Refuse]


def test_capacity_of_an_ordinary_pod_on_its_way_is_not_planned_for_a_gang():
    world = World([node("b0/r0/n00")])
    plain = pod("plain")
    world.filter(plain)
    assert [type(effect) for effect in world.bind(plain, "n00")] == [Bind]
    world.put(*members("g", 1))
    assert "uid-g0" not in world.held


def test_a_failed_bind_of_an_ordinary_pod_gives_its_capacity_back():
    world = World([node("b0/r0/n00")])
    plain = pod("plain")
    world.filter(plain)
    world.bind(plain, "n00")
    world.engine.bind_finished(plain.uid, BindFailed("gone", is_gone=True), world.now)
    assert world.held == {}


def test_pods_of_other_schedulers_are_counted():
    world = World([node("b0/r0/n00"), node("b0/r0/n01")])
    world.put(pod("foreign", on="n00", scheduler="someone-else"))
    gang = members("g", 2)
    world.put(*gang)
    assert world.held == {}


def test_a_gang_of_another_scheduler_is_left_alone():
    world = World(four_racks())
    gang = members("g", 2, scheduler="volcano")
    world.put(*gang)
    assert world.filter(gang[0]) == Passed()
    assert world.held == {}


# -- plans that no longer hold --------------------------------------------------------------------


def test_a_foreign_bind_onto_held_capacity_loses_the_plan_and_another_place_is_found():
    world = World(four_racks())
    gang = members("g", 4)
    world.put(*gang)
    taken = world.held["uid-g0"]
    world.put(pod("thief", on=taken, scheduler="someone-else"))
    assert world.held == {}
    world.tick(2.0)
    assert racks(world.schedule(*gang)) == {"n1"}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"is_ready": False}, id="not_ready"),
        pytest.param({"is_unschedulable": True}, id="cordoned"),
        pytest.param({"allocatable": (("cpu", 64_000), ("pods", 110))}, id="lost_its_gpus"),
    ],
)
def test_a_planned_node_that_closes_or_shrinks_loses_the_plan(change):
    nodes = four_racks()
    world = World(nodes)
    world.put(*members("g", 4))
    world.put(msgspec.structs.replace(nodes[0], **change))
    assert world.held == {}
    world.tick(2.0)
    assert {on[:2] for on in world.held.values()} == {"n1"}


def test_a_deleted_node_loses_the_plan():
    nodes = four_racks()
    world = World(nodes)
    world.put(*members("g", 4))
    world.delete(nodes[0])
    world.tick(2.0)
    assert {on[:2] for on in world.held.values()} == {"n1"}


def test_a_member_deleted_before_the_start_ends_every_hold_until_it_is_replaced():
    world = World(four_racks())
    gang = members("g", 3)
    world.put(*gang)
    world.bind(gang[0], world.filter(gang[0]).node)
    world.delete(gang[2])
    assert world.held == {}
    assert world.refused == ["uid-g0"]
    late = pod("late", annotations=group("g", 3, RACK))
    world.put(late)
    world.tick(2.0)
    assert len(world.schedule(gang[0], gang[1], late)) == 3


def test_nodes_that_kube_scheduler_refuses_are_left_out_of_the_next_plan():
    world = World(four_racks())
    gang = members("g", 4)
    world.put(*gang)
    offered = [name for name in world.engine.cluster.nodes if not name.startswith("n0")]
    answer = world.filter(gang[0], offered)
    assert isinstance(answer, Pinned)
    assert {on[:2] for on in world.held.values()} == {"n1"}


def test_a_probe_with_one_name_concludes_nothing():
    world = World(four_racks())
    gang = members("g", 4)
    world.put(*gang)
    before = dict(world.held)
    assert isinstance(world.filter(gang[0], ["n33"]), Rejected)
    assert world.held == before


def test_a_sample_of_the_nodes_does_not_lose_the_plan_and_is_reported_once():
    nodes = [node(f"b0/r{i // 10}/n{i:03}") for i in range(300)]
    world = World(nodes)
    gang = members("g", 2)
    world.put(*gang)
    before = dict(world.held)
    sample = [n.name for n in nodes if n.name not in before.values()][: 300 * 48 // 100]
    assert isinstance(world.filter(gang[0], sample), Rejected)
    assert isinstance(world.filter(gang[1], sample), Rejected)
    assert world.held == before
    assert len([text for text in world.reports if "percentageOfNodesToScore" in text]) == 1


def test_a_plan_nobody_asks_for_is_given_up_after_a_while():
    world = World(four_racks(), hold_seconds=60.0)
    world.put(*members("g", 4))
    assert len(world.held) == 4
    world.tick(61.0)
    assert world.held == {}


# -- a gang that has started ----------------------------------------------------------------------


def test_a_failed_bind_keeps_its_slot_and_is_bound_when_it_comes_back():
    world = World(four_racks())
    gang = members("g", 2)
    world.put(*gang)
    nodes = [world.filter(member).node for member in gang]
    world.bind(gang[0], nodes[0])
    binds = world.bind(gang[1], nodes[1])
    world.confirm(bind for bind in binds if bind.uid == gang[0].uid)
    world._take(world.engine.bind_finished(gang[1].uid, BindFailed("503"), world.now))
    assert world.held == {gang[1].uid: nodes[1]}
    assert world.schedule(gang[1]) == {"g1": nodes[1]}


def test_a_late_member_joins_the_domain_of_those_that_run():
    bound = [
        pod(f"g{i}", on=f"n2{i}", annotations=group("g", 3, RACK), phase="Running")
        for i in range(2)
    ]
    late = pod("g2", annotations=group("g", 3, RACK))
    world = World(four_racks(), [*bound, late])
    assert racks(world.schedule(late)) == {"n2"}


def test_a_late_member_waits_when_the_domain_of_its_gang_is_full():
    bound = [
        pod(f"g{i}", on=f"n2{i}", annotations=group("g", 3, RACK), phase="Running")
        for i in range(2)
    ]
    blockers = [pod(f"x{i}", on=f"n2{i}") for i in (2, 3)]
    late = pod("g2", annotations=group("g", 3, RACK))
    world = World(four_racks(), [*bound, *blockers, late])
    assert isinstance(world.filter(late), Rejected)
    assert world.held == {}


def test_after_a_restart_in_the_middle_of_binding_the_rest_follows_and_nothing_stays_held():
    gang = members("g", 4)
    some = [msgspec.structs.replace(p, node=f"n1{i}") for i, p in enumerate(gang[:2])]
    world = World(four_racks(), [*some, *gang[2:]])
    assert racks(world.schedule(*gang[2:])) == {"n1"}
    world.tick()
    assert world.held == {}
    assert world.engine.gangs_by_phase()["running"] == 1


def test_a_restart_changes_no_running_gang():
    gang = [msgspec.structs.replace(p, node=f"n1{i}") for i, p in enumerate(members("g", 4))]
    world = World(four_racks(), gang)
    assert world.effects == []
    assert world.held == {}


def test_the_same_list_again_changes_nothing():
    gang = members("g", 4)
    world = World(four_racks(), gang)
    before = dict(world.held)
    world.apply(Listed("Pod", tuple(gang)))
    assert world.held == before


def test_a_relist_drops_pods_that_are_gone():
    filler = pod("f", on="n00")
    gang = members("g", 4)
    world = World(four_racks(), [filler, *gang])
    world.apply(Listed("Pod", ()))
    assert world.held == {}
    assert world.engine.cluster.bound == {}
    assert world.engine.ledger.gangs == {}


# -- Jobs -----------------------------------------------------------------------------------------


def job_pods(name, pods, **annotations):
    return [
        pod(f"{name}-{i}", owner=job_owner(name), annotations={**annotations}) for i in range(pods)
    ]


def test_a_jobs_pods_are_a_gang_of_its_parallelism():
    world = World(four_racks(), jobs=[job("j", 3, completions=9)])
    gang = job_pods("j", 3, **{"kueue.x-k8s.io/podset-required-topology": RACK})
    world.put(*gang[:2])
    assert world.held == {}
    world.put(gang[2])
    assert len(world.held) == 3


def test_a_jobs_gang_is_capped_by_the_completions_left():
    world = World(four_racks(), jobs=[job("j", 4, completions=9, succeeded=7)])
    gang = job_pods("j", 2, **{UNCONSTRAINED: "true"})
    world.put(*gang)
    assert len(world.held) == 2


def test_a_jobs_pods_wait_until_the_job_is_known():
    world = World(four_racks())
    gang = job_pods("j", 2, **{UNCONSTRAINED: "true"})
    world.put(*gang)
    assert world.held == {}
    world.put(job("j", 2))
    assert len(world.held) == 2


def test_a_jobs_pods_without_topology_annotation_are_ordinary():
    world = World(four_racks(), jobs=[job("j", 2)])
    assert world.filter(job_pods("j", 2)[0]) == Passed()


def test_the_owning_job_is_told_not_its_pods():
    world = World(four_racks(), jobs=[job("j", 5)])
    world.put(*job_pods("j", 5, **{"kueue.x-k8s.io/podset-required-topology": RACK}))
    (report,) = world.told(Report)
    assert (report.about.kind, report.about.name) == ("Job", "j")


# -- wrong input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotations", "said"),
    [
        pytest.param(group("g", 2, "no.such/level"), "no.such/level", id="unknown_level"),
        pytest.param(group("g", 0, RACK), "got '0'", id="total_count_0"),
        pytest.param(group("g", "two", RACK), "got 'two'", id="total_count_text"),
        pytest.param(group("g", 2, RACK, **{PREFERRED: BLOCK}), "more than one", id="two_modes"),
        pytest.param(
            group("g", 2, RACK, **{"kueue.x-k8s.io/podset-slice-size": "2"}),
            "does not enforce it yet",
            id="slices_are_not_silently_dropped",
        ),
    ],
)  # fmt: skip
def test_wrong_input_is_told_in_one_sentence_and_harms_no_other_gang(annotations, said):
    world = World(four_racks())
    wrong = [pod(f"w{i}", annotations=annotations) for i in range(2)]
    right = members("right", 2)
    world.put(*wrong, *right)
    for _ in range(3):
        answers = {world.filter(member) for member in wrong}
        world.tick(1.0)
    (answer,) = answers
    assert isinstance(answer, Rejected)
    assert said in answer.sentence
    assert world.reports == [answer.sentence]
    assert len(world.schedule(*right)) == 2


def test_members_that_disagree_on_the_total_count_are_told_who_says_what():
    world = World(four_racks())
    one, other = pod("a", annotations=group("g", 2)), pod("b", annotations=group("g", 3))
    world.put(one, other)
    world.tick()
    answer = world.filter(one)
    assert "pod a says 2, pod b says 3" in answer.sentence
    assert world.reports == [answer.sentence]


def test_members_that_disagree_on_the_level_are_told():
    world = World(four_racks())
    one = pod("a", annotations=group("g", 2, RACK))
    other = pod("b", annotations=group("g", 2, BLOCK))
    world.put(one, other)
    world.tick()
    assert "disagree" in world.filter(one).sentence
    assert world.held == {}


def test_a_pod_more_than_the_total_count_never_joins_and_is_told():
    world = World(four_racks())
    gang = members("g", 2)
    extra = pod("x", annotations=group("g", 2, RACK), created="2026-01-02T00:00:00Z")
    world.put(*gang, extra)
    answer = world.filter(extra)
    world.tick()
    assert len(world.schedule(*gang, extra)) == 2
    world.put(msgspec.structs.replace(extra, version="2"))
    assert world.filter(extra) == answer
    assert "pod default/x is one more than the 2 pods" in answer.sentence
    assert answer.sentence in world.reports


def test_gated_members_are_waited_for():
    world = World(four_racks())
    gang = members("g", 2)
    gated = msgspec.structs.replace(gang[1], gates=("other.dev/gate",))
    world.put(gang[0], gated)
    world.tick()
    assert world.held == {}
    world.put(gang[1])
    world.tick()
    assert len(world.held) == 2


# -- levels, shapes, priorities -------------------------------------------------------------------


def test_levels_come_from_a_kueue_topology_where_there_is_one():
    labels = {"example.com/row": "a"}
    world = World(
        [node("n1", labels=labels), node("n2", labels=labels)],
        topologies=[TopologyRecord("rows", ("example.com/row",), "1")],
        levels=(),
    )
    gang = members("g", 2, required="example.com/row")
    world.put(*gang)
    assert len(world.held) == 2


def test_a_plan_respects_taints_and_node_selectors():
    tainted = [
        msgspec.structs.replace(n, taints=(Taint("maintenance", "", "NoSchedule"),))
        for n in four_racks()[:4]
    ]
    world = World([*tainted, *four_racks(labels={"pool": "a"})[4:]])
    gang = members("g", 4, shape=Shape(selector=(("pool", "a"),)))
    world.put(*gang)
    assert {on[:2] for on in world.held.values()} <= {"n1", "n2", "n3"}


def test_the_higher_priority_is_placed_first_when_capacity_is_freed():
    world = World([node("b0/r0/n00")], [filler := pod("f", on="n00")])
    low, high = members("low", 1), members("high", 1, priority=10)
    world.put(*low, *high)
    world.delete(filler)
    world.tick()
    assert list(world.held) == ["uid-high0"]


def test_a_smaller_gang_passes_one_that_does_not_fit():
    world = World(four_racks())
    world.put(*members("big", 5), *members("small", 2))
    assert {uid[:9] for uid in world.held} == {"uid-small"}


def test_prioritize_prefers_the_rack_that_is_used_already():
    world = World(four_racks())
    world.put(pod("f", on="n10", gpus=4))
    names = Names(["n00", "n10", "n11"])
    scores = world.engine.prioritize(pod("plain", gpus=1), names, world.now)
    assert scores[0] < scores[2] <= scores[1]
    assert all(isinstance(score, int) and 0 <= score <= 10 for score in scores)


# -- not ready, stopping --------------------------------------------------------------------------


def test_before_the_lists_are_in_members_get_an_error_and_ordinary_pods_pass():
    engine = Engine()
    names = Names(["n1"])
    assert isinstance(engine.filter(members("g", 1)[0], names, 0.0)[0], Failed)
    assert engine.filter(pod("plain"), names, 0.0)[0] == Passed()


def test_draining_refuses_what_is_held():
    world = World(four_racks())
    gang = members("g", 2)
    world.put(*gang)
    world.bind(gang[0], world.filter(gang[0]).node)
    effects = world._take(world.engine.drain(world.now))
    assert [effect.uid for effect in effects if isinstance(effect, Refuse)] == ["uid-g0"]


def test_all_pods_gone_leaves_the_books_empty():
    world = World(four_racks())
    gangs = [*members("a", 4), *members("b", 3), *members("c", 5)]
    world.put(*gangs)
    world.schedule(*gangs)
    world.delete(*list(world.pods.values()))
    world.tick()
    cluster = world.engine.cluster
    assert (cluster.bound, cluster.held, world.engine.ledger.gangs) == ({}, {}, {})
    assert not any(topology.capacity.used.any() for topology in cluster.topologies.values())


# -- details that are easy to lose ----------------------------------------------------------------


def test_a_lost_plan_does_not_take_back_a_binding_under_way():
    nodes = four_racks()
    world = World(nodes)
    gang = members("g", 2)
    world.put(*gang)
    on = {member.uid: world.filter(member).node for member in gang}
    world.bind(gang[0], on[gang[0].uid])
    binds = world.bind(gang[1], on[gang[1].uid])
    world.put(*(msgspec.structs.replace(n, is_unschedulable=True) for n in nodes[:4]))
    assert world.held == on
    world.confirm(binds)
    world.tick()
    assert world.engine.gangs_by_phase()["running"] == 1


def test_a_pinned_member_is_not_woken_again():
    world = World(four_racks(), rewake_seconds=10.0)
    gang = members("g", 2)
    world.filter(gang[0])
    world.put(*gang)
    world.filter(gang[0])
    world.tick(11.0)
    assert world.woken == ["g0"]


def test_a_rejected_member_that_does_not_come_back_is_woken_again():
    world = World(four_racks(), rewake_seconds=10.0)
    gang = members("g", 2)
    world.filter(gang[0])
    world.put(*gang)
    world.tick(11.0)
    assert world.woken == ["g0", "g0"]


def test_a_refused_node_is_planned_again_only_after_a_while():
    world = World([node("b0/r0/n00"), node("b0/r1/n10")], refusal_seconds=30.0)
    gang = members("g", 1)
    world.put(*gang)
    world.filter(gang[0], ["n10", "n11"])
    world.put(pod("f", on="n10"))
    world.tick(5.0)
    assert world.held == {}
    world.tick(30.0)
    world.tick(5.0)
    assert world.held == {"uid-g0": "n00"}


def test_pods_of_a_group_that_succeeded_count_towards_its_total():
    done = pod("g0", on="n00", phase="Succeeded", annotations=group("g", 3, RACK))
    rest = [pod(f"g{i}", annotations=group("g", 3, RACK)) for i in (1, 2)]
    world = World(four_racks(), [done, *rest])
    assert set(world.held) == {"uid-g1", "uid-g2"}
    one_more = pod("g9", annotations=group("g", 3, RACK), created="2026-01-02T00:00:00Z")
    world.put(one_more)
    world.tick()
    assert "one more than" in world.filter(one_more).sentence


def test_a_terminating_pod_is_no_member_and_still_takes_its_capacity():
    world = World(four_racks(), [pod("f", on="n00", is_terminating=True)])
    leaving = pod("g0", annotations=group("g", 2, RACK), is_terminating=True)
    world.put(leaving, pod("g1", annotations=group("g", 2, RACK)))
    world.tick()
    assert world.held == {}
    whole_rack = members("h", 4)
    world.put(*whole_rack)
    assert "n00" not in world.held.values()


def test_a_finished_pod_takes_nothing():
    running = pod("f", on="n00", phase="Running")
    world = World([node("b0/r0/n00")], [running])
    world.put(*members("g", 1))
    assert world.held == {}
    world.put(msgspec.structs.replace(running, phase="Succeeded"))
    world.tick()
    assert world.held == {"uid-g0": "n00"}


def test_capacity_held_on_a_node_is_counted_when_the_node_joins_a_topology():
    bare = node("n00")
    world = World([bare])
    world.put(*members("g", 1, required=None))
    labelled = msgspec.structs.replace(node("b0/r0/n00"))
    world.put(labelled)
    world.put(*members("h", 1))
    assert set(world.held) == {"uid-g0"}


def test_a_node_that_could_not_be_read_takes_no_pods():
    broken = msgspec.structs.replace(node("b0/r0/n00"), problem="node n00: no such amount")
    world = World([broken])
    world.put(*members("g", 1))
    assert world.held == {}


def test_the_numbers_in_a_verdict_stand_for_a_while():
    world = World(four_racks())
    gang = members("g", 5)
    world.put(*gang)
    before = world.filter(gang[0])
    world.put(*(pod(f"f{r}", on=f"n{r}0") for r in range(4)))
    filler = pod("x", on="n01")
    world.put(filler)
    world.delete(filler)
    world.tick(1.0)
    assert world.filter(gang[0]) == before
    world.put(filler)
    world.delete(filler)
    world.tick(60.0)
    assert "3 of 5 pods fit" in world.filter(gang[0]).sentence


def test_a_bind_asked_again_after_it_happened_is_answered_by_the_api_server():
    world = World(four_racks())
    gang = members("g", 1)
    world.put(*gang)
    on = world.schedule(*gang)["g0"]
    (effect,) = world.bind(world.pods["uid-g0"], on)
    assert isinstance(effect, Bind)
    assert effect.node == on


def test_a_bind_to_another_node_than_planned_is_refused():
    world = World(four_racks())
    gang = members("g", 1)
    world.put(*gang)
    world.filter(gang[0])
    (effect,) = world.bind(gang[0], "n33")
    assert isinstance(effect, Refuse)


def test_gangs_that_ask_the_same_in_vain_share_one_search():
    world = World(four_racks())
    world.put(*members("a", 5), *members("b", 5))
    planner, gangs = world.engine.planner, world.engine.ledger.gangs
    verdicts = [planner.plan(gang) for gang in gangs.values()]
    assert verdicts[0] is verdicts[1]


def test_the_binding_says_which_gang_and_domain_the_pod_started_in():
    world = World(four_racks())
    gang = members("g", 1)
    world.put(*gang)
    (effect,) = world.bind(gang[0], world.filter(gang[0]).node)
    assert dict(effect.annotations) == {
        "corral.dev/gang": "default/g",
        "corral.dev/domain": f"{RACK}=b0/r0",
    }


def test_asking_again_and_again_without_getting_anywhere_does_not_hold_for_ever():
    world = World(four_racks(), hold_seconds=60.0)
    gang = members("g", 2)
    world.put(*gang)
    held = []
    for _ in range(8):
        world.filter(gang[0])
        world.tick(10.0)
        held.append(len(world.held))
    assert 0 in held


def test_an_ordinary_pod_that_asks_again_gives_its_earlier_node_back():
    world = World([node("b0/r0/n00")])
    plain = pod("plain")
    world.filter(plain)
    world.bind(plain, "n00")
    world.put(*members("g", 1))
    assert set(world.held) == {"uid-plain"}
    world.filter(plain)
    world.tick()
    assert set(world.held) == {"uid-g0"}


def test_nodes_without_level_labels_are_counted_in_the_verdict():
    world = World([*four_racks(), node("bare1"), node("bare2")])
    gang = members("g", 5)
    world.put(*gang)
    assert "without a label of every level 2" in world.filter(gang[0]).sentence


def test_pods_bound_by_name_with_absurd_requests_break_nothing():
    world = World([node("b0/r0/n00")])
    world.put(*(pod(f"x{i}", on="n00", cpu=2**61, gpus=2**61) for i in range(20)))
    world.put(*members("g", 1))
    assert world.held == {}


def test_levels_that_do_not_nest_are_told_by_path_and_not_merged():
    world = World([node("b0/r0/n00"), node("b1/r0/n10")])
    (warning,) = world.engine.warnings()
    assert f"{RACK}=r0" in warning
    assert "b0/r0, b1/r0" in warning
    world.put(*members("g", 2))
    assert world.held == {}


def test_a_topology_that_cannot_be_used_is_told_and_the_others_stay():
    world = World(
        four_racks(),
        topologies=[
            TopologyRecord("bad", ("a", "a"), "1"),
            TopologyRecord("good", (BLOCK, RACK), "1"),
        ],
    )
    assert "Topology bad" in world.engine.warnings()[0]
    world.put(*members("g", 4))
    assert len(world.held) == 4


def test_members_told_to_wait_for_others_are_woken_to_hear_that_there_is_no_room():
    world = World(four_racks())
    gang = members("big", 5)
    world.put(*gang[:4])
    assert "waits until all 5" in world.filter(gang[0]).sentence
    world.put(gang[4])
    world.tick()
    assert world.woken == ["big0"]
    assert "cannot be placed" in world.filter(gang[0]).sentence
    world.tick()
    assert world.woken == ["big0"]


def test_members_told_to_wait_for_others_are_woken_to_hear_that_the_gang_cannot_be_meant():
    world = World(four_racks())
    first = pod("g0", annotations=group("g", 2, RACK))
    world.put(first)
    world.filter(first)
    world.put(pod("g1", annotations=group("g", 3, RACK)))
    world.tick()
    assert world.woken == ["g0"]
    assert "members disagree" in world.filter(first).sentence


def test_other_numbers_in_a_verdict_wake_nobody():
    world = World(four_racks())
    gang = members("big", 5)
    world.put(*gang)
    world.filter(gang[0])
    world.put(pod("plain", on="n00"))
    world.put(*(pod(f"f{rack}", on=f"n{rack}0") for rack in range(4)))
    world.tick(61.0)
    world.tick()
    assert world.woken == []


def test_members_of_many_gangs_are_set_right_a_few_at_a_time():
    world = World(four_racks())
    gangs = [members(f"big{number}", 5) for number in range(10)]
    for gang in gangs:
        world.put(gang[0])
        world.filter(gang[0])
    for gang in gangs:
        world.put(*gang[1:])
    woken = []
    for _ in range(20):
        world.tick()
        woken.append(len(world.woken))
    assert woken[-1] == 10
    assert max(later - before for before, later in pairwise([0, *woken])) <= 4


def test_no_pod_is_one_too_many_of_a_gang_whose_members_disagree_on_its_size():
    world = World(four_racks())
    gang = [pod(f"g{i}", annotations=group("g", 2 if i == 0 else 3, RACK)) for i in range(3)]
    world.put(*gang)
    assert len({world.filter(member).sentence for member in gang}) == 1


def test_a_mistaken_pod_the_watch_has_not_shown_yet_hears_its_mistake_at_once():
    world = World(four_racks())
    answer = world.filter(pod("g0", annotations=group("g", "three", RACK)))
    assert "got 'three'" in answer.sentence


def test_an_ordinary_pod_that_found_everything_held_is_woken_when_the_hold_ends():
    world = World([node("b0/r0/n00")])
    (member,) = members("g", 1)
    world.put(member)
    plain = pod("plain")
    world.put(plain)
    assert world.filter(plain) == Passed(frozenset({"n00"}))
    world.tick()
    assert world.woken == []
    world.delete(member)
    world.tick()
    assert world.woken == ["plain"]
    world.tick()
    assert world.woken == ["plain"]


def test_an_ordinary_pod_is_not_woken_for_a_hold_that_ended_where_it_does_not_fit():
    world = World([node("b0/r0/n00"), node("b0/r1/n10", gpus=2)])
    large, small = members("large", 1), members("small", 1, gpus=2)
    world.put(*large, *small)
    plain = pod("plain", gpus=4)
    world.filter(plain, ["n00"])
    world.delete(*small)
    world.tick()
    assert world.woken == []


def test_an_ordinary_pod_that_is_gone_is_not_woken():
    world = World([node("b0/r0/n00")])
    (member,) = members("g", 1)
    plain = pod("plain")
    world.put(member, plain)
    world.filter(plain)
    world.delete(plain)
    world.delete(member)
    world.tick()
    assert world.woken == []
