"""Safety under any order of events: gangs whole or not at all, books always right."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from app.state.effects import BindFailed
from app.state.filter_result import Pinned
from app.state.gang.gang import Phase
from tests.app.state.world import World
from tests.records import PREFERRED, RACK, group, node, pod

NODES = [node(f"b{r // 2}/r{r}/n{r}{i}", gpus=4) for r in range(3) for i in range(2)]
GANGS = {
    name: [
        pod(f"{name}{i}", gpus=gpus, annotations=group(name, size, **{}) | {mode: RACK})
        for i in range(size)
    ]
    for name, size, gpus, mode in (
        ("a", 2, 4, "kueue.x-k8s.io/podset-required-topology"),
        ("b", 3, 2, "kueue.x-k8s.io/podset-required-topology"),
        ("c", 4, 3, PREFERRED),
    )
}
PODS = [member for gang in GANGS.values() for member in gang] + [
    pod("x", gpus=2),
    pod("y", gpus=4, scheduler="other"),
]

step = st.one_of(
    st.tuples(st.just("create"), st.integers(0, len(PODS) - 1)),
    st.tuples(st.just("delete"), st.integers(0, len(PODS) - 1)),
    st.tuples(st.just("filter"), st.integers(0, len(PODS) - 1)),
    st.tuples(st.just("bind"), st.integers(0, len(PODS) - 1)),
    st.tuples(st.just("fail"), st.integers(0, len(PODS) - 1)),
    st.tuples(st.just("foreign"), st.integers(0, len(NODES) - 1)),
    st.tuples(st.just("cordon"), st.integers(0, len(NODES) - 1)),
    st.tuples(st.just("uncordon"), st.integers(0, len(NODES) - 1)),
    st.tuples(st.just("tick"), st.sampled_from([0, 1, 30, 100])),
)


def play(world: World, steps) -> None:
    """Run steps; those that make no sense at that moment do nothing."""
    for kind, index in steps:
        if kind == "tick":
            world.tick(float(index) or 0.1)
        elif kind in ("cordon", "uncordon"):
            world.put(msgspec.structs.replace(NODES[index], is_unschedulable=kind == "cordon"))
        elif kind == "foreign":
            foreign = next(p for p in PODS if p.scheduler == "other")
            if foreign.uid in world.pods and not world.pods[foreign.uid].node:
                world.put(msgspec.structs.replace(foreign, node=NODES[index].name))
        else:
            play_pod(world, kind, PODS[index])


def play_pod(world: World, kind: str, subject) -> None:
    known = world.pods.get(subject.uid)
    if kind == "create" and known is None:
        world.put(subject)
    elif kind == "delete" and known is not None:
        world.delete(known)
    elif known is None or known.node or known.scheduler == "other":
        return
    elif kind == "filter":
        world.filter(known)
    elif kind in ("bind", "fail"):
        answer = world.filter(known)
        if isinstance(answer, Pinned):
            effects = world.bind(known, answer.node)
            if kind == "bind":
                world.confirm(effects)
            for effect in effects if kind == "fail" else ():
                world._take(world.engine.bind_finished(effect.uid, BindFailed("503"), world.now))


def whole_or_none(world: World) -> None:
    """No gang that has not started may hold a part, and none may start in part."""
    for gang in world.engine.gangs.by_key.values():
        if gang.phase in (Phase.GATHERING, Phase.WAITING):
            assert not gang.plan.nodes
        if gang.phase is Phase.PLACED:
            assert len(gang.plan.nodes) == len(gang.membership.unbound)


@given(st.lists(step, max_size=60))
def test_any_history_keeps_gangs_whole_and_books_right(steps):
    world = World(NODES)
    for one in steps:
        play(world, [one])
        whole_or_none(world)


@given(st.lists(step, max_size=40))
def test_whatever_happened_a_gang_that_fits_is_placed_in_the_end(steps):
    world = World(NODES)
    play(world, steps)
    world.delete(*list(world.pods.values()))
    world.put(*NODES)
    world.put(*GANGS["c"])
    for _ in range(100):
        world.tick(1.0)
        world.schedule(*[p for p in GANGS["c"] if not world.pods[p.uid].node])
    assert all(world.pods[member.uid].node for member in GANGS["c"])
    world.tick()
    assert world.held == {}


@given(st.lists(step, max_size=40))
def test_the_same_history_gives_the_same_effects(steps):
    one, other = World(NODES), World(NODES)
    play(one, steps)
    play(other, steps)
    assert one.effects == other.effects


@given(st.lists(step, max_size=40))
def test_a_restart_at_any_moment_comes_to_the_same_books(steps):
    world = World(NODES)
    play(world, steps)
    again = World(
        [world.engine.books.nodes[n.name] for n in NODES],
        [p for p in world.pods.values()],
    )
    assert again.engine.books.bound == world.engine.books.bound
