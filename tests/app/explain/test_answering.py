"""What is said of a gang that waits is true of the cluster, and its relaxations help."""

from __future__ import annotations

import math

import msgspec
import pytest

from app.dialects.spec import GangKey
from app.explain.advice import ADVICE, NEVER_FITS, NO_CHANGE_KNOWN
from app.explain.answering import answer
from app.explain.asking import asking
from app.explain.view import Explanation
from app.kube.core.objects import Owner, PodRecord, Taint
from app.state.gang.parts import MOST_ATTEMPTS
from app.state.gang.reasons import Reason
from tests.app.state.world import World, four_racks
from tests.records import BLOCK, GPU, RACK, group, node, pod

change = msgspec.structs.replace


FIRST = (False, -math.inf, 0.0, "", "")  # the rank of a gang before all others


def gang_of(name: str, pods: int, level: str = RACK, **more: object) -> list[PodRecord]:
    annotations = group(name, pods, level)
    return [pod(f"{name}{at}", annotations=annotations, **more) for at in range(pods)]


def explained(world: World, name: str = "g") -> Explanation:
    world.tick()
    return answer(asking(world.engine, world.gang(name), world.now))


def occupied(world: World, *nodes: str, **more: object) -> None:
    """A pod with half of the GPUs runs on each of these."""
    world.put(*[pod(f"on-{each}", gpus=4, on=each, phase="Running", **more) for each in nodes])


ONE_EACH = ("n00", "n10", "n20", "n21", "n30", "n31")


def short_by_one() -> World:
    """Racks of four nodes: the best two take three pods, the others two."""
    world = World(four_racks())
    occupied(world, *ONE_EACH)
    world.put(*gang_of("g", 4))
    return world


def test_the_best_domain_is_named_with_what_is_short_there() -> None:
    best = explained(short_by_one()).best
    assert best is not None
    assert (best.domain, best.pods, best.needed) == (f"{RACK}=b0/r0", 3, 4)
    (short,) = best.short
    assert (short.resource, short.free, short.requested) == (GPU, 28.0, 32.0)


def test_a_resource_that_no_node_has_is_short_and_no_pod_fits_anywhere() -> None:
    world = World(four_racks())
    misspelt = (*pod("p", gpus=8).request, ("nvidia.com/gpus", 8))
    world.put(*[change(each, request=misspelt) for each in gang_of("g", 2)])
    said = explained(world)
    assert "0 of 2 pods fit" in said.gang.message
    assert said.best is not None
    assert (said.best.pods, said.best.more_nodes) == (0, None)
    (short,) = said.best.short
    assert (short.resource, short.free, short.requested) == ("nvidia.com/gpus", 0, 16)


def test_who_has_what_is_short_there_is_named_and_nobody_elsewhere() -> None:
    (blocker,) = explained(short_by_one()).blockers
    assert (blocker.who, blocker.pods, blocker.is_reserved) == ("pod default/on-n00", 1, False)


def test_a_gang_that_capacity_is_held_for_is_named() -> None:
    world = World([node("b0/r0/a"), node("b0/r0/b")])
    world.put(*gang_of("first", 1))
    world.tick()
    world.put(*gang_of("g", 2))
    said = explained(world)
    assert said.best is not None
    assert (said.best.domain, said.best.pods) == (f"{RACK}=b0/r0", 1)
    assert [(each.who, each.is_reserved) for each in said.blockers] == [
        ("gang default/first", True)
    ]


def test_nodes_that_take_none_are_counted_by_reason_with_two_by_name() -> None:
    tainted = Taint("dedicated", "x", "NoSchedule")
    nodes = [
        node("b0/r0/a0", gpus=4), node("b0/r0/a1", gpus=4), node("b0/r0/a2", gpus=4),
        node("b0/r0/t0", taints=(tainted,)), node("b0/r0/c0", is_cordoned=True),
        node("b0/r0/r0", is_ready=False), node("u0"), node("b0/r0/ok"),
    ]  # fmt: skip
    world = World(nodes)
    world.put(*gang_of("g", 2))
    said = {each.reason: (each.nodes, each.examples) for each in explained(world).excluded}
    assert said.pop(f"insufficient {GPU}") == (3, ("a0", "a1"))
    assert said.pop("cordoned") == (1, ("c0",))
    assert said.pop("not ready") == (1, ("r0",))
    assert said.pop("without a label of every level") == (1, ("u0",))
    ((reason, (number, examples)),) = said.items()
    assert "dedicated" in reason
    assert (number, examples) == (1, ("t0",))


def test_a_cluster_without_nodes_is_said_to_have_none_and_only_nodes_are_advised() -> None:
    world = World([])
    world.put(*gang_of("g", 4))
    said = explained(world)
    assert said.gang.message.endswith(f"0 of 4 pods fit in one {RACK}; the cluster has no nodes")
    assert (said.advice, said.relaxations) == ("add nodes", ())
    world.put(*[node(f"b0/r0/n{at}") for at in range(3)])
    world.tick(1.0)
    assert "has no nodes" not in explained(world).gang.message
    world.put(node("b0/r0/n3"))
    world.tick()
    assert len(world.gang().plan.nodes) == 4


def test_nodes_without_labels_are_to_be_labelled() -> None:
    world = World([node("u0"), node("u1")])
    world.put(*gang_of("g", 2))
    said = explained(world)
    assert "without a label of every level 2" in said.gang.message
    assert "labels" in said.advice
    assert said.relaxations == ()


def test_nothing_is_said_to_be_freed_for_a_gang_that_would_not_fit_if_everything_were() -> None:
    world = World(four_racks())
    world.put(*gang_of("g", 5))
    said = explained(world)
    assert {"Never", "WiderLevel"} <= set(kinds(said))
    assert "free" not in said.advice
    assert "one of the changes" in said.advice


def kinds(said: Explanation) -> list[str]:
    return [each.kind for each in said.relaxations]


def test_the_relaxations_name_pod_sets_as_users_do() -> None:
    said = explained(short_by_one())
    assert kinds(said) == ["WiderLevel", "FewerPods"]
    wider, fewer = said.relaxations
    assert (wider.level, wider.pod_sets) == (BLOCK, ("g",))
    assert (fewer.pods, fewer.pod_sets) == (3, ("g",))
    assert "with g in one " in wider.text


@pytest.mark.parametrize("at", [0, 1])
def test_each_relaxation_once_applied_makes_the_gang_fit(at: int) -> None:
    relaxed = explained(short_by_one()).relaxations[at]
    world = World(four_racks())
    occupied(world, *ONE_EACH)
    level = relaxed.level or RACK
    world.put(*gang_of("g", relaxed.pods or 4, level))
    assert len(world.gang().plan.nodes) == (relaxed.pods or 4)


def test_nodes_that_should_come_back_are_named() -> None:
    world = World([node("b0/r0/a"), node("b0/r0/b", is_cordoned=True)])
    world.put(*gang_of("g", 2))
    said = explained(world)
    (back,) = [each for each in said.relaxations if each.kind == "NodesBack"]
    assert back.nodes == ("b",)
    assert "cordoned" in back.text
    world.put(node("b0/r0/b"))
    world.tick()
    assert len(world.gang().plan.nodes) == 2


def test_pods_of_lower_priority_that_would_have_to_go_are_named() -> None:
    owner = Owner("apps/v1", "ReplicaSet", "web", "uid-web")
    world = World([node("b0/r0/a"), node("b0/r0/b")])
    occupied(world, "a", priority=-10, owner=owner)
    world.put(*gang_of("g", 2))
    (gone,) = [each for each in explained(world).relaxations if each.kind == "PodsGone"]
    assert gone.pods == 1
    assert "on-a (priority -10)" in gone.text


@pytest.mark.parametrize("is_kept", [True, False])
def test_nodes_that_are_not_to_be_had_for_a_while_are_no_reason_never_to_fit(
    is_kept: bool,
) -> None:
    """They are kept for a gang before it, as new ones are, or kube-scheduler has refused them."""
    world, pods = World(four_racks()), gang_of("g", 4)
    shaped, every = (pods[0].request, pods[0].shape), frozenset(world.engine.books.nodes)
    if is_kept:
        before = GangKey("default", "before", "group")
        world.engine.planner.new_nodes = {before: (every, FIRST)}
    else:
        for name in every:
            world.engine.refusals.add("default", shaped, name, world.now, 60.0)
    world.put(*pods)
    said = explained(world)
    assert (said.fits_now, kinds(said), said.advice) == (False, [], NO_CHANGE_KNOWN)
    assert [each.nodes for each in said.excluded] == [16]


def test_what_is_kept_from_a_gang_is_not_why_it_never_fits() -> None:
    world, before = World(four_racks()), GangKey("default", "before", "group")
    world.engine.planner.new_nodes = {before: (frozenset({"n00"}), FIRST)}
    world.put(*gang_of("g", 5))
    assert "Never" in kinds(explained(world))


def test_what_never_fits_says_so_and_asks_nobody_to_go() -> None:
    world = World(four_racks())
    occupied(world, "n00", priority=-10, owner=Owner("apps/v1", "ReplicaSet", "web", "uid-web"))
    world.put(*gang_of("g", 5))
    said = explained(world)
    assert "Never" in kinds(said)
    assert "PodsGone" not in kinds(said)


def test_numbers_that_are_others_by_now_are_told_beside_the_message() -> None:
    world = short_by_one()
    said = explained(world)
    assert "3 of 4 pods fit" in said.gang.message
    assert said.finds_now == ""  # the message says it
    occupied(world, "n01", "n11", "n22", "n32")
    said = explained(world)
    assert said.best is not None
    assert "3 of 4 pods fit" in said.gang.message  # as its pods are told
    assert said.finds_now.startswith(f"{said.best.pods} of 4 pods fit in one {RACK}")
    assert said.best.pods == 2


def test_changes_are_advised_only_where_some_were_found() -> None:
    assert "changes that would let it fit" in explained(short_by_one()).advice
    world = World([node("b0/r0/a", gpus=4)])
    world.put(*gang_of("g", 1))
    said = explained(world)
    assert kinds(said) == ["Never"]
    assert said.advice == NEVER_FITS
    world = World([node("b0/r0/a")])
    occupied(world, "a")
    world.put(*gang_of("g", 1))
    said = explained(world)
    assert kinds(said) == []
    assert said.advice == NO_CHANGE_KNOWN


def test_a_gang_that_fits_by_now_says_so() -> None:
    world = short_by_one()
    world.tick()
    # It is gone, and the engine has not looked again.
    world.engine.books.unbind("uid-on-n00")
    said = answer(asking(world.engine, world.gang(), world.now))
    assert said.fits_now
    assert said.relaxations == ()


def test_asking_and_answering_change_nothing() -> None:
    world = short_by_one()
    world.tick()

    def state() -> tuple[object, ...]:
        books = world.engine.books
        return repr(world.gang()), books.generation, dict(books.held), world.tick(0.0)

    before = state()
    explained_twice = [answer(asking(world.engine, world.gang(), world.now)) for _ in range(2)]
    assert explained_twice[0] == explained_twice[1]
    assert state() == before


def test_the_answer_is_of_the_moment_of_the_question() -> None:
    world = short_by_one()
    world.tick()
    asked = asking(world.engine, world.gang(), world.now)
    before = answer(asked)
    world.delete(*[each for each in world.pods.values() if each.name.startswith("on-")])
    world.put(node("b0/r0/n00", gpus=0))
    world.tick()
    assert answer(asked) == before


def test_a_gang_that_waits_for_pods_is_not_searched_for() -> None:
    world = World(four_racks())
    world.put(*gang_of("g", 4)[:3])
    said = explained(world)
    assert said.gang.reason is Reason.INCOMPLETE
    assert (said.best, said.relaxations, said.excluded) == (None, (), ())
    assert said.tries_again == ADVICE[Reason.INCOMPLETE].tries_again


def test_a_pause_after_a_lost_plan_is_told() -> None:
    world = World(four_racks())
    world.put(*gang_of("g", 3))
    world.put(pod("thief", on=world.gang().plan.nodes["uid-g0"], phase="Running"))
    said = answer(asking(world.engine, world.gang(), world.now))
    assert said.gang.reason is Reason.BACKING_OFF
    assert said.retry_seconds is not None
    assert said.retry_seconds > 0


def test_the_last_attempts_are_kept_and_those_that_ended_alike_are_one() -> None:
    world = short_by_one()
    (first,) = explained(world).attempts
    assert (first.reason, first.message) == (
        Reason.DOES_NOT_FIT, world.gang("g").reporting.sentence
    )  # fmt: skip
    occupied(world, "n01", "n02", "n11", "n12", "n22", "n32")
    toggled, freed = pod("t", gpus=4, on="n23"), pod("f", gpus=1, on="n33")
    for at in range(2 * MOST_ATTEMPTS):
        (world.delete if at % 2 else world.put)(toggled)  # one or two pods fit
        world.put(freed)
        world.delete(freed)  # or nothing would be searched anew
        world.tick(3600)  # long enough for its numbers to be looked at again
        said = explained(world)
        assert said.attempts[0].message == world.gang("g").reporting.sentence
        assert said.attempts[0].last_seconds_ago < said.attempts[1].last_seconds_ago
    assert len({each.message for each in said.attempts}) == 2
    assert len(said.attempts) == MOST_ATTEMPTS
    world.delete(*[each for each in world.pods.values() if each.name.startswith("on-")])
    world.tick()
    assert len(world.schedule(*gang_of("g", 4))) == 4
    assert explained(world).attempts == ()


def test_of_a_gang_that_runs_its_nodes_and_domains_are_named_eight_at_most() -> None:
    world = World([node(f"b0/r{at}/n{at:02}") for at in range(12)])
    pods = gang_of("g", 12, level=BLOCK)
    world.put(*pods)
    assert explained(world).runs_on is None
    assert len(world.schedule(*pods)) == 12
    found = explained(world).runs_on
    assert found is not None
    assert (found.nodes, found.domains) == (12, (f"{BLOCK}=b0",))
    assert found.examples == tuple(f"n{at:02}" for at in range(8))
    assert found.more_domains == 0


def test_of_a_gang_in_many_domains_eight_are_named_and_the_others_counted() -> None:
    world = World([node(f"b0/r{at}/n{at:02}") for at in range(11)])
    preferred = {"kueue.x-k8s.io/podset-preferred-topology": RACK}
    pods = [pod(f"g{at}", annotations=group("g", 11, **preferred)) for at in range(11)]
    world.put(*pods)
    assert len(world.schedule(*pods)) == 11
    found = explained(world).runs_on
    assert found is not None
    assert (len(found.domains), found.more_domains) == (8, 3)


def test_of_racks_of_one_name_in_two_blocks_a_gang_runs_on_two() -> None:
    world = World([node("b0/r0/n0"), node("b1/r0/n1")])
    preferred = {"kueue.x-k8s.io/podset-preferred-topology": RACK}
    pods = [pod(f"g{at}", annotations=group("g", 2, **preferred)) for at in range(2)]
    world.put(*pods)
    assert len(world.schedule(*pods)) == 2
    found = explained(world)
    assert found.runs_on is not None
    assert found.runs_on.domains == found.gang.domains == (f"{RACK}=b0/r0", f"{RACK}=b1/r0")


def test_every_reason_has_its_advice() -> None:
    assert set(ADVICE) == set(Reason)


# -- copied in steps -------------------------------------------------------------------------------


def crowded() -> World:
    """Gangs of lower priority run in two racks, a gang waits for one of them."""
    owner = Owner("apps/v1", "ReplicaSet", "web", "uid-web")
    world = World(four_racks())
    for at in range(4):
        lower = gang_of(f"low{at}-", 4, priority=-10, owner=owner)
        world.put(*lower)
        assert len(world.schedule(*lower)) == 4
    world.put(*gang_of("g", 4))
    world.tick()
    return world


def steps_of(world: World) -> int:
    return len([*world.engine.making_room.crowd()])


@pytest.mark.parametrize("at", range(8))
def test_pods_that_come_and_go_between_two_steps_are_victims_only_if_they_are_still_there(
    at: int, monkeypatch
) -> None:
    monkeypatch.setattr("app.state.preempt.making_room.GANGS_A_STEP", 1)
    world = crowded()
    owner = Owner("apps/v1", "ReplicaSet", "web", "uid-web")
    world.put(pod("alone", gpus=0, on="n00", phase="Running", priority=-10, owner=owner))
    crowd = None
    for number, step in enumerate(world.engine.making_room.crowd()):
        crowd = step
        if number == min(at, steps_of(world) - 2):
            # One gang of lower priority ends, and another one comes and starts in its place.
            gone = [e for e in world.pods.values() if e.name.startswith(("low0-", "alone"))]
            world.put(*[change(each, phase="Succeeded") for each in gone])
            world.delete(*gone)
            later = gang_of("new", 4, priority=-5, owner=Owner("apps/v1", "ReplicaSet", "x", "u"))
            world.put(*[change(each, node=old.node, phase="Running")
                        for each, old in zip(later, gone, strict=False)])  # fmt: skip
            world.tick()
    said = answer(asking(world.engine, world.gang("g"), world.now, crowd=crowd))
    (gone_,) = [each for each in said.relaxations if each.kind == "PodsGone"]
    assert gone_.pods == 4
    assert "low0-" not in gone_.text
    assert "without 4 pods of lower priority: gang default/low" in gone_.text
    assert not any("low0-" in each.who for each in said.blockers)


def test_a_copy_made_in_steps_says_the_same_of_a_cluster_that_stays_as_it_is() -> None:
    world = crowded()
    *_, crowd = world.engine.making_room.crowd()
    at_once = answer(asking(world.engine, world.gang("g"), world.now))
    assert answer(asking(world.engine, world.gang("g"), world.now, crowd=crowd)) == at_once
