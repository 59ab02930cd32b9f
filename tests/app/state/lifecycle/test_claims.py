"""Pods that only an object names: whatever comes first, the same pods are members."""

from __future__ import annotations

from itertools import permutations

import msgspec
import pytest

from app.dialects.spec import MOST_PODS
from app.kube.watch.events import Listed
from app.state.claims.named_pods import MOST_TOLD
from app.state.effects import Bind, BindFailed, Requeue, Ungate
from app.state.filter_result import Passed, Pinned, Rejected
from app.state.gang.gang import Phase
from tests.app.dialects import toy
from tests.app.state.bands import BandWorld, band, player
from tests.app.state.stories import GATED
from tests.app.state.world import four_racks
from tests.records import RACK, node, pod

DUO = band("duo", {"horns": 2}, {"a": "horns", "b": "horns"})
AB = {"a": "duo/horns", "b": "duo/horns"}


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_whatever_comes_first_the_named_pods_are_members(order):
    world = BandWorld(four_racks())
    for each in order:
        world.put((player("a"), player("b"), DUO)[each])
    assert world.section_of() == AB
    assert world.gang().phase is Phase.PLACED


@pytest.mark.parametrize("kinds", list(permutations(("Node", "Pod", "Band"))))
def test_lists_in_any_order_at_the_start_give_the_same_plan(kinds):
    world = BandWorld()
    world.engine = world.built()
    listed = {"Node": four_racks(), "Pod": [player("a"), player("b")], "Band": [DUO]}
    for kind in ("Topology", "Job", *kinds):
        world.apply(Listed(kind, tuple(listed.get(kind, ()))))
    world.tick()
    assert world.section_of() == AB
    assert world.gang().phase is Phase.PLACED


def test_a_pod_that_no_object_may_name_is_not_remembered():
    world = BandWorld(four_racks(), [pod("a"), player("b", scheduler="other")])
    assert world.engine.named_pods.unclaimed == {}
    world.put(DUO)
    assert world.section_of() == {}


def test_a_pod_that_is_named_no_longer_is_an_ordinary_one_until_it_is_again():
    world = BandWorld(four_racks(), [player("a"), player("b")], [DUO])
    world.put(band("duo", {"horns": 2}, {"a": "horns"}))
    assert world.section_of() == {"a": "duo/horns"}
    assert world.held == {}
    assert isinstance(world.filter(world.pods["uid-b"]), Passed)
    world.put(DUO)
    assert world.section_of() == AB


def test_the_nomination_of_a_pod_counts_while_no_object_names_it():
    nominated = msgspec.structs.replace(player("a"), nominated_node="n00")
    world = BandWorld(four_racks(), [nominated, player("b")])
    assert world.engine.nominations.of("uid-a").node == "n00"
    world.put(DUO)
    assert world.engine.nominations.of("uid-a") is None
    world.delete(DUO)
    assert world.engine.nominations.of("uid-a").node == "n00"


def test_an_object_that_goes_leaves_its_pods_ordinary():
    world = BandWorld(four_racks(), [player("a"), player("b")], [DUO])
    world.delete(DUO)
    assert world.section_of() == {}
    assert world.held == {}
    assert world.engine.gangs.by_key == {}


def test_a_pod_moves_to_the_other_band_that_names_it():
    world = BandWorld(four_racks(), [player("a"), player("b"), player("c")], [DUO])
    world.put(band("solo", {"drums": 1}, {"c": "drums"}))
    world.put(band("duo", {"horns": 2}, {"a": "horns"}))
    world.put(band("solo", {"drums": 2}, {"c": "drums", "b": "drums"}))
    assert world.section_of() == {"a": "duo/horns", "b": "solo/drums", "c": "solo/drums"}
    world.tick(30.0)
    assert world.gang("duo").phase is Phase.GATHERING
    assert world.gang("solo").phase is Phase.PLACED


def test_of_two_objects_that_name_a_pod_the_first_by_name_counts_whichever_came_first():
    others = [band(name, {"horns": 1}, {"a": "horns"}) for name in ("alto", "bass")]
    for bands in (others, others[::-1]):
        world = BandWorld(four_racks(), [player("a")], bands)
        assert world.section_of() == {"a": "alto/horns"}
        world.delete(others[0])
        assert world.section_of() == {"a": "bass/horns"}


def test_a_planned_pod_in_another_section_has_its_gang_planned_again():
    """Each section is in one rack, and a rack has room for two players."""
    nodes = [node(f"b0/r{rack}/n{rack}", gpus=16) for rack in range(2)]
    players = [player(name) for name in "abcd"]
    sections = {"horns": 2, "drums": 2}
    named = {"a": "horns", "b": "horns", "c": "drums", "d": "drums"}
    world = BandWorld(nodes, players, [band("four", sections, named)])
    swapped = {**named, "b": "drums", "c": "horns"}
    world.put(band("four", sections, swapped))
    world.tick(30.0)
    on = world.schedule(*players)
    assert on["a"] == on["c"] != on["b"] == on["d"]


def test_a_change_of_several_pods_is_complete_before_the_gang_is_planned():
    """Were c and d taken in while a and b are still horns, four horns would be planned at once."""
    nodes = [node(f"b0/r{rack}/n{rack}", gpus=16) for rack in range(2)]
    world = BandWorld(nodes, [player(name) for name in "abcd"])
    world.put(band("four", {"horns": 4}, {"a": "horns", "b": "horns"}))
    sections = {"horns": 2, "drums": 2}
    named = {"c": "horns", "d": "horns", "a": "drums", "b": "drums"}
    world.put(band("four", sections, named))
    on = world.schedule(*world.pods.values())
    assert on["a"] == on["b"] != on["c"] == on["d"]


def test_a_pod_that_completes_a_gang_waits_until_the_others_are_in_their_sections():
    """Were c taken in before a and b have changed places, a and c would be planned together."""
    nodes = [node("b0/r0/n0", gpus=16), node("b0/r1/n1", gpus=8)]
    world = BandWorld(nodes, [player(name) for name in "abc"])
    sections = {"horns": 2, "drums": 1}
    world.put(band("trio", sections, {"a": "horns", "b": "drums"}))
    world.put(band("trio", sections, {"a": "drums", "b": "horns", "c": "horns"}))
    on = world.schedule(*world.pods.values())
    assert on == {"a": "n1", "b": "n0", "c": "n0"}


def test_at_the_start_no_pod_is_ungated_for_the_section_that_only_its_label_says():
    """A patch that narrows a pod to nodes cannot be taken back."""
    nodes = [node("b0/r0/n0", gpus=16), node("b0/r1/n1", gpus=8)]
    labels = {"a": "horns", "b": "drums", "c": "horns"}
    players = [player(name, section, gates=GATED) for name, section in labels.items()]
    for each in players:
        each.labels[toy.BAND] = "trio"
    sections = {"horns": 2, "drums": 1}
    named = {"a": "drums", "b": "horns", "c": "horns"}
    world = BandWorld(nodes, players, [band("trio", sections, named)])
    narrowed = {each.name: each.nodes[0] for each in world.told(Ungate)}
    assert narrowed == {"a": "n1", "b": "n0", "c": "n0"}


def test_a_status_that_is_written_claims_no_pod_anew():
    world = BandWorld(four_racks(), [player("a"), player("b")], [DUO])
    members = {uid: id(each) for uid, each in world.gang().members.items()}
    plan = dict(world.gang().plan.nodes)
    status = {"phase": "placed"}
    world.put(msgspec.structs.replace(DUO, version="2", status=status))
    assert {uid: id(each) for uid, each in world.gang().members.items()} == members
    assert world.gang().plan.nodes == plan


def test_an_event_that_repeats_a_member_does_not_hide_a_later_claim():
    world = BandWorld(four_racks(), [player("a"), player("b")], [DUO])
    repeated = msgspec.structs.replace(world.pods["uid-b"], version="7")
    world.put(repeated)
    world.put(band("duo", {"horns": 2}, {"a": "horns"}))
    world.put(msgspec.structs.replace(repeated, version="8"))
    assert world.section_of() == {"a": "duo/horns"}
    world.put(DUO)
    assert world.section_of() == AB
    assert world.gang().members["uid-b"].pod.version == "8"


def test_a_pod_bound_before_it_is_named_keeps_its_gang_beside_it():
    taken = [pod(f"x{i}", on=f"n3{i}") for i in range(3)]
    world = BandWorld(four_racks(), [player("a", on="n00"), player("b"), *taken])
    world.put(DUO)
    assert world.gang().running == {"uid-a"}
    assert world.schedule(world.pods["uid-b"])["b"].startswith("n0")


def test_a_pod_that_has_ended_is_a_member_whether_it_was_named_before_or_not():
    done = player("a", on="n00", phase="Succeeded")
    first = BandWorld(four_racks(), [player("a", on="n00"), player("b")], [DUO])
    first.put(done)
    late = BandWorld(four_racks(), [player("a", on="n00"), player("b")])
    late.put(done)
    late.put(DUO)
    assert first.section_of() == late.section_of() == AB


def test_a_recreated_pod_of_the_same_name_is_named_as_well():
    world = BandWorld(four_racks(), [player("a"), player("b")], [DUO])
    world.delete(world.pods["uid-a"])
    assert world.section_of() == {"b": "duo/horns"}
    world.put(player("a", uid="another"))
    assert world.section_of() == AB
    assert set(world.gang().members) == {"another", "uid-b"}


def test_a_pod_whose_deletion_is_heard_after_its_successor_takes_nothing_with_it():
    world = BandWorld(four_racks(), [player("a"), player("b")])
    gone = world.pods["uid-a"]
    world.put(player("a", uid="another"))
    world.delete(gone)
    world.put(DUO)
    assert world.section_of() == AB
    world.delete(world.pods["another"])
    assert world.section_of() == {"b": "duo/horns"}


def test_a_list_without_a_pod_that_nobody_names_forgets_it():
    world = BandWorld(four_racks(), [player("a"), player("b")])
    world.apply(Listed("Pod", (player("a", uid="another"),)))
    assert list(world.engine.named_pods.unclaimed) == ["another"]
    world.put(DUO)
    assert world.section_of() == {"a": "duo/horns"}


def test_a_list_that_lost_an_object_takes_its_pods_out_of_the_gang():
    other = band("solo", {"drums": 1}, {"c": "drums"})
    world = BandWorld(four_racks(), [player(name) for name in "abc"], [DUO, other])
    world.apply(Listed("Band", (other,)))
    assert world.section_of() == {"c": "solo/drums"}


def test_an_object_that_was_recreated_between_two_lists_keeps_its_gang_and_its_plan():
    world = BandWorld(four_racks(), [player("a"), player("b")], [DUO])
    held = world.held
    again = band("duo", {"horns": 2}, {"a": "horns", "b": "horns"}, uid="another")
    world.apply(Listed("Band", (again,)))
    assert world.held == held
    assert world.section_of() == AB


# -- pods on their way -----------------------------------------------------------------------------


def test_a_pod_in_a_request_is_claimed_by_the_object_before_the_watch_shows_it():
    world = BandWorld(four_racks(), [], [DUO])
    assert isinstance(world.filter(player("a")), Rejected)
    assert isinstance(world.filter(player("c")), Passed)


def test_a_pod_that_passed_filter_before_it_was_named_is_not_bound_alone():
    world = BandWorld(four_racks(), [player("a"), player("b")])
    first = world.pods["uid-a"]
    assert isinstance(world.filter(first), Passed)
    world.put(DUO)
    world.bind(first, "n30")
    planned = world.gang().plan.nodes["uid-a"]
    assert planned != "n30"
    assert world.refused == ["uid-a"]
    assert world.schedule(*world.pods.values()).keys() == {"a", "b"}


def test_a_pod_rejected_before_it_was_named_is_requeued_once_it_has_a_node():
    world = BandWorld(four_racks(), [player("a"), player("b")], [])
    world.put(DUO)
    world.tick()
    assert set(world.woken) == {"a", "b"}


def test_a_gated_pod_is_not_requeued_for_having_been_named():
    gated = [player("a", gates=GATED), player("b", gates=GATED)]
    world = BandWorld(four_racks(), gated, [])
    world.put(DUO)
    world.tick()
    assert world.told(Requeue) == []


def being_bound():
    """A pod is being bound as an ordinary one when a band names it."""
    world = BandWorld(four_racks(), [player("a"), player("b")])
    first = world.pods["uid-a"]
    world.filter(first)
    (bind,) = world.bind(first, "n30")
    world.put(DUO)
    assert world.section_of() == {"b": "duo/horns"}
    assert world.held == {"uid-a": "n30"}
    return world, bind


def test_a_pod_that_is_being_bound_when_it_is_named_joins_where_it_is_bound():
    world, bind = being_bound()
    world.confirm([bind])
    assert world.section_of() == AB
    assert world.gang().running == {"uid-a"}
    assert world.schedule(world.pods["uid-b"])["b"].startswith("n3")


def test_a_pod_whose_binding_fails_after_it_was_named_joins_its_gang():
    world, bind = being_bound()
    world._take(world.engine.bind_finished(bind.uid, BindFailed("503"), world.now))
    world.tick()
    assert world.section_of() == AB
    assert world.schedule(*world.pods.values()).keys() == {"a", "b"}


def test_a_pod_whose_binding_is_never_heard_of_joins_its_gang_in_the_end():
    world, _ = being_bound()
    world.tick(61.0)
    assert world.section_of() == AB


def test_a_pod_that_comes_to_filter_again_is_no_longer_being_bound():
    world, _ = being_bound()
    assert isinstance(world.filter(world.pods["uid-a"]), Pinned)
    assert world.section_of() == AB


def test_a_pod_that_goes_while_it_is_being_bound_is_forgotten():
    world, _ = being_bound()
    world.delete(world.pods["uid-a"])
    world.tick(61.0)
    assert world.section_of() == {"b": "duo/horns"}
    assert world.held == {}


def posted():
    """Both pods of a band are being bound."""
    world = BandWorld(four_racks(), [player("a"), player("b")], [DUO])
    binds = []
    for each in list(world.pods.values()):
        binds += world.bind(each, world.filter(each).node)
    binds = [each for each in binds if isinstance(each, Bind)]
    assert len(binds) == 2
    return world, binds


def test_a_member_that_is_being_bound_stays_one_until_it_is_bound():
    world, binds = posted()
    held = world.held
    world.put(band("duo", {"horns": 2}, {"a": "horns"}))
    world.tick()
    assert world.held == held
    assert world.section_of() == AB
    world.confirm(binds)
    assert world.section_of() == {"a": "duo/horns"}
    assert world.engine.books.bound.keys() == {"uid-a", "uid-b"}


def test_a_member_whose_binding_fails_leaves_when_it_is_named_no_longer():
    world, _ = posted()
    world.put(band("duo", {"horns": 2}, {"a": "horns"}))
    world._take(world.engine.bind_finished("uid-b", BindFailed("503"), world.now))
    world.tick()
    assert world.section_of() == {"a": "duo/horns"}
    assert "uid-b" not in world.held


def test_a_member_held_at_bind_is_refused_when_it_is_named_no_longer():
    world = BandWorld(four_racks(), [player("a"), player("b")], [DUO])
    first = world.pods["uid-a"]
    world.bind(first, world.filter(first).node)
    world.put(band("duo", {"horns": 2}, {"b": "horns"}))
    assert world.refused == ["uid-a"]
    assert world.held == {}


# -- bounds ----------------------------------------------------------------------------------------


def test_an_object_names_pods_of_its_own_namespace_only_and_the_operator_is_told():
    world = BandWorld(four_racks(), [player("a")])
    world.put(band("thief", {"horns": 1}, {"a": "horns"}, namespace="elsewhere"))
    spec = toy.Spec(RACK, (), (toy.Player("a", "horns", "default"),))
    world.put(toy.Band("Band", "elsewhere", "bold", "uid-bold", "1", spec))
    assert world.section_of() == {}
    told = "Band elsewhere/bold names pods of other namespaces, which are not read"
    assert world.engine.warnings() == (told,)


@pytest.mark.slow
def test_of_too_many_names_only_the_first_are_read_and_the_operator_is_told():
    names = [f"p{number}" for number in range(MOST_PODS + 1)]
    world = BandWorld(four_racks(), [player(names[0]), player(names[-2]), player(names[-1])])
    world.put(band("mass", {"choir": 3}, dict.fromkeys(names, "choir")))
    assert world.section_of().keys() == {names[0], names[-2]}
    told = f"Band default/mass names more than {MOST_PODS} pods, and only so many are read"
    assert world.engine.warnings() == (told,)
    world.put(band("mass", {"choir": 3}, dict.fromkeys(names[-2:], "choir"), version="2"))
    assert world.section_of().keys() == {names[-2], names[-1]}
    assert world.engine.warnings() == ()


def test_only_a_few_of_many_problems_are_shown():
    world = BandWorld(four_racks())
    for each in range(MOST_TOLD + 3):
        spec = toy.Spec(RACK, (), (toy.Player("a", "horns", "default"),))
        world.put(toy.Band("Band", "elsewhere", f"b{each}", f"uid-b{each}", "1", spec))
    assert len(world.engine.warnings()) == MOST_TOLD


# -- the audit -------------------------------------------------------------------------------------


def test_a_pod_in_the_wrong_gang_is_found_and_healed():
    world = BandWorld(four_racks(), [player("a"), player("b")], [DUO])
    _is_found_and_healed(world)


def test_a_pod_that_once_was_being_bound_is_audited_like_any_other():
    world, bind = being_bound()
    world.confirm([bind])
    _is_found_and_healed(world)


def test_a_pod_that_has_two_records_is_found():
    world = BandWorld(four_racks(), [player("a"), player("b")], [DUO])
    world.engine.named_pods.unclaimed["uid-a"] = world.pods["uid-a"]  # as a bug of ours would
    assert "pod uid-a has no record, or two" in world.engine.differences()


def _is_found_and_healed(world):
    engine = world.engine
    engine.members.drop("uid-a", world.now)  # as a bug of ours would
    engine.claims.put(world.pods["uid-a"])
    (found,) = engine.differences()
    assert "uid-a" in found
    world._take(engine.heal(world.now))
    assert world.section_of() == AB
