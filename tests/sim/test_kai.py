"""What counts as a violation of what KAI's PodGroups say, and that they are read as written."""

from __future__ import annotations

import msgspec
import pytest

from app.dialects.kai.pod_groups import decode_pod_group
from app.kube.watch.events import Listed
from tests.app.dialects.kai.objects import topology_record
from tests.app.state.world import LISTED, World
from tests.records import BLOCK, RACK, node, pod
from tests.sim.api import KAI, KAI_GROUP, KAI_TOPOLOGY, ApiServer
from tests.sim.clock import Clock, History
from tests.sim.faults import Hits
from tests.sim.judging import Judging
from tests.sim.kai.pod_group import GROUP_NAME, TOPOLOGY, WORDS, group_of, spec
from tests.sim.native.checks import NativeChecks
from tests.sim.native.pod_group import HOST, Policy
from tests.sim.native.rest import AtRest
from tests.sim.objects import Objects
from tests.sim.oracle import Taken
from tests.sim.violation import Violation

NODES = tuple(node(f"b0/r{at // 2}/n{at}", gpus=1) for at in range(4))


def worker(name):
    return pod(name, gpus=1, annotations={GROUP_NAME: "g"})


class Resting:
    """A PodGroup of three, of which one runs, and nodes with room for one pod each."""

    def __init__(self):
        clock = Clock()
        self.api = ApiServer(clock, History(clock))
        self.objects = Objects(clock, self.api)
        for each in NODES[:2]:
            self.api.create("Node", each)
        self.objects.create(KAI_GROUP, "g", metadata={"generation": 1}, spec=spec(Policy(3, "")))
        self.api.create("Pod", msgspec.structs.replace(worker("w0"), node="n0", phase="Running"))
        for name in ("w1", "w2"):
            self.api.create("Pod", worker(name))

    def waits(self):
        rest = AtRest(self.api, self.objects, Hits(), WORDS)
        return rest.waits_in_vain("g", self.api.list("Pod"), Taken(frozenset()))


class Judged(Judging):
    """An engine, and a judge that has been told the same unless a test says otherwise."""

    def __init__(self, policy):
        clock = Clock()
        self.api = ApiServer(clock, History(clock))
        self.objects = Objects(clock, self.api)
        kinds = (*LISTED, *KAI)
        self.judge(NativeChecks(self.objects, Hits(), WORDS), World(NODES, kinds=kinds), kinds)
        record = self.put(policy)
        net = topology_record(TOPOLOGY, BLOCK, RACK, HOST)
        for kind, each in ((KAI_TOPOLOGY, net), (KAI_GROUP, record)):
            self.world.apply(Listed(kind, (each,)))
        self.show(*NODES, record)
        self.world.tick()

    def put(self, policy):
        write = self.objects.change
        if self.objects.get(KAI_GROUP, "g") is None:
            write = self.objects.create
        write(
            KAI_GROUP, "g", metadata={"generation": 1, "name": "g", "uid": "u"}, spec=spec(policy)
        )
        return self.api.objects[KAI_GROUP]["g"]


@pytest.mark.parametrize("policy", [Policy(3, RACK), Policy(2, ""), Policy(None, BLOCK)])
def test_a_pod_group_is_read_as_it_was_written(policy):
    metadata = {"name": "g", "uid": "u", "generation": 1}
    body = {"metadata": metadata, "spec": spec(policy)}
    its, record = group_of(body), decode_pod_group(msgspec.json.encode(body))
    assert record.flaw == ""
    assert (its.least, its.key) == (record.least, record.constraint.required or "")
    assert its.least == policy.least or policy.least is None


def test_a_gang_that_starts_with_fewer_pods_than_min_member_is_a_violation():
    judged, gang = Judged(Policy(2, "")), [worker("w0"), worker("w1")]
    judged.come(*gang)
    judged.start(gang[0])  # which waits for the other
    judged.show(judged.put(Policy(3, "")))
    with pytest.raises(Violation, match="N1: default/g starts with 2 places of 3"):
        judged.start(gang[1])


def test_a_gang_starts_with_min_member_pods_in_one_domain():
    judged, gang = Judged(Policy(2, RACK)), [worker("w0"), worker("w1")]
    judged.come(*gang)
    judged.checks.took(judged.life)
    judged.start(*gang)
    assert judged.checks.hits.counts["W kai in one domain"] == 1


def test_a_plan_over_two_racks_is_a_violation_where_one_is_required():
    judged = Judged(Policy(3, ""))
    judged.come(*(worker(f"w{at}") for at in range(3)))
    judged.checks.took(judged.life)
    judged.show(judged.put(Policy(3, RACK)))
    with pytest.raises(Violation, match=r"N2: g requires one .*rack: planned on"):
        judged.checks.took(judged.life)


def test_pods_that_a_running_gang_lacks_wait_in_vain_only_where_all_of_them_have_room():
    resting = Resting()
    assert resting.waits() == ""
    resting.api.create("Node", NODES[2])
    assert resting.waits() == "2 pods in the cluster"
