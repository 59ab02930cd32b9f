"""What GREP-244 says of scheduling, sentence by sentence; each test begins with its section.

Its rules for PodCliqueSets are in tests/app/dialects/grove/test_object_rules.py ("Validation",
"Supported Topology domains", "Workload Portability"), its examples and the PodGangs of these in
tests/app/dialects/grove/test_grep_244_examples.py. These bind Grove's operator or those who run it,
and Corral reads what comes of them:

    Operational Complexity           what an administrator must understand, label and configure
    Cluster Admin API, Validation    of OperatorConfiguration, and that the operator exits
    Operator Startup behavior        makes, changes and deletes ClusterTopologies and KAI's ones
    Topology Configuration Updates   an authorizer refuses changes of others to a ClusterTopology
    ClusterTopology custom resource  that its levels do not change, are seven, of these names
    Monitoring                       the condition TopologyLevelsUnavailable on PodCliqueSets
    Test Plan, Alternatives          of the operator's own source

tests/controlplane/test_grove_operator.py has the real operator.
Source: GREP-244, "Topology Aware Scheduling".
"""

from __future__ import annotations

import msgspec
import pytest

from app.dialects.grove.topology import decode_topology
from app.state.effects import Evict
from tests.app.dialects.grove.objects import gang, pod_group, together, within
from tests.app.state.histories.test_grove import (
    FULLER,
    NET,
    base_in_block_1,
    blocks,
    fill,
    members,
    more,
    of_replica,
    on,
    racks,
    started,
    world_of,
)
from tests.app.state.stories import finish, sentence
from tests.app.state.world import four_racks
from tests.records import BLOCK, RACK, node
from tests.records import pod as pod_of_others

HOST, NUMA = "kubernetes.io/hostname", "example.com/numa"
# The racks of the world are what is called blocks here, and its blocks the zones, as in the example
# of "Topology Constraints Only Guaranteed for Initial Deployment".
EXAMPLE = (("zone", BLOCK), ("block", RACK), ("host", HOST))
RACKS = (("block", BLOCK), ("rack", RACK))


def topology(*levels, name="grove-topology"):
    """A ClusterTopology of these (domain, key)."""
    said = [{"domain": domain, "key": key} for domain, key in levels]
    made = {"metadata": {"name": name, "uid": "uid-t"}, "spec": {"levels": said}}
    return decode_topology(msgspec.json.encode(made), kind="ClusterTopology")


def three(on, name="g", **said):
    return gang(name, pod_group("router", 1), pod_group("worker", 2), on=on, **said)


def its_pods(of="g"):
    pods = [*members(1, "router", of=of), *members(2, "worker", of=of)]
    return [msgspec.structs.replace(each, name=f"{of}-{each.name}") for each in pods]


# -- User Stories ----------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [RACK, "infra.example.com/leaf"])
def test_story_1_the_same_workload_is_packed_by_the_labels_of_each_provider(key):
    nodes = [
        node(f"n{rack}{at}", labels={key: f"r{rack}"}, gpus=1) for rack in (0, 1) for at in range(3)
    ]
    world = world_of(three(within("rack")), nodes=nodes, topologies=[topology(("rack", key))])
    placed = started(world, *its_pods())
    assert (len(placed), len(racks(placed))) == (3, 1)


def test_story_3_a_level_inside_a_node_is_refused_by_name_and_not_weakened():
    levels = (*RACKS, ("host", HOST), ("numa", NUMA))
    world = world_of(three(within("numa")), topologies=[topology(*levels)])
    assert started(world, *its_pods()) == {}
    assert f"has no level {NUMA}" in sentence(world, "uid-router-0")


# -- Topology Constraints Only Guaranteed for Initial Deployment -----------------------------------


def test_scale_out_of_a_pod_clique_keeps_its_level_or_waits():
    """GREP-244 promises nothing here."""
    world = world_of(three(within(RACK)))
    before = started(world, *its_pods())
    after = started(world, *members(3, "worker", first=5))
    assert (len(after), racks(after)) == (4, racks(before))
    assert before.items() <= after.items()
    assert world.told(Evict) == []


def test_scale_out_of_a_scaling_group_each_pod_gang_should_be_packed_in_its_block():
    """And in the zone of the others, which GREP-244 does not promise; leaders are on one host."""
    parts = (pod_group("leader", 2, within(HOST)), pod_group("worker", 4))
    base = gang("g", *parts, groups=(together("p", "leader", "worker", on=within(RACK)),))
    base = msgspec.structs.replace(base, constraint=three(within(BLOCK)).constraint)
    scaled = [gang(f"g-p-{at}", *parts, on=within(RACK)) for at in (0, 1)]
    world = world_of(
        base, *scaled, nodes=four_racks(gpus=3), topologies=[topology(*EXAMPLE)]
    )  # a block has room for two of them, a zone for four
    for each in ("g", "g-p-0", "g-p-1"):
        pods = [*members(2, "leader", of=each), *members(4, "worker", of=each)]
        pods = [
            msgspec.structs.replace(one, name=f"{each}.{one.name}", uid=f"{each}.{one.uid}")
            for one in pods
        ]
        started(world, *of_replica(pods, base="" if each == "g" else "g"))
        assert len(racks(on(world, f"{each}."))) == 1
        assert len(set(on(world, f"{each}.leader").values())) == 1
    assert (len(on(world)), len(blocks(on(world)))) == (18, 1)


def test_pod_rescheduling_a_pod_comes_back_into_its_rack_once_there_is_room():
    """GREP-244 promises nothing here either: others may have the room by then."""
    world = world_of(three(within(RACK)))
    before = started(world, *its_pods())
    (rack,) = racks(before)
    world.delete(world.pods["uid-worker-1"])
    world.tick(1000.0)  # no place is owed any more
    free = [f"{rack}{at}" for at in range(4) if f"{rack}{at}" not in on(world).values()]
    fill(world, *free)
    started(world, *members(1, "worker", first=7))
    assert len(on(world)) == 2
    assert "outside the domain of the pods that stay" in sentence(world, "uid-worker-7")
    world.delete(world.pods[f"uid-other-{free[0]}"])
    finish(world)
    assert on(world)["worker-7"] == free[0]


def lost_with_its_node(world, pod):
    world.delete(world.engine.books.nodes[pod.node], pod)


def preempted(world, pod):
    world.delete(pod)
    world.put(pod_of_others("urgent", gpus=1, on=pod.node, phase="Running", priority=100))


def deleted(world, pod):
    world.delete(pod)


@pytest.mark.parametrize("ends", [lost_with_its_node, preempted, deleted])
def test_pod_rescheduling_whatever_ended_a_pod_the_next_one_is_in_its_rack(ends):
    """GREP-244 names these three, and promises nothing of them."""
    world = world_of(three(within(RACK)))
    (rack,) = racks(started(world, *its_pods()))
    ends(world, world.pods["uid-worker-1"])
    started(world, *members(1, "worker", first=7))
    assert len(on(world, "worker-7")) == 1
    assert racks(on(world, "worker-7")) == {rack}


# -- Topology Configuration Drift ------------------------------------------------------------------


def test_topology_configuration_drift_a_constraint_that_is_removed_holds_no_longer():
    """As the operator does once the level is gone; who runs stays."""
    world = world_of(three(within(RACK)))
    before = started(world, *its_pods())
    (rack,) = racks(before)
    fill(world, *(f"{rack}{at}" for at in range(4) if f"{rack}{at}" not in before.values()))
    started(world, *members(1, "worker", first=7))
    assert on(world) == before
    world.put(three(None, topology=""))
    finish(world)
    assert before.items() < on(world).items()
    assert world.told(Evict) == []


def test_topology_configuration_drift_levels_that_change_move_nothing_that_runs():
    world = world_of(three(within(RACK)))
    before = started(world, *its_pods())
    world.put(topology(("block", BLOCK)))
    started(world, *members(1, "worker", first=7))
    assert on(world) == before
    assert world.told(Evict) == []
    assert f"has no level {RACK}" in sentence(world, "uid-worker-7")


# -- Topology Aware Cluster Autoscaling ------------------------------------------------------------


def test_topology_aware_cluster_autoscaling_a_gang_no_domain_has_room_for_starts_with_new_nodes():
    """Until then it waits, for ever if need be, and no pod of it starts."""
    world = world_of(gang("g", pod_group("worker", 5), on=within(RACK)))
    assert started(world, *members(5, "worker")) == {}
    world.tick(100_000.0)
    assert on(world) == {}
    assert "4 of 5 pods fit" in sentence(world, "uid-worker-0")
    world.put(node("b9/r9/n9x", gpus=4))
    finish(world)
    assert on(world) == {}  # not beside those of another rack
    world.put(node("b0/r0/n0x", gpus=1))
    finish(world)
    assert racks(on(world)) == {"n0"}


# -- Operator Startup behavior ---------------------------------------------------------------------


def test_operator_startup_a_cluster_topology_that_is_deleted_leaves_who_runs_and_holds_the_others():
    """As the operator does once TAS is disabled."""
    world = world_of(three(within(RACK)), three(within(RACK), "h"))
    before = started(world, *its_pods())
    world.delete(NET)
    late = [msgspec.structs.replace(one, uid=f"h-{one.uid}") for one in its_pods("h")]
    started(world, *late)
    assert on(world) == before
    assert world.told(Evict) == []
    assert "Topology grove.io/grove-topology does not exist" in sentence(world, late[0].uid)


# -- ClusterTopology custom resource ---------------------------------------------------------------


UNUSED = "Topology grove.io/grove-topology does not exist"


@pytest.mark.parametrize(
    ("levels", "told"),
    [
        pytest.param((), UNUSED, id="at_least_one_level"),
        pytest.param((("block", RACK), ("rack", RACK)), UNUSED, id="keys_must_be_unique"),
        pytest.param((("block", ""), ("rack", RACK)), UNUSED, id="a_key_has_a_character_at_least"),
        pytest.param(
            (("block", "a b"), ("rack", RACK)),
            "without a label of every level 16",
            id="a_key_must_be_that_of_a_label",
        ),
    ],
)
def test_cluster_topology_one_that_its_schema_forbids_packs_nothing(levels, told):
    """Where its schema is not enforced; a topology of seven levels, the most, is one."""
    world = world_of(three(within(RACK)), topologies=[topology(*levels)])
    assert started(world, *its_pods()) == {}
    assert told in sentence(world, "uid-router-0")


def test_cluster_topology_the_order_of_its_levels_is_the_hierarchy():
    """All that are in one domain of a level are in one of each level before it."""
    names = ("region", "zone", "datacenter", "block", "rack", "host")
    keys = [f"example.com/{each}" for each in names[:-1]] + [HOST]
    nodes = [
        # Racks are called alike in both blocks: they are not the same one.
        node(
            f"n{block}{at}",
            labels={**dict.fromkeys(keys[:3], "a"), keys[3]: f"b{block}", keys[4]: "r0"},
            gpus=1,
        )
        for block in (0, 1)
        for at in range(2)
    ]
    seven = topology(*zip(names, keys, strict=True), ("numa", NUMA))
    world = world_of(three(within("rack")), nodes=nodes, topologies=[seven])
    assert started(world, *its_pods()) == {}
    world = world_of(three(within("datacenter")), nodes=nodes, topologies=[seven])
    assert len(started(world, *its_pods())) == 3


# -- Topology Constraints in PodCliqueSet ----------------------------------------------------------


def test_topology_constraints_each_replica_is_in_one_domain_and_not_all_in_the_same():
    world = world_of(three(within(RACK), "g"), three(within(RACK), "h"))
    for of in ("g", "h"):
        pods = [msgspec.structs.replace(one, uid=f"{of}-{one.uid}") for one in its_pods(of)]
        started(world, *of_replica(pods, replica=str("gh".index(of))))
    assert [len(racks(on(world, of))) for of in ("g-", "h-")] == [1, 1]
    assert (len(on(world)), len(racks(on(world)))) == (6, 2)


# -- PodGang: Scheduler API Enhancements -----------------------------------------------------------


def test_pod_gang_what_is_required_must_be_satisfied():
    world = world_of(three(within(RACK)))
    fill(world, *(f"n{rack}{at}" for rack in range(4) for at in (0, 1)))
    assert started(world, *its_pods()) == {}
    assert "cannot be placed" in sentence(world, "uid-router-0")
    world.delete(world.pods["uid-other-n20"])
    finish(world)
    assert racks(on(world)) == {"n2"}


def test_pod_gang_what_is_preferred_falls_back_up_to_what_is_required():
    world = world_of(three(within(BLOCK, RACK)))
    fill(world, *(f"n{rack}{at}" for rack in (0, 2) for at in range(3)), "n10", "n11", "n30")
    assert racks(started(world, *its_pods())) == {"n3"}, "there is a rack"
    world = world_of(three(within(BLOCK, RACK)))
    fill(world, *(f"n{rack}{at}" for rack in (0, 1, 2, 3) for at in (0, 1)))
    placed = started(world, *its_pods())
    assert (len(placed), len(racks(placed)), len(blocks(placed))) == (3, 2, 1), "there is a block"
    world = world_of(three(within(BLOCK, RACK)))
    fill(world, *(f"n{rack}{at}" for rack in range(4) for at in range(3)))
    assert started(world, *its_pods()) == {}, "there is neither"


def test_pod_gang_its_top_level_constraint_applies_to_all_pod_groups():
    world = world_of(gang("g", pod_group("router", 1, within(HOST)), pod_group("worker", 3)))
    fill(world, "n00", "n01", "n10", "n11", "n20", "n21", "n30", "n31")
    assert len(racks(started(world, *members(1, "router"), *members(3, "worker")))) > 1
    world = world_of(three(within(RACK)))
    assert len(racks(started(world, *its_pods()))) == 1


def test_pod_gang_a_group_of_pod_groups_is_in_one_domain_and_the_others_where_there_is_room():
    together_in_rack = together("p", "leader", "worker", on=within(RACK))
    parts = [pod_group("router", 2), pod_group("leader", 1), pod_group("worker", 3)]
    world = world_of(gang("g", *parts, groups=(together_in_rack,), on=within(BLOCK)))
    pods = (*members(2, "router"), *members(1, "leader"), *members(3, "worker"))
    placed = started(world, *pods)
    assert (len(placed), len(racks(placed)), len(blocks(placed))) == (6, 2, 1)
    assert len(racks(on(world, "leader") | on(world, "worker"))) == 1


def test_pod_gang_the_constraint_of_a_pod_group_is_for_its_pods_alone():
    world = world_of(
        gang("g", pod_group("router", 3), pod_group("worker", 2, within(HOST)), on=within(BLOCK)),
        nodes=four_racks(gpus=2),
    )
    placed = started(world, *members(3, "router"), *members(2, "worker"))
    assert len(placed) == 5
    assert len(set(on(world, "worker").values())) == 1
    assert len(set(on(world, "router").values())) > 1


def test_pod_gang_a_scaled_one_without_a_level_of_its_own_inherits_that_of_the_whole():
    """The operator writes it there; groups of pod groups it has none."""
    world = world_of()
    base_in_block_1(world)
    fill(world, *FULLER)
    started(world, gang("g-pf-0", pod_group("more", 5), on=within(BLOCK)), *more(5))
    assert (len(on(world, "more")), blocks(on(world, "more"))) == (5, {1})


# -- Dependencies ----------------------------------------------------------------------------------


def test_dependencies_nodes_without_the_labels_of_a_level_are_for_gangs_without_it():
    nodes = [node(f"n0{at}", labels={RACK: "r0"}, gpus=1) for at in range(2)]
    nodes += [node(f"n1{at}", gpus=1) for at in range(3)]
    world = world_of(three(within(RACK)), nodes=nodes, topologies=[topology(("rack", RACK))])
    assert started(world, *its_pods()) == {}
    # The operator names no topology where nothing is constrained.
    world.put(three(None, topology=""))
    finish(world)
    assert len(on(world)) == 3
