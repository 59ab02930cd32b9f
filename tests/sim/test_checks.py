"""What is no violation though it looks like one, and the bug beside it that is still found."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace

import msgspec
import pytest

from app.dialects.grove.topology import ClusterTopologyRecord
from app.dialects.kueue.annotations import POD_SET_GROUP
from app.kube.core.objects import NodeRecord, ObjectRecord, PodRecord, Shape, Toleration
from tests.app.state.world import World, members
from tests.records import BLOCK, RACK, group, node, pod
from tests.sim.absent import AbsentPlaces
from tests.sim.api import CLUSTER_TOPOLOGY, ApiServer
from tests.sim.checks import Checks
from tests.sim.clock import Clock, History
from tests.sim.faults import Hits
from tests.sim.life import Life
from tests.sim.liveness import check_nobody_is_forgotten
from tests.sim.queue import MOST_BACKOFF
from tests.sim.violation import Violation


class Judged:
    """An engine, and a judge that has been told the same unless a test says otherwise."""

    def __init__(self, *nodes: NodeRecord) -> None:
        self.world = World(nodes)
        clock = Clock()
        api = ApiServer(clock, History(clock))
        self.checks = Checks(clock, api, Random(1), Hits(), named={})
        kinds = ("Node", "Pod", "Job", "StatefulSet", CLUSTER_TOPOLOGY)
        streams = {kind: SimpleNamespace(mirror={}, changed=0) for kind in kinds}
        self.life = Life(self.world.engine, streams, 0.0, 0.0)
        self.corral = SimpleNamespace(
            life=self.life,
            settings=self.world.settings,
            tick_seconds=0.1,
            now=self.world.now,
        )
        self.show(*nodes)

    def show(self, *records: PodRecord | NodeRecord | ObjectRecord) -> None:
        """Tell the judge alone: the engine makes nothing of it, as with a bug."""
        for each in records:
            kind = {NodeRecord: "Node", PodRecord: "Pod"}.get(type(each), CLUSTER_TOPOLOGY)
            stream = self.life.streams[kind]
            stream.mirror[each.name] = each
            stream.changed += 1

    def tell(self, *records: PodRecord | NodeRecord) -> None:
        self.world.put(*records)
        self.show(*records)

    def arrive(self, pod: PodRecord) -> None:
        """kube-scheduler brings a member to /bind; what is posted stays under way."""
        answer = self.world.filter(pod)
        self.checks.arriving(self.corral, pod.uid, answer.node)
        effects = self.world.bind(pod, answer.node)
        self.checks.arrived(self.corral, pod.uid, answer.node)
        self.checks.decided(self.corral, effects)
        self.life.posted.update({each.uid: each.node for each in effects})

    def end_binding(self, pod: PodRecord) -> PodRecord:
        """The pod once it is bound as it was posted."""
        bound = msgspec.structs.replace(pod, node=self.life.posted[pod.uid], phase="Running")
        self.tell(bound)
        return bound

    def judge(self) -> None:
        self.checks.took(self.corral, "an input")


def _being_bound(pods=3):
    """A gang that fills a rack, with every binding under way; and its pods."""
    judged = Judged(*(node(f"b0/r0/n{at}") for at in range(pods)))
    gang = members("g", pods)
    judged.tell(*gang)
    for each in gang:
        judged.arrive(each)
    return judged, gang


def _moved(judged, pod):
    return node(f"b0/r9/{judged.world.gang().plan.nodes[pod.uid]}")


def test_a_member_counts_as_bound_where_its_node_has_moved_while_it_was_being_bound():
    judged, (late, lost, other) = _being_bound()
    judged.end_binding(other)
    lost = judged.end_binding(lost)
    judged.tell(_moved(judged, late))
    judged.tell(msgspec.structs.replace(lost, phase="Failed"))
    kept = {node for uid, node in judged.world.held.items() if uid != late.uid}
    assert kept == {lost.node}, "a place is planned, so the gang is judged"
    judged.judge()


def test_a_plan_elsewhere_than_a_member_on_a_moved_node_is_being_bound_is_a_violation():
    judged, (late, lost) = _being_bound(pods=2)
    lost = judged.end_binding(lost)
    judged.tell(msgspec.structs.replace(lost, phase="Failed"))
    again = msgspec.structs.replace(lost, node="", phase="Pending", uid="again", name="again")
    judged.tell(again)
    judged.world.tick()
    assert judged.world.gang().plan.nodes[again.uid] == lost.node
    judged.judge()
    judged.show(_moved(judged, late))
    with pytest.raises(Violation, match=r"I4: .*: planned in \['b0/r0'\], bound in \['b0/r9'\]"):
        judged.judge()


def test_a_plan_on_a_moved_node_that_no_binding_is_under_way_to_is_a_violation():
    judged, (lost, other) = _being_bound(pods=2)
    judged.end_binding(other)
    lost = judged.end_binding(lost)
    judged.tell(msgspec.structs.replace(lost, phase="Failed"))
    again = msgspec.structs.replace(lost, node="", phase="Pending", uid="again", name="again")
    judged.tell(again)
    judged.world.tick()
    judged.show(_moved(judged, again))
    with pytest.raises(Violation, match=r"I4: .*: planned in \['b0/r9'\], bound in \['b0/r0'\]"):
        judged.judge()


def _two_in_racks_of_one_name():
    """A gang planned in one rack by a topology without blocks, and that topology."""
    judged = Judged(node("b0/r2/n0"), node("b1/r2/n1"))
    topology = _cluster_topology(RACK)
    judged.world.put(topology)
    judged.tell(*members("g", 2))
    judged.world.tick()
    assert set(judged.world.gang().plan.nodes.values()) == {"n0", "n1"}
    return judged, topology


def _cluster_topology(*levels):
    return ClusterTopologyRecord(
        CLUSTER_TOPOLOGY, namespace="", name="t", uid="t", version="1", levels=levels
    )


APART = r"I4: .*: planned in \['b0/r2', 'b1/r2'\]"


def test_a_plan_in_one_domain_of_any_topology_that_corral_has_been_told_of_is_no_violation():
    judged, topology = _two_in_racks_of_one_name()
    judged.show(topology)
    judged.judge()
    judged.show(_cluster_topology(BLOCK, RACK))  # what is planned already stays
    judged.judge()


@pytest.mark.parametrize("levels", [(), (BLOCK, RACK), (BLOCK,)])
def test_a_plan_in_several_domains_of_every_topology_is_a_violation(levels):
    judged, _ = _two_in_racks_of_one_name()
    if levels:
        judged.show(_cluster_topology(*levels))
    with pytest.raises(Violation, match=APART):
        judged.judge()


def test_a_plan_on_a_node_that_has_no_domain_in_a_topology_is_not_together_by_that_one():
    judged, _ = _two_in_racks_of_one_name()
    judged.show(_cluster_topology("example.com/row", RACK))
    with pytest.raises(Violation, match=APART):
        judged.judge()


def _check_at(later: float) -> None:
    """The last check, with a pod that waits and would have the node of a gang's last member."""
    judged, gang = _being_bound()
    pods = [judged.end_binding(each) for each in gang[:2]] + [gang[2], *members("late", 1)]
    judged.tell(pods[-1])
    api = judged.checks.api
    for each in judged.life.streams["Node"].mirror.values():
        api.create("Node", each)
    for each in pods:
        api.create("Pod", each)
    corral = judged.corral
    corral.engine, corral.is_leading, corral.incarnation = judged.world.engine, True, 1
    corral.now += later
    check_nobody_is_forgotten(api, [corral], AbsentPlaces(api), lambda pod: False, (), {})


def test_the_rest_of_a_gang_that_is_being_bound_has_its_nodes() -> None:
    _check_at(later=0)


def test_nothing_is_kept_longer_than_kube_scheduler_takes_to_come_again() -> None:
    with pytest.raises(Violation, match="L1: gang default/g waits and fits"):
        _check_at(later=MOST_BACKOFF + 1)


def _led(*pods: PodRecord) -> list[PodRecord]:
    """The pods of a leader-worker group, as one gang of these."""
    of = {**group("g", len(pods), RACK), POD_SET_GROUP: "led"}
    return [msgspec.structs.replace(each, annotations=of) for each in pods]


def _check_led(*pods: PodRecord) -> None:
    """The last check, with a group that waits on a free rack."""
    nodes = [node(f"b0/r0/n{at}") for at in range(4)]
    judged, gang = Judged(*nodes), _led(*pods)
    judged.tell(*gang)
    api = judged.checks.api
    for each in nodes:
        api.create("Node", each)
    for each in gang:
        api.create("Pod", each)
    corral = judged.corral
    corral.engine, corral.is_leading, corral.incarnation = judged.world.engine, True, 1
    corral.now += MOST_BACKOFF + 1
    check_nobody_is_forgotten(api, [corral], AbsentPlaces(api), lambda pod: False, (), {})


LEADER, WORKER = pod("leader", gpus=0), pod("w0")
TOLERATES = msgspec.structs.replace(
    pod("w1"), shape=Shape(tolerations=(Toleration("maintenance", "Exists", "", ""),))
)


def test_a_leader_waits_for_nothing_beside_workers_that_are_not_alike() -> None:
    _check_led(LEADER, WORKER, TOLERATES)


def test_two_leaders_of_two_workers_do_not_start_together() -> None:
    _check_led(LEADER, pod("leader1", gpus=0), WORKER, pod("w1"))


def test_a_leader_that_waits_beside_its_workers_and_fits_is_forgotten() -> None:
    with pytest.raises(Violation, match="L1: gang default/g waits and fits"):
        _check_led(LEADER, WORKER, pod("w1"))
