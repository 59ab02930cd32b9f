"""What counts as a violation of what CompositePodGroups say, and what only looks like one."""

from __future__ import annotations

import msgspec
import pytest

from app.kube.watch.events import Applied, Listed
from app.state.effects import Evict, WriteStatus
from tests.app.state.world import LISTED, World
from tests.records import RACK, node, pod
from tests.sim.api import COMPOSITE, NATIVE_GROUP, WITH_COMPOSITES, ApiServer
from tests.sim.clock import Clock, History
from tests.sim.composite.checks import CompositeChecks
from tests.sim.composite.life import Composites
from tests.sim.composite.rest import AtRest
from tests.sim.composite.tree import CONDITION, Tree
from tests.sim.evictions import evictions_of
from tests.sim.faults import Hits
from tests.sim.judging import Judging
from tests.sim.native.life import Native
from tests.sim.native.pod_group import Policy
from tests.sim.objects import Objects
from tests.sim.oracle import Taken
from tests.sim.runs import run_seed
from tests.sim.violation import Violation

NODES = tuple(node(f"b0/r{at // 2}/n{at}", gpus=1) for at in range(4))
NOTHING = Taken(frozenset())
PATH = "/apis/scheduling.k8s.io/v1alpha3/namespaces/default/compositepodgroups/all/status"
ONE = Policy(1, "")


def worker(name, of, **more):
    return msgspec.structs.replace(pod(name, gpus=1, **more), pod_group=of)


def condition(status):
    return {"type": CONDITION, "status": status}


class Cluster:
    """An API server with nodes, composite `all`, and PodGroups a and b in it."""

    def __init__(self):
        clock = Clock()
        self.api = ApiServer(clock, History(clock))
        self.objects = Objects(clock, self.api)
        self.rest = AtRest(self.api, self.objects, Hits())
        for each in NODES:
            self.api.create("Node", each)

    def put(self, least, *groups, key="", **fields):
        its = Tree(least, key, groups)
        specs = {(COMPOSITE, "all"): (its.spec(), fields)}
        for name, group in zip("ab", groups, strict=True):
            said = {**group.spec(), "parentCompositePodGroupName": "all"}
            specs[NATIVE_GROUP, name] = said, {}
        for (kind, name), (spec, more) in specs.items():
            if self.objects.get(kind, name) is None:
                metadata = {"generation": 1}
                self.objects.create(kind, name, metadata=metadata, spec=spec, **more)
            else:
                self.objects.change(kind, name, spec=spec, **more)
        return [self.api.objects[kind][name] for kind, name in specs]

    def add(self, *pods):
        for each in pods:
            self.api.create("Pod", each)

    def waits(self, taken=NOTHING):
        return self.rest.waits_in_vain("all", self.api.list("Pod"), taken)


class Judged(Cluster, Judging):
    """An engine, and a judge that has been told the same unless a test says otherwise."""

    def __init__(self, least, *groups, key=""):
        super().__init__()
        kinds = (*LISTED, *WITH_COMPOSITES)
        world = World(NODES, kinds=kinds, native_pod_groups="on")
        self.judge(CompositeChecks(self.objects, Hits()), world, kinds)
        records = self.put(least, *groups, key=key)
        for kind in WITH_COMPOSITES:
            its = tuple(each for each in records if each.kind == kind)
            self.world.apply(Listed(kind, its))
        self.show(*NODES, *records)
        self.world.tick()

    def change(self, least, *groups, **more):
        """The judge alone hears of this."""
        self.show(*self.put(least, *groups, **more))

    def writes(self, *conditions):
        uid = self.api.objects[COMPOSITE]["all"].uid
        effect = WriteStatus(None, PATH, uid, {"conditions": list(conditions)})
        self.checks.decided(self.corral, [effect])


# -- every step ------------------------------------------------------------------------------------


def test_a_gang_that_starts_with_fewer_groups_than_it_takes_is_a_violation():
    judged, gang = Judged(1, ONE, ONE), [worker("a0", "a")]
    judged.come(*gang)
    judged.change(2, ONE, ONE)
    with pytest.raises(Violation, match=r"C1: default/all starts with places for \['a0'\]"):
        judged.start(*gang)


def test_a_gang_starts_with_its_groups_in_one_domain():
    judged, gang = Judged(2, ONE, ONE, key=RACK), [worker("a0", "a"), worker("b0", "b")]
    judged.come(*gang)
    judged.checks.took(judged.life)
    judged.start(*gang)
    assert judged.checks.hits.counts["W composite in one domain"] == 1


def test_a_plan_over_two_racks_is_a_violation_where_the_composite_requires_one():
    judged = Judged(2, ONE, Policy(2, ""))
    judged.come(worker("a0", "a"), worker("b0", "b"), worker("b1", "b"))
    judged.checks.took(judged.life)
    judged.change(2, ONE, Policy(2, ""), key=RACK)
    with pytest.raises(Violation, match=r"C2: all requires one .*rack: planned on"):
        judged.checks.took(judged.life)


def test_a_group_over_two_racks_is_a_violation_where_it_requires_one_itself():
    judged = Judged(1, ONE, Policy(3, ""))
    judged.come(*(worker(f"b{at}", "b") for at in range(3)))
    judged.checks.took(judged.life)
    judged.change(1, ONE, Policy(3, RACK))
    with pytest.raises(Violation, match=r"C2: b requires one .*rack: planned on"):
        judged.checks.took(judged.life)


@pytest.mark.parametrize("kind", WITH_COMPOSITES)
def test_a_pod_that_goes_because_an_object_changes_is_a_violation(kind):
    judged = Judged(1, ONE, ONE)
    record = next(iter(judged.api.objects[kind].values()))
    judged.checks.taken(judged.corral, Applied(record), [])
    with pytest.raises(Violation, match="C3: "):
        judged.checks.taken(judged.corral, Applied(record), [Evict("default", "a0", "uid", "why")])


def test_a_condition_that_is_not_true_of_the_groups_is_a_violation():
    judged = Judged(2, ONE, ONE)
    judged.show(worker("a0", "a", on="n0", phase="Running"), worker("b0", "b"))
    judged.writes(condition("False"))
    with pytest.raises(Violation, match=r"C4: .* its pods are not whole"):
        judged.writes(condition("True"))
    judged.change(2, ONE, ONE, status={"conditions": [condition("False")]})
    with pytest.raises(Violation, match="once more"):
        judged.writes(condition("False"))
    judged.change(2, ONE, ONE, status={"conditions": [condition("True")]})
    with pytest.raises(Violation, match="takes back that it was scheduled"):
        judged.writes(condition("False"))


# -- at rest ---------------------------------------------------------------------------------------


def test_a_gang_waits_in_vain_where_one_domain_has_room_for_as_many_groups_as_it_takes():
    cluster = Cluster()
    cluster.put(2, ONE, ONE, key=RACK)
    cluster.add(worker("a0", "a"))
    assert cluster.waits() == ""  # for another group
    cluster.add(worker("b0", "b"))
    assert "2 pods in b0/r0" in cluster.waits()
    full = Taken(frozenset({"n0", "n3"}))
    assert cluster.waits(full) == ""
    cluster.put(1, ONE, ONE, key=RACK)
    assert "1 pods in b0/r0" in cluster.waits(full)
    cluster.put(2, ONE, ONE)
    assert "2 pods in the cluster" in cluster.waits(full)


def test_a_pod_that_follows_waits_in_vain_beside_those_of_its_group_that_run():
    cluster = Cluster()
    cluster.put(1, ONE, ONE, key=RACK)
    cluster.add(worker("a0", "a", on="n0", phase="Running"), worker("a1", "a"))
    assert "1 pods in b0/r0" in cluster.waits()
    assert cluster.waits(Taken(frozenset({"n1"}))) == ""


@pytest.mark.parametrize(
    ("nodes", "said", "is_right"),
    [
        pytest.param(("n0", "n1"), "True", True, id="all_run"),
        pytest.param(("n0", "n1"), "False", False, id="all_run_and_it_says_no"),
        pytest.param(("", ""), "False", True, id="all_wait"),
        pytest.param(("", ""), "", False, id="all_wait_and_it_does_not_say_so"),
    ],
)
def test_a_condition_at_rest_says_whether_the_gang_has_started(nodes, said, is_right):
    cluster = Cluster()
    cluster.put(2, ONE, ONE, status={"conditions": [condition(said)] if said else []})
    for of, on in zip("ab", nodes, strict=True):
        its = {"type": "PodGroupInitiallyScheduled", "status": "True" if on else "False"}
        cluster.objects.change(NATIVE_GROUP, of, status={"conditions": [its]})
        cluster.add(worker(f"{of}0", of, on=on, phase="Running" if on else "Pending"))
    if is_right:
        cluster.rest.check_conditions()
        return
    with pytest.raises(Violation, match="C4: all says"):
        cluster.rest.check_conditions()


# -- worlds ----------------------------------------------------------------------------------------


def test_their_worlds_are_some_of_those_without_other_native_pod_groups():
    seeds = [seed for seed in range(500) if Composites.is_in(seed)]
    assert 40 <= len(seeds) <= 90
    assert not any(map(Native.is_in, seeds))


def test_a_world_of_them_has_some_and_no_violation():
    seeds = (seed for seed in range(500) if Composites.is_in(seed))
    seed = next(each for each in seeds if evictions_of(each, is_sure=False) is None)
    outcome = run_seed(seed)
    assert outcome.violation == ""
    assert outcome.hits["W composite"] >= 2
