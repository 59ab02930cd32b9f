"""Whole lives of gangs, as scripts, and what a restart in the middle of one changes: nothing.

After every step of a script the lists are read again, which must change nothing, and a second
Corral starts from the same objects, which must come to the same books.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec
import pytest

from app.kube.core.objects import ObjectRecord
from app.kube.watch.events import Listed
from app.state.effects import Bind, Delete, Evict, Ungate
from app.state.engine import Engine
from app.state.filter_result import Pinned
from app.state.gang.gang import Gang, Phase
from tests.app.state.stories import finish
from tests.app.state.world import World, four_racks, racks
from tests.records import GPU, GROUP, RACK, REQUIRED, group, job, job_owner, pod

PREFIX = "kueue.x-k8s.io/"
GATED = ("corral.dev/gang",)
FAST = {PREFIX + "pod-group-fast-admission": "true"}
SERVING = {PREFIX + "pod-group-serving": "true"}

Step = Callable[[World], object]


def create(*records) -> Step:
    return lambda world: world.put(*records)


def wait(seconds: float) -> Step:
    return lambda world: world.tick(seconds)


def delete(*names: str) -> Step:
    return lambda world: world.delete(*[world.pods[f"uid-{name}"] for name in names])


def becomes(name: str, **fields: object) -> Step:
    return lambda world: world.put(msgspec.structs.replace(world.pods[f"uid-{name}"], **fields))


def node_becomes(name: str, **fields: object) -> Step:
    def step(world: World) -> None:
        world.put(msgspec.structs.replace(world.engine.books.nodes[name], **fields))

    return step


def ungate(name: str) -> Step:
    def step(world: World) -> None:
        last = [effect for effect in world.told(Ungate) if effect.name == name][-1:]
        assert last, f"{name} was not ungated"
        world.patch(last)

    return step


def ask(*names: str) -> Step:
    """kube-scheduler asks for these and comes to /bind with them."""

    def step(world: World) -> None:
        for name in names:
            record = world.pods[f"uid-{name}"]
            answer = world.filter(record)
            assert isinstance(answer, Pinned), answer
            world.bind(record, answer.node)

    return step


def confirm(name: str) -> Step:
    def step(world: World) -> None:
        last = [effect for effect in world.told(Bind) if effect.name == name][-1:]
        assert last, f"{name} was not bound"
        world.confirm(last)

    return step


def relist_changes_nothing(world: World) -> None:
    """Every list is read again, as after a 410."""
    engine = world.engine
    before = summary(world), dict(engine.books.held), list(engine.gangs.by_key)
    for listed in (
        Listed("Node", tuple(engine.books.nodes.values())),
        Listed("Pod", tuple(world.pods.values())),
        *(Listed(kind, _of_kind(engine, kind)) for kind in ("Job", "Topology")),
    ):
        assert world.apply(listed) == []
    assert world.tick(0.0) == []
    assert (summary(world), dict(engine.books.held), list(engine.gangs.by_key)) == before


def _of_kind(engine: Engine, kind: str) -> tuple[ObjectRecord, ...]:
    return tuple(each for each in engine.objects.by_uid.values() if each.kind == kind)


def same_after_restart(world: World, settings: dict[str, object]) -> None:
    """A second Corral comes to the same books from the same objects, and to the same again."""
    nodes, jobs = world.engine.books.nodes.values(), world.engine.objects.by_uid.values()
    for _ in range(2):
        again = World(nodes, world.pods.values(), jobs, **settings)
        again.tick()
        assert again.engine.books.bound == world.engine.books.bound
        assert summary(again) == summary(world)
        for uid, record in world.pods.items():
            if "corral.dev/narrowed" in record.annotations and uid in again.held:
                assert again.held[uid][:2] == world.held[uid][:2]


def summary(world: World) -> dict[str, object]:
    """What must not depend on what was seen before: phases, members planned, places to come.

    Of a place that is owed for a lost pod only the memory of Corral knows: a restart gives it up.
    Bindings under way are not seen by a second Corral either: to it the gang is still placed.
    """
    return {str(key): _summary(gang) for key, gang in world.engine.gangs.by_key.items()}


def _summary(gang: Gang) -> tuple[object, ...]:
    planned = sorted(uid for uid in gang.plan.nodes if uid in gang.members)
    declared = {leaf.name for leaf in gang.membership.to_come}
    to_come = sorted(
        (each.member.leaf, each.is_spare, each.is_spare or uid in gang.plan.nodes)
        for uid, each in gang.placeholders.items()
        if not each.instead_of or each.member.leaf in declared or gang.membership.spec.reserves_all
    )
    is_placed = gang.phase is Phase.PLACED or (
        gang.phase is Phase.BINDING and not gang.membership.bound
    )
    return ("placed" if is_placed else gang.phase.value, planned, to_come)


def each_of(step: Callable[[str], Step], *names: str) -> list[Step]:
    return [step(name) for name in names]


SAID = group("g", 3, RACK)
GANG = [pod(f"g{i}", annotations=SAID, gates=GATED) for i in range(3)]
ALL = ("g0", "g1", "g2")
NEW = pod("g9", annotations=SAID, gates=GATED)
START = [
    *(create(each) for each in GANG),
    *each_of(ungate, *ALL),
    *each_of(ask, *ALL),
    *each_of(confirm, *ALL),
]


def ended(*names):
    return [becomes(name, phase="Succeeded") for name in names]


def first_node(world: World) -> str:
    return world.pods["uid-g1"].node


def its_node(**fields: object) -> Step:
    """The node of g1 changes."""
    return lambda world: node_becomes(first_node(world), **fields)(world)


def no_node(world: World) -> None:
    world.delete(world.engine.books.nodes[first_node(world)])


REPLACED = [create(NEW), ungate("g9"), ask("g9"), confirm("g9")]

SETS = json.dumps(
    [
        {"name": "driver", "count": 1},
        {
            "name": "workers",
            "count": 2,
            "template": {
                "spec": {"containers": [{"resources": {"requests": {"cpu": "1", GPU: "8"}}}]}
            },
        },
    ]
)
DRIVER = pod(
    "d0",
    gpus=0,
    gates=GATED,
    annotations={GROUP: "g", REQUIRED: RACK, PREFIX + "pod-group-sets": SETS},
)
WORKERS = [
    pod(
        f"w{i}",
        gates=GATED,
        labels={GROUP: "g", PREFIX + "pod-group-role": "workers"},
        annotations={REQUIRED: RACK},
    )
    for i in range(3)
]


def joins(record) -> list[Step]:
    return [create(record), ungate(record.name), ask(record.name), confirm(record.name)]


def job_pods(pods):
    said = {REQUIRED: RACK}
    return [pod(f"g{i}", owner=job_owner("g"), annotations=said, gates=GATED) for i in range(pods)]


LIVES = {
    "a_group_starts_and_ends": [*START, *ended(*ALL), delete(*ALL)],
    "without_gates": [
        *(create(msgspec.structs.replace(each, gates=())) for each in GANG),
        ask("g2"),
        ask("g0"),
        ask("g1"),
        *each_of(confirm, "g1", "g2", "g0"),
    ],
    "the_barrier_gives_up_once": [
        *(create(msgspec.structs.replace(each, gates=())) for each in GANG),
        ask("g0", "g1"),
        wait(21.0),
        ask("g0", "g1", "g2"),
        *each_of(confirm, *ALL),
    ],
    "a_member_is_deleted_before_the_start": [
        *(create(each) for each in GANG),
        ungate("g0"),
        delete("g1"),
        create(NEW),
        ungate("g9"),
        ungate("g2"),
        ask("g0", "g2", "g9"),
        *each_of(confirm, "g9", "g2", "g0"),
    ],
    "a_member_fails_and_is_replaced": [
        *START,
        becomes("g1", phase="Failed"),
        *REPLACED,
        delete("g1"),
        *ended("g0", "g2", "g9"),
    ],
    "a_member_is_deleted_and_nobody_comes_for_a_long_time": [
        *START,
        delete("g1"),
        wait(200.0),
        *REPLACED,
    ],
    "a_node_fails": [
        *START,
        its_node(is_ready=False),
        becomes("g1", is_terminating=True),
        *REPLACED,
        its_node(is_ready=True),
        delete("g1"),
    ],
    "a_node_is_deleted": [
        *START,
        no_node,
        becomes("g1", is_terminating=True),
        delete("g1"),
        *REPLACED,
    ],
    "a_node_is_drained": [
        *START,
        its_node(is_unschedulable=True),
        becomes("g1", is_terminating=True),
        its_node(is_unschedulable=False),
        delete("g1"),
        *REPLACED,
    ],
    "one_pod_too_many": [
        *START,
        create(NEW),
        becomes("g0", phase="Failed"),
        ungate("g9"),
        ask("g9"),
        confirm("g9"),
    ],
    "a_driver_and_its_workers": [
        *joins(DRIVER),
        *joins(WORKERS[0]),
        *joins(WORKERS[1]),
        becomes("w0", phase="Failed"),
        *joins(WORKERS[2]),
        *ended("w1", "w2", "d0"),
    ],
    "a_driver_fails_before_its_last_worker_comes": [
        *joins(DRIVER),
        *joins(WORKERS[0]),
        becomes("d0", phase="Failed"),
        wait(60.0),
        *joins(msgspec.structs.replace(DRIVER, name="d1", uid="uid-d1")),
        *joins(WORKERS[1]),
    ],
    "fast_admission": [
        step
        for index in range(3)
        for step in joins(pod(f"f{index}", gates=GATED, annotations={**SAID, **FAST}))
    ],
    "serving": [
        *(create(pod(name, gates=GATED, annotations={**SAID, **SERVING})) for name in ALL),
        *each_of(ungate, *ALL),
        ask(*ALL),
        *each_of(confirm, *ALL),
        becomes("g1", phase="Succeeded"),
        *joins(pod("g9", gates=GATED, annotations={**SAID, **SERVING})),
    ],
    "a_spare_is_used": [
        *(
            create(pod(name, gates=GATED, annotations={**SAID, "corral.dev/spare-pods": "1"}))
            for name in ALL
        ),
        *each_of(ungate, *ALL),
        ask(*ALL),
        *each_of(confirm, *ALL),
        its_node(is_ready=False),
        becomes("g1", phase="Failed"),
        *joins(pod("g9", gates=GATED, annotations={**SAID, "corral.dev/spare-pods": "1"})),
    ],
    "a_job": [
        create(job("g", 3, completions=3)),
        *(create(each) for each in job_pods(3)),
        *each_of(ungate, *ALL),
        ask(*ALL),
        *each_of(confirm, *ALL),
        lambda world: world.put(
            msgspec.structs.replace(world.pods["uid-g0"], phase="Succeeded"),
            job("g", 3, completions=3, succeeded=1),
        ),
        lambda world: world.delete(job("g", 3)),
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("script", LIVES.values(), ids=LIVES)
def test_a_relist_at_any_step_changes_nothing_and_a_restart_comes_to_the_same_books(script):
    settings: dict[str, object] = {"gang_bind_seconds": 20.0}
    world = World(four_racks(), **settings)
    for step in script:
        step(world)
        world.tick()
        while any(
            gang.back_off.not_before > world.now for gang in world.engine.gangs.by_key.values()
        ):
            world.tick(1.0)  # a plan that was lost is made again after a while
        relist_changes_nothing(world)
        same_after_restart(world, settings)
    assert not any(isinstance(effect, Evict | Delete) for effect in world.effects)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a_group_starts_and_ends", "a_member_fails_and_is_replaced"])
def test_a_gang_ends_whole_in_one_rack_whenever_corral_is_started_again(name):
    script = LIVES[name]
    for died_at in range(3, len(script) - 3):
        world = World(four_racks())
        for step in script[:died_at]:
            step(world)
            world.tick()
        again = World(world.engine.books.nodes.values(), world.pods.values())
        again.effects = [*world.told(Ungate), *again.effects]
        finish(again)
        live = {p.name: p.node for p in again.pods.values() if not p.is_finished}
        assert all(live.values())
        assert len(racks(live)) == 1
