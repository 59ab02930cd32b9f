"""Simulators ask about nodes that may not exist: they are answered, and nothing changes by it.

`asked` is what the port makes of a request, without HTTP: the same two steps.
"""

from __future__ import annotations

import json

import msgspec
import pytest

from app.dialects.devices.dialect import DeviceClassRecord
from app.extender.models import FullNodes, NodeNames
from app.kube.core.objects import Requirement, Shape, Taint, Term, Toleration
from app.kube.watch.events import Applied, Listed
from app.state.answers import hypothetical
from app.state.answers.hypothetical import MOST_COMPARISONS, NOT_KNOWN, TOO_MUCH, Question, judged
from app.state.engine import Engine
from app.state.filter_result import Failed, Passed, Pinned, Possible, Rejected
from app.state.settings import EngineSettings
from tests import cluster
from tests.app.dialects.volcano.objects import exact, record
from tests.app.simulate.clusters import digest
from tests.app.state.recorded import RecordedWorld
from tests.app.state.world import LISTED, World, four_racks, members
from tests.records import BLOCK, GPU, RACK, node, pod

TEMPLATE = "cluster-autoscaler.kubernetes.io/template-node"
UPCOMING = "cluster-autoscaler.k8s.io/upcoming-node"
LABELS = {BLOCK: "b0", RACK: "r0"}
GATES = ("corral.dev/gang",)


def template(name, *, gpus=8, labels=None, **more):
    """A node as cluster-autoscaler makes it of a node group: it is in no rack yet."""
    return cluster.node(name, gpus=gpus, labels={TEMPLATE: "true", **(labels or {})}, **more)


def upcoming(name):
    thing = cluster.node(name, gpus=8)
    thing["metadata"]["annotations"] = {UPCOMING: "true"}
    return thing


def whole(*things):
    return FullNodes(json.dumps({"items": things}).encode())


def named(*names):
    return NodeNames(json.dumps(names).encode())


def asked(world, a_pod, nodes):
    found = world.engine.hypothetical.asked(a_pod, nodes)
    return judged(found) if isinstance(found, Question) else found


def gated(a_pod):
    return msgspec.structs.replace(a_pod, gates=GATES)


def waiting(world, name="g", total=20, gpus=8):
    """A gang that no rack is large enough for."""
    pods = members(name, total, gpus=gpus)
    world.put(*pods)
    world.tick()
    assert not world.gang(name).plan.nodes
    return pods


def held(world, name="g", total=2):
    """A gang that has a plan; none of its pods has come to /filter yet."""
    pods = members(name, total)
    world.put(*pods)
    world.tick()
    nodes = world.gang(name).plan.nodes
    assert len(nodes) == total
    return pods, nodes


# -- scenario 18 -----------------------------------------------------------------------------------


def test_asked_a_thousand_times_about_nodes_that_do_not_exist_nothing_changes():
    lines = []
    world = RecordedWorld(four_racks(), lines.append)
    pods = waiting(world)
    templates = [template(f"template-{i}", gpus=8 if i % 5 else 4) for i in range(50)]
    unknown = [cluster.node(f"unknown-{i}", gpus=8) for i in range(3)]
    nodes = whole(*templates, *unknown)
    before, written = digest(world.engine), len(lines)
    fitting = tuple(f"template-{i}" for i in range(50) if i % 5)
    for number in range(1_000):
        a_pod = pods[number % len(pods)]
        answer = asked(world, a_pod, nodes)
        assert answer.nodes == fitting
        assert not any(world.engine.hypothetical.scores(a_pod, nodes))
    assert digest(world.engine) == before
    assert len(lines) == written
    assert set(answer.why_not.values()) == {
        f"insufficient {GPU}",
        "without a label of every level",
    }


def test_nothing_changes_whatever_is_asked_of_a_gang_that_is_planned():
    lines = []
    world = RecordedWorld(four_racks(), lines.append)
    pods, planned = held(world)
    before, written = digest(world.engine), len(lines)
    for nodes in (
        whole(template("t"), *(cluster.node(name) for name in planned.values())),
        whole(upcoming("u")),
        named("t"),
        named("t", *(n for n in world.engine.books.nodes if n not in planned.values())),
    ):
        for a_pod in (*pods, *map(gated, pods)):
            assert asked(world, a_pod, nodes) is not None
            world.engine.hypothetical.scores(a_pod, nodes)
    assert digest(world.engine) == before
    assert len(lines) == written
    world.tick()
    assert world.gang().plan.nodes == planned


def test_nodes_newer_than_the_trees_are_counted_and_the_trees_are_left_as_they_are():
    world = World(four_racks())
    a_pod = gated(pod("g0", gpus=5))
    engine = world.engine
    engine.apply(Applied(node("b0/r0/new")), world.now)
    engine.apply(Applied(pod("runs", gpus=4, on="new")), world.now)
    engine.apply(Applied(node("b0/r0/empty")), world.now)
    before = digest(engine)
    answer = asked(world, a_pod, named("ghost", "new", "empty", "n00"))
    assert answer.nodes == ("empty", "n00")
    assert answer.why_not == {"ghost": NOT_KNOWN, "new": f"insufficient {GPU}"}
    assert digest(engine) == before


# -- who asks --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "nodes",
    [
        pytest.param(whole(template("t")), id="a_template"),
        pytest.param(whole(upcoming("u")), id="an_upcoming_node"),
        pytest.param(whole(cluster.node("n00"), upcoming("u")), id="beside_a_known_node"),
        pytest.param(whole(template("n00")), id="a_template_with_a_known_name"),
    ],
)
@pytest.mark.parametrize("kind", ["member", "ordinary", "not_shown_yet"])
def test_a_marked_node_is_a_simulators_whatever_the_pod(nodes, kind):
    world = World(four_racks())
    pods = waiting(world)
    a_pod = {"member": pods[0], "ordinary": pod("web"), "not_shown_yet": members("h", 2)[0]}[kind]
    assert isinstance(asked(world, a_pod, nodes), Possible)
    assert world.engine.hypothetical.scores(a_pod, nodes) is not None


@pytest.mark.parametrize(
    "nodes",
    [
        pytest.param(named("n00", "n01"), id="names"),
        pytest.param(whole(cluster.node("n00"), cluster.node("n01")), id="whole_nodes"),
    ],
)
def test_nodes_that_are_all_known_are_kube_schedulers_whole_or_not(nodes):
    world = World(four_racks())
    pods = waiting(world)
    for a_pod in (pods[0], pod("web"), members("h", 2)[0], gated(pods[0])):
        assert asked(world, a_pod, nodes) is None
        assert world.engine.hypothetical.scores(a_pod, nodes) is None


def test_kube_scheduler_with_whole_nodes_is_answered_as_ever():
    world = World(four_racks())
    pods, planned = held(world)
    nodes = whole(*(cluster.node(name) for name in world.engine.books.nodes))
    for a_pod in pods:
        answer, _ = world.engine.filter(a_pod, nodes, world.now)
        assert answer == Pinned(planned[a_pod.uid])
    assert world.gang().binding.answered == {a_pod.uid for a_pod in pods}


# -- a node that kube-scheduler saw a moment before the watch --------------------------------------


def test_a_member_whose_planned_node_is_offered_beside_an_unknown_one_gets_it():
    world = World(four_racks())
    pods, planned = held(world)
    for a_pod in pods:
        for nodes in (
            named("new", *world.engine.books.nodes),
            whole(cluster.node("new"), cluster.node(planned[a_pod.uid])),
        ):
            assert asked(world, a_pod, nodes) is None
            assert world.engine.filter(a_pod, nodes, world.now)[0] == Pinned(planned[a_pod.uid])


def test_a_member_keeps_its_plan_if_only_unknown_nodes_and_others_are_offered():
    world = World(four_racks())
    pods, planned = held(world)
    others = [name for name in world.engine.books.nodes if name not in planned.values()]
    for nodes in (named("new"), named("new", *others), whole(cluster.node("new", gpus=8))):
        assert isinstance(asked(world, pods[0], nodes), Failed)
    assert world.gang().plan.nodes == planned
    assert world.engine.refusals.remembered() == {}
    # Without the unknown node it is a refusal, as ever.
    assert asked(world, pods[0], named(*others)) is None


def test_a_pod_of_a_gang_without_a_plan_is_given_no_node_by_an_unknown_one():
    world = World(four_racks())
    pods = waiting(world)
    for a_pod in (pods[0], members("h", 2)[0]):
        for nodes in (named("new", "n00"), whole(cluster.node("new", gpus=8))):
            assert isinstance(asked(world, a_pod, nodes), Failed)


def test_a_nominated_pod_keeps_its_nomination():
    world = World(four_racks())
    pods = waiting(world)
    nominated = msgspec.structs.replace(pods[0], nominated_node="new")
    assert isinstance(asked(world, nominated, named("new")), Rejected)


def test_an_ordinary_pod_may_have_a_node_that_the_watch_does_not_show_yet():
    world = World(four_racks())
    assert asked(world, pod("web"), named("new", "n00")) is None
    assert world.filter(pod("web"), ["new", "n00"]) == Passed()


def test_before_the_lists_are_in_a_simulator_is_told_so():
    engine = Engine(EngineSettings(levels=(BLOCK, RACK), kinds=LISTED))
    assert isinstance(engine.hypothetical.asked(pod("web"), whole(template("t"))), Failed)
    assert engine.hypothetical.asked(members("g", 2)[0], named("new")) is None  # the engine says so
    assert engine.hypothetical.scores(pod("web"), whole(template("t"))) == [0]


# -- where the pod may stand -----------------------------------------------------------------------


def test_every_node_is_named_and_not_the_planned_one_alone():
    world = World(four_racks())
    pods, planned = held(world)
    every = tuple(world.engine.books.nodes)
    answer = asked(world, pods[0], whole(template("t"), *map(cluster.node, every)))
    assert answer == Possible(("t", *every), {})
    assert set(planned.values()) <= set(answer.nodes)


def test_what_is_held_counts_for_all_but_the_gang_that_holds_it():
    world = World(four_racks())
    _, planned = held(world)
    (web,) = members("other", 1, required=None)
    world.put(web)
    for a_pod in (pod("ordinary"), gated(web)):
        answer = asked(world, a_pod, whole(template("t"), *map(cluster.node, planned.values())))
        assert answer.nodes == ("t",)
        assert set(answer.why_not.values()) == {f"insufficient {GPU}"}


def test_a_pod_that_runs_may_stand_where_it_does():
    world = World(four_racks())
    runs = pod("web", on="n00")
    world.put(runs, pod("neighbour", on="n01"))
    again = msgspec.structs.replace(runs, node="")
    answer = asked(world, again, whole(template("t"), cluster.node("n00"), cluster.node("n01")))
    assert answer.nodes == ("t", "n00")


def test_known_nodes_are_judged_by_the_books_whatever_is_sent_of_them():
    world = World(four_racks())
    world.put(
        pod("full", on="n00"),
        node("b0/r0/n01", is_cordoned=True),
        node("b0/r0/n02", taints=(Taint("a", "b", "NoSchedule"),)),
        node("unlabelled"),
    )
    pods = waiting(world)
    names = ("n00", "n01", "n02", "n03", "unlabelled")
    sent = [cluster.node(name, gpus=64, labels=LABELS) for name in names]
    answer = asked(world, pods[0], whole(template("t"), *sent))
    assert answer.nodes == ("t", "n03")
    assert answer.why_not == {
        "n00": f"insufficient {GPU}",
        "n01": "not ready or unschedulable",
        "n02": 'taint "a=b:NoSchedule"',
        "unlabelled": "without a label of every level",
    }


def test_unknown_nodes_are_judged_by_what_is_sent_of_them():
    world = World(four_racks())
    shape = Shape(
        selector=(("pool", "gpu"),),
        terms=(Term((Requirement("zone", "In", ("a", "b")),)),),
        tolerations=(Toleration("ours", "Exists", "", ""),),
    )
    pods = [gated(msgspec.structs.replace(each, shape=shape)) for each in members("g", 2)]
    world.put(*pods)
    good = {"pool": "gpu", "zone": "a", **LABELS}
    foreign = {"key": "theirs", "value": "", "effect": "NoSchedule"}
    ours = {"key": "ours", "value": "", "effect": "NoSchedule"}
    nodes = whole(
        cluster.node("good", gpus=8, labels=good, taints=[ours]),
        cluster.node("rackless", gpus=8, labels={"pool": "gpu", "zone": "a"}),
        cluster.node("selector", gpus=8, labels={**good, "pool": "cpu"}),
        cluster.node("affinity", gpus=8, labels={**good, "zone": "c"}),
        cluster.node("tainted", gpus=8, labels=good, taints=[foreign]),
        cluster.node("small", gpus=7, labels=good),
        cluster.node("none", labels=good),
        cluster.node("cordoned", gpus=8, labels=good, is_unschedulable=True),
        template("template", labels={"pool": "gpu", "zone": "b"}),
        template("other", labels={"pool": "cpu", "zone": "b"}),
    )
    answer = asked(world, pods[0], nodes)
    assert answer.nodes == ("good", "template")
    assert answer.why_not == {
        "rackless": "without a label of every level",
        "selector": "nodeSelector",
        "affinity": "affinity",
        "tainted": 'taint "theirs:NoSchedule"',
        "small": f"insufficient {GPU}",
        "none": f"insufficient {GPU}",
        "cordoned": "not ready or unschedulable",
        "other": "nodeSelector",
    }


def test_a_cluster_without_nodes_is_answered_from_templates():
    """Every node group is scaled to zero: an autoscaler asks about its templates alone."""
    nodes = four_racks()
    world = World(nodes)
    pods = [gated(each) for each in members("g", 2)]
    world.put(*pods)
    world.delete(*nodes)
    world.tick()
    labels = {"good": LABELS, "rackless": {BLOCK: "b0"}}
    sent = whole(*(cluster.node(name, gpus=8, labels=each) for name, each in labels.items()))
    answer = asked(world, pods[0], sent)
    assert answer == Possible(("good",), {"rackless": "without a label of every level"})


def test_a_gated_pod_is_told_where_it_may_stand_and_that_a_bare_name_says_nothing():
    world = World(four_racks())
    pods = [gated(each) for each in members("g", 20)]
    world.put(*pods)
    answer = asked(world, pods[0], named("ghost", "n00", "ghost", "n01"))
    assert answer == Possible(("n00", "n01"), {"ghost": NOT_KNOWN})
    assert world.engine.hypothetical.scores(pods[0], named("ghost")) == [0]


def test_known_nodes_are_scored_as_ever_and_others_0():
    world = World(four_racks())
    world.put(pod("runs", gpus=1, on="n00"))
    web = pod("web", gpus=1)
    names = ("n00", "n10", "n20")
    nodes = whole(template("t"), *map(cluster.node, names))
    before = digest(world.engine)
    given = world.engine.hypothetical.scores(web, nodes)
    assert digest(world.engine) == before
    assert given == [0, *world.engine.prioritize(web, named(*names), world.now)]
    assert given[1] > 0


def test_room_that_others_are_nominated_for_is_theirs_unless_the_pod_comes_before_them():
    world = World(four_racks())
    world.put(msgspec.structs.replace(pod("evicts", priority=5), nominated_node="n00"))
    nodes = whole(template("t"), cluster.node("n00"))
    assert asked(world, pod("web", priority=5), nodes).why_not == {"n00": f"insufficient {GPU}"}
    assert asked(world, pod("web", priority=6), nodes).why_not == {}
    nominated = world.pods["uid-evicts"]
    assert asked(world, nominated, nodes).why_not == {}


def test_where_objects_name_the_nodes_of_domains_any_other_node_is_a_domain_of_its_own():
    world = World([node(f"n{at}") for at in (0, 1, 9)], kinds=(*LISTED, "HyperNode"), levels=())
    racks = (record("r0", 1, exact("Node", "n0", "n1")), record("b0", 2, exact("HyperNode", "r0")))
    world.apply(Listed("HyperNode", racks))
    pods = [gated(each) for each in members("g", 3, "topology.volcano.sh/tier-1")]
    world.put(*pods, pod("runs", on="n1"))
    before = digest(world.engine)
    things = [cluster.node(name, gpus=8) for name in ("n0", "n1", "n9", "unknown")]
    nodes = whole(*things, template("t"))
    answer = asked(world, pods[0], nodes)
    assert answer == Possible(("n0", "n9", "unknown", "t"), {"n1": f"insufficient {GPU}"})
    world.engine.hypothetical.scores(pods[0], nodes)
    assert digest(world.engine) == before


@pytest.mark.parametrize("resource", ["", "example.com/none"])
def test_a_resource_that_no_node_of_the_cluster_has_keeps_the_pod_off_all_but_those_that_offer_it(
    resource,
):
    world = World(four_racks())
    odd = msgspec.structs.replace(pod("odd"), request=((resource, 1), ("pods", 1)))
    offers = template("offers")
    offers["status"]["allocatable"] = {resource: "1", "pods": "1"}
    answer = asked(world, odd, whole(offers, template("t"), cluster.node("n00")))
    lacks = f"insufficient {resource}"
    assert answer == Possible(("offers",), {"t": lacks, "n00": lacks})


def test_devices_that_claims_are_made_for_are_lacking_only_where_a_node_counts_some():
    world = World(four_racks())
    world.put(DeviceClassRecord("DeviceClass", "", "gpu", "uid-class", "1", "example.com/gpu"))
    odd = msgspec.structs.replace(pod("odd"), request=(("example.com/gpu", 2), ("pods", 1)))
    few = template("few")
    few["status"]["allocatable"] = {"example.com/gpu": "1", "pods": "1"}
    answer = asked(world, odd, whole(few, template("t"), cluster.node("n00")))
    assert answer == Possible(("t", "n00"), {"few": "insufficient example.com/gpu"})


def test_a_level_that_no_topology_has_and_a_mistaken_pod_are_told():
    world = World(four_racks())
    (a_pod,) = members("g", 1, required="no.such/level")
    world.put(a_pod)
    told = asked(world, a_pod, whole(template("t")))
    assert "no.such/level" in told.sentence
    forged = msgspec.structs.replace(a_pod, namespace="other")
    assert "is not that of pod" in asked(world, forged, whole(template("t"))).sentence
    (wrong,) = members("h", 1)
    annotations = {**wrong.annotations, "kueue.x-k8s.io/pod-group-total-count": "many"}
    wrong = msgspec.structs.replace(wrong, annotations=annotations)
    assert "many" in asked(world, wrong, whole(template("t"))).sentence


def test_a_node_kept_for_a_gang_that_starves_is_no_place_for_later_ones():
    world = World(four_racks())
    pods = waiting(world, "late", total=1, gpus=9)
    key = waiting(world, "first", total=20) and world.gang("first").key
    world.engine.planner.earmarked[key] = (frozenset({"n00"}), (-1,))
    answer = asked(world, pods[0], whole(template("t", gpus=9), cluster.node("n00")))
    kept = Possible(("t",), {"n00": "kept for a gang that comes before it"})
    assert answer == kept
    (not_shown,) = members("later", 1)
    assert asked(world, not_shown, whole(template("t"), cluster.node("n00"))) == kept


# -- what it costs ---------------------------------------------------------------------------------


def test_a_request_that_takes_too_long_fails():
    world = World(four_racks())
    terms = tuple(
        Term((Requirement("zone", "In", tuple(map(str, range(1_000)))),)) for _ in range(100)
    )
    dear = pod("dear", shape=Shape(terms=terms))
    nodes = whole(*(template(f"t{i}") for i in range(MOST_COMPARISONS // 100_000 + 1)))
    question = world.engine.hypothetical.asked(dear, nodes)
    assert len(question) > hypothetical.AT_ONCE  # beside the loop
    assert judged(question) == Failed(TOO_MUCH)


def test_taints_of_a_node_as_it_is_sent_count_with_the_tolerations():
    world = World(four_racks())
    tolerations = tuple(Toleration(str(i), "Exists", "", "") for i in range(2_000))
    dear = pod("dear", shape=Shape(tolerations=tolerations))
    taints = [{"key": "1999", "value": str(i), "effect": "NoSchedule"} for i in range(499)]
    nodes = [template(f"t{i}", taints=taints) for i in range(MOST_COMPARISONS // 1_000_000 + 1)]
    for few in (nodes[:-1], nodes):
        question = world.engine.hypothetical.asked(dear, whole(*few))
        assert len(question) > hypothetical.AT_ONCE  # beside the loop
        assert isinstance(judged(question), Possible if few is not nodes else Failed)
