"""kueue.md 5: groups of plain pods, from their composition to their end; then whole lives.

The lives at the end are scripts. After every step of one the lists are read again, which must
change nothing, and a second Corral starts from the same objects, which must come to the same books.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec
import pytest

from app.kube.events import Listed
from app.state.answers import Pinned, Rejected
from app.state.effects import Bind, Delete, Evict, Report, Ungate
from app.state.gangs import Gang, Phase
from tests.app.state.world import World, four_racks, members, racks
from tests.records import GPU, GROUP, RACK, REQUIRED, TOTAL, group, job, job_owner, node, pod

PREFIX = "kueue.x-k8s.io/"
GATED = ("corral.dev/gang",)
ROLE_HASH = PREFIX + "role-hash"
FAST = {PREFIX + "pod-group-fast-admission": "true"}
SERVING = {PREFIX + "pod-group-serving": "true"}
UNRETRIABLE = {PREFIX + "retriable-in-group": "false"}


def started(pods=4, **annotations):
    settings = annotations.pop("settings", {})
    said = {**group("g", pods, RACK), **annotations}
    world = World(four_racks(), [pod(f"g{i}", annotations=said) for i in range(pods)], **settings)
    world.schedule(*world.pods.values())
    world.tick()
    assert all(each.node for each in world.pods.values())
    return world


def turn(world, name, phase):
    world.put(msgspec.structs.replace(world.pods[f"uid-{name}"], phase=phase))


def annotate(world, name, **annotations):
    record = world.pods[f"uid-{name}"]
    said = {**record.annotations, **annotations}
    world.put(msgspec.structs.replace(record, annotations=said))


def gang_of(world):
    (gang,) = world.engine.ledger.gangs.values()
    return gang


def reasons(world):
    return [report.reason for report in world.told(Report)]


# -- 5.4 role hash ---------------------------------------------------------------------------------


def test_5_4_an_existing_role_hash_tells_pod_sets_apart():
    pods = [
        pod(f"g{i}", annotations={**group("g", 4, RACK), ROLE_HASH: f"hash{i // 2}"})
        for i in range(4)
    ]
    world = World(four_racks(), pods)
    for pair in (("uid-g0", "uid-g1"), ("uid-g2", "uid-g3")):
        assert len({world.held[uid][:2] for uid in pair}) == 1
    assert {member.pod_set for member in gang_of(world).members.values()} == {"hash0", "hash1"}


# Kueue takes the first pod of a role for all of them; Corral counts what each pod asks for.
def test_5_4_pods_of_one_role_hash_that_ask_for_different_amounts_are_counted_each_for_itself():
    said = {**group("g", 2, RACK), ROLE_HASH: "same"}
    pods = [pod("g0", gpus=2, annotations=said), pod("g1", gpus=8, annotations=said)]
    world = World(four_racks(), pods)
    assert len(set(world.held.values())) == 2
    assert len(world.schedule(*pods)) == 2


def test_5_4_the_replacement_of_a_role_takes_the_place_of_its_own_role():
    small, large = ({**group("g", 3, RACK), ROLE_HASH: role} for role in ("small", "large"))
    pods = [pod("g0", gpus=4, annotations=small), pod("g1", gpus=4, annotations=small)]
    world = World(four_racks(), [*pods, pod("g2", gpus=8, annotations=large)])
    before = world.schedule(*world.pods.values())
    turn(world, "g0", "Failed")
    turn(world, "g2", "Failed")
    fresh = [pod("n2", gpus=8, annotations=large), pod("n0", gpus=4, annotations=small)]
    world.put(*fresh)
    world.tick()
    assert world.schedule(*fresh) == {"n2": before["g2"], "n0": before["g0"]}


# -- 5.5 construction ------------------------------------------------------------------------------


def test_5_5_fewer_runnable_pods_than_expected_wait_and_are_one_event():
    world = World(four_racks(), members("g", 4, gates=GATED)[:3], gather_seconds=10.0)
    for _ in range(100):
        world.tick(1.0)
    (report,) = world.told(Report)
    assert report.reason == "GangIncomplete"
    assert report.sentence.startswith("gang default/g has 3 of the 4 pods that annotation")
    assert world.ungated == []


def test_5_5_failed_pods_are_not_counted():
    dead = pod("g0", on="n00", phase="Failed", annotations=group("g", 3, RACK))
    world = World(four_racks(), [dead, *members("g", 3)[1:]])
    world.tick()
    assert world.held == {}
    world.put(pod("g9", annotations=group("g", 3, RACK)))
    world.tick()
    assert len(world.held) == 3


def test_5_5_unbound_pods_that_are_being_deleted_are_not_counted():
    leaving = pod("g0", annotations=group("g", 2, RACK), is_terminating=True)
    world = World(four_racks(), [leaving, members("g", 2)[1]])
    world.tick()
    assert world.held == {}


def test_5_5_of_too_many_pods_those_that_were_ungated_stay_whatever_their_age():
    said = group("g", 2, RACK)
    young = [
        pod(f"g{i}", annotations=said, gates=GATED, created="2026-01-02T00:00:00Z")
        for i in range(2)
    ]
    world = World(four_racks(), young)
    held = dict(world.held)
    world.patch(world.effects)
    world.put(pod("old", annotations=said, gates=GATED, created="2026-01-01T00:00:00Z"))
    world.tick()
    assert world.held == held
    assert "old" not in world.ungated
    assert reasons(world) == ["PodNotInGang"]


def test_5_5_of_too_many_gated_pods_the_youngest_are_out():
    said = group("g", 2, RACK)
    pods = [
        pod(f"g{i}", annotations=said, gates=GATED, created=f"2026-01-01T00:00:0{9 - i}Z")
        for i in range(4)
    ]
    world = World(four_racks(), pods)
    assert sorted(world.ungated) == ["g2", "g3"]


def test_5_5_fast_admission_is_for_pods_alike_and_another_shape_takes_one_of_the_places():
    said = {**group("g", 3, RACK), **FAST}
    world = World(four_racks(), [pod("g0", annotations=said)])
    world.schedule(world.pods["uid-g0"])
    assert len(world.held) == 2
    other, alike = pod("g1", gpus=4, annotations=said), pod("g2", annotations=said)
    for each in (other, alike):
        world.put(each)
        world.tick()
        assert len(world.schedule(each)) == 1
    world.tick()
    assert world.held == {}
    assert gang_of(world).phase is Phase.RUNNING


def test_5_5_fast_admission_never_has_more_pods_than_the_total_count():
    said = {**group("g", 2, RACK), **FAST}
    world = World(four_racks(), [pod(f"g{i}", annotations=said) for i in range(3)])
    assert sorted(world.held) == ["uid-g0", "uid-g1"]
    assert "is one more than the 2 pods" in world.filter(world.pods["uid-g2"]).sentence


def test_5_5_fast_admission_leaves_the_places_of_those_to_come_to_nobody():
    said = {**group("g", 4, RACK), **FAST}
    world = World([node(f"b0/r0/n{i}") for i in range(4)], [pod("g0", annotations=said)])
    world.schedule(world.pods["uid-g0"])
    world.put(*members("h", 1))
    world.tick(600.0)
    world.tick()
    assert "uid-h0" not in world.held
    assert len(world.held) == 3


# -- 5.6 running -----------------------------------------------------------------------------------


def test_5_6_a_group_has_finished_when_as_many_pods_have_succeeded_as_it_declares():
    world = started(3)
    for name in ("g0", "g1", "g2"):
        turn(world, name, "Succeeded")
        world.tick()
    assert gang_of(world).phase is Phase.DONE
    late = pod("late", annotations=group("g", 3, RACK))
    world.put(late)
    world.tick()
    assert "is one more than the 3 pods" in world.filter(late).sentence


def test_5_6_a_group_has_finished_when_nothing_runs_and_one_pod_may_not_be_retried():
    world = started(2, settings={"delete_excess_pods": True})
    annotate(world, "g1", **UNRETRIABLE)
    turn(world, "g1", "Failed")
    assert gang_of(world).phase is not Phase.DONE
    turn(world, "g0", "Failed")
    world.tick()
    assert gang_of(world).phase is Phase.DONE
    world.put(pod("late", annotations=group("g", 2, RACK)))
    for _ in range(5):
        world.tick()
    assert [effect.name for effect in world.told(Delete)] == ["late"]


def test_5_6_a_serving_group_never_finishes():
    world = started(2, **SERVING)
    for round_ in range(3):
        for each in list(world.pods.values()):
            world.put(msgspec.structs.replace(each, phase="Succeeded"))
        said = {**group("g", 2, RACK), **SERVING}
        fresh = [pod(f"r{round_}{i}", annotations=said) for i in range(2)]
        world.put(*fresh)
        world.tick()
        assert len(world.schedule(*fresh)) == 2
    assert "PodNotInGang" not in reasons(world)


def test_5_6_the_place_of_a_serving_pod_that_succeeded_is_not_reclaimed():
    world = started(4, **SERVING)
    lost = world.pods["uid-g2"].node
    turn(world, "g2", "Succeeded")
    assert lost in world.filter(pod("stranger")).without
    fresh = pod("g9", annotations={**group("g", 4, RACK), **SERVING})
    world.put(fresh)
    world.tick()
    assert world.schedule(fresh) == {"g9": lost}


def test_5_6_the_place_of_any_other_pod_that_succeeded_is():
    world = started(4)
    lost = world.pods["uid-g2"].node
    turn(world, "g2", "Succeeded")
    assert lost not in world.filter(pod("stranger")).without


def test_5_6_a_total_count_lowered_on_the_running_pods_costs_nobody_its_node():
    world = started(4)
    for name in ("g0", "g1", "g2", "g3"):
        annotate(world, name, **{TOTAL: "2"})
        world.tick()
    assert gang_of(world).phase is Phase.RUNNING
    assert world.told(Evict) == world.told(Delete) == []
    assert reasons(world) == []
    turn(world, "g3", "Failed")
    fresh = pod("g9", annotations=group("g", 2, RACK))
    world.put(fresh)
    world.tick()
    assert world.held == {}
    assert "is one more than the 2 pods" in world.filter(fresh).sentence


def test_5_6_a_total_count_changed_on_one_running_pod_is_no_contradiction_any_more():
    world = started(3)
    annotate(world, "g2", **{TOTAL: "7"})
    world.tick()
    assert gang_of(world).phase is Phase.RUNNING
    assert reasons(world) == []


def test_5_6_a_total_count_edited_before_the_start_counts_once_all_pods_say_so():
    world = World(four_racks(), members("g", 3)[:2])
    for name in ("g0", "g1"):
        assert world.held == {}
        annotate(world, name, **{TOTAL: "2"})
        world.tick()
    assert len(world.held) == 2


def test_5_6_a_replacement_waits_for_room_while_its_predecessor_is_ending():
    world = World([node(f"b0/r0/n{i}") for i in range(2)], members("g", 2))
    world.schedule(*world.pods.values())
    dying = msgspec.structs.replace(world.pods["uid-g1"], is_terminating=True)
    fresh = pod("g9", annotations=group("g", 2, RACK), gates=GATED)
    world.put(dying, fresh)
    world.tick()
    assert world.ungated == []
    world.delete(dying)
    world.tick()
    assert world.ungated == ["g9"]
    assert world.held == {"uid-g9": dying.node}


# -- whole lives -----------------------------------------------------------------------------------

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
        world.put(msgspec.structs.replace(world.engine.cluster.nodes[name], **fields))

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
    before = summary(world), dict(engine.cluster.held), list(engine.ledger.gangs)
    for listed in (
        Listed("Node", tuple(engine.cluster.nodes.values())),
        Listed("Pod", tuple(world.pods.values())),
        Listed("Job", tuple(engine.ledger.jobs.values())),
        Listed("Topology", tuple(engine.topologies.records.values())),
    ):
        assert world.apply(listed) == []
    assert world.tick(0.0) == []
    assert (summary(world), dict(engine.cluster.held), list(engine.ledger.gangs)) == before


def same_after_restart(world: World, settings: dict[str, object]) -> None:
    """A second Corral comes to the same books from the same objects, and to the same again."""
    nodes, jobs = world.engine.cluster.nodes.values(), world.engine.ledger.jobs.values()
    for _ in range(2):
        again = World(nodes, world.pods.values(), jobs, **settings)
        again.tick()
        assert again.engine.cluster.bound == world.engine.cluster.bound
        assert summary(again) == summary(world)
        for uid, record in world.pods.items():
            if "corral.dev/narrowed" in record.annotations and uid in again.held:
                assert again.held[uid][:2] == world.held[uid][:2]


def summary(world: World) -> dict[str, object]:
    """What must not depend on what was seen before: phases, members planned, places to come.

    Of a place that is owed for a lost pod only the memory of Corral knows: a restart gives it up.
    Bindings under way are not seen by a second Corral either: to it the gang is still placed.
    """
    return {str(key): _summary(gang) for key, gang in world.engine.ledger.gangs.items()}


def _summary(gang: Gang) -> tuple[object, ...]:
    planned = sorted(uid for uid in gang.plan if uid in gang.members)
    declared = {template.pod_set for template in gang.roll.life.templates}
    to_come = sorted(
        (each.member.pod_set, each.is_spare, each.is_spare or uid in gang.plan)
        for uid, each in gang.absent.items()
        if not each.instead_of or each.member.pod_set in declared or gang.roll.life.is_fast
    )
    is_placed = gang.phase is Phase.PLACED or (gang.phase is Phase.BINDING and not gang.roll.bound)
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
    world.delete(world.engine.cluster.nodes[first_node(world)])


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
        while any(gang.not_before > world.now for gang in world.engine.ledger.gangs.values()):
            world.tick(1.0)  # a plan that was lost is made again after a while
        relist_changes_nothing(world)
        same_after_restart(world, settings)
    assert not any(isinstance(effect, Evict | Delete) for effect in world.effects)


def finish(world: World) -> None:
    """What would happen from here on if everything went well."""
    for _ in range(40):
        world.tick(1.0)
        for record in list(world.pods.values()):
            if GATED[0] in record.gates:
                world.patch([e for e in world.told(Ungate) if e.uid == record.uid][-1:])
        world.schedule(*[p for p in world.pods.values() if not p.node and p.phase == "Pending"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a_group_starts_and_ends", "a_member_fails_and_is_replaced"])
def test_a_gang_ends_whole_in_one_rack_whenever_corral_is_started_again(name):
    script = LIVES[name]
    for died_at in range(3, len(script) - 3):
        world = World(four_racks())
        for step in script[:died_at]:
            step(world)
            world.tick()
        again = World(world.engine.cluster.nodes.values(), world.pods.values())
        again.effects = [*world.told(Ungate), *again.effects]
        finish(again)
        live = {p.name: p.node for p in again.pods.values() if not p.is_finished}
        assert all(live.values())
        assert len(racks(live)) == 1


@pytest.mark.parametrize("late", [1, 2, 3])
def test_binds_of_the_corral_before_that_arrive_after_the_restart_are_followed(late):
    """The new one plans elsewhere meanwhile: its rack was not the one the old one had chosen."""
    world = World(four_racks(), members("g", 4))
    nodes = {uid: world.filter(each).node for uid, each in world.pods.items()}
    (rack,) = racks(nodes)
    closed = [
        msgspec.structs.replace(each, is_unschedulable=each.name[:2] == rack)
        for each in world.engine.cluster.nodes.values()
    ]
    again = World(closed, world.pods.values())
    assert racks(again.held) != {rack}
    for each in closed:  # uncordoned again, and the old one's bindings come through
        again.put(msgspec.structs.replace(each, is_unschedulable=False))
    for uid in sorted(nodes)[:late]:
        again.put(msgspec.structs.replace(again.pods[uid], node=nodes[uid]))
    finish(again)
    assert {each.node for each in again.pods.values()} == set(nodes.values())
    assert again.held == {}


def test_the_spare_place_of_a_running_gang_is_held_again_after_a_restart():
    world = started(3, **{"corral.dev/spare-pods": "1"})
    again = World(four_racks(), world.pods.values())
    assert len(world.held) == 1
    assert list(again.held.values()) == list(world.held.values())


def test_a_spare_place_there_was_no_room_for_is_held_once_there_is():
    in_the_way = pod("other", on="n03")
    world = World([node(f"b0/r0/n0{i}") for i in range(4)], [in_the_way])
    said = {**group("g", 3, RACK), "corral.dev/spare-pods": "1"}
    pods = [pod(f"g{i}", annotations=said) for i in range(3)]
    world.put(*pods)
    world.schedule(*pods)
    world.tick()
    assert world.held == {}
    world.delete(in_the_way)
    world.tick()
    assert list(world.held.values()) == ["n03"]


def test_a_rejected_pod_is_told_the_same_after_a_restart():
    world = World(four_racks(), members("g", 5))
    again = World(four_racks(), world.pods.values())
    answers = {each.filter(each.pods["uid-g0"]) for each in (world, again)}
    (answer,) = answers
    assert isinstance(answer, Rejected)
    assert "cannot be placed" in answer.sentence
