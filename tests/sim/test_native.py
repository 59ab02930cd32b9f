"""What counts as a violation of what native PodGroups say, and what only looks like one."""

from __future__ import annotations

import msgspec
import pytest

from app.kube.watch.events import Applied, Listed
from app.state.effects import Evict, WriteStatus
from tests.app.state.world import LISTED, World
from tests.records import BLOCK, RACK, node, pod
from tests.sim.api import NATIVE, NATIVE_GROUP, ApiServer
from tests.sim.clock import Clock, History
from tests.sim.faults import Hits
from tests.sim.judging import Judging
from tests.sim.native.checks import NativeChecks
from tests.sim.native.pod_group import Policy
from tests.sim.native.rest import AtRest
from tests.sim.objects import Objects
from tests.sim.oracle import Remaining, Taken
from tests.sim.violation import Violation

NODES = tuple(node(f"b0/r{at // 2}/n{at}", gpus=1) for at in range(4))
NOTHING = Taken(frozenset())
PATH = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups/g/status"
OTHER = {"type": "DisruptionTarget", "status": "False"}


def worker(name, **more):
    return msgspec.structs.replace(pod(name, gpus=1, **more), pod_group="g")


def condition(status):
    return {"type": "PodGroupInitiallyScheduled", "status": status}


class Cluster:
    """An API server with nodes and PodGroup g."""

    def __init__(self):
        clock = Clock()
        self.api = ApiServer(clock, History(clock))
        self.objects = Objects(clock, self.api)
        self.rest = AtRest(self.api, self.objects, Hits())
        for each in NODES:
            self.api.create("Node", each)

    def put(self, least, key="", **fields):
        spec = Policy(least, key).spec()
        if self.objects.get(NATIVE_GROUP, "g") is None:
            metadata = {"generation": 1}
            self.objects.create(NATIVE_GROUP, "g", metadata=metadata, spec=spec, **fields)
        else:
            self.objects.change(NATIVE_GROUP, "g", spec=spec, **fields)
        return self.api.objects[NATIVE_GROUP]["g"]

    def add(self, *pods):
        for each in pods:
            self.api.create("Pod", each)

    def waits(self, taken=NOTHING):
        return self.rest.waits_in_vain("g", self.api.list("Pod"), taken)


class Judged(Cluster, Judging):
    """An engine, and a judge that has been told the same unless a test says otherwise."""

    def __init__(self, least, key=""):
        super().__init__()
        kinds = (*LISTED, *NATIVE)
        world = World(NODES, kinds=kinds, native_pod_groups="on")
        self.judge(NativeChecks(self.objects, Hits()), world, kinds)
        record = self.put(least, key)
        self.world.apply(Listed(NATIVE_GROUP, (record,)))
        self.show(*NODES, record)
        self.world.tick()

    def change(self, least, key="", **fields):
        """The judge alone hears of this."""
        self.show(self.put(least, key, **fields))

    def writes(self, *conditions):
        uid = self.api.objects[NATIVE_GROUP]["g"].uid
        effect = WriteStatus(None, PATH, uid, {"conditions": list(conditions)})
        self.checks.decided(self.corral, [effect])


# -- every step ------------------------------------------------------------------------------------


def test_a_gang_that_starts_with_fewer_pods_than_min_count_is_a_violation():
    judged, gang = Judged(2), [worker("w0"), worker("w1")]
    judged.come(*gang)
    judged.start(gang[0])  # which waits for the other
    judged.change(3)
    with pytest.raises(Violation, match="N1: default/g starts with 2 places of 3"):
        judged.start(gang[1])


def test_a_gang_starts_with_min_count_pods_in_one_domain():
    judged, gang = Judged(2, RACK), [worker("w0"), worker("w1")]
    judged.come(*gang)
    judged.checks.took(judged.life)
    judged.start(*gang)
    assert judged.checks.hits.counts["W native in one domain"] == 1


def test_a_plan_over_two_racks_is_a_violation_where_one_is_required():
    judged = Judged(3)
    judged.come(*(worker(f"w{at}") for at in range(3)))
    judged.checks.took(judged.life)
    judged.change(3, RACK)
    with pytest.raises(Violation, match=r"N2: g requires one .*rack: planned on"):
        judged.checks.took(judged.life)


def test_a_plan_in_one_rack_of_a_topology_that_has_no_blocks_is_no_violation():
    judged = Judged(2, RACK)
    judged.come(worker("w0"), worker("w1"))
    gang = judged.world.engine.gangs.of_pod("uid-w0")
    places = {"uid-w0": "n0", "uid-w1": "again"}
    judged.show(
        msgspec.structs.replace(NODES[0], name="again", labels={**NODES[0].labels, BLOCK: "b9"})
    )
    with pytest.raises(Violation, match=r"N2: g requires one .*rack: planned on"):
        judged.checks.together(judged.life, gang, places)
    judged.life.levels_told[(RACK,)] = None
    judged.checks.together(judged.life, gang, places)


def test_room_in_two_racks_is_a_violation_where_one_is_required():
    judged = Judged(2, RACK)
    judged.come(worker("w0"), worker("w1"))
    gang = judged.world.engine.gangs.of_pod("uid-w0")
    judged.checks.together(judged.life, gang, {"uid-w0": "n0", "uid-w1": "n1"})
    with pytest.raises(Violation, match=r"N2: g requires one .*rack: planned on"):
        judged.checks.together(judged.life, gang, {"uid-w0": "n0", "uid-w1": "n2"})


def test_a_pod_that_goes_because_a_pod_group_changes_is_a_violation():
    judged = Judged(1)
    (record,) = judged.api.objects[NATIVE_GROUP].values()
    judged.checks.taken(judged.corral, Applied(record), [])
    with pytest.raises(Violation, match="N3: PodGroup g changes"):
        judged.checks.taken(judged.corral, Applied(record), [Evict("default", "w0", "uid", "why")])


def test_a_condition_that_is_not_true_of_the_pods_is_a_violation():
    judged = Judged(2)
    judged.change(2, status={"conditions": [OTHER]})
    judged.show(worker("w0", on="n0", phase="Running"), worker("w1"))
    judged.writes(OTHER, condition("False"))
    with pytest.raises(Violation, match="1 of 2 pods have nodes"):
        judged.writes(OTHER, condition("True"))
    with pytest.raises(Violation, match=r"takes away \['DisruptionTarget'\]"):
        judged.writes(condition("False"))
    judged.change(2, status={"conditions": [condition("False")]})
    with pytest.raises(Violation, match="once more"):
        judged.writes(condition("False"))
    judged.change(2, status={"conditions": [condition("True")]})
    with pytest.raises(Violation, match="takes back that it was scheduled"):
        judged.writes(condition("False"))


# -- at rest ---------------------------------------------------------------------------------------


def test_a_gang_waits_in_vain_where_one_rack_has_room_for_it():
    cluster = Cluster()
    cluster.put(2, RACK)
    cluster.add(worker("w0"), worker("w1"))
    assert "2 pods in b0/r0" in cluster.waits()
    full = Taken(frozenset({"n0", "n3"}))
    assert cluster.waits(full) == ""
    cluster.put(2)
    assert "2 pods in the cluster" in cluster.waits(full)
    cluster.put(None, RACK)
    assert "1 pods in b0/r0" in cluster.waits(full)


def test_a_gang_has_a_place_among_the_pods_that_count():
    cluster = Cluster()
    cluster.put(2, RACK)
    gang = [worker("w0"), worker("w1")]
    runs = {f"n{at}": pod(f"r{at}", gpus=1, on=f"n{at}", phase="Running") for at in (1, 3)}
    cluster.add(*gang, *runs.values())
    waits = cluster.rest.waits_in_vain
    assert waits("g", gang, NOTHING) == ""
    without = Remaining(dict(cluster.api.nodes), {"r3": runs["n3"]})
    assert waits("g", gang, NOTHING, without) == "2 pods in b0/r0"


def test_a_pod_that_follows_waits_in_vain_only_beside_those_that_run():
    cluster = Cluster()
    cluster.put(1, RACK)
    cluster.add(worker("w0", on="n0", phase="Running"), worker("w1"))
    assert "1 pods in b0/r0" in cluster.waits()
    assert cluster.waits(Taken(frozenset({"n1"}))) == ""


@pytest.mark.parametrize(
    ("nodes", "said", "is_right"),
    [
        pytest.param(("n0", "n1"), "True", True, id="all_run"),
        pytest.param(("n0", "n1"), "False", False, id="all_run_and_it_says_no"),
        pytest.param(("", ""), "False", True, id="all_wait"),
        pytest.param(("", ""), "", False, id="all_wait_and_it_does_not_say_so"),
        pytest.param(("", ""), "True", True, id="it_has_started_before"),
    ],
)
def test_a_condition_at_rest_says_whether_the_gang_has_started(nodes, said, is_right):
    cluster = Cluster()
    cluster.put(2, status={"conditions": [condition(said)] if said else []})
    for at, on in enumerate(nodes):
        cluster.add(worker(f"w{at}", on=on, phase="Running" if on else "Pending"))
    if is_right:
        cluster.rest.check_conditions()
        return
    with pytest.raises(Violation, match="N4: PodGroup g says"):
        cluster.rest.check_conditions()


def test_the_api_server_has_the_older_version_where_it_serves_no_newer_one():
    cluster = Cluster()
    cluster.objects.serve_older(NATIVE_GROUP)
    record = cluster.put(1)
    assert record.api == "v1alpha2"
    cluster.objects.patch_status(PATH.replace("v1beta1", "v1alpha2"), record.uid, {"a": 1}, "")
    assert cluster.objects.of(NATIVE_GROUP)["g"]["status"] == {"a": 1}
