"""What counts as a violation of what PodGangs say, and what only looks like one."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from app.dialects.corral import ALL
from app.kube.watch.events import Applied, Listed
from app.state.effects import Evict, Ungate, WriteStatus
from tests.app.state.world import LISTED, World
from tests.records import BLOCK, RACK, node, pod
from tests.sim.api import CLUSTER_TOPOLOGY, GROVE, POD_GANG, ApiServer
from tests.sim.clock import Clock, History
from tests.sim.faults import Hits
from tests.sim.grove.checks import GroveChecks
from tests.sim.grove.pod_clique_set import (
    BASE,
    HOST,
    KEYS,
    POD_CLIQUE,
    TOPOLOGY_NAME,
    Clique,
    Pack,
    PodCliqueSet,
)
from tests.sim.grove.pod_clique_set import POD_GANG as LABEL
from tests.sim.grove.reading import domain_of, levels_of, pod_gang_of
from tests.sim.grove.rest import AtRest
from tests.sim.judging import Judging
from tests.sim.objects import Objects
from tests.sim.oracle import Taken
from tests.sim.told import note_losses
from tests.sim.violation import Violation

NODES = tuple(node(f"b0/r{at // 2}/n{at}", gpus=1) for at in range(4))
NOTHING = Taken(frozenset())
LEVELS = tuple(KEYS)
PATH = "/apis/scheduler.grove.io/v1alpha1/namespaces/default/podgangs/p-0/status"
CREATED = {"type": "Initialized", "status": "True", "reason": "PodGangPodsCreated"}


def a_set(least, *, pack="", clique=""):
    """One clique of workers with a GPU each: PodGang p-0 with the pod group p-0-w."""
    return PodCliqueSet((Clique("w", least, Pack(clique)),), Pack(pack))


def worker(name, group="w", **more):
    return pod(name, gpus=1, labels={LABEL: "p-0", POD_CLIQUE: f"p-0-{group}"}, **more)


class Cluster:
    """An API server with nodes, a ClusterTopology and PodGangs."""

    def __init__(self):
        self.clock = Clock()
        self.api = ApiServer(self.clock, History(self.clock))
        self.objects = Objects(self.clock, self.api)
        self.rest = AtRest(self.api, self.objects, Hits())
        for each in NODES:
            self.api.create("Node", each)
        levels = [{"domain": name, "key": key} for name, key in KEYS.items()]
        self.objects.create(CLUSTER_TOPOLOGY, "t", spec={"levels": levels})

    def put(self, made, status=None):
        """The PodGang p-0, new or with another spec."""
        spec = made.spec("p", BASE, LEVELS, {})
        if self.objects.get(POD_GANG, "p-0") is None:
            metadata = {"annotations": {TOPOLOGY_NAME: "t"}}
            self.objects.create(POD_GANG, "p-0", metadata=metadata, spec=spec, status=status or {})
        else:
            self.objects.change(POD_GANG, "p-0", spec=spec)
        return self.api.objects[POD_GANG]["p-0"]

    def add(self, *pods):
        for each in pods:
            self.api.create("Pod", each)

    def waits(self, taken=NOTHING):
        return self.rest.waits_in_vain("p-0", self.api.list("Pod"), taken)


class Judged(Cluster, Judging):
    """An engine, and a judge that has been told the same unless a test says otherwise."""

    def __init__(self, made, **settings):
        super().__init__()
        kinds = (*LISTED, *GROVE)
        checks = GroveChecks(self.clock, self.objects, Hits())
        self.judge(checks, World(NODES, kinds=kinds, **settings), kinds)
        topology = self.api.objects[CLUSTER_TOPOLOGY]["t"]
        self.world.apply(Listed(CLUSTER_TOPOLOGY, (topology,)))
        self.world.apply(Listed(POD_GANG, (self.put(made),)))
        self.show(*NODES, topology, self.api.objects[POD_GANG]["p-0"])
        self.world.tick()

    def change(self, made):
        """The judge alone hears of this."""
        self.show(self.put(made))

    def name(self, made, *names):
        """The operator names pods of the workers' pod group; both hear of it."""
        self.objects.change(POD_GANG, "p-0", spec=made.spec("p", BASE, LEVELS, {"0-w": [*names]}))
        record = self.api.objects[POD_GANG]["p-0"]
        self.world.put(record)
        self.show(record)

    def begin_binding(self, ordinary, on):
        """A pod that no object names is bound; what is posted stays under way."""
        self.world.put(ordinary)
        self.show(ordinary)
        self.world.filter(ordinary)
        posted = self.world.bind(ordinary, on)
        self.life.posted.update({each.uid: each.node for each in posted})

    def writes(self, **status):
        uid = self.api.objects[POD_GANG]["p-0"].uid
        self.checks.decided(self.corral, [WriteStatus(None, PATH, uid, status)])


# -- what the objects mean -------------------------------------------------------------------------


def test_scaled_replicas_of_a_group_are_pod_gangs_of_their_own():
    cliques = (Clique("router", 1), Clique("pl", 1, is_scaled=True))
    made = PodCliqueSet(cliques, Pack("block"), Pack("rack"), replicas=3, least=1)
    names = {gang: [each.name for each in parts] for gang, parts in made.gangs().items()}
    assert names == {
        "0": ["0-router", "0-sg-0-pl"],
        "0-sg-0": ["0-sg-1-pl"],
        "0-sg-1": ["0-sg-2-pl"],
    }
    base = made.spec("p", "0", LEVELS, {})
    assert base["topologyConstraint"] == {"packConstraint": {"required": BLOCK}}
    (config,) = base["topologyConstraintGroupConfigs"]
    assert config["podGroupNames"] == ["p-0-sg-0-pl"]
    scaled = made.spec("p", "0-sg-0", ("block", "host"), {})  # without the level rack
    assert "topologyConstraint" not in scaled


def test_a_domain_is_the_values_of_the_levels_down_to_its_own():
    assert domain_of(NODES[2], RACK, (BLOCK, RACK, HOST)) == ("b0", "r1")
    assert domain_of(NODES[2], RACK, (RACK, HOST)) == ("r1",)
    assert levels_of({"spec": {"levels": [{"domain": "rack", "key": RACK}]}}) == [RACK, HOST]
    assert levels_of(None) == ()


def test_scopes_are_inside_one_another():
    cliques = (Clique("a", 1), Clique("b", 1, Pack("host"), is_scaled=True))
    made = PodCliqueSet(cliques, Pack("block"), Pack("rack"), replicas=1, least=1)
    spec = made.spec("p", "0", LEVELS, {})
    its = pod_gang_of({"metadata": {"name": "p-0", "uid": "u"}, "spec": spec})
    pods = [worker("a0", "a"), worker("b0", "sg-0-b")]
    levels = [(each.level, len(each.pods)) for each in its.scope(pods).each()]
    assert levels == [(BLOCK, 2), (RACK, 1), (HOST, 1), ("", 1)]
    assert its.is_whole(pods)
    assert not its.is_whole(pods[:1])


def test_pods_without_labels_are_in_the_pod_group_that_names_them():
    made = a_set(1).spec("p", BASE, LEVELS, {"0-w": ["named"], "w": ["named"]})
    its = pod_gang_of({"metadata": {"name": "p-0", "uid": "u"}, "spec": made})
    named, other = pod("named", gpus=1), pod("other", gpus=1)
    assert (its.has(named), its.has(other), its.has(worker("w0"))) == (True, False, True)
    assert its.group_of(named) == "p-0-w"
    assert its.is_whole([named])


def test_room_in_two_racks_is_a_violation_where_a_pod_group_requires_one():
    judged = Judged(a_set(2, pack="rack"))
    judged.come(worker("w0"), worker("w1"))
    gang = judged.world.engine.gangs.of_pod("uid-w0")
    judged.checks.together(judged.life, gang, {"uid-w0": "n0", "uid-w1": "n1"})
    with pytest.raises(Violation, match=r"G2: .* requires one .*rack: planned on"):
        judged.checks.together(judged.life, gang, {"uid-w0": "n0", "uid-w1": "n2"})


# -- every step ------------------------------------------------------------------------------------


def test_a_gang_that_starts_with_fewer_pods_than_min_replicas_is_a_violation():
    judged, gang = Judged(a_set(2)), [worker("w0"), worker("w1")]
    judged.come(*gang)
    judged.start(gang[0])  # which waits for the other
    judged.change(a_set(3))
    with pytest.raises(Violation, match=r"G1: default/p-0 starts with places for \['w0', 'w1'\]"):
        judged.start(gang[1])


def test_a_gang_starts_with_min_replicas_in_one_domain():
    judged, gang = Judged(a_set(2, pack="rack")), [worker("w0"), worker("w1")]
    judged.come(*gang)
    judged.checks.took(judged.life)
    judged.start(*gang)
    assert judged.checks.hits.counts["W packed"] == 1


@pytest.mark.parametrize("where", ["pack", "clique"])
def test_a_plan_over_two_racks_is_a_violation_where_one_is_required(where):
    judged = Judged(a_set(3))
    judged.come(*(worker(f"w{at}") for at in range(3)))
    judged.checks.took(judged.life)
    judged.change(a_set(3, **{where: "rack"}))
    with pytest.raises(Violation, match=r"G2: p-0.* requires one .*rack: planned on"):
        judged.checks.took(judged.life)


def test_who_runs_where_racks_came_apart_is_no_violation():
    judged = Judged(a_set(1, pack="rack"))
    judged.come(worker("w0"))
    (planned,) = judged.world.gang("p-0").plan.nodes.values()
    others = [each.name for each in NODES if each.labels[RACK] != f"r{int(planned[1]) // 2}"]
    judged.show(worker("r0", on=others[0], phase="Running"))
    with pytest.raises(Violation, match="G2"):
        judged.checks.took(judged.life)
    judged.show(worker("r1", on=planned, phase="Running"))
    judged.checks.took(judged.life)


def test_a_binding_apart_whose_end_nobody_heard_of_is_no_plan_apart_afterwards():
    judged = Judged(a_set(1, pack="rack"))
    judged.come(worker("w0"))
    ((uid, planned),) = judged.world.gang("p-0").plan.nodes.items()
    others = [each.name for each in NODES if each.labels[RACK] != f"r{int(planned[1]) // 2}"]
    judged.show(worker("r0", on=others[0], phase="Running"))
    judged.life.posted[uid] = planned
    judged.checks.took(judged.life)
    del judged.life.posted[uid]
    judged.checks.took(judged.life)


def test_a_plan_by_a_level_that_is_not_known_is_a_violation_unless_it_was_made_before():
    judged = Judged(a_set(1, pack="rack"))
    judged.come(worker("w0"))
    topology = judged.life.streams[CLUSTER_TOPOLOGY].mirror.pop("t")
    with pytest.raises(Violation, match=r"G3: default/p-0 is planned on .* no \['.*rack'\]"):
        judged.checks.took(judged.life)
    judged.show(topology)
    judged.checks.took(judged.life)
    judged.life.streams[CLUSTER_TOPOLOGY].mirror.clear()
    judged.checks.took(judged.life)


def test_a_plan_by_a_level_that_is_not_known_may_be_where_a_pod_ran_that_is_gone():
    judged = Judged(a_set(1, pack="rack"))
    judged.come(worker("w0"))
    (planned,) = judged.world.gang("p-0").plan.nodes.values()
    judged.life.streams[CLUSTER_TOPOLOGY].mirror.clear()
    with pytest.raises(Violation, match="G3"):
        judged.checks.took(judged.life)
    ran = worker("w0", on=planned, phase="Running")
    judged.checks.taken(judged.corral, Applied(ran), [])
    judged.checks.took(judged.life)


def test_a_place_held_for_a_lost_pod_may_be_its_replacements_when_the_level_is_gone():
    judged = Judged(a_set(2, pack="rack"))
    judged.come(worker("w0"), worker("w1"))
    places = judged.world.gang("p-0").plan.nodes
    nodes = {judged.world.gang("p-0").member(uid).pod.name: on for uid, on in places.items()}
    lost, other = (worker(each, on=nodes[each], phase="Running") for each in ("w0", "w1"))
    judged.world.put(lost, other)
    judged.show(other)
    judged.world.delete(lost)
    judged.world.tick()
    assert [*judged.world.gang("p-0").plan.nodes.values()] == [nodes["w0"]]
    judged.checks.taken(judged.corral, Applied(other), [])
    judged.life.streams[CLUSTER_TOPOLOGY].mirror.clear()
    judged.come(worker("w2"))
    assert [*judged.world.gang("p-0").plan.nodes.values()] == [nodes["w0"]]
    assert judged.world.gang("p-0").key in judged.world.engine.gangs.planned
    judged.checks.took(judged.life)


@pytest.mark.parametrize("kind", [POD_GANG, CLUSTER_TOPOLOGY])
def test_a_pod_that_goes_because_an_object_changes_is_a_violation(kind):
    judged = Judged(a_set(1))
    (record,) = judged.api.objects[kind].values()
    judged.checks.taken(judged.corral, Applied(record), [])
    with pytest.raises(Violation, match=f"G4: {kind} .* changes"):
        judged.checks.taken(judged.corral, Applied(record), [Evict("default", "w0", "uid", "why")])


def test_a_gang_that_lost_a_pod_for_another_may_end_with_a_change_of_its_object():
    judged, gang = Judged(a_set(2), disruption=ALL), [worker("w0"), worker("w1")]
    judged.come(*gang)
    assert len(judged.world.schedule(*gang)) == 2
    judged.world.tick()
    runs, lost = (judged.world.pods[each.uid] for each in gang)
    judged.show(runs)
    del judged.life.streams["Pod"].mirror[lost.name]
    judged.world.put(replace(lost, is_preempted=True, is_terminating=True))
    judged.world.delete(lost)
    changed = Applied(judged.put(a_set(1)))
    note_losses(judged.life)
    effects = judged.world.apply(changed)
    assert [each.name for each in effects if isinstance(each, Evict)] == ["w0"]
    judged.checks.taken(judged.corral, changed, effects)
    note_losses(judged.life)
    with pytest.raises(Violation, match="G4: PodGang p-0 changes"):
        judged.checks.taken(judged.corral, changed, effects)


def test_a_gate_that_corral_takes_off_is_a_violation():
    judged, gated = Judged(a_set(1)), worker("w0", gates=("grove.io/podgang-pending-creation",))
    judged.show(gated)
    effect = Ungate("default", "w0", gated.uid, "corral.dev/gang")
    with pytest.raises(Violation, match="G6"):
        judged.checks.decided(judged.corral, [effect])


def _scheduled(status, **more):
    return {"type": "Scheduled", "status": status, "reason": "PodGangScheduled", **more}


@pytest.mark.parametrize(
    ("status", "message"),
    [
        pytest.param({"phase": "Running"}, "says", id="running_with_too_few"),
        pytest.param(
            {"phase": "Starting", "conditions": [CREATED, _scheduled("True")]},
            "says",
            id="scheduled_with_too_few",
        ),
        pytest.param({"phase": "Pending"}, "is Pending", id="pending_with_some"),
        pytest.param(
            {"phase": "Starting", "conditions": [_scheduled("False")]},
            "takes away",
            id="without_conditions_of_others",
        ),
        pytest.param(
            {"conditions": [CREATED, _scheduled("False"), {"type": "Ready", "status": "True"}]},
            "says",
            id="ready_with_too_few",
        ),
        pytest.param(
            {"phase": "Starting", "placementScore": 1.5}, "scores 1.5", id="a_score_above_one"
        ),
        pytest.param({}, "says .* once more", id="nothing_new"),
    ],
)
def test_a_status_that_is_wrong_or_says_nothing_new_is_a_violation(status, message):
    judged = Judged(a_set(2))
    judged.objects.change(POD_GANG, "p-0", status={"conditions": [CREATED]})
    judged.show(judged.api.objects[POD_GANG]["p-0"])
    judged.show(worker("w0", on="n0", phase="Running"), worker("w1"))
    judged.writes(phase="Starting", conditions=[CREATED, _scheduled("False")])
    with pytest.raises(Violation, match=f"G5: {PATH} {message}"):
        judged.writes(**status)


def test_a_status_that_is_written_again_and_again_is_a_violation():
    judged = Judged(a_set(2))
    judged.show(worker("w0"), worker("w1"))
    for at in range(20):
        judged.writes(phase="Pending", conditions=[_scheduled("False", message=f"{at}")])
    with pytest.raises(Violation, match=f"G5: {PATH} is written 20 times in 0.0 s"):
        judged.writes(phase="Pending", conditions=[_scheduled("False", message="once more")])
    judged.corral.is_leading = False
    judged.writes(phase="Pending", conditions=[_scheduled("False", message="is not written")])


def test_a_pod_named_while_it_is_bound_is_no_part_of_the_status_until_that_has_ended():
    made, late = a_set(1, pack="rack"), pod("late", gpus=1)
    judged = Judged(made)
    judged.come(worker("w0"))
    judged.begin_binding(late, "n3")
    judged.name(made, "late")
    assert judged.life.posted == {"uid-late": "n3"}
    judged.writes(phase="Pending", conditions=[_scheduled("False")])
    judged.show(replace(late, node="n3", phase="Running"))
    with pytest.raises(Violation, match=f"G5: {PATH} is Pending"):
        judged.writes(phase="Pending", conditions=[_scheduled("False", message="too few")])


# -- at rest ---------------------------------------------------------------------------------------


def test_a_gang_waits_in_vain_where_one_rack_has_room_for_it():
    cluster = Cluster()
    cluster.put(a_set(2, pack="rack"))
    cluster.add(worker("w0"), worker("w1"))
    assert "2 pods" in cluster.waits()
    full = Taken(frozenset({"n0", "n3"}))
    assert cluster.waits(full) == ""
    cluster.put(a_set(2))
    assert "2 pods" in cluster.waits(full)
    cluster.put(a_set(2, clique="host"))
    assert cluster.waits() == ""


def test_a_pod_that_follows_waits_in_vain_only_beside_those_that_run():
    cluster = Cluster()
    cluster.put(a_set(1, pack="rack"))
    cluster.add(worker("w0", on="n0", phase="Running"), worker("w1"))
    assert "w1 beside" in cluster.waits()
    assert cluster.waits(Taken(frozenset({"n1"}))) == ""


@pytest.mark.parametrize(
    ("nodes", "status", "is_right"),
    [
        pytest.param(("n0", "n1"), ("Running", "True"), True, id="all_run"),
        pytest.param(("n0", "n1"), ("Running", "False"), False, id="all_run_and_it_says_no"),
        pytest.param(("n0", ""), ("Starting", "False"), True, id="too_few"),
        pytest.param(("n0", ""), ("Running", "True"), False, id="too_few_and_it_says_running"),
        pytest.param(("", ""), ("Pending", "False"), True, id="none"),
        pytest.param(("", ""), ("Pending", ""), False, id="none_and_it_does_not_say_so"),
    ],
)
def test_a_status_at_rest_says_what_the_pods_are(nodes, status, is_right):
    cluster, (phase, scheduled) = Cluster(), status
    conditions = [CREATED, *([_scheduled(scheduled)] if scheduled else [])]
    cluster.put(a_set(2), {"phase": phase, "conditions": conditions})
    for at, on in enumerate(nodes):
        cluster.add(worker(f"w{at}", on=on, phase="Running" if on else "Pending"))
    if is_right:
        cluster.rest.check_statuses()
        return
    with pytest.raises(Violation, match="G5: PodGang p-0 is"):
        cluster.rest.check_statuses()
