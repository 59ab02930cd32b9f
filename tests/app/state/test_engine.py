"""The engine as a whole: the verbs, the watch, starting and stopping, in virtual time."""

from __future__ import annotations

import msgspec
import pytest

from app.kube.watch.events import Listed
from app.state.effects import Bind, RejectBind
from app.state.engine import Engine
from app.state.filter_result import Failed, Passed, Pinned, Rejected
from tests.app.state.world import Names, World, four_racks, members, racks
from tests.records import (
    BLOCK,
    RACK,
    UNCONSTRAINED,
    group,
    node,
    pod,
    topology,
)


def test_no_request_to_bind_is_taken_before_the_lists_are_in_and_once_it_stops():
    engine, world = Engine(), World(four_racks())
    world.engine.drain(world.now)
    for refuses in (engine, world.engine):
        (refused,) = refuses.bind_arrived("default", "plain", "uid-plain", "n00", world.now)
        assert isinstance(refused, RejectBind)
        assert "starting or stopping" in refused.sentence


def test_no_member_passes_before_the_last_one_exists():
    world = World(four_racks())
    gang = members("g", 3)
    world.put(*gang[:2])
    assert isinstance(world.filter(gang[0]), Rejected)
    assert world.held == {}


def test_a_member_asked_for_before_the_watch_shows_it_is_rejected_and_woken_later():
    world = World(four_racks())
    gang = members("g", 2)
    assert isinstance(world.filter(gang[0]), Rejected)
    world.put(*gang)
    assert world.woken == ["g0"]


def test_every_member_is_pinned_to_its_own_planned_node():
    world = World(four_racks())
    gang = members("g", 4)
    world.put(*gang)
    answers = [world.filter(member) for member in gang]
    assert {answer.node for answer in answers} == {world.held[member.uid] for member in gang}


def test_asking_again_changes_nothing():
    world = World(four_racks())
    gang = members("g", 4)
    world.put(*gang)
    before = dict(world.held)
    assert [world.filter(gang[0]) for _ in range(3)] == [Pinned(before[gang[0].uid])] * 3
    assert world.held == before


def test_a_gang_of_one_binds_at_once():
    world = World(four_racks())
    single = pod("solo", annotations={UNCONSTRAINED: "true"})
    world.put(single)
    assert list(world.schedule(single)) == ["solo"]


def test_a_gang_of_another_scheduler_is_left_alone():
    world = World(four_racks())
    gang = members("g", 2, scheduler="volcano")
    world.put(*gang)
    assert world.filter(gang[0]) == Passed()
    assert world.held == {}


def test_a_probe_with_one_name_concludes_nothing():
    world = World(four_racks())
    gang = members("g", 4)
    world.put(*gang)
    before = dict(world.held)
    nominated = msgspec.structs.replace(gang[0], nominated_node="n33")
    assert isinstance(world.filter(nominated, ["n33"]), Rejected)
    assert world.held == before


def test_a_single_node_that_was_not_nominated_is_all_there_is():
    world = World(four_racks())
    gang = members("g", 1)
    world.put(*gang)
    assert world.held != {"uid-g0": "n33"}
    assert world.filter(gang[0], ["n33"]) == Pinned("n33")


def test_a_member_rejected_with_one_node_on_offer_is_woken_when_it_has_a_place():
    world = World([node("b0/r0/n0", gpus=0)])
    gang = members("g", 1)
    world.put(*gang)
    assert isinstance(world.filter(gang[0], ["n0"]), Rejected)
    world.put(node("b0/r0/n0"))
    world.tick()
    assert world.woken == ["g0"]


def test_a_sample_of_the_nodes_does_not_lose_the_plan_and_is_reported_once():
    nodes = [node(f"b0/r{i // 10}/n{i:03}") for i in range(300)]
    world = World(nodes, nominate_planned=False)
    gang = members("g", 2)
    world.put(*gang)
    before = dict(world.held)
    sample = [n.name for n in nodes if n.name not in before.values()][: 300 * 48 // 100]
    assert isinstance(world.filter(gang[0], sample), Rejected)
    assert isinstance(world.filter(gang[1], sample), Rejected)
    assert world.held == before
    assert len([text for text in world.reports if "percentageOfNodesToScore" in text]) == 1


def test_after_a_restart_in_the_middle_of_binding_the_rest_follows_and_nothing_stays_held():
    gang = members("g", 4)
    some = [msgspec.structs.replace(p, node=f"n1{i}") for i, p in enumerate(gang[:2])]
    world = World(four_racks(), [*some, *gang[2:]])
    assert racks(world.schedule(*gang[2:])) == {"n1"}
    world.tick()
    assert world.held == {}
    assert world.engine.gangs_by_phase()["running"] == 1


def test_a_restart_changes_no_running_gang():
    gang = [msgspec.structs.replace(p, node=f"n1{i}") for i, p in enumerate(members("g", 4))]
    world = World(four_racks(), gang)
    assert world.effects == []
    assert world.held == {}


def test_the_same_list_again_changes_nothing():
    gang = members("g", 4)
    world = World(four_racks(), gang)
    before = dict(world.held)
    world.apply(Listed("Pod", tuple(gang)))
    assert world.held == before


def test_a_relist_drops_pods_that_are_gone():
    filler = pod("f", on="n00")
    gang = members("g", 4)
    world = World(four_racks(), [filler, *gang])
    world.apply(Listed("Pod", ()))
    assert world.held == {}
    assert world.engine.books.bound == {}
    assert world.engine.gangs.by_key == {}


def test_prioritize_prefers_the_rack_that_is_used_already():
    world = World(four_racks())
    world.put(pod("f", on="n10", gpus=4))
    names = Names(["n00", "n10", "n11"])
    scores = world.engine.prioritize(pod("plain", gpus=1), names, world.now)
    assert scores[0] < scores[2] <= scores[1]
    assert all(isinstance(score, int) and 0 <= score <= 10 for score in scores)


def test_before_the_lists_are_in_members_get_an_error_and_ordinary_pods_pass():
    engine = Engine()
    names = Names(["n1"])
    assert isinstance(engine.filter(members("g", 1)[0], names, 0.0)[0], Failed)
    assert engine.filter(pod("plain"), names, 0.0)[0] == Passed()


def test_draining_refuses_what_is_held():
    world = World(four_racks())
    gang = members("g", 2)
    world.put(*gang)
    world.bind(gang[0], world.filter(gang[0]).node)
    effects = world._take(world.engine.drain(world.now))
    assert [effect.uid for effect in effects if isinstance(effect, RejectBind)] == ["uid-g0"]


def test_a_bind_asked_again_after_it_happened_is_answered_by_the_api_server():
    world = World(four_racks())
    gang = members("g", 1)
    world.put(*gang)
    on = world.schedule(*gang)["g0"]
    (effect,) = world.bind(world.pods["uid-g0"], on)
    assert isinstance(effect, Bind)
    assert effect.node == on


def test_a_bind_to_another_node_than_planned_is_refused():
    world = World(four_racks())
    gang = members("g", 1)
    world.put(*gang)
    world.filter(gang[0])
    (effect,) = world.bind(gang[0], "n33")
    assert isinstance(effect, RejectBind)


def test_the_binding_says_which_gang_and_domain_the_pod_started_in():
    world = World(four_racks())
    gang = members("g", 1)
    world.put(*gang)
    (effect,) = world.bind(gang[0], world.filter(gang[0]).node)
    assert dict(effect.annotations) == {
        "corral.dev/gang": "default/g",
        "corral.dev/domain": f"{RACK}=b0/r0",
        **PROTECTED,
    }


PROTECTED = {
    "karpenter.sh/do-not-disrupt": "true",
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
}


@pytest.mark.parametrize("said", ["true", "false", "4h"])
def test_what_a_pod_says_itself_of_being_moved_stands(said):
    world = World(four_racks())
    annotations = {**group("g", 1, RACK), "karpenter.sh/do-not-disrupt": said}
    world.put(one := pod("g0", annotations=annotations))
    (effect,) = world.bind(one, world.filter(one).node)
    assert "karpenter.sh/do-not-disrupt" not in dict(effect.annotations)
    assert dict(effect.annotations)["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"


def test_without_protection_a_binding_says_nothing_to_autoscalers():
    world = World(four_racks(), protect_running=False)
    gang = members("g", 1)
    world.put(*gang)
    (effect,) = world.bind(gang[0], world.filter(gang[0]).node)
    assert not PROTECTED.keys() & dict(effect.annotations).keys()


def test_a_relist_of_the_same_topologies_rebuilds_nothing():
    records = (
        topology("by-block", BLOCK),
        topology("by-rack", BLOCK, RACK),
    )
    world = World(four_racks(), topologies=records)
    before = {name: each.tree for name, each in world.engine.books.topologies.items()}
    world.apply(Listed("Topology", records))
    after = {name: each.tree for name, each in world.engine.books.topologies.items()}
    assert all(after[name] is tree for name, tree in before.items())


def test_pods_in_kueues_charge_are_ordinary_to_us():
    world = World(four_racks())
    kueues = members("k", 2, labels={"kueue.x-k8s.io/managed": "true"})
    world.put(*kueues)
    world.tick()
    assert world.held == {}
    assert world.filter(kueues[0]) == Passed()


def test_a_queue_name_is_kueues_only_where_kueue_manages():
    queued = {"labels": {"kueue.x-k8s.io/queue-name": "q"}}
    assert len(World(four_racks(), members("g", 2, **queued)).held) == 2
    assert World(four_racks(), members("g", 2, **queued), kueue_manages=True).held == {}


def test_no_node_scores_before_the_lists_are_in():
    world = World()
    engine = world.built()
    there = pod("there", gpus=4, on="n01", phase="Running")
    engine.apply(Listed("Node", tuple(four_racks())), 0.0)
    engine.apply(Listed("Pod", (there,)), 0.0)
    asked, names = pod("o", gpus=4), Names(["n00", "n01", "nowhere"])
    assert engine.prioritize(asked, names, 0.0) == [0, 0, 0]
    engine.apply(Listed("Topology", ()), 0.0)
    engine.apply(Listed("Job", ()), 0.0)
    first, second, nowhere = engine.prioritize(asked, names, 0.0)
    assert nowhere == 0
    assert first < second, "the node that is used already"


def test_pods_without_a_gate_may_ask_for_no_node_while_their_gang_gathers():
    world = World(four_racks(), gathering_answer="failed")
    first, *rest = members("g", 3)
    early = world.filter(first)  # before the watch shows it
    world.put(first, *rest[:1])
    assert isinstance(early, Failed)
    assert isinstance(world.filter(first), Failed)
    nominated = msgspec.structs.replace(first, nominated_node="n00")
    assert isinstance(world.filter(nominated), Rejected)
    world.put(rest[1])
    assert set(world.schedule(first, *rest)) == {"g0", "g1", "g2"}


def test_a_gang_that_is_complete_and_has_no_room_is_rejected_so_that_it_asks_for_nodes():
    world = World(four_racks(), gathering_answer="failed")
    world.put(*members("g", 5))
    assert isinstance(world.filter(world.pods["uid-g0"]), Rejected)
