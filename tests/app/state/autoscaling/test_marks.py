"""Which waiting pods are marked for node autoscalers, when, how often, and when no more."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from app.explain.changes import Changes
from app.explain.gangs import view
from app.kube.watch.events import Listed
from app.state.autoscaling import marks
from app.state.effects import AskNodes, EmitEvent, Mark, Ungate
from app.state.engine import Engine
from app.state.plan.verdict import NoPlan
from app.state.settings import EngineSettings
from tests.app.state.autoscaling.marking import OURS, Marking, gated
from tests.app.state.world import LISTED, four_racks, members
from tests.records import BLOCK, RACK, REQUIRED, UNCONSTRAINED, job, job_pods, node, pod
from tests.workload_pods import stateful_pods, workload

PATIENCE = 30.0
NAMES = ["g0", "g1", "g2", "g3"]


class Away(Marking):
    """Its API server does not answer."""

    is_away = True


def full(racks=4, **more):
    """A pod on each of the four nodes of so many racks."""
    return [
        pod(f"o{r}{i}", on=f"n{r}{i}", phase="Running", **more)
        for r in range(racks)
        for i in range(4)
    ]


def figures(**more):
    """How many gangs ask, by why."""
    return {"never": 0, "busy": 0, "fragmented": 0, "gradual": 0, **more}


def test_a_gang_that_never_fits_is_marked_at_once_each_pod_once():
    world = Marking(four_racks(), gated("g", 5))
    sent = world.first + world.wait(2)
    assert sorted(each.name for each in sent) == [*NAMES, "g4"]
    assert world.marked == [*NAMES, "g4"]
    assert world.wait(600) == []
    assert all(each.gates for each in world.pods.values()), "the gates stay"


def test_the_mark_says_what_is_lacking_in_numbers_of_pods():
    world = Marking(four_racks(), gated("g", 5))
    (said,) = {each.sentence for each in world.first + world.wait(1)}
    assert said == f"gang default/g needs nodes: 4 of 5 pods fit in one {RACK}"


def test_a_gang_that_waits_for_others_to_leave_is_marked_after_a_while():
    world = Marking(four_racks(), [*full(), *gated("g", 4)])
    assert world.first + world.wait(PATIENCE - 2) == []
    assert sorted(each.name for each in world.wait(4)) == NAMES


@pytest.mark.parametrize("doubt", [{"is_proven": False}, {"is_cut_short": True}])
def test_a_gang_of_which_it_is_not_certain_that_it_does_not_fit_asks_later(doubt):
    world = Marking(four_racks(), [*full(), *gated("g", 4)])
    world.wait(1)
    gang = world.gang("g")
    lack = replace(gang.need.lack, **doubt)
    world.engine.marks.note_verdict(gang, NoPlan(lack), world.now)
    assert world.wait(200) == []
    assert len(world.wait(200)) == 4
    assert gang.need.lack == lack, "nothing was searched for meanwhile"


def test_with_never_a_gang_that_waits_for_others_to_leave_is_not_marked():
    world = Marking(four_racks(), [*full(), *gated("g", 4)], needs_nodes="never")
    assert world.first + world.wait(600) == []
    world.put(*gated("h", 5))
    assert len(world.wait(2)) == 5


def test_with_off_nothing_is_written_whatever_the_watch_shows():
    world = Marking(four_racks(), gated("g", 5), needs_nodes="off")
    world.wait(60)
    world.show(world.pods["uid-g0"], is_marked=True)
    world.delete(world.pods["uid-g4"])
    world.wait(60)
    assert world.told(Mark) == []


def test_a_gang_that_fits_is_never_marked_and_costs_no_look():
    world = Marking(four_racks(), gated("g", 4))
    world.patch(world.effects)
    assert set(world.schedule(*world.pods.values())) == set(NAMES)
    world.wait(100)
    assert world.told(Mark) == []
    assert world.engine.marks.open == {}


def test_an_incomplete_gang_is_not_marked():
    world = Marking([], gated("g", 8)[:7])
    assert world.first + world.wait(600) == []


@pytest.mark.parametrize("gates", [("other",), ("corral.dev/gang", "other")])
def test_a_gang_with_a_foreign_gate_is_not_marked(gates):
    waiting = gated("g", 5)
    waiting[0] = msgspec.structs.replace(waiting[0], gates=gates)
    world = Marking(four_racks(), waiting)
    assert world.first + world.wait(600) == []


@pytest.mark.parametrize(
    "queued",
    [
        {"labels": {"kueue.x-k8s.io/queue-name": "q"}},
        {"gates": (*OURS, "kueue.x-k8s.io/topology")},
        {"gates": (*OURS, "kueue.x-k8s.io/admission")},
    ],
    ids=["queue", "topology_gate", "admission_gate"],
)
@pytest.mark.parametrize("settings", [{}, {"provisioning_class": "a.example"}])
def test_a_gang_that_kueue_starts_asks_for_nothing(queued, settings):
    world = Marking(
        [], members("g", 4, **{"gates": OURS, **queued}), kueue_manages=True, **settings
    )
    world.wait(600)
    assert (world.told(Mark), world.told(AskNodes)) == ([], [])


def test_pods_without_a_gate_are_left_to_kube_scheduler():
    world = Marking(four_racks(), members("g", 5))
    assert world.first + world.wait(600) == []


def test_a_gang_with_a_mistake_is_not_marked():
    world = Marking(four_racks(), gated("g", 5, required="no.such/level"))
    assert world.first + world.wait(600) == []


def test_nodes_that_come_place_the_gang_and_no_mark_is_taken_back():
    world = Marking([], gated("g", 4))
    world.wait(2)
    assert world.marked == NAMES
    world.put(*four_racks())
    world.patch(world.tick())
    assert len(world.schedule(*world.pods.values())) == 4
    world.wait(100)
    assert [each for each in world.told(Mark) if not each.sentence] == []


def test_a_gang_that_loses_a_pod_is_unmarked_and_marked_again_when_it_is_whole():
    world = Marking([], gated("g", 4))
    world.wait(2)
    lost = world.pods["uid-g3"]
    world.delete(lost)
    taken_back = world.wait(5)
    assert sorted(each.name for each in taken_back) == NAMES[:3]
    assert not any(each.sentence for each in taken_back)
    world.put(msgspec.structs.replace(lost, uid="uid-g3-again", is_marked=False))
    assert sorted(each.name for each in world.wait(5)) == NAMES


def test_a_job_that_grows_while_others_have_their_turn_has_its_new_pod_marked():
    """Its roll call comes before its verdict: till then it is not known whether it fits."""
    rack = {"kueue.x-k8s.io/podset-required-topology": RACK}
    first, second, third = (
        msgspec.structs.replace(each, gates=OURS) for each in job_pods("j", 3, **rack)
    )
    world = Marking([node("b0/r0/n", gpus=8)], [first, second], [job("j", 2)])
    world.wait(700)
    assert world.marked == ["j-0", "j-1"]
    world.put(node("b0/r0/small", gpus=1))  # gangs are tried in turn
    world.put(job("j", 3))
    world.put(third)
    world.wait(5)
    assert world.marked == ["j-0", "j-1", "j-2"]


def test_a_restart_finds_the_marks_and_writes_nothing():
    before = Marking(four_racks(), [*full(), *gated("g", 4)])
    before.wait(PATIENCE + 5)
    assert before.marked == NAMES
    world = Marking(four_racks(), before.pods.values())
    assert world.first + world.wait(600) == []
    assert list(world.engine.marks.open) == [world.gang("g").key]


def test_a_restart_marks_those_that_the_one_before_did_not():
    waiting = gated("g", 5)
    waiting[1] = msgspec.structs.replace(waiting[1], is_marked=True)
    world = Marking(four_racks(), waiting)
    sent = world.first + world.wait(5)
    assert sorted(each.name for each in sent) == ["g0", "g2", "g3", "g4"]


def test_a_restart_takes_the_marks_of_a_gang_back_whose_level_is_gone():
    waiting = [msgspec.structs.replace(each, is_marked=True) for each in gated("g", 4)]
    world = Marking(four_racks(), waiting, levels=(BLOCK,))
    taken_back = world.first + world.wait(600)
    assert sorted(each.name for each in taken_back) == NAMES
    assert world.marked == []


def test_the_next_to_lead_takes_marks_back_of_a_gang_that_gathers_since_it_follows():
    world = Marking(four_racks(), full())
    world.inputs.lead(is_leading=False, now=world.now)
    world.put(*(msgspec.structs.replace(each, is_marked=True) for each in gated("g", 4)))
    world.wait(5)
    world.is_away = True  # of one that follows nothing is written
    world.delete(world.pods["uid-g3"])
    world.wait(5)
    world.is_away = False
    world.inputs.lead(is_leading=True, now=world.now)
    world.wait(marks.UNSEEN_SECONDS + 1)
    assert world.marked == []


def test_a_mark_that_goes_with_another_change_of_the_pod_is_forgotten():
    marked = [msgspec.structs.replace(each, is_marked=True) for each in gated("g", 4)]
    world = Marking(four_racks(), marked)
    world.patch(world.told(Ungate))
    assert world.gang("g").need.marked
    running = [msgspec.structs.replace(each, is_marked=False) for each in world.pods.values()]
    world.put(*(msgspec.structs.replace(each, node=world.held[each.uid]) for each in running))
    world.wait(2)
    assert world.gang("g").need.marked == set()


def test_a_strangers_mark_on_a_gang_that_gathers_is_taken_back_once_each_time():
    world = Marking(four_racks(), gated("g", 4)[:3])
    for _ in range(3):
        world.show(world.pods["uid-g0"], is_marked=True)
        assert [each.name for each in world.wait(3)] == ["g0"]
        assert world.wait(100) == []


@pytest.mark.parametrize("pods", [5, 3], ids=["marked", "not_marked"])
def test_another_client_that_writes_the_same_condition_is_answered_ever_later(pods):
    """Two that undo each other's write as fast as they see it."""
    world = Marking(four_racks(), gated("g", 5)[:pods])
    world.wait(2)
    own = len(world.told(Mark))
    for _ in range(500):
        world.show(world.pods["uid-g0"], is_marked=pods < 5)
        world.written(world.tick(1.0))
    assert 4 <= len(world.told(Mark)) - own <= 12, "about as many as 500 can be halved"
    world.wait(marks.MOST_UNDONE_SECONDS)
    assert ("g0" in world.marked) == (pods == 5), "it has the last word"


def test_a_mark_that_does_not_show_is_sent_again_but_ever_later():
    world = Away(four_racks(), gated("g", 5))
    sent = world.first + world.wait(600)
    rounds = len(sent) / 5
    assert 600 / marks.MOST_UNSEEN_SECONDS <= rounds <= 600 / marks.MOST_UNSEEN_SECONDS + 4
    world.is_away = False
    world.wait(marks.MOST_UNSEEN_SECONDS + 1)
    assert len(world.marked) == 5


def test_a_mark_under_way_is_not_sent_twice_though_it_was_unwanted_meanwhile():
    world = Away(four_racks(), gated("g", 5))
    assert len(world.first + world.wait(2)) == 5
    last = world.pods["uid-g4"]
    world.delete(last)
    assert world.wait(2) == []
    world.put(last)
    assert [each.name for each in world.wait(3)] == ["g4"]


def test_what_was_lost_while_it_was_wanted_before_does_not_delay_it_when_it_is_wanted_again():
    world = Away(four_racks(), gated("g", 5))
    world.is_away = False
    world.wait(2)
    last = msgspec.structs.replace(world.pods["uid-g4"], is_marked=False)
    world.is_away = True
    world.delete(last)
    taken_back = world.wait(150)  # each time twice as long after the last one
    assert 4 < len(taken_back) <= 4 * 5
    world.put(last)
    assert [each.name for each in world.wait(3)] == ["g4"]
    world.delete(last)
    assert sorted(each.name for each in world.wait(3)) == NAMES


def test_a_mark_that_shows_when_it_is_not_wanted_any_more_is_taken_back():
    world = Away(four_racks(), gated("g", 5))
    assert len(world.first + world.wait(2)) == 5
    world.delete(world.pods["uid-g4"])
    assert world.wait(2) == []
    world.show(world.pods["uid-g0"], is_marked=True)
    assert [(each.name, each.sentence) for each in world.wait(3)] == [("g0", "")]


def test_a_mark_names_the_version_of_its_pod_so_that_a_binding_is_not_undone():
    world = Marking(four_racks(), gated("g", 5))
    for each in world.first + world.wait(1):
        assert each.version == "1"


def test_a_gang_that_is_kept_off_nodes_by_an_earmark_is_not_marked():
    """Nodes are kept for one that comes before it: that is no lack of capacity."""
    settings = {"starvation_seconds": 50.0, "needs_nodes_seconds": 100.0, "earmark_seconds": 9e3}
    small = [pod(f"o{r}", on=f"n{r}0", phase="Running") for r in range(4)]
    world = Marking(four_racks(), [*small, *gated("large", 4)], **settings)
    world.wait(70)
    kept = world.engine.starvation.nodes()
    assert kept
    others = [
        pod(f"x{n}", on=n, phase="Running") for n in world.engine.books.nodes if n not in kept
    ]
    world.put(*[each for each in others if not each.name.endswith("0")])
    world.put(*gated("late", 3))
    world.wait(300)
    assert [name for name in world.marked if name.startswith("late")] == []


def test_one_event_tells_the_owner_that_nodes_are_asked_for():
    world = Marking(four_racks(), gated("g", 5))
    world.wait(600)
    told = [each for each in world.told(EmitEvent) if each.reason == "NeedsNodes"]
    assert [each.is_warning for each in told] == [False]
    assert "needs nodes: 4 of 5" in told[0].sentence


def test_pods_that_fit_apart_are_told_once_that_no_node_will_come():
    """Room for 2 + 2 in two racks: an autoscaler counts four free nodes."""
    taken = [each for each in full() if each.node not in ("n00", "n01", "n10", "n11")]
    world = Marking(four_racks(), [*taken, *gated("g", 4)])
    world.wait(200)
    assert not [each for each in world.told(EmitEvent) if each.reason == "NoNodesCome"]
    assert world.engine.marks.needs(world.now).gangs == figures(busy=1)
    world.wait(900)
    (told,) = [each for each in world.told(EmitEvent) if each.reason == "NoNodesCome"]
    assert f"in one {RACK}" in told.sentence
    assert world.engine.marks.needs(world.now).gangs == figures(fragmented=1)


@pytest.mark.parametrize("said", [{REQUIRED: RACK}, {UNCONSTRAINED: "true"}])
def test_pods_that_fit_without_those_to_come_are_told_once_that_no_node_will_come(said):
    """A StatefulSet makes one pod, which fits; an autoscaler counts no pod that does not exist."""
    ordered = workload("StatefulSet", "db", {"": 2}, is_gradual=True)
    taken = [each for each in full() if each.node != "n00"]
    first, second = (
        msgspec.structs.replace(each, annotations=said)
        for each in stateful_pods("db", 2, RACK, gates=OURS)
    )
    world = Marking(four_racks(), [*taken, first], jobs=[ordered])
    world.wait(900)
    (told,) = [each for each in world.told(EmitEvent) if each.reason == "NoNodesCome"]
    assert "1 pod of it does not exist yet" in told.sentence
    assert "podManagementPolicy" in told.sentence
    assert world.engine.marks.needs(world.now).gangs["gradual"] == 1
    world.put(second)
    world.wait(900)
    assert world.engine.marks.needs(world.now).gangs["gradual"] == 0, "both are counted now"


def test_pods_that_do_not_fit_even_without_those_to_come_are_not_told_that():
    ordered = workload("StatefulSet", "db", {"": 2}, is_gradual=True)
    first, _ = stateful_pods("db", 2, RACK, gates=OURS)
    world = Marking(four_racks(), [*full(), first], jobs=[ordered])
    world.wait(900)
    assert not [each for each in world.told(EmitEvent) if each.reason == "NoNodesCome"]


def test_a_gang_whose_nodes_come_one_by_one_is_not_told_that_none_will():
    world = Marking([], gated("g", 4))
    for i in range(3):
        world.wait(250)
        world.put(node(f"b0/r{i}/late{i}"))
    world.wait(250)
    assert not [each for each in world.told(EmitEvent) if each.reason == "NoNodesCome"]


def test_figures_are_of_the_pods_that_wait_for_nodes():
    world = Marking(four_racks(), gated("g", 5))
    world.wait(11)
    needs = world.engine.marks.needs(world.now)
    assert needs.gangs == figures(never=1)
    assert (needs.pods, needs.resources["nvidia.com/gpu"]) == (5, 40)
    assert 9 <= needs.oldest_seconds <= 12
    world.put(*[node(f"b9/r9/m{i}") for i in range(5)])
    world.tick()
    assert world.engine.marks.needs(world.now).pods == 0


def test_large_gangs_are_marked_a_few_hundred_pods_a_tick_and_each_pod_once():
    waiting = [each for i in range(3) for each in gated(f"g{i}-", 300)]
    world = Marking(four_racks(), waiting)
    most = len(world.first)
    for _ in range(20):
        most = max(most, len(world.written(world.tick())))
    assert 0 < most <= marks.MOST_MARKS
    assert len(world.marked) == len(world.told(Mark)) == len(waiting)


def test_many_gangs_are_looked_at_in_turn_and_none_twice():
    waiting = [each for i in range(60) for each in gated(f"g{i}-", 5)]
    world = Marking(four_racks(), waiting)
    for _ in range(40):
        world.written(world.tick())
    assert len(world.marked) == len(world.told(Mark)) == len(waiting)
    assert len(world.engine.marks._later) <= 3 * 60


def test_what_a_gang_asks_for_is_shown_and_its_time_goes_on():
    world = Marking(four_racks(), gated("g", 5))
    world.wait(10)
    shown = view(world.gang(), world.now, world.engine.books).needs_nodes
    assert shown is not None
    assert (shown.reason, shown.pods, shown.level, shown.largest) == ("never", 5, RACK, 4)
    assert shown.ask == "mark"
    assert 8 <= shown.since_seconds <= 10
    changes = Changes(world.engine)
    (first,) = changes.look(world.now)
    assert first.gang.needs_nodes == shown
    (known,) = changes.shown.values()
    later = known.as_of(world.now + 7).needs_nodes
    assert later is not None
    assert later.since_seconds == pytest.approx(shown.since_seconds + 7)


def test_a_gang_that_asks_for_nothing_shows_nothing():
    world = Marking(four_racks(), [*full(), *gated("g", 4)])
    assert view(world.gang("g"), world.now, world.engine.books).needs_nodes is None


def test_ten_thousand_marked_pods_cost_no_write_and_no_search_while_nothing_happens():
    waiting = [
        msgspec.structs.replace(each, is_marked=True)
        for i in range(1_250)
        for each in gated(f"g{i}-", 8)
    ]
    engine = Engine(EngineSettings(levels=(BLOCK, RACK), kinds=LISTED))
    effects = []
    for kind, records in (("Topology", ()), ("Job", ()), ("Node", four_racks()), ("Pod", waiting)):
        effects += engine.apply(Listed(kind, tuple(records)), 1000.0)
    now = 1000.0
    for _ in range(700):  # until all are known to be marked, and looked into
        now += 1.0
        effects += engine.tick(now)
    assert len(engine.marks.open) == 1_250
    before = engine.node_table.visits.total
    for _ in range(50):
        now += 0.1
        effects += engine.tick(now)
    assert engine.node_table.visits.total == before
    assert not [each for each in effects if isinstance(each, Mark)]


def test_a_gang_that_is_made_again_under_its_name_asks_anew():
    world = Marking(four_racks(), gated("g", 5))
    world.wait(5)
    for each in list(world.pods.values()):
        world.delete(each)
    again = [msgspec.structs.replace(each, uid=f"{each.uid}-2") for each in gated("g", 5)]
    world.put(*again[:4])
    assert world.engine.marks.needs(world.now).gangs == figures()
    world.wait(2)
    assert (world.marked, world.engine.marks.open) == ([], {})
    world.put(again[4])
    world.wait(2)
    assert len(world.marked) == 5


def test_nothing_is_asked_for_a_pod_that_does_not_exist_yet():
    ordered = workload("StatefulSet", "db", {"": 2}, is_gradual=True)
    world = Marking(four_racks(), jobs=[ordered])
    first, second = stateful_pods("db", 2, RACK, gates=OURS)
    world.put(first)
    world.patch(world.tick())
    taken = world.schedule(first)["db-0"]
    in_rack = [each for each in four_racks() if each.name[:2] == taken[:2]]
    for each in in_rack:
        world.put(msgspec.structs.replace(each, is_unschedulable=each.name != taken))
    world.wait(PATIENCE + 2)
    new = msgspec.structs.replace(in_rack[0], name="new", uid="uid-new", allocatable=())
    world.put(new)
    world.wait(2)
    assert (list(world.engine.marks.open), world.engine.new_nodes.nodes()) == ([], frozenset())
    world.put(second)
    assert [each.name for each in world.wait(PATIENCE + 2)] == ["db-1"]
