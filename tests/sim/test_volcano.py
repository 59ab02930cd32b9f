"""What counts as a violation of what PodGroups and HyperNodes say, and what only looks like one."""

from __future__ import annotations

import pytest

from app.kube.watch.events import Applied, Listed
from app.state.effects import Evict, WriteStatus
from tests.app.state.world import LISTED, World
from tests.records import GPU, RACK, node, pod
from tests.sim.api import HYPER_NODE, POD_GROUP, QUEUE, VCJOB, VOLCANO, ApiServer, Refused
from tests.sim.clock import Clock, History
from tests.sim.faults import Hits
from tests.sim.judging import Judging
from tests.sim.objects import Objects
from tests.sim.oracle import Taken
from tests.sim.violation import Violation
from tests.sim.volcano.checks import VolcanoChecks
from tests.sim.volcano.pod_group import GROUP_NAME, PARTITION, TASK, Partitions, PodGroup
from tests.sim.volcano.reading import domains_of, group_of
from tests.sim.volcano.rest import AtRest

NODES = tuple(node(f"b0/r{at // 2}/n{at}", gpus=1) for at in range(4))
RACKS = {"hn-r0": ("n0", "n1"), "hn-r1": ("n2", "n3")}
NOTHING = Taken(frozenset())


def hard(tier):
    return {"mode": "hard", "highestTierAllowed": tier}


def spec(least, *, topology=None, partitions=None, queue="default"):
    """A PodGroup of workers with a GPU each."""
    requests = {"cpu": 1000 * least, GPU: least}
    group = PodGroup("user", least, {"worker": least}, topology, partitions, queue, requests)
    return group.spec()


def worker(name, group="pg", partition="", **more):
    labels = {TASK: "worker", **({PARTITION: partition} if partition else {})}
    annotations = {GROUP_NAME: group, TASK: "worker"}
    return pod(name, gpus=1, labels=labels, annotations=annotations, **more)


def exact(*names, kind="Node"):
    return [{"type": kind, "selector": {"exactMatch": {"name": name}}} for name in names]


def hyper_node(tier, *names, kind="Node"):
    return {"spec": {"tier": tier, "members": exact(*names, kind=kind)}}


class Cluster:
    """An API server with nodes and Volcano's objects."""

    def __init__(self, nodes=NODES):
        self.clock = Clock()
        self.api = ApiServer(self.clock, History(self.clock))
        self.objects = Objects(self.clock, self.api)
        self.rest = AtRest(self.api, self.objects, Hits())
        for each in nodes:
            self.api.create("Node", each)

    def create(self, kind, name, **fields):
        self.objects.create(kind, name, **fields)
        return self.api.objects[kind][name]

    def add(self, *pods):
        for each in pods:
            self.api.create("Pod", each)

    def waits(self, taken=NOTHING):
        return self.rest.waits_in_vain("pg", self.api.list("Pod"), taken)


class Judged(Cluster, Judging):
    """An engine, and a judge that has been told the same unless a test says otherwise."""

    def __init__(self):
        super().__init__()
        kinds = (*LISTED, *VOLCANO)
        checks = VolcanoChecks(self.api, self.objects, Hits())
        self.judge(checks, World(NODES, kinds=kinds, levels=()), kinds)
        for kind in VOLCANO:
            self.world.apply(Listed(kind, ()))
        self.show(*NODES)
        for name, nodes in RACKS.items():
            self.make(HYPER_NODE, name, **hyper_node(1, *nodes))
        self.world.tick()

    def make(self, kind, name, **fields):
        """An object that both hear of."""
        record = self.create(kind, name, **fields)
        self.show(record)
        self.world.put(record)

    def change(self, kind, name, **fields):
        """The judge alone hears of this."""
        self.objects.change(kind, name, **fields)
        self.show(self.api.objects[kind][name])

    def decides(self, name, *, phase="Inqueue", counted=(0, 0, 0)):
        """A status that is about to be written."""
        record = self.api.objects[POD_GROUP][name]
        status = dict(zip(("running", "succeeded", "failed"), counted, strict=True))
        path = f"/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups/{name}"
        effect = WriteStatus(None, path, record.uid, {"phase": phase, **status})
        self.checks.decided(self.corral, [effect])


# -- what the objects mean -------------------------------------------------------------------------


def test_domains_are_what_hyper_nodes_name_by_name_by_label_and_by_each_other():
    label = {"type": "Node", "selector": {"labelMatch": {"matchLabels": {RACK: "r1"}}}}
    bodies = {
        "a": hyper_node(1, "n0", "n1", "gone"),
        "b": {"spec": {"tier": 1, "members": [label]}},
        "c": hyper_node(2, "a", "b", "absent", kind="HyperNode"),
    }
    domains = domains_of(bodies, {each.name: each for each in NODES})
    found = {each.name: sorted(each.nodes) for each in domains.each}
    assert found == {"a": ["n0", "n1"], "b": ["n2", "n3"], "c": ["n0", "n1", "n2", "n3"]}
    assert domains.around({"n0", "n1"}, 2).name == "a"
    assert domains.around({"n1", "n2"}, 1) is None
    assert domains.around({"n1", "n2"}, 2).name == "c"
    assert domains.around({"n1", "gone"}, 2) is None


@pytest.mark.parametrize(
    ("pods", "is_whole"),
    [
        pytest.param("00", False, id="too_few_pods"),
        pytest.param("0011", True, id="two_sub_groups"),
        pytest.param("0001", False, id="one_sub_group_is_not_whole"),
        pytest.param("001122", True, id="more_than_it_takes"),
    ],
)
def test_a_pod_group_is_whole_with_enough_pods_in_enough_sub_groups(pods, is_whole):
    partitions = Partitions("worker", 2, 2, hard(1))
    body = {"metadata": {"name": "pg", "uid": "u"}, "spec": spec(4, partitions=partitions)}
    its = [worker(f"w{at}", partition=partition) for at, partition in enumerate(pods)]
    assert group_of(body).is_whole(its) == is_whole


# -- every step ------------------------------------------------------------------------------------


def test_a_gang_that_starts_with_fewer_pods_than_its_pod_group_needs_is_a_violation():
    judged, gang = Judged(), [worker("w0"), worker("w1")]
    judged.make(POD_GROUP, "pg", spec=spec(2))
    judged.come(*gang)
    judged.start(gang[0])  # which waits for the other
    judged.change(POD_GROUP, "pg", spec=spec(3))
    with pytest.raises(Violation, match=r"V1: default/pg starts with places for \['w0', 'w1'\]"):
        judged.start(gang[1])


def test_a_gang_starts_with_what_its_pod_group_needs():
    judged, gang = Judged(), [worker("w0"), worker("w1")]
    judged.make(POD_GROUP, "pg", spec=spec(2, topology=hard(1)))
    judged.come(*gang)
    judged.checks.took(judged.life)
    judged.start(*gang)
    assert judged.checks.hits.counts["W in one HyperNode"] == 1


def test_a_plan_over_two_hyper_nodes_is_a_violation_where_one_is_required():
    judged = Judged()
    judged.make(POD_GROUP, "pg", spec=spec(3))
    judged.come(*(worker(f"w{at}") for at in range(3)))
    judged.checks.took(judged.life)
    judged.change(POD_GROUP, "pg", spec=spec(3, topology=hard(1)))
    with pytest.raises(Violation, match="V2: pg may span tier 1: planned on"):
        judged.checks.took(judged.life)


def test_each_sub_group_is_judged_by_itself():
    judged = Judged()
    of_one = Partitions("worker", 2, 2, hard(1))
    judged.make(POD_GROUP, "pg", spec=spec(4, partitions=of_one))
    gang = [worker(f"w{at}", partition=str(at // 2)) for at in range(4)]
    judged.come(*gang)
    judged.checks.took(judged.life)
    across = [worker(each.name, partition=str(at % 2)) for at, each in enumerate(gang)]
    judged.show(*across)
    with pytest.raises(Violation, match="V2: pg worker/0 may span tier 1"):
        judged.checks.took(judged.life)


def test_who_runs_where_hyper_nodes_came_apart_is_no_violation():
    judged = Judged()
    judged.make(POD_GROUP, "pg", spec=spec(1, topology=hard(1)))
    judged.come(worker("w0"))
    (planned,) = judged.world.gang("pg").plan.nodes.values()
    others = [name for nodes in RACKS.values() if planned not in nodes for name in nodes]
    running = [worker(f"r{at}", on=on, phase="Running") for at, on in enumerate(others)]
    judged.show(*running)
    with pytest.raises(Violation, match="V2"):
        judged.checks.took(judged.life)
    judged.change(HYPER_NODE, "hn-r0", **hyper_node(1, "n0"))
    judged.change(HYPER_NODE, "hn-r1", **hyper_node(1, "n2"))
    judged.checks.took(judged.life)


def test_more_than_a_queue_has_room_for_is_a_violation():
    judged = Judged()
    judged.make(QUEUE, "team", spec={"weight": 1, "capability": {GPU: "3"}})
    for name in ("a", "b"):
        judged.make(VCJOB, name, metadata={"uid": name}, spec={"schedulerName": "corral"})
        owner = {"ownerReferences": [{"kind": "Job", "uid": name, "controller": True}]}
        judged.make(POD_GROUP, name, metadata=owner, spec=spec(2, queue="team"), status={})
    judged.decides("a")
    with pytest.raises(Violation, match=r"V3: PodGroup b is let in: 2 of 3 nvidia\.com/gpu"):
        judged.decides("b")
    judged.decides("b", phase="Pending")


def test_a_status_of_another_schedulers_pod_group_is_a_violation():
    judged = Judged()
    judged.make(POD_GROUP, "pg", spec=spec(1), status={})
    judged.show(worker("w0", scheduler="volcano"))
    with pytest.raises(Violation, match=r"V4: .*/podgroups/pg is written"):
        judged.decides("pg")
    judged.show(worker("w1"))
    judged.decides("pg")
    with pytest.raises(Violation, match=r"V6: .* says \(1, 0, 0\), and its pods are \(0, 0, 0\)"):
        judged.decides("pg", counted=(1, 0, 0))


def test_a_pod_that_goes_because_a_hyper_node_changes_is_a_violation():
    judged = Judged()
    record = judged.api.objects[HYPER_NODE]["hn-r0"]
    judged.checks.taken(judged.corral, Applied(record), [])
    with pytest.raises(Violation, match="V5: HyperNode hn-r0 changes"):
        judged.checks.taken(judged.corral, Applied(record), [Evict("default", "w0", "uid", "why")])


# -- at rest ---------------------------------------------------------------------------------------


def test_a_gang_waits_in_vain_where_one_hyper_node_has_room_for_it():
    cluster = Cluster()
    for name, nodes in RACKS.items():
        cluster.create(HYPER_NODE, name, **hyper_node(1, *nodes))
    cluster.create(POD_GROUP, "pg", spec=spec(2, topology=hard(1)))
    cluster.add(worker("w0"), worker("w1"))
    assert cluster.waits() == "2 pods in hn-r0"
    assert cluster.waits(Taken(frozenset({"n0", "n3"}))) == ""
    cluster.objects.change(POD_GROUP, "pg", spec=spec(2))
    assert cluster.waits(Taken(frozenset({"n0", "n3"}))) == "2 pods in the cluster"


@pytest.mark.parametrize(
    ("size", "tier", "waits"),
    [
        pytest.param(2, 1, True, id="a_rack_for_each"),
        pytest.param(3, 1, False, id="no_rack_is_as_large"),
        pytest.param(3, 2, True, id="one_tier_above_the_widest_is_the_cluster"),
    ],
)
def test_sub_groups_wait_in_vain_where_there_is_a_domain_for_each(size, tier, waits):
    cluster = Cluster()
    for name, nodes in RACKS.items():
        cluster.create(HYPER_NODE, name, **hyper_node(1, *nodes))
    parts = 4 // size
    partitions = Partitions("worker", size, parts, hard(tier))
    cluster.create(POD_GROUP, "pg", spec=spec(size * parts, partitions=partitions))
    cluster.add(*(worker(f"w{at}", partition=str(at // size)) for at in range(size * parts)))
    assert bool(cluster.waits()) == waits


def test_a_pod_that_follows_waits_in_vain_only_beside_those_that_run():
    cluster = Cluster()
    for name, nodes in RACKS.items():
        cluster.create(HYPER_NODE, name, **hyper_node(1, *nodes))
    cluster.create(POD_GROUP, "pg", spec=spec(1, topology=hard(1)))
    cluster.add(worker("w0", on="n0", phase="Running"), worker("w1"))
    assert cluster.waits() == "1 pods in hn-r0, where others run"
    assert cluster.waits(Taken(frozenset({"n1"}))) == ""


def _at_rest(**status):
    cluster = Cluster()
    cluster.create(POD_GROUP, "pg", spec=spec(2), status=status)
    cluster.add(worker("w0", on="n0", phase="Running"), worker("w1", on="n1", phase="Running"))
    return cluster


SCHEDULED = [{"type": "Scheduled", "status": "True"}]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        pytest.param({"phase": "Running", "running": 1}, r"counts \(1, 0, 0\)", id="counts"),
        pytest.param({"phase": "Inqueue", "running": 2}, "is 'Inqueue'", id="phase"),
        pytest.param({"phase": "Running", "running": 2}, "is Running with", id="condition"),
    ],
)
def test_a_status_that_says_something_else_than_the_pods_is_a_violation(status, message):
    _at_rest(phase="Running", running=2, conditions=SCHEDULED).rest.check_statuses(())
    with pytest.raises(Violation, match=f"V6: PodGroup pg {message}"):
        _at_rest(**status).rest.check_statuses(())


def test_a_pod_group_without_pods_waits_for_its_queue_alone():
    cluster = Cluster()
    cluster.create(QUEUE, "team", spec={"weight": 1, "capability": {GPU: "1"}})
    cluster.create(VCJOB, "j", metadata={"uid": "j"}, spec={"schedulerName": "corral"})
    owner = {"ownerReferences": [{"kind": "Job", "uid": "j", "controller": True}]}
    of_job = {"metadata": owner, "spec": spec(2, queue="team")}
    cluster.create(POD_GROUP, "pg", **of_job, status={"phase": "Pending"})
    cluster.rest.check_statuses(["pg"])
    cluster.objects.change(QUEUE, "team", spec={"weight": 1, "capability": {GPU: "2"}})
    with pytest.raises(Violation, match="L1: PodGroup pg is Pending, and its queue has room"):
        cluster.rest.check_statuses(["pg"])
    cluster.objects.change(POD_GROUP, "pg", status={"phase": "Inqueue"})
    with pytest.raises(Violation, match="L1: PodGroup pg is 'Inqueue', and has no pods"):
        cluster.rest.check_statuses(["pg"])


def test_what_another_scheduler_writes_on_its_own_pod_group_is_not_judged():
    cluster = Cluster()
    cluster.create(POD_GROUP, "pg", spec=spec(2), status={"phase": "Unknown", "running": 7})
    cluster.add(worker("w0", on="n0", scheduler="volcano"))
    cluster.rest.check_statuses(())


def test_a_status_is_merged_into_the_object_it_was_made_for():
    cluster = Cluster()
    record = cluster.create(POD_GROUP, "pg", spec=spec(1), status={"phase": "Pending"})
    path = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups/pg"
    cluster.objects.patch_status(path, record.uid, {"running": 1}, "")
    body = cluster.objects.of(POD_GROUP)["pg"]
    assert body["status"] == {"phase": "Pending", "running": 1}
    for uid, version in (("another", ""), (record.uid, record.version)):
        with pytest.raises(Refused, match="409 Conflict"):
            cluster.objects.patch_status(path, uid, {}, version)
