"""Label keys that objects name: kept, read once more, and bounded."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.dialects import budgets
from app.dialects.budgets.dialect import KIND, BudgetRecord
from app.dialects.registry import Dialects
from app.kube.core.objects import PodRecord
from app.kube.watch.events import Listed
from app.state.effects import Delete, ReadAgain, RejectBind, Ungate
from app.state.filter_result import Rejected
from app.state.gang.gang import Phase
from app.state.objects.kept_keys import (
    MOST_KEYS,
    MOST_KEYS_OF_NAMESPACE,
    MOST_KEYS_OF_NO_GANG,
    MOST_TOLD,
    KeptKeys,
)
from app.state.objects.pod_lists import GATHER_SECONDS, RELIST_SECONDS
from tests.app.state.bands import DIALECTS, BandWorld, band, player
from tests.app.state.stories import GATED
from tests.app.state.world import four_racks
from tests.records import node

PART = "orchestra.example.org/part"
PARTS = {"a": "horns", "b": "drums", "c": "horns"}
NAMED = dict.fromkeys(PARTS, "")
SECTIONS = {"horns": 2, "drums": 1}
TRIO = band("trio", SECTIONS, NAMED, section_key=PART)
NODES = [node("b0/r0/n0", gpus=16), node("b0/r1/n1", gpus=8)]


class Reading(BandWorld):
    """A world whose watch keeps of a pod's labels what the engine's set of keys says."""

    def read(self, *pods):
        keeps = self.engine.kept_keys.labels.keeps
        for each in pods:
            labels = {key: value for key, value in each.labels.items() if keeps(key)}
            yield msgspec.structs.replace(each, labels=labels)

    def put(self, *records):
        for each in records:
            super().put(*(self.read(each) if isinstance(each, PodRecord) else (each,)))

    def list_pods(self, *pods, edition=None):
        known = self.engine.kept_keys.labels.edition if edition is None else edition
        self.apply(Listed("Pod", tuple(self.read(*pods)), known))

    def asked(self):
        return self.told(ReadAgain)


def in_part(name, **more):
    made = player(name, **more)
    made.labels[PART] = PARTS[name]
    return made


PODS = [in_part(name) for name in PARTS]


def test_pods_read_before_the_key_was_named_are_read_again_and_then_the_gang_starts_as_it_is():
    world = Reading(NODES)
    world.put(*PODS, TRIO)
    world.tick(GATHER_SECONDS)
    assert world.asked() == []
    world.tick(GATHER_SECONDS)
    assert world.asked() == [ReadAgain("Pod")]
    assert world.gang().phase is Phase.GATHERING
    rejected = world.filter(PODS[0])
    assert rejected == Rejected(
        "gang default/trio waits until the labels of its pods have been read again"
    )
    world.list_pods(*PODS)
    world.tick()
    assert world.section_of() == {name: f"trio/{part}" for name, part in PARTS.items()}
    assert world.gang().plan.nodes == {"uid-a": "n0", "uid-b": "n1", "uid-c": "n0"}


def test_pods_that_come_after_the_key_was_named_wait_for_the_list_as_well():
    world = Reading(NODES, (), [TRIO])
    world.put(*PODS)
    world.tick(GATHER_SECONDS)
    assert world.section_of()["b"] == "trio/drums"
    assert world.held == {}
    world.list_pods(*PODS)
    world.tick()
    assert len(world.held) == 3


def test_a_list_that_began_before_the_key_was_named_is_not_enough():
    world = Reading(NODES)
    world.put(*PODS, TRIO)
    world.list_pods(*PODS, edition=0)
    world.tick(2 * GATHER_SECONDS)
    world.tick(2 * GATHER_SECONDS)
    assert world.held == {}
    assert world.asked() == [ReadAgain("Pod")]


def test_no_list_is_asked_for_where_one_came_anyway():
    world = Reading(NODES)
    world.put(*PODS, TRIO)
    world.list_pods(*PODS)
    world.tick()
    assert len(world.held) == 3
    for _ in range(3):
        world.tick(RELIST_SECONDS)
    assert world.asked() == []


def test_no_pod_is_ungated_or_deleted_for_what_its_label_does_not_say_yet():
    """Of drums there is one, and without their labels all pods are alike: two would be too many."""
    pods = [in_part(name, gates=GATED) for name in PARTS]
    world = Reading(NODES, delete_excess_pods=True)
    for each in pods:
        world.put(each)
    world.put(TRIO)
    world.tick(10.0)
    assert world.told(Ungate) == world.told(Delete) == []
    world.list_pods(*pods)
    world.tick()
    narrowed = {each.name: each.nodes[0] for each in world.told(Ungate)}
    assert narrowed == {"a": "n0", "b": "n1", "c": "n0"}


def test_a_gang_that_waits_gives_its_plan_up_when_its_object_names_a_new_key():
    named = {"a": "horns", "b": "horns", "c": "drums"}
    world = Reading(NODES, (), [band("trio", SECTIONS, named)])
    world.put(*PODS)
    assert len(world.held) == 3
    world.bind(PODS[0], world.filter(PODS[0]).node)
    world.put(band("trio", SECTIONS, named, more_keys=(PART,)))
    assert world.held == {}
    (refused,) = world.told(RejectBind)
    assert (refused.uid, "labels of its pods are read again" in refused.sentence) == ("uid-a", True)
    world.list_pods(*PODS)
    world.tick(30.0)
    assert world.schedule(*PODS) == {"a": "n0", "b": "n0", "c": "n1"}


def test_a_gang_that_runs_goes_on_running_while_its_pods_are_read_again():
    world = Reading(NODES, (), [TRIO])
    world.put(*PODS)
    world.list_pods(*PODS)
    world.tick()
    assert len(world.schedule(*PODS)) == 3
    bound = list(world.pods.values())
    world.put(band("trio", SECTIONS, NAMED, section_key="another.example.org/key", version="2"))
    world.tick()
    assert world.gang().running == {"uid-a", "uid-b", "uid-c"}
    world.put(band("trio", SECTIONS, NAMED, section_key=PART, version="3"))
    world.list_pods(*bound)
    world.tick()
    assert world.gang().phase is Phase.RUNNING


def test_after_a_restart_the_pods_that_run_are_read_again_before_the_others_are_placed():
    """The lists come in any order, and of the first list of pods none has the label."""
    bound = msgspec.structs.replace(PODS[1], node="n1")
    world = Reading(NODES, [player("a"), player("b", on="n1"), player("c")], [TRIO])
    world.tick(10.0)
    assert world.held == {}
    world.list_pods(PODS[0], bound, PODS[2])
    world.tick(10.0)
    assert world.schedule(PODS[0], PODS[2]) == {"a": "n0", "c": "n0"}


def test_an_object_that_goes_before_the_list_is_in_keeps_nobody_waiting():
    world = Reading(NODES, (), [TRIO])
    world.put(*PODS)
    world.delete(TRIO)
    world.put(band("trio", SECTIONS, PARTS, uid="another"))
    world.list_pods(*PODS)
    world.tick()
    assert len(world.held) == 3


OTHER = "orchestra.example.org/other"
step = st.one_of(
    st.tuples(st.just("create"), st.sampled_from(sorted(PARTS))),
    st.tuples(st.just("delete"), st.sampled_from(sorted(PARTS))),
    st.tuples(st.just("band"), st.sampled_from((PART, OTHER))),
    st.tuples(st.just("no band"), st.none()),
    st.tuples(st.just("list begins"), st.none()),
    st.tuples(st.just("list ends"), st.none()),
    st.tuples(st.just("tick"), st.sampled_from((0.1, 2.0))),
)


STALE_LIST = [
    *(("create", name) for name in PARTS),
    ("list begins", None),
    ("band", PART),
    ("list ends", None),
    ("tick", 2.0),
]


@given(st.lists(step, max_size=30))
@example(STALE_LIST)
def test_whatever_happens_no_pod_is_planned_for_another_section_than_its_own(steps):
    """Under one key a and c are the horns, under the other a and b; the list comes at any time."""
    truth = {PART: PARTS, OTHER: {"a": "horns", "b": "horns", "c": "drums"}}
    pods = {name: in_part(name) for name in PARTS}
    for name, made in pods.items():
        made.labels[OTHER] = truth[OTHER][name]
    bands = {key: band("trio", SECTIONS, NAMED, section_key=key) for key in truth}
    world, named_by, begun = Reading(NODES), "", None

    def is_right() -> bool:
        gangs = world.engine.gangs.by_key.values()
        planned = [each.members[uid] for each in gangs for uid in each.plan.nodes]
        return all(each.leaf == truth[named_by][each.pod.name] for each in planned)

    for kind, about in steps:
        match kind:
            case "create":
                world.put(pods[about])
            case "delete" if pods[about].uid in world.pods:
                world.delete(world.pods[pods[about].uid])
            case "band":
                named_by = about
                world.put(bands[about])
            case "no band" if named_by:
                world.delete(bands[named_by])
                named_by = ""
            case "list begins":  # its first pages are read with the keys of now
                there = [pods[each.name] for each in world.pods.values()]
                begun = (list(world.read(*there)), world.engine.kept_keys.labels.edition)
            case "list ends" if begun is not None:
                still = [each for each in begun[0] if each.uid in world.pods]
                missed = [each for uid, each in world.pods.items() if each not in still]
                new = [each for each in missed if each.uid not in {one.uid for one in still}]
                world.apply(Listed("Pod", (*still, *new), begun[1]))
                begun = None
            case "tick":
                world.tick(about)
        assert is_right()
    world.put(*pods.values(), bands[PART])
    named_by = PART
    world.list_pods(*pods.values())
    for _ in range(20):
        world.tick(5.0)
        assert is_right()
        if len(world.held) == 3:
            break
    assert world.schedule(*pods.values()) == {"a": "n0", "b": "n1", "c": "n0"}


# -- bounds ----------------------------------------------------------------------------------------


def keyed(number, *keys, namespace="default"):
    return band(f"b{number}", {}, namespace=namespace, uid=f"{namespace}-{number}", more_keys=keys)


def kept(world):
    return world.engine.kept_keys.labels.edition


def test_keys_named_within_a_short_time_are_one_list():
    world = Reading(NODES)
    for number in range(5):
        world.put(keyed(number, f"k{number}"))
        world.tick(GATHER_SECONDS / 10)
    world.tick(GATHER_SECONDS)
    assert kept(world) == 5
    assert world.asked() == [ReadAgain("Pod")]


def test_between_two_lists_there_is_a_while_however_many_keys_come():
    world = Reading(NODES)
    asked_at = []
    for number in range(200):
        if number % 5 == 0:
            world.put(keyed(number, f"k{number}", namespace=f"team-{number}"))
        if ReadAgain("Pod") in world.tick(1.0):
            asked_at.append(world.now)
    assert len(asked_at) > 2
    assert all(later - sooner >= RELIST_SECONDS for sooner, later in pairwise(asked_at))


def test_of_one_namespace_only_so_many_keys_are_kept_and_the_operator_is_told():
    world = Reading(NODES)
    for number in range(100):
        world.put(keyed(number, f"k{number}"))
        world.tick(5.0)
    assert kept(world) == MOST_KEYS_OF_NAMESPACE
    (warning,) = world.engine.warnings()
    first = range(MOST_KEYS_OF_NAMESPACE, MOST_KEYS_OF_NAMESPACE + MOST_TOLD)
    assert f"label keys {', '.join(f'k{number}' for number in first)} are not read" in warning
    assert "of namespace default name" in warning


@pytest.mark.slow
def test_in_all_only_so_many_keys_are_kept_and_lists_come_to_an_end():
    world = Reading(NODES)
    for number in range(3 * MOST_KEYS):
        world.put(keyed(number, f"k{number}", namespace=f"team-{number}"))
        world.tick(RELIST_SECONDS + 1)
        world.tick(RELIST_SECONDS + 1)
    assert kept(world) == MOST_KEYS
    assert len(world.asked()) <= MOST_KEYS
    assert len(world.engine.warnings()) == MOST_TOLD


def test_an_object_that_names_too_many_keys_has_some_of_them_kept():
    world = Reading(NODES)
    world.put(keyed(0, *(f"k{number}" for number in range(10_000))))
    assert kept(world) == MOST_KEYS_OF_NAMESPACE


def test_a_key_that_another_namespace_has_named_costs_nothing():
    world = Reading(NODES)
    keys = [f"k{number}" for number in range(2 * MOST_KEYS_OF_NAMESPACE)]
    world.put(keyed(0, *keys[:MOST_KEYS_OF_NAMESPACE], namespace="one"))
    world.put(keyed(0, *keys[MOST_KEYS_OF_NAMESPACE:], namespace="two"))
    world.put(keyed(0, *keys, namespace="three"))
    assert kept(world) == len(keys)
    assert world.engine.warnings() == ()


def test_a_key_stays_when_its_object_goes_and_comes_again():
    world = Reading(NODES)
    for _ in range(3):
        world.put(keyed(0, "k"))
        world.delete(keyed(0, "k"))
        world.tick(RELIST_SECONDS + 1)
        world.tick(RELIST_SECONDS + 1)
    assert kept(world) == 1
    assert len(world.asked()) == 1


@pytest.mark.parametrize(
    "key", ["", "no key", "a/b/c", "x" * 64, "Upper/x", "toys.example.org/band"]
)
def test_a_key_that_no_label_has_or_that_is_kept_anyway_is_not_taken(key):
    world = Reading(NODES)
    world.put(keyed(0, key))
    assert kept(world) == 0
    assert world.engine.warnings() == ()


def test_a_gang_whose_key_is_refused_never_starts_in_another_shape_and_says_why():
    world = Reading(NODES, (), [keyed(0, *(f"k{n}" for n in range(MOST_KEYS_OF_NAMESPACE)))])
    world.put(*PODS, TRIO)
    world.list_pods(*PODS)
    world.tick(100.0)
    assert world.held == {}
    told = f"gang default/trio is invalid: its objects name the label keys {PART}, which"
    assert world.filter(PODS[0]).sentence.startswith(told)
    assert [each for each in world.reports if each.startswith(told)]
    world.put(band("trio", SECTIONS, PARTS, version="2"))
    world.tick()
    assert len(world.held) == 3


def test_other_gangs_are_not_kept_waiting():
    world = Reading(
        four_racks(), (), [TRIO, band("duo", {"horns": 2}, {"x": "horns", "y": "horns"})]
    )
    world.put(player("x"), player("y"), *PODS)
    assert world.gang("duo").phase is Phase.PLACED
    assert world.gang("trio").phase is Phase.GATHERING


def test_budgets_of_tenants_leave_keys_for_objects_that_declare_gangs():
    kept = KeptKeys(Dialects((*DIALECTS.each, budgets.DIALECT)))
    for number in range(MOST_KEYS):
        namespace, key = f"team-{number}", f"example.com/k{number}"
        requirements = ((key, "Exists", ()),)
        kept.put(BudgetRecord(KIND, namespace, "b", f"uid-{number}", "1", requirements))
    assert kept.labels.edition == MOST_KEYS_OF_NO_GANG
    kept.put(TRIO)
    assert kept.lacking([TRIO]).refused == ()


def test_a_list_of_the_pods_has_more_keys_only_if_it_began_with_a_later_edition():
    kept = KeptKeys(Dialects(DIALECTS.each))
    assert [kept.pods_read(edition) for edition in (0, 2, 2, 1, 2, 3)] == [
        False,
        True,
        False,
        False,
        False,
        True,
    ]
