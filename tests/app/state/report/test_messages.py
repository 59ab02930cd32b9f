"""What owners are told: one sentence, to everyone concerned, and only when it changes."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest

from app.state.effects import EmitEvent
from app.state.filter_result import Rejected
from tests.app.state.world import World, four_racks, members
from tests.records import (
    BLOCK,
    PREFERRED,
    RACK,
    SLICE_LEVEL,
    SLICE_SIZE,
    group,
    job,
    job_pods,
    node,
    pod,
    topology,
)
from tests.workload_pods import job_set, stateful_pods, training_pods, workload


def test_a_gang_that_fits_nowhere_holds_nothing_and_says_why_in_one_sentence():
    world = World(four_racks())
    gang = members("big", 5)
    world.put(*gang)
    answers = {world.filter(member) for member in gang}
    assert world.held == {}
    (answer,) = answers
    assert "gang default/big" in answer.sentence
    assert "4 of 5 pods fit" in answer.sentence
    assert world.reports == [answer.sentence]


@pytest.mark.parametrize(
    ("made", "until"),
    [
        pytest.param(
            [pod("v", annotations={"scheduling.k8s.io/group-name": "vg"})],
            "gang default/vg waits until PodGroup vg is there",
            id="pod_group",
        ),
        pytest.param(
            job_pods("j", 1, **{"kueue.x-k8s.io/podset-required-topology": RACK}),
            "gang default/j waits until its Job is known",
            id="job",
        ),
        pytest.param(
            stateful_pods("db", 1, RACK),
            "gang default/db waits until its StatefulSet is known",
            id="stateful_set",
        ),
        pytest.param(
            training_pods("PyTorchJob", "t", {"Worker": 1}, RACK),
            "gang default/t waits until its PyTorchJob is known",
            id="training_job",
        ),
        pytest.param(
            job_set("js", {"w": (1, 1)}, RACK)[1],
            "gang default/js waits until all Jobs of its JobSet are known",
            id="job_set",
        ),
    ],
)
def test_that_what_declares_a_gang_is_not_there_is_told_its_owner(made, until):
    """Behind the gate the pods have no condition that says so."""
    world = World(four_racks())
    world.put(*[msgspec.structs.replace(each, gates=("corral.dev/gang",)) for each in made])
    for _ in range(150):
        world.tick()
    assert [(each.reason, each.sentence) for each in world.told(EmitEvent)] == [
        ("GangIncomplete", until)
    ]


GATED = ("example.com/quota",)
FAST = {"kueue.x-k8s.io/pod-group-fast-admission": "true"}


def in_order() -> tuple[list, list]:
    """A JobSet whose workers are made once its drivers run; one driver is there."""
    jobs, pods = job_set("js", {"d": (1, 2), "w": (2, 2)}, RACK)
    parts = {"d": 2, "w": 4}
    whole = workload("JobSet", "js", parts, level=RACK, like=pods[2], jobs=1, is_gradual=True)
    return [whole, jobs[0]], pods[:1]


def one_by_one() -> tuple[list, list]:
    """A StatefulSet that makes its pods one by one; another one's gate is on the first."""
    made = workload("StatefulSet", "db", {"": 4}, level=RACK, is_gradual=True)
    return [made], stateful_pods("db", 1, RACK, gates=GATED)


def fast() -> tuple[list, list]:
    """A group that starts with its first pod, and has gates of others on two of four."""
    return [], [
        pod(f"g{at}", annotations=group("g", 4, RACK, **FAST), gates=GATED) for at in range(2)
    ]


@pytest.mark.parametrize(
    ("story", "until", "there"),
    [
        pytest.param(
            in_order, "the 2 pods that it starts with are there and ungated", 1, id="job_set"
        ),
        pytest.param(
            one_by_one, "the pod that it starts with is there and ungated", 0, id="stateful_set"
        ),
        pytest.param(fast, "those of its pods that are there are ungated", 0, id="fast_admission"),
    ],
)
def test_what_starts_with_some_of_its_pods_is_not_said_to_wait_for_all(story, until, there):
    made, pods = story()
    world = World(four_racks(), jobs=made)
    world.put(*pods)
    for _ in range(150):
        world.tick()
    name = world.gang().key
    assert world.gang().reporting.sentence == f"gang {name} waits until {until}"
    (event,) = [each for each in world.told(EmitEvent) if each.reason == "GangIncomplete"]
    assert event.sentence.startswith(f"gang {name} has {there} of the ")
    assert event.sentence.endswith(f"; it starts when {until}")


@pytest.mark.parametrize(
    ("made", "said"),
    [
        pytest.param(
            (workload("StatefulSet", "db", {"": 4}, level=RACK, is_gradual=True),),
            "gang default/db: a node is planned for its waiting pod, and for 3 to come",
            id="pods_that_are_made_later",
        ),
        pytest.param(
            (workload("StatefulSet", "db", {"": 1}, level=RACK),),
            "gang default/db: a node is planned for its waiting pod",
            id="one_pod",
        ),
    ],
)
def test_only_pods_that_are_there_are_called_waiting_ones(made, said):
    world = World(four_racks(is_cordoned=True), jobs=made)
    world.put(stateful_pods("db", 1, RACK)[0])
    world.tick()
    world.put(*four_racks())
    for _ in range(3):
        world.tick()
    assert [each.sentence for each in world.told(EmitEvent) if each.reason == "GangPlaced"] == [
        said
    ]


def test_the_owning_job_is_told_not_its_pods():
    world = World(four_racks(), jobs=[job("j", 5)])
    world.put(*job_pods("j", 5, **{"kueue.x-k8s.io/podset-required-topology": RACK}))
    (report,) = world.told(EmitEvent)
    assert (report.about.kind, report.about.name) == ("Job", "j")


@pytest.mark.parametrize(
    ("annotations", "said"),
    [
        pytest.param(group("g", 2, "no.such/level"), "no.such/level", id="unknown_level"),
        pytest.param(group("g", 0, RACK), '"0": must be greater than or', id="total_count_0"),
        pytest.param(group("g", "two", RACK), '"two": must be a', id="total_count_text"),
        pytest.param(group("g", 2, RACK, **{PREFERRED: BLOCK}), "more than one", id="two_modes"),
        pytest.param(
            group("g", 2, RACK, **{SLICE_LEVEL: RACK, SLICE_SIZE: "3"}),
            "must evenly divide pod set count 2",
            id="size_that_does_not_divide",
        ),
        pytest.param(
            group("g", 2, RACK, **{"kueue.x-k8s.io/podset-group-name": "x"}),
            "can only define groups of exactly 2 pod sets, got: 1 pod set(s)",
            id="leader_without_workers",
        ),
    ],
)  # fmt: skip
def test_wrong_input_is_told_in_one_sentence_and_harms_no_other_gang(annotations, said):
    world = World(four_racks())
    wrong = [pod(f"w{i}", annotations=annotations) for i in range(2)]
    right = members("right", 2)
    world.put(*wrong, *right)
    for _ in range(3):
        answers = {world.filter(member) for member in wrong}
        world.tick(1.0)
    (answer,) = answers
    assert isinstance(answer, Rejected)
    assert said in answer.sentence
    assert world.reports == [answer.sentence]
    assert len(world.schedule(*right)) == 2


@pytest.mark.parametrize(
    ("annotations", "reason"),
    [
        pytest.param(group("g", 5, RACK), "GangNotPlaced", id="more_than_a_rack_holds"),
        pytest.param(group("g", 5, "no.such/level"), "GangMistaken", id="unknown_level"),
        pytest.param(group("g", 0, RACK), "GangMistaken", id="total_count_0"),
    ],
)
def test_the_reason_of_an_event_tells_a_mistake_from_a_cluster_without_room(annotations, reason):
    world = World(four_racks())
    world.put(*[pod(f"g{i}", annotations=annotations) for i in range(5)])
    world.tick()
    assert {event.reason for event in world.told(EmitEvent)} - {"NeedsNodes"} == {reason}


def test_members_that_disagree_on_the_total_count_are_told_who_says_what():
    world = World(four_racks())
    one, other = pod("a", annotations=group("g", 2)), pod("b", annotations=group("g", 3))
    world.put(one, other)
    world.tick()
    answer = world.filter(one)
    assert "pod a says 2, pod b says 3" in answer.sentence
    assert world.reports == [answer.sentence]


def test_members_that_disagree_on_the_level_are_told():
    world = World(four_racks())
    one = pod("a", annotations=group("g", 2, RACK))
    other = pod("b", annotations=group("g", 2, BLOCK))
    world.put(one, other)
    world.tick()
    assert "disagree" in world.filter(one).sentence
    assert world.held == {}


def test_a_pod_more_than_the_total_count_never_joins_and_is_told():
    world = World(four_racks())
    gang = members("g", 2)
    extra = pod("x", annotations=group("g", 2, RACK), created="2026-01-02T00:00:00Z")
    world.put(*gang, extra)
    answer = world.filter(extra)
    world.tick()
    assert len(world.schedule(*gang, extra)) == 2
    world.put(msgspec.structs.replace(extra, version="2"))
    assert world.filter(extra) == answer
    assert "pod default/x is one more than the 2 pods" in answer.sentence
    assert answer.sentence in world.reports


def test_a_pod_that_says_another_size_than_what_runs_is_told_the_same_whatever_changes_on_it():
    gang = members("g", 2)
    world = World(four_racks(), gang)
    world.schedule(*gang)
    world.tick()
    late = pod("late", annotations=group("g", 3, RACK))
    world.put(late)
    world.tick()
    answer = world.filter(late)
    assert "says 3" in answer.sentence
    world.put(msgspec.structs.replace(late, version="2"))
    assert world.filter(late) == answer
    world.tick()
    assert world.filter(late) == answer


def test_the_numbers_in_a_verdict_stand_for_a_while():
    world = World(four_racks())
    gang = members("g", 5)
    world.put(*gang)
    before = world.filter(gang[0])
    world.put(*(pod(f"f{r}", on=f"n{r}0") for r in range(4)))
    filler = pod("x", on="n01")
    world.put(filler)
    world.delete(filler)
    world.tick(1.0)
    assert world.filter(gang[0]) == before
    world.put(filler)
    world.delete(filler)
    world.tick(60.0)
    assert "3 of 5 pods fit" in world.filter(gang[0]).sentence


def test_nodes_without_level_labels_are_counted_in_the_verdict():
    world = World([*four_racks(), node("bare1"), node("bare2")])
    gang = members("g", 5)
    world.put(*gang)
    assert "without a label of every level 2" in world.filter(gang[0]).sentence


def test_levels_that_do_not_nest_are_told_by_path_and_not_merged():
    world = World([node("b0/r0/n00"), node("b1/r0/n10")])
    (warning,) = world.engine.warnings()
    assert f"{RACK}=r0" in warning
    assert "b0/r0, b1/r0" in warning
    world.put(*members("g", 2))
    assert world.held == {}


def test_a_topology_that_cannot_be_used_is_told_and_the_others_stay():
    world = World(
        four_racks(),
        topologies=[
            topology("bad", "a", "a"),
            topology("good", BLOCK, RACK),
        ],
    )
    assert "Topology bad" in world.engine.warnings()[0]
    world.put(*members("g", 4))
    assert len(world.held) == 4


def test_members_told_to_wait_for_others_are_woken_to_hear_that_there_is_no_room():
    world = World(four_racks())
    gang = members("big", 5)
    world.put(*gang[:4])
    assert "waits until all 5" in world.filter(gang[0]).sentence
    world.put(gang[4])
    world.tick()
    assert world.woken == ["big0"]
    assert "cannot be placed" in world.filter(gang[0]).sentence
    world.tick()
    assert world.woken == ["big0"]


def test_members_told_to_wait_for_others_are_woken_to_hear_that_the_gang_cannot_be_meant():
    world = World(four_racks())
    first = pod("g0", annotations=group("g", 2, RACK))
    world.put(first)
    world.filter(first)
    world.put(pod("g1", annotations=group("g", 3, RACK)))
    world.tick()
    assert world.woken == ["g0"]
    assert "members disagree" in world.filter(first).sentence


def test_other_numbers_in_a_verdict_wake_nobody():
    world = World(four_racks())
    gang = members("big", 5)
    world.put(*gang)
    world.filter(gang[0])
    world.put(pod("plain", on="n00"))
    world.put(*(pod(f"f{rack}", on=f"n{rack}0") for rack in range(4)))
    world.tick(61.0)
    world.tick()
    assert world.woken == []


def test_members_of_many_gangs_are_set_right_a_few_at_a_time():
    world = World(four_racks())
    gangs = [members(f"big{number}", 5) for number in range(10)]
    for gang in gangs:
        world.put(gang[0])
        world.filter(gang[0])
    for gang in gangs:
        world.put(*gang[1:])
    woken = []
    for _ in range(20):
        world.tick()
        woken.append(len(world.woken))
    assert woken[-1] == 10
    assert max(later - before for before, later in pairwise([0, *woken])) <= 4


def test_no_pod_is_one_too_many_of_a_gang_whose_members_disagree_on_its_size():
    world = World(four_racks())
    gang = [pod(f"g{i}", annotations=group("g", 2 if i == 0 else 3, RACK)) for i in range(3)]
    world.put(*gang)
    assert len({world.filter(member).sentence for member in gang}) == 1


def test_a_mistaken_pod_the_watch_has_not_shown_yet_hears_its_mistake_at_once():
    world = World(four_racks())
    answer = world.filter(pod("g0", annotations=group("g", "three", RACK)))
    assert '"three": must be a numeric value' in answer.sentence
