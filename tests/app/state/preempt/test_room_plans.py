"""What is done so that a gang that waits has room, from the answer to its place.

Nodes of 8 GPUs, pods of 8; `T` is a gang of priority 1000 that requires a rack, all others have
priority 0, a controller, and run. The API server is played here: it says whether it would evict a
pod, evicted pods end, and are gone when a test lets them go.
"""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest
from msgspec.structs import replace

from app.dialects.corral import PREEMPTIBLE, ROOM
from app.dialects.kueue.pod_groups import FAST, SPARES
from app.dialects.spec import GangKey
from app.dialects.volcano.pod_groups import decode_pod_group
from app.kube.core.objects import Taint
from app.kube.watch.events import Listed
from app.metrics import ROOM_RESULTS, Metrics
from app.state.effects import Annotate, EmitEvent, Evict, RoomAnswer, SeekRoom, TryEviction
from app.state.filter_result import Passed
from app.state.plan.verdict import Plan
from app.state.preempt.plans.room_plan import Result, Stage
from app.state.preempt.plans.room_plans import DRAIN_SECONDS, SEND_SECONDS, SETTLE_SECONDS
from app.state.report.messages import preemption as messages
from app.state.reserve.plans import LOOK_SECONDS
from app.state.settings import EngineSettings
from tests.app.dialects.volcano import workloads as volcano
from tests.app.dialects.volcano.objects import exact, record
from tests.app.dialects.volcano.workloads import GROUP_NAME
from tests.app.state.preempt.test_making_room import (
    N1,
    N2,
    Operated,
    budget,
    gang,
    names,
    runs,
    single,
    train,
    two_racks,
)
from tests.app.state.preemptor import rack
from tests.app.state.world import Names, members
from tests.records import RACK, REQUIRED, group, job, job_owner, job_pods, node, pod
from tests.room_question import question_of


class Evicting(Operated):
    """A world whose API server evicts what it is asked to, if it would."""

    def __init__(self, nodes, pods, **settings):
        self.kept = set(settings.pop("kept", ()))  # names of pods that it would not evict
        self.kept_later = set()  # it says that it would, and does not
        self.silent = settings.pop("silent", False)  # it does not answer
        self.is_slow = settings.pop("is_slow", False)  # what is evicted is not carried out yet
        self._heard = 0
        super().__init__(nodes, pods, **{"preempt": "on", **settings})
        self.run(1.0)

    def run(self, seconds, step=1.0):
        """Let time pass while the API server answers."""
        self._serve()
        for _ in range(round(seconds / step)):
            self.tick(step)
            self.answer()
            self._serve()

    def _serve(self):
        while self._heard < len(self.effects) and not self.silent:
            effect = self.effects[self._heard]
            self._heard += 1
            if isinstance(effect, TryEviction):
                outcome = "failed" if effect.name in self.kept else "done"
                self._take(self.inputs.eviction_tried(effect.uid, outcome, self.now))
            elif isinstance(effect, Evict) and not self.is_slow:
                self._evict(effect)
            elif isinstance(effect, Annotate) and effect.uid in self.pods:
                before = self.pods[effect.uid]
                said = {**before.annotations, **dict(effect.annotations)}
                self.put(replace(before, annotations=said))

    def _evict(self, effect):
        if not self.engine.room_plans.is_wanted(effect.uid):
            self._take(self.inputs.eviction_finished(effect.uid, "dropped", self.now))
        elif effect.name in self.kept_later:
            self._take(self.inputs.eviction_finished(effect.uid, "failed", self.now))
        else:
            ending = replace(self.pods[effect.uid], is_terminating=True)
            self.put(ending)
            self._take(self.inputs.eviction_finished(effect.uid, "done", self.now))

    def restart(self, **settings):
        """Another Corral takes the place of this one; it has read everything, and done nothing."""
        self.settings = EngineSettings(**{**self.settings.model_dump(), **settings})
        nodes = tuple(self.engine.books.nodes.values())
        self.engine = self.built()
        for each in self.lists(nodes):
            self.apply(each)
        self.read_again()

    @staticmethod
    def lists(nodes):
        """What another Corral reads of the cluster before its pods."""
        for kind in ("Topology", "Job", "PodDisruptionBudget"):
            yield Listed(kind, ())
        yield Listed("Node", nodes)

    def let_go(self, *only):
        """Pods that end are gone; all of them, or those of these names."""
        ending = [each for each in self.pods.values() if each.is_terminating]
        self.delete(*[each for each in ending if not only or each.name in only])

    @property
    def evicted(self):
        """The names of the pods that were evicted, in order."""
        return [each.name for each in self.told(Evict)]

    @property
    def ending(self):
        return sorted(each.name for each in self.pods.values() if each.is_terminating)

    @property
    def plan(self):
        """What is under way for T."""
        return self.engine.room_plans.of.get(self.gang("T").key)

    @property
    def results(self):
        return dict(self.engine.room_plans.results)

    @property
    def room(self):
        """Reasons of the events about room, in order."""
        reasons = ("Preempting", "Preempted", "RoomNotMade", "RoomByPreemption")
        return [each.reason for each in self.told(EmitEvent) if each.reason in reasons]


def placed(world, name="T"):
    return world.gang(name).plan.nodes


# -- the whole way ---------------------------------------------------------------------------------


def test_a_gang_goes_for_one_of_higher_priority_and_that_starts_in_its_place():
    world = Evicting(two_racks(), [*gang("a", *N1[:2]), *gang("b", *N2)])
    assert world.evicted == ["a0", "a1"]
    assert placed(world) == {}
    world.let_go()
    world.run(2.0)
    assert set(placed(world).values()) == set(N1)
    assert world.results == {"placed": 1}
    assert world.room == ["Preempting", "Preempted"]
    assert world.schedule(*train()) == dict(zip(["T0", "T1", "T2", "T3"], N1, strict=True))


def test_no_room_is_made_for_a_gang_before_its_pods_have_come_that_kube_scheduler_did_not_bring():
    world = Evicting([*rack(1, 4), *rack(2, 4)], gang("b", *N2))
    world.run(world.engine.settings.hold_seconds + 1.0)
    world.put(pod("x", on="n10", phase="Running", priority=5000))
    world.run(LOOK_SECONDS + 30.0)
    waiting = world.gang("T")
    assert waiting.binding.awaits_members(world.now)
    assert waiting.reporting.waits_for_room
    assert (world.evicted, world.engine.room_plans.of) == ([], {})
    for each in list(waiting.binding.awaited):
        world.filter(world.pods[each])
    world.run(60.0)
    assert sorted(world.evicted) == ["b0", "b1", "b2", "b3"]


def test_both_sides_are_told_who_goes_for_whom():
    world = Evicting(two_racks(), [*gang("a", *N1[:2]), *gang("b", *N2)])
    said = {each.reason: each for each in world.told(EmitEvent)}
    assert said["Preempting"].sentence == (
        "gang default/T (priority 1000) makes room in cloud.provider.com/topology-rack=b0/r1:"
        " evicts 2 pods of 1 gang: gang default/a (priority 0)"
    )
    assert said["Preempted"].sentence == (
        "gang default/a (priority 0) gives way to gang default/T (priority 1000): its 2 pods are"
        " evicted"
    )
    assert said["Preempted"].gang.name == "a"
    assert said["Preempted"].is_warning
    assert {each.sentence for each in world.told(Evict)} == {said["Preempted"].sentence}


@pytest.mark.parametrize("setting", ["explain", "on"])
def test_where_only_a_job_is_left_that_would_fail_for_good_that_is_said(setting):
    """19."""
    said = replace(job("a", 4), failures_left=2)
    pods = job_pods("a", 4, **{REQUIRED: RACK})
    running = [replace(each, node=on, phase="Running") for each, on in zip(pods, N1, strict=True)]
    world = Evicting(rack(1, 4), running, jobs=[said], preempt=setting)
    (sentence,) = (text for text in world.reports if text.startswith("gang default/T (priority"))
    assert sentence.endswith(
        ": gang default/a (priority 0); the owner of 1 gang would count its pods as failed and give"
        " up"
    )
    gone = [text for text in world.reports if text.startswith("gang default/a (priority 0) gives")]
    whole = "its 4 pods are evicted, and its owner gives up"
    assert [text.partition(": ")[2] for text in gone] == [whole] * (setting == "on")


def test_gangs_and_other_pods_that_go_are_told_apart():
    world = Evicting(rack(1, 4), [*gang("a", *N1[:2]), single("s", "n12")])
    (sentence,) = {each.sentence for each in world.told(EmitEvent) if each.reason == "Preempting"}
    assert sentence.endswith(
        ": evicts 3 pods, those of 1 gang among them: gang default/a (priority 0), pod default/s"
        " (priority 0)"
    )


def test_a_pod_without_a_gang_hears_it_itself():
    world = Evicting(rack(1, 4), [single(f"s{at}", on) for at, on in enumerate(N1)])
    assert sorted(world.evicted) == ["s0", "s1", "s2", "s3"]
    about = [each.about.name for each in world.told(EmitEvent) if each.reason == "Preempted"]
    assert sorted(about) == ["s0", "s1", "s2", "s3"]


@pytest.mark.parametrize("setting", ["explain", "off"])
def test_no_pod_is_evicted_or_tried_unless_it_is_on(setting):
    """P8."""
    world = Evicting(two_racks(), [*gang("a", *N1), *gang("b", *N2)], preempt=setting)
    world.run(600.0)
    assert (world.told(Evict), world.told(TryEviction)) == ([], [])


def test_explain_says_exactly_whom_on_evicts():
    running = [*gang("a", *N1[:2]), *gang("b", *N2), single("s", "n12", gpus=1)]
    said = Evicting(two_racks(), running, preempt="explain")
    done = Evicting(two_racks(), running)
    assert names(said.answers[0]) == ["gang default/a", "pod default/s"]
    assert sorted(done.evicted) == ["a0", "a1", "s"]


def test_the_setting_may_be_for_some_namespaces():
    running = [*gang("a", *N1), *gang("b", *N2)]
    world = Evicting(two_racks(), running, preempt_in=("team",))
    assert world.evicted == []
    assert (
        world.said[0][1]
        .split(": ")[0]
        .endswith("none is evicted, as preempt_in does not have namespace default")
    )
    assert Evicting(two_racks(), running, preempt_in=("default",)).evicted != []


# -- the room that is made -------------------------------------------------------------------------


def test_pods_of_no_higher_priority_are_kept_off_the_room_while_it_is_made():
    """P7, and a victim's replacement among them."""
    world = Evicting(rack(1, 4), gang("a", *N1))
    world.let_go("a0", "a1")
    late = [pod("low"), pod("equal", priority=1000), *members("a-again", 2)]
    world.put(*late)
    world.run(2.0)
    for each in late[:2]:
        assert world.filter(each) == Passed(frozenset(N1))
    assert placed(world, "a-again") == {}
    world.let_go()
    world.run(2.0)
    assert len(placed(world)) == 4


def test_a_pod_of_higher_priority_takes_freed_room_and_one_more_unit_goes_at_most():
    """16."""
    nodes = [*rack(1, 5)]
    world = Evicting(nodes, [*gang("a", *N1[:2]), single("s", "n14")])
    assert world.evicted == ["a0", "a1"]
    world.let_go("a0")
    urgent = pod("urgent", priority=2000)
    world.put(urgent)
    assert world.filter(urgent) == Passed(frozenset())
    world.confirm(world.bind(urgent, "n10"))
    world.let_go()
    world.run(30.0)
    assert world.evicted == ["a0", "a1", "s"]
    world.let_go()
    world.run(5.0)
    assert set(placed(world).values()) == {*N1[1:], "n14"}


def test_a_pod_of_higher_priority_is_led_to_a_node_that_nothing_is_kept_of():
    world = Evicting([*rack(1, 4), *rack(3, 1)], gang("a", *N1))
    world.let_go("a0")
    for _ in ("a gang's", "a pod's"):
        kept, other = world.inputs.prioritize(
            pod("urgent", priority=2000), Names(["n10", "n30"]), world.now
        )
        assert kept < other
        world.delete(*train())
        world.put(replace(pod("hp", priority=1000), nominated_node="n10"))
        world.run(1.0)


def test_the_node_that_is_kept_for_a_pod_is_not_kept_from_it():
    world = Evicting([*rack(1, 1), *rack(3, 1)], [single("s", "n30", gpus=4)], waiting=())
    waiting = replace(pod("hp", gpus=4, priority=1000), nominated_node="n30")
    world.put(waiting)
    other, its = world.inputs.prioritize(waiting, Names(["n10", "n30"]), world.now)
    assert its > other


def test_pods_that_end_already_are_waited_for_and_their_room_is_kept():
    """12."""
    ending = [replace(each, is_terminating=True, grace_seconds=300) for each in gang("a", *N1)]
    world = Evicting(two_racks(), [*ending, *gang("b", *N2)])
    world.run(250.0)
    world.let_go("a0")
    assert "n10" in world.filter(pod("low")).without
    world.let_go()
    world.run(2.0)
    assert set(placed(world).values()) == set(N1)
    assert world.evicted == []


def test_what_was_kept_for_a_gang_that_was_given_back_ends_as_room_is_made_for_it():
    world = Evicting(two_racks(), [*gang("a", *N1[:2]), *gang("b", *N2)], preempt="off")
    engine, waiting, pods = world.engine, world.gang("T"), train()
    kept = Plan({each.uid: node for each, node in zip(pods, N2, strict=True)})
    engine.kept_places.keep(waiting, kept, (), world.now)
    answer = RoomAnswer(True, places=tuple((0, node, 1) for node in N1))
    assert engine.room_plans.begin(waiting, answer, engine.books.snapshot, world.now)
    assert {each.node for each in engine.nominations.counted.values()} == set(N1)
    world.delete(*pods)
    engine.room_plans.end_over(world.now)
    assert engine.nominations.counted == {}
    assert engine.kept_places._of == {}


def test_two_gangs_never_evict_the_same_pods():
    """22."""
    halves = [*gang("a", *N1[:2]), *gang("b", *N1[2:])]
    waiting = [replace(each, priority=1000) for name in ("T", "U") for each in members(name, 2)]
    world = Evicting(rack(1, 4), halves, waiting=waiting)
    world.run(30.0)
    assert sorted(world.evicted) == ["a0", "a1", "b0", "b1"]
    world.let_go()
    world.run(5.0)
    nodes = [*placed(world).values(), *placed(world, "U").values()]
    assert sorted(nodes) == list(N1)


def test_a_gang_that_was_evicted_comes_back_after_the_other_one_and_takes_no_revenge():
    """17."""
    world = Evicting(rack(1, 4), gang("a", *N1))
    again = [replace(each, uid=f"{each.uid}-2") for each in members("a", 4)]
    world.let_go()
    world.put(*again)
    world.run(5.0)
    assert len(world.schedule(*train())) == 4
    world.run(3600.0, step=10.0)
    world.delete(*[world.pods[each.uid] for each in train()])
    world.run(5.0)
    assert len(placed(world, "a")) == 4
    assert world.evicted == ["a0", "a1", "a2", "a3"]


# -- after a restart -------------------------------------------------------------------------------


def notes(world):
    """The notes of a place that pods carry."""
    found = [each.annotations.get(ROOM, "") for each in world.pods.values()]
    return [text for text in found if text]


@pytest.mark.parametrize("gone", [(), ("a0", "a1"), ("a0", "a1", "a2", "a3")])
def test_a_corral_that_starts_keeps_the_room_that_was_made_from_its_first_answer_on(gone):
    world = Evicting(two_racks(), [*gang("a", *N1), *gang("b", *N2)])
    world.run(1.0)
    if gone:
        world.let_go(*gone)
    world.restart()
    low, equal = pod("low"), pod("equal", priority=1000)
    assert world.filter(low).without >= set(N1)
    assert world.filter(equal).without >= set(N1)
    world.put(*[replace(each, priority=1000) for each in members("A", 4)])  # before T, by its name
    world.run(2.0)
    world.let_go()
    world.run(2.0)
    assert set(placed(world).values()) == set(N1)
    assert placed(world, "A") == {}
    assert world.evicted == ["a0", "a1", "a2", "a3"]


class Pair(Evicting):
    """Another Corral follows, which has read everything before any place was noted."""

    follower = None

    def apply(self, event):
        if self.follower is not None:
            self.follower.apply(event, self.now)
        return super().apply(event)

    def tick(self, seconds=0.1):
        effects = super().tick(seconds)
        if self.follower is not None:
            self.follower.tick(self.now)
        return effects

    def follow(self):
        follower = self.built()
        follower.lead(False, self.now)
        for each in self.lists(tuple(self.engine.books.nodes.values())):
            follower.apply(each, self.now)
        follower.apply(Listed("Pod", tuple(self.pods.values())), self.now)
        self.follower = follower

    def take_over(self):
        """The other one leads from now on, and the first one is gone."""
        self.engine, self.follower = self.follower, None
        self._take(self.engine.lead(True, self.now))


def followed_while_room_is_made():
    world = Pair(two_racks(), [*gang("a", *N1), *gang("b", *N2)], silent=True)
    world.follow()
    world.silent = False
    world.run(3.0)
    assert len(world.ending) == 4
    assert notes(world)
    return world


def test_a_corral_that_has_followed_keeps_the_room_that_was_made_from_its_first_answer_on():
    world = followed_while_room_is_made()
    world.take_over()
    assert world.filter(pod("low")).without >= {f"n1{each}" for each in range(4)}
    world.run(3.0)
    world.let_go()
    world.run(3.0)
    assert len(placed(world)) == 4
    assert len(world.evicted) == 4, "no others go"


def test_it_takes_the_note_off_where_no_room_is_kept_any_more():
    world = followed_while_room_is_made()
    world.take_over()
    world.delete(*[each for each in world.pods.values() if each.name.startswith("b")])
    world.run(20.0)
    assert notes(world) == []


def test_where_some_were_not_evicted_yet_the_gang_asks_at_once_and_the_same_go():
    world = Evicting(two_racks(), [*gang("a", *N1), *gang("b", *N2)], is_slow=True)
    world.run(1.0)
    for effect in world.told(Evict)[:2]:
        world._evict(effect)
    world.let_go()
    world.restart()
    world.is_slow, world._heard = False, len(world.effects)
    world.run(2.0)
    assert world.ending == ["a2", "a3"]
    world.let_go()
    world.run(2.0)
    assert set(placed(world).values()) == set(N1)


def test_where_the_api_server_had_not_answered_yet_the_gang_asks_again_and_the_same_go():
    """Nothing is kept, and nothing noted, of a place for which it is only asked about pods."""
    world = Evicting(two_racks(), [*gang("a", *N1[:2]), *gang("b", *N2)], silent=True)
    assert world.plan.stage is Stage.CHECKING
    assert sorted(each.name for each in world.told(TryEviction)) == ["a0", "a1"]
    world.restart()
    world.silent, world._heard = False, len(world.effects)
    assert world.engine.room_plans.of == {}
    assert notes(world) == []
    assert world.filter(pod("low")) == Passed(frozenset())
    world.run(1.0)
    assert world.evicted == []
    world.run(12.0)
    assert world.evicted == ["a0", "a1"]
    world.let_go()
    world.run(2.0)
    assert set(placed(world).values()) == set(N1)


def test_an_answer_for_the_corral_before_changes_nothing():
    world = Evicting(two_racks(), [*gang("a", *N1[:2]), *gang("b", *N2)], silent=True)
    asked = world.told(TryEviction)
    world.restart()
    for each in asked:
        world._take(world.inputs.eviction_tried(each.uid, "done", world.now))
    assert world.engine.room_plans.of == {}
    assert world.evicted == []


def test_how_often_a_gang_went_is_counted_anew_after_a_restart():
    """No object says it: events are not read, and its pods are gone."""
    world = Evicting(rack(1, 4), gang("a", *N1), preempted_at_most=1)
    world.let_go()
    world.delete(*train())
    world.put(*[replace(each, uid=f"{each.uid}-2") for each in gang("a", *N1)])
    world.put(*[replace(each, uid=f"{each.uid}-2") for each in train()])
    world.run(40.0)
    assert len(world.evicted) == 4
    world.restart()
    world._heard = len(world.effects)
    world.run(40.0)
    assert len(world.evicted) == 8


def test_what_is_kept_is_noted_on_two_pods_once_and_no_longer_than_it_is_kept():
    world = Evicting(two_racks(), [*gang("a", *N1), *gang("b", *N2)])
    world.run(30.0)
    text = "cloud.provider.com/topology-rack=b0/r1;0/n10=1,0/n11=1,0/n12=1,0/n13=1"
    assert notes(world) == [text] * 2
    assert len(world.told(Annotate)) == 2
    world.restart()
    world.run(20.0)
    assert len(world.told(Annotate)) == 2
    world.let_go()
    world.run(2.0)
    assert notes(world) == []
    assert len(world.told(Annotate)) == 4
    world.restart()
    assert world.engine.room_plans.of == {}


def test_nothing_is_noted_of_a_place_that_no_pod_goes_for():
    world = Evicting(rack(1, 4), gang("a", *N1), kept=["a0"])
    world.run(5.0)
    assert world.told(Annotate) == []


def test_pods_that_are_made_again_have_the_note_as_well():
    world = Evicting(two_racks(), [*gang("a", *N1), *gang("b", *N2)])
    world.run(1.0)
    all_pods(world)
    world.run(2.0)
    assert len(notes(world)) == 2


@pytest.mark.parametrize("why", ["explained", "taken", "removed", "not_ours"])
def test_what_is_noted_is_not_kept_where_it_is_no_room_any_more(why):
    world = Evicting(two_racks(), [*gang("a", *N1), *gang("b", *N2, priority=1000)])
    world.run(1.0)
    world.let_go()
    settings = {"preempt": "explain"} if why == "explained" else {}
    if why == "taken":
        world.put(foreign("thief", "n10", priority=1000))
    elif why == "removed":
        world.delete(node("b0/r1/n10"))
    elif why == "not_ours":
        for each in world.pods.values():
            if each.annotations.get(ROOM):
                world.pods[each.uid] = replace(each, annotations={**each.annotations, ROOM: "x"})
    world.restart(**settings)
    assert world.engine.nominations.kept(0) == {}
    world.run(12.0)
    assert notes(world) == []


@pytest.mark.parametrize("lost", ["closed", "taken"])
def test_a_gang_waits_for_no_pods_that_take_hours_once_its_place_is_lost(lost):
    slow = [replace(each, grace_seconds=3600) for each in gang("a", *N1[:2])]
    nodes = [*rack(1, 2), *rack(2, 2)]
    world = Evicting(nodes, [*slow, *gang("b", *N2[:2], priority=1)], waiting=train(2))
    world.run(100.0)
    assert world.evicted == ["a0", "a1"]
    if lost == "closed":
        world.put(replace(world.engine.books.nodes["n10"], is_unschedulable=True))
    else:
        world.let_go("a0")
        world.put(single("above", "n10", priority=2000))
    world.run(20.0)
    assert world.results == {"lost" if lost == "closed" else "taken": 1}
    assert world.evicted == ["a0", "a1", "b0", "b1"]


# -- beside gangs that starve ----------------------------------------------------------------------


def starving_beside_a_room(nodes, others, priority):
    """`E` of 4 pods begins to starve while T waits for the pods of `a`, which take long to end."""
    slow = [replace(each, grace_seconds=300) for each in gang("a", *N1[:2])]
    first = members("E", 4, priority=priority)
    settings = {"starvation_seconds": 60.0, "preempt_plans": 1, "earmarked_share": 1.0}
    world = Evicting(nodes, [*slow, *others], waiting=first, **settings)
    world.put(*train(2))
    world.run(60.0)
    assert world.evicted == ["a0", "a1"]
    return world


@pytest.mark.parametrize("priority", [0, 1000])
def test_a_gang_that_starves_has_no_node_kept_that_others_were_evicted_from(priority):
    """Where it comes before T in the queue, T would not get what was freed for it."""
    others = [single(f"f{at}", f"n1{at}", priority=1000) for at in (2, 3)]
    world = starving_beside_a_room(rack(1, 4), others, priority)
    assert world.engine.starvation.of == {}
    world.let_go()
    world.run(10.0)
    assert set(placed(world).values()) == set(N1[:2])
    assert world.results == {"placed": 1}


def test_it_has_those_of_another_domain_kept_instead():
    """In the other rack nothing is free now."""
    others = [single(f"f{on}", on, priority=1000) for on in (*N1[2:], *N2)]
    world = starving_beside_a_room(two_racks(), others, 0)
    world.let_go("a0")
    world.run(10.0)
    (mark,) = world.engine.starvation.of.values()
    assert mark.nodes == set(N2)


def test_one_of_higher_priority_has_any():
    others = [single(f"f{at}", f"n1{at}", priority=5000) for at in (2, 3)]
    world = starving_beside_a_room(rack(1, 4), others, 2000)
    (mark,) = world.engine.starvation.of.values()
    assert mark.nodes == set(N1)


def test_none_is_evicted_for_a_place_that_such_a_one_has_kept_by_now():
    others = [single(f"f{at}", f"n1{at}", priority=5000) for at in (2, 3)]
    waiting = members("E", 4, priority=2000)
    settings = {"starvation_seconds": 60.0, "earmarked_share": 1.0, "silent": True}
    world = Evicting(rack(1, 4), [*gang("a", *N1[:2]), *others], waiting=waiting, **settings)
    world.run(30.0)
    world.put(*train(2))
    world.run(12.0)
    assert len(world.told(TryEviction)) == 2
    world.run(20.0)
    (mark,) = world.engine.starvation.of.values()
    assert mark.nodes == set(N1)
    world.silent = False
    world.run(30.0)
    assert world.evicted == []
    assert world.results == {"changed": 1}


def test_no_place_is_kept_that_one_before_it_had_kept_since_the_question():
    world = Evicting(two_racks(), [*gang("a", *N1), *gang("b", *N2)], preempt="off")
    engine, waiting = world.engine, world.gang("T")
    answer = RoomAnswer(True, places=tuple((0, node, 1) for node in N1))
    first = (False, -2000.0, 0.0, "default", "E")
    engine.planner.earmark({GangKey("default", "E", "group"): (frozenset(N1[:1]), first)}, {})
    assert not engine.room_plans.begin(waiting, answer, engine.books.snapshot, world.now)
    engine.planner.earmark({}, {})
    assert engine.room_plans.begin(waiting, answer, engine.books.snapshot, world.now)


# -- what keeps pods from going --------------------------------------------------------------------


def test_a_pod_that_may_not_be_evicted_saves_its_gang_and_another_one_goes():
    world = Evicting(two_racks(), [*gang("a", *N1[:2]), *gang("b", *N2)], kept=["a1"])
    world.run(3.0)
    assert sorted(world.evicted) == ["b0", "b1", "b2", "b3"]
    assert world.results == {"refused": 1}


def test_no_pod_goes_before_the_api_server_has_answered_for_all():
    world = Evicting(two_racks(), [*gang("a", *N1[:2]), *gang("b", *N2)], silent=True)
    assert len(world.told(TryEviction)) == 2
    world.run(20.0)
    assert world.evicted == []
    world.run(20.0)
    assert world.results == {"unanswered": 1}
    assert world.room[-1] == "RoomNotMade"


def test_those_that_a_budget_counts_go_first_and_what_it_keeps_then_keeps_the_rest():
    protected = [replace(each, labels={"app": "a"}) for each in gang("a", *N1[:2])]
    running = [*protected, *gang("b", *N1[2:])]
    world = Evicting(rack(1, 4), running, budgets=[budget("keep", "a", 2)], is_slow=True)
    assert world.evicted == ["a0", "a1"]
    world.run(5.0)
    assert world.evicted == ["a0", "a1"]
    for effect in world.told(Evict):
        world._take(world.inputs.eviction_finished(effect.uid, "failed", world.now))
    world.run(5.0)
    assert world.evicted == ["a0", "a1"]
    assert world.gang("a").ending == ""
    assert world.results == {"refused": 1}


def test_what_a_budget_lets_go_for_one_gang_is_not_there_for_another():
    """P9: its status follows a moment later."""
    labels = {"app": "x"}
    running = [
        replace(each, labels=labels)
        for name, *on in (("a", "n10", "n11"), ("b", "n20", "n21"))
        for each in gang(name, *on)
    ]
    waiting = [replace(each, priority=1000) for name in ("T", "U") for each in members(name, 2)]
    world = Evicting(
        [*rack(1, 2), *rack(2, 2)],
        running,
        waiting=waiting,
        budgets=[budget("x", "x", 3)],
        is_slow=True,
    )
    world.run(20.0)
    assert world.evicted == ["a0", "a1"]
    assert world.answers[1].budgets == ("default/x",)


def test_when_half_a_gang_is_gone_and_a_budget_keeps_the_rest_no_further_unit_is_begun():
    protected = [replace(each, labels={"app": "a"}) for each in gang("a", *N1[:2])]
    running = [*protected, *gang("b", *N1[2:])]
    world = Evicting(rack(1, 4), running, budgets=[budget("keep", "a", 2)], is_slow=True)
    first, second = world.told(Evict)
    world._evict(first)
    world._take(world.inputs.eviction_finished(second.uid, "failed", world.now))
    world.let_go()
    world.run(2.0)
    assert world.evicted == ["a0", "a1"]
    assert {each.name for each in world.pods.values()} >= {"a1", "b0", "b1"}


def test_a_pod_that_does_not_end_in_time_is_gone_around_once():
    stuck = replace(single("s", "n10"), grace_seconds=30)
    world = Evicting(
        [*rack(1, 1), *rack(2, 1)],
        [stuck, single("t", "n20", priority=5)],
        waiting=[replace(each, priority=1000) for each in members("T", 1)],
    )
    assert world.evicted == ["s"]
    world.run(30.0 + DRAIN_SECONDS + 5.0)
    assert world.evicted == ["s", "t"]
    world.let_go("t")
    world.run(2.0)
    assert set(placed(world).values()) == {"n20"}


def test_no_room_is_kept_for_evictions_whose_outcome_never_comes():
    """As when another replica has begun to lead."""
    protected = [replace(each, labels={"app": "a"}) for each in gang("a", *N1[:2])]
    running = [*protected, *gang("b", *N1[2:])]
    world = Evicting(rack(1, 4), running, budgets=[budget("keep", "a", 2)], is_slow=True)
    world.tick(SEND_SECONDS)
    world.tick()
    assert world.results == {"unanswered": 1}
    assert world.plan is None
    assert world.gang("a").ending == ""


def test_a_pod_has_its_grace_period_from_when_it_is_evicted():
    """A budget may keep it for a minute first."""
    protected = [replace(each, labels={"app": "a"}, grace_seconds=30) for each in gang("a", *N1)]
    world = Evicting(
        two_racks(),
        [*protected, *gang("b", *N2, priority=5)],
        budgets=[budget("keep", "a", 4)],
        is_slow=True,
    )
    world.run(50.0)
    world.is_slow, world._heard = False, 0
    world.run(25.0)
    assert world.results == {}
    assert world.evicted == ["a0", "a1", "a2", "a3"]


def test_a_pod_that_was_not_evicted_may_be_later():
    world = Evicting(rack(1, 4), gang("a", *N1), is_slow=True)
    for effect in world.told(Evict):
        world._take(world.inputs.eviction_finished(effect.uid, "failed", world.now))
    world.run(1.0)
    assert world.results == {"refused": 1}
    world.is_slow, world._heard = False, len(world.effects)
    world.run(400.0, step=2.0)
    assert world.ending == ["a0", "a1", "a2", "a3"]
    assert world.engine.room_plans.victims.withdrawn == set()


def test_what_became_of_an_eviction_for_one_gang_is_no_matter_to_the_next():
    world = Evicting(rack(1, 4), gang("a", *N1), is_slow=True)
    deleted(world)
    world.run(1.0)
    first = world.told(Evict)
    world.is_slow, world._heard = False, len(world.effects)
    world.put(*[replace(each, priority=1000) for each in members("U", 4)])
    world.tick()
    world.tick(10.0)
    world.answer()
    assert world.engine.room_plans.of
    for effect in first:
        world._take(world.inputs.eviction_finished(effect.uid, "dropped", world.now))
    world.run(2.0)
    assert world.results == {"withdrawn": 1}
    assert world.ending == ["a0", "a1", "a2", "a3"]


@pytest.mark.parametrize("disruption", ["single", "all"])
def test_a_pod_that_is_bound_as_its_gang_goes_does_not_keep_it_from_coming_back(disruption):
    """No pod joins a gang that ends, and it ends until none of its pods runs."""
    world = Evicting(rack(1, 4), gang("a", *N1), is_slow=True, disruption=disruption)
    late = pod("late", gpus=0, annotations=world.pods["uid-a0"].annotations)
    world.put(*runs(late, on="n10"))
    world.is_slow, world._heard = False, 0
    world._serve()
    world.let_go()
    world.run(2.0)
    assert world.results == {"placed": 1}
    assert ("late" in world.ending) == (disruption == "all")
    assert world.gang("a").ending == ""


def test_a_gang_that_has_a_more_important_pod_by_now_does_not_go():
    *running, last = members("a", 5)
    world = Evicting(rack(1, 4), runs(*running, on=N1), silent=True)
    world.put(replace(last, priority=1000))
    world.tick()
    world.silent = False
    world.run(2.0)
    assert world.evicted == []


def test_a_gang_with_a_fault_does_not_keep_others_from_making_room():
    faults = []
    nodes = [*rack(1, 4), *rack(2, 4)]
    world = Evicting(nodes, [*gang("a", *N1), *gang("b", *N2)], silent=True)
    world.engine.planner.on_fault = lambda what, error: faults.append(what)
    world.plan.on = None
    world.put(*[replace(each, priority=1000) for each in members("U", 4)])
    world.silent = False
    world.run(30.0)
    assert world.evicted == ["b0", "b1", "b2", "b3"]
    assert set(faults) == {"room made for gang default/T"}


# -- undone ----------------------------------------------------------------------------------------


def deleted(world):
    world.delete(*train())


def suspended(world):
    world.put(*[replace(each, gates=("example.com/wait",)) for each in train()])


def needless(world):
    world.put(*rack(3, 4))


def less_important(world):
    world.put(*[replace(each, priority=0) for each in train()])


@pytest.mark.parametrize("undo", [deleted, suspended, needless, less_important])
def test_evictions_that_are_not_sent_yet_are_not_sent_any_more(undo):
    """15, P8."""
    world = Evicting(rack(1, 4), gang("a", *N1), is_slow=True)
    assert world.evicted == ["a0", "a1", "a2", "a3"]
    undo(world)
    world.run(2.0)
    assert world.engine.room_plans.of == {}
    assert not any(world.engine.room_plans.is_wanted(each.uid) for each in world.told(Evict))
    assert world.engine.nominations.kept(0) == {}
    world.is_slow, world._heard = False, 0
    world._serve()
    assert world.ending == []
    assert world.gang("a").ending == ""


def test_an_eviction_is_not_sent_for_a_pod_that_has_ended_by_itself_and_its_gang_has_the_room():
    world = Evicting(rack(1, 4), gang("a", *N1), is_slow=True)
    first, *others = world.told(Evict)
    world.put(replace(world.pods[first.uid], phase="Succeeded"))
    assert not world.engine.room_plans.is_wanted(first.uid)
    world._take(world.inputs.eviction_finished(first.uid, "dropped", world.now))
    for effect in others:
        world._evict(effect)
    world.let_go()
    world.run(2.0)
    assert world.results == {"placed": 1}


def test_they_are_not_sent_by_a_corral_that_is_being_stopped_either():
    world = Evicting(rack(1, 4), gang("a", *N1), is_slow=True)
    world.inputs.drain(world.now)
    world.tick(1.0)
    assert all(world.engine.room_plans.is_wanted(each.uid) for each in world.told(Evict))
    deleted(world)
    world.tick(1.0)
    assert not any(world.engine.room_plans.is_wanted(each.uid) for each in world.told(Evict))


def test_of_a_gang_that_is_half_gone_the_rest_stays_unless_it_ends_as_a_whole():
    for disruption, rest in (("single", 2), ("all", 0)):
        world = Evicting(rack(1, 4), gang("a", *N1), is_slow=True, disruption=disruption)
        for effect in world.told(Evict)[:2]:
            world._evict(effect)
        deleted(world)
        world.run(2.0)
        world.is_slow, world._heard = False, 0
        world.run(120.0)
        assert 4 - len(world.ending) == rest


def test_no_pod_goes_for_a_gang_that_has_become_larger_than_its_place():
    world = Evicting(rack(1, 4), gang("a", *N1), silent=True)
    world.put(*[replace(each, priority=1000) for each in members("T", 8)])
    world.tick()
    world.silent = False
    world.run(5.0)
    assert world.evicted == []
    assert world.results == {"other_pods": 1}


def test_no_pod_goes_for_a_place_that_serves_the_gang_no_more():
    """The same pods, which may not be apart any more."""
    waiting = train(4, required=None)
    high = [pod(f"h{on}", on=on, priority=5000, phase="Running") for on in (N1[0], N2[0])]
    pods = [*high, *gang("a", *N1[1:]), *gang("b", *N2[1:])]
    world = Evicting(two_racks(), pods, waiting=waiting, silent=True)
    (plan,) = world.engine.room_plans.of.values()
    assert {node[:2] for node in plan.nodes} == {"n1", "n2"}
    together = group("T", 4, RACK)
    world.put(*[replace(each, annotations=together) for each in waiting])
    world.tick()
    world.silent = False
    world.run(1.0)
    assert world.evicted == []
    assert world.results == {"other_pods": 1}


def one_pod(world):
    first = world.pods[train()[0].uid]
    world.delete(first)
    world.put(replace(first, uid="again"))


def all_pods(world):
    world.delete(*train())
    world.put(*[replace(each, uid=f"{each.uid}-2") for each in train()])


def all_pods_before_the_first_are_gone(world):
    world.put(*[replace(each, uid=f"{each.uid}-2") for each in train()])
    world.delete(*train())


@pytest.mark.parametrize("made", [one_pod, all_pods, all_pods_before_the_first_are_gone])
@pytest.mark.parametrize("is_slow", [False, True])
def test_room_is_kept_for_pods_that_are_made_again_at_once(made, is_slow):
    """Under other uids; with all of them the gang is another one of the same name."""
    world = Evicting(two_racks(), [*gang("a", *N1), *gang("b", *N2)], is_slow=is_slow)
    made(world)
    world.run(2.0)
    assert world.filter(pod("low")).without >= set(N1)
    world.is_slow, world._heard = False, 0
    world._serve()
    assert world.ending == ["a0", "a1", "a2", "a3"]
    world.let_go()
    world.run(2.0)
    assert world.evicted == ["a0", "a1", "a2", "a3"]
    assert set(placed(world).values()) == set(N1)
    assert world.results == {"placed": 1}
    assert world.engine.nominations.kept(0) == {}


def test_a_gang_that_is_made_again_as_its_room_becomes_free_has_it():
    world = Evicting(two_racks(), [*gang("a", *N1), *gang("b", *N2)])
    world.let_go()
    all_pods(world)
    world.run(1.0)
    world.run(1.0)
    assert set(placed(world).values()) == set(N1)


def test_a_gang_whose_pods_need_another_place_asks_at_once_and_nobody_else_goes():
    world = Evicting(two_racks(), [*gang("a", *N1), *gang("b", *N2)])
    first = world.pods[train()[0].uid]
    world.delete(first)
    world.put(replace(first, uid="again", request=pod("x", gpus=8, cpu=2_000).request))
    world.run(3.0)
    assert world.results == {"other_pods": 1}
    assert "n10" in world.filter(pod("low")).without
    world.let_go()
    world.run(2.0)
    assert world.evicted == ["a0", "a1", "a2", "a3"]
    assert set(placed(world).values()) == set(N1)


def test_a_gang_of_the_same_name_that_is_not_like_it_gets_nothing_of_its_room():
    world = Evicting(two_racks(), [*gang("a", *N1), *gang("b", *N2)], is_slow=True)
    world.delete(*train())
    world.put(*[replace(each, uid=f"{each.uid}-2") for each in train(4, gpus=4)])
    world.run(2.0)
    assert world.results == {"withdrawn": 1}
    assert world.engine.nominations.kept(0) == {}
    assert not any(world.engine.room_plans.is_wanted(each.uid) for each in world.told(Evict))


def test_a_gang_that_is_made_again_does_not_wait_for_as_long_as_the_one_before_had_to():
    world = Evicting(rack(1, 4), gang("a", *N1), preempt_pods_at_once=3)
    assert len(world.answers) == 1
    all_pods(world)
    world.run(9.0)
    assert len(world.answers) == 1
    world.run(3.0)
    assert len(world.answers) == 2


# -- the place is lost before anybody goes ---------------------------------------------------------


def taken_by_a_pod_that_does_not_ask(world):
    thieves(world, "n13")


def taken_by_a_pod_of_higher_priority(world):
    urgent = pod("urgent", priority=2000)
    world.put(urgent)
    world.confirm(world.bind(urgent, "n13"))


def cordoned(world):
    world.put(node("b0/r1/n13", is_cordoned=True))


def removed(world):
    world.delete(node("b0/r1/n13"))


def tainted(world):
    world.put(node("b0/r1/n13", taints=(Taint("maintenance", "", "NoSchedule"),)))


def moved_to_another_rack(world):
    world.put(node("b0/r9/n13"))


def promised_to_a_pod_of_higher_priority(world):
    world.put(replace(pod("urgent", priority=2000, scheduler="other"), nominated_node="n13"))


LOST = [
    promised_to_a_pod_of_higher_priority,
    taken_by_a_pod_that_does_not_ask,
    taken_by_a_pod_of_higher_priority,
    cordoned,
    tainted,
    moved_to_another_rack,
    removed,
]


@pytest.mark.parametrize("lose", LOST)
@pytest.mark.parametrize("when", ["asked", "checking"])
def test_no_pod_goes_for_a_place_that_is_lost_already(lose, when):
    """P3; half of the rack was free."""
    world = Evicting(rack(1, 4), gang("a", *N1[:2], priority=1), silent=True, waiting=())
    world.put(*train())
    world.tick()
    world.tick(10.0)
    no_pod_goes(world, when, lambda: lose(world))


def no_pod_goes(world, when, lose):
    """No pod goes where the place is lost before its evictions are sent, by `lose()`."""
    if when == "checking":
        world.answer()
        lose()
    else:
        (asked,) = world.told(SeekRoom)
        answer = question_of(world.engine, asked.gang).answer()
        lose()
        world._take(world.inputs.room_found(asked.gang, answer, 0.05, world.now))
    world.silent = False
    world._serve()
    world.tick()
    assert world.evicted == []
    assert world.results == {"changed": 1}


def test_a_node_that_has_another_label_by_now_is_as_good_as_before():
    world = Evicting(rack(1, 4), gang("a", *N1), silent=True)
    world.put(node("b0/r1/n13", labels={"example.com/driver": "550"}))
    world.silent = False
    world.run(2.0)
    world.let_go()
    world.run(2.0)
    assert world.results == {"placed": 1}


def test_nobody_else_goes_once_the_place_is_lost():
    """16: evictions that have not been sent are not."""
    world = Evicting(rack(1, 4), gang("a", *N1[:2]), is_slow=True)
    assert world.evicted == ["a0", "a1"]
    taken_by_a_pod_of_higher_priority(world)
    world.tick()
    assert world.results == {"taken": 1}
    world.is_slow, world._heard = False, 0
    world._serve()
    assert world.ending == []


def test_a_place_that_more_pods_had_to_go_for_than_might_is_none_later():
    racks = [*rack(1, 2), *rack(2, 4)]
    first = [replace(each, priority=1000) for each in members("U", 2)]
    running = [*gang("a", "n10", "n11"), *gang("b", *N2)]
    world = Evicting(racks, running, waiting=first, preempt_pods_at_once=4)
    assert world.evicted == ["a0", "a1"]
    world.put(*train())
    world.tick()
    world.tick(10.0)
    key = world.gang("T").key
    answer = question_of(world.engine, key).answer()
    world.let_go()
    world.tick()
    world.tick()
    world._take(world.inputs.room_found(key, answer, 0.05, world.now))
    assert world.plan is None
    assert not any("T (priority 1000) makes room" in each for each in world.reports)


def test_a_gang_waits_for_pods_that_go_for_another_one_too():
    """A gang of higher priority gets the place of one that makes room already."""
    world = Evicting(rack(1, 4), gang("a", *N1), is_slow=True)
    world.put(*[replace(each, priority=2000) for each in members("U", 4)])
    world.run(30.0)
    assert world.results == {}
    assert len(world.answers) == 2
    world.is_slow, world._heard = False, 0
    world._serve()
    world.let_go()
    world.run(2.0)
    assert set(placed(world, "U").values()) == set(N1)


def test_a_gang_that_waits_for_them_asks_again_once_they_go_for_the_other_no_more():
    world = Evicting(rack(1, 4), gang("a", *N1), is_slow=True)
    world.put(*[replace(each, priority=2000) for each in members("U", 4)])
    world.run(15.0)
    assert world.engine.room_plans.of[world.gang("U").key].victims == ()
    world.delete(*[each for each in world.pods.values() if each.name.startswith("T")])
    world.run(1.0)
    world.is_slow, world._heard = False, 0
    world._serve()
    assert world.ending == [], "none of them has gone"
    world.run(5.0)
    assert world.results == {"withdrawn": 1, "changed": 1}
    assert len(world.ending) == 4
    world.let_go()
    world.run(2.0)
    assert set(placed(world, "U").values()) == set(N1)


def test_none_is_evicted_that_may_not_be_by_now():
    running = [*gang("a", *N1[:2]), single("s", "n12")]
    world = Evicting(rack(1, 4), running, silent=True, unpreemptible_in=("default",))
    assert len(world.told(TryEviction)) == 3
    world.put(replace(world.pods["uid-s"], labels={PREEMPTIBLE: "false"}))
    world.silent = False
    world.run(2.0)
    assert world.evicted == []
    assert world.results == {"changed": 1}


def test_none_is_evicted_if_a_later_one_of_them_is_not_what_it_was():
    running = [*gang("a", *N1[:2]), single("s", "n12")]
    world = Evicting(rack(1, 4), running, silent=True)
    assert len(world.told(TryEviction)) == 3
    world.put(replace(world.pods["uid-s"], is_terminating=True))
    world.silent = False
    world.tick(0.1)
    world._serve()
    world.tick(0.1)
    assert world.evicted == []
    assert "Preempted" not in world.room
    assert world.results == {"changed": 1}


def test_a_place_beside_pods_that_end_for_others_is_not_lost():
    ending = [replace(each, is_terminating=True, grace_seconds=60) for each in gang("b", *N1[2:])]
    world = Evicting(rack(1, 4), [*gang("a", *N1[:2]), *ending])
    assert world.evicted == ["a0", "a1"]


def test_a_pod_that_was_not_evicted_once_is_evicted_the_next_time():
    """P12 too: the outcome that says so may be heard twice."""
    world = Evicting(rack(1, 4), gang("a", *N1), is_slow=True)
    first = world.told(Evict)[0]
    for _ in range(2):
        world._take(world.inputs.eviction_finished(first.uid, "failed", world.now))
        assert world.engine.room_plans.is_wanted(first.uid)
    for effect in world.told(Evict)[1:]:
        world._evict(effect)
    world.is_slow, world._heard = False, len(world.effects)
    world.run(300.0)
    assert world.ending == ["a0", "a1", "a2", "a3"]


# -- theft -----------------------------------------------------------------------------------------


def thieves(world, *nodes):
    """Pods of a scheduler that does not ask are bound to these nodes."""
    for on in nodes:
        stolen = single(f"thief-{on}-{world.now:.0f}", on)
        world.put(replace(stolen, scheduler="other"))


def test_after_two_thefts_the_domain_is_left_alone_for_ten_minutes():
    """26."""
    world = Evicting(rack(1, 4), gang("a", *N1))
    for thefts in (1, 2):
        world.let_go()
        thieves(world, *N1[:2])
        world.run(SETTLE_SECONDS + 5.0)
        assert world.results == {"taken": thefts}
    assert [each for each in world.evicted if each.startswith("thief")] == world.evicted[4:]
    assert len(world.evicted) == 6
    told = [each for each in world.reports if "took what was freed" in each]
    assert len(told) == 2
    assert told[0].startswith("gang default/T makes no room any more: pod default/thief-n10-")
    world.run(560.0, step=5.0)
    assert len(world.evicted) == 6
    world.run(1000.0, step=5.0)
    assert len(world.evicted) == 8


def test_what_a_pod_of_higher_priority_takes_is_no_theft():
    world = Evicting(rack(1, 4), gang("a", *N1))
    world.let_go()
    world.put(pod("urgent", on="n10", priority=2000, phase="Running"))
    world.run(SETTLE_SECONDS + 2.0)
    assert world.results == {"taken": 1}
    assert world.engine.room_plans.left_alone.nodes(world.now) == frozenset()


def lost_with(*newcomers):
    """All of `a` are gone, T needs 6 GPUs of each node, and these came there, in this order."""
    needs = [replace(each, priority=1000) for each in members("T", 4, gpus=6)]
    world = Evicting(rack(1, 4), gang("a", *N1), waiting=needs)
    world.let_go()
    world.put(*newcomers)
    world.run(SETTLE_SECONDS + 2.0)
    return world


def foreign(name, on, **more):
    """A pod of a scheduler that does not ask."""
    return replace(single(name, on, **more), scheduler="other")


def test_a_pod_that_fits_beside_the_gang_is_no_thief():
    newcomers = [foreign("beside", "n10", gpus=2), foreign("thief", "n11", gpus=4)]
    for arrived in (newcomers, newcomers[::-1]):
        world = lost_with(*arrived)
        assert world.results == {"taken": 1}
        (told,) = [each for each in world.reports if "took what was freed" in each]
        assert told.startswith("gang default/T makes no room any more: pod default/thief ")


def test_of_pods_on_one_node_the_one_is_named_with_which_the_gang_fits_no_more():
    """A pod without GPUs came first, two that fit beside the gang together, and one more."""
    newcomers = [foreign(f"p{gpus}", "n10", gpus=gpus) for gpus in (0, 2, 1)]
    world = lost_with(*newcomers)
    assert [each for each in world.reports if "pod default/p1 " in each] != []


def test_no_pod_is_named_where_the_place_is_lost_for_another_reason():
    """And none of those that it does not fit with is a thief if one of a higher priority is."""
    world = lost_with(foreign("beside", "n10", gpus=2), node("b0/r1/n13", is_cordoned=True))
    assert world.results == {"lost": 1}
    assert not any("default/beside" in each for each in world.reports)
    assert world.engine.room_plans.left_alone._thefts == {}
    newcomers = [foreign("urgent", "n10", gpus=4, priority=2000), foreign("beside", "n11", gpus=2)]
    world = lost_with(*newcomers)
    assert world.results == {"taken": 1}
    assert any("pod default/urgent" in each for each in world.reports)
    assert world.engine.room_plans.left_alone._thefts == {}


# -- limits ----------------------------------------------------------------------------------------


def test_who_was_evicted_often_in_an_hour_is_left_alone():
    world = Evicting(rack(1, 4), gang("a", *N1), preempted_at_most=2)
    for _ in range(4):
        world.let_go()
        world.run(3.0)
        world.schedule(*train())
        world.run(60.0)
        world.delete(*[world.pods[each.uid] for each in train()])
        world.put(*gang("a", *N1))
        world.put(*train())
        world.run(120.0)
    assert world.engine.room_plans.victims.evictions == {"gang": 2}
    (told,) = [each for each in world.reports[-2:] if "has no room" in each]
    assert told == (
        "gang default/T (priority 1000) has no room: no pod of lower priority may go; 4 pods are"
        " left alone for now"
    )
    world.run(3600.0 + 960.0, step=20.0)
    assert world.engine.room_plans.victims.evictions["gang"] == 3


def test_no_more_pods_go_at_one_time_than_the_setting_says():
    """P10."""
    world = Evicting(rack(1, 4), gang("a", *N1), preempt_pods_at_once=3)
    assert world.evicted == []
    assert "as preempt_pods_at_once is 3:" in world.said[0][1]


def test_no_more_gangs_of_a_namespace_have_others_evicted_than_the_setting_says():
    racks = [each for number in range(1, 5) for each in rack(number, 1)]
    running = [
        replace(single(f"s{number}", f"n{number}0"), owner=job_owner(f"owner{number}"))
        for number in range(1, 5)
    ]
    waiting = [
        replace(each, priority=1000) for number in range(4) for each in members(f"T{number}", 1)
    ]
    world = Evicting(racks, running, waiting=waiting, preempt_per_namespace=3)
    for _ in range(60):
        world.run(2.0)
        world.let_go()
        world.schedule(*waiting)
    assert len(world.evicted) == 3
    world.run(1500.0, step=5.0)
    assert len(world.evicted) == 4


@pytest.mark.parametrize("at_once", [1, 2])
def test_so_many_gangs_have_others_go_at_one_time_as_the_setting_says(at_once):
    racks = [each for number in range(1, 5) for each in rack(number, 1)]
    running = [
        replace(single(f"s{number}", f"n{number}0"), owner=job_owner(f"owner{number}"))
        for number in range(1, 5)
    ]
    waiting = [
        replace(each, priority=1000) for number in range(4) for each in members(f"T{number}", 1)
    ]
    world = Evicting(racks, running, waiting=waiting, preempt_plans=at_once)
    world.run(20.0)
    assert len(world.evicted) == at_once
    world.let_go()
    world.run(2.0)
    world.schedule(*waiting)
    world.run(20.0)
    assert len(world.evicted) == 2 * at_once


@pytest.mark.parametrize("limit", [{"preempt_plans": 1}, {"preempt_pods_at_once": 1}])
def test_pods_that_take_a_day_to_end_keep_no_other_gang_from_making_room(limit):
    """P10, and whoever owns them: pods say themselves how long they take."""
    running = [
        replace(single(f"s{number}", f"n{number}0"), owner=job_owner(f"owner{number}"))
        for number in (1, 2)
    ]
    running[0] = replace(running[0], grace_seconds=86_400)
    first, second = ([replace(each, priority=1000) for each in members(name, 1)] for name in "TU")
    nodes = [*rack(1, 1), *rack(2, 1)]
    world = Evicting(nodes, running, waiting=first, **limit)
    world.put(*second)
    world.run(60.0)
    assert world.evicted == ["s1"]
    world.run(20.0)
    assert world.evicted == ["s1", "s2"]
    world.let_go("s2")
    world.run(2.0)
    assert (placed(world), list(placed(world, "U").values())) == ({}, ["n20"])
    world.let_go("s1")
    world.run(2.0)
    assert list(placed(world).values()) == ["n10"]


def test_a_corral_that_starts_keeps_all_places_whose_pods_take_long_to_end():
    """There may be more of them than `preempt_plans` says, for these count no more."""
    running = [
        replace(
            single(f"s{number}", f"n{number}0"),
            owner=job_owner(f"owner{number}"),
            grace_seconds=86_400,
        )
        for number in (1, 2)
    ]
    first, second = ([replace(each, priority=1000) for each in members(name, 1)] for name in "TU")
    nodes = [*rack(1, 1), *rack(2, 1)]
    world = Evicting(nodes, running, waiting=first, preempt_plans=1)
    world.put(*second)
    world.run(90.0)
    assert world.evicted == ["s1", "s2"]
    world.restart()
    kept = world.engine.nominations.counted.values()
    assert sorted(each.node for each in kept) == ["n10", "n20"]
    world.let_go()
    world.run(2.0)
    assert sorted([*placed(world).values(), *placed(world, "U").values()]) == ["n10", "n20"]


def test_pods_and_gangs_that_began_a_moment_ago_are_left_alone():
    old, young = "2026-01-01T00:00:00Z", "2026-01-01T00:59:30Z"
    running = [
        *[replace(each, created=young) for each in gang("a", *N1[:2])],
        *[replace(each, created=old) for each in gang("b", *N2)],
        *[replace(each, created=young) for each in [single("s", "n12")]],
    ]
    waiting = [replace(each, created="2026-01-01T01:00:00Z") for each in train()]
    world = Evicting(two_racks(), running, waiting=waiting, preempt_min_runtime_seconds=60.0)
    assert sorted(world.evicted) == ["b0", "b1", "b2", "b3"]
    assert "a0" in Evicting(two_racks(), running, waiting=waiting).evicted


def test_a_gang_that_goes_frees_what_is_held_for_it_too():
    """Its spare takes the fourth node of the rack."""
    annotations = {**group("a", 3, RACK), SPARES: "1"}
    running = [replace(each, annotations=annotations) for each in gang("a", *N1[:3])]
    world = Evicting(rack(1, 4), running, waiting=())
    assert list(world.held.values()) == ["n13"]
    world.put(*train())
    world.run(12.0)
    assert sorted(world.evicted) == ["a0", "a1", "a2"]
    world.let_go()
    world.run(3.0)
    assert set(placed(world).values()) == set(N1)
    assert world.answers[0].pods == 3


def test_no_spare_is_held_again_for_a_gang_that_goes():
    annotations = {**group("a", 3, RACK), SPARES: "1"}
    running = [replace(each, annotations=annotations) for each in gang("a", *N1[:3])]
    world = Evicting(rack(1, 5), running, waiting=())
    assert len(world.held) == 1
    world.put(*train())
    world.run(12.0)
    assert world.ending == ["a0", "a1", "a2"]
    assert world.held == {}


def test_no_place_is_held_for_a_pod_that_comes_again_before_its_gang_has_ended():
    """Else it keeps, against the gang that the others go for, what that one may need."""
    fast = {**group("a", 4, RACK), FAST: "true"}
    running = [replace(each, annotations=fast) for each in gang("a", *N1)]
    world = Evicting(rack(1, 5), running, is_slow=True)
    assert world.evicted == ["a0", "a1", "a2", "a3"]
    world.put(replace(world.pods["uid-a0"], is_terminating=True))
    world.let_go()
    world.put(pod("again", annotations=fast))
    world.run(3.0)
    assert world.gang("a").ending
    assert world.held == {}


def test_what_a_gang_waits_for_is_said_once_it_takes_long():
    ending = [replace(each, grace_seconds=60) for each in gang("a", *N1)]
    world = Evicting(rack(1, 4), ending)
    world.let_go("a0")
    world.run(20.0)
    (sentence,) = {each for each in world.reports if "waits for" in each}
    assert sentence.startswith(
        "gang default/T waits for 3 of 4 pods in cloud.provider.com/topology-rack=b0/r1 to end, "
    )


def test_every_end_of_a_place_has_a_counter_and_those_in_vain_a_sentence():
    assert set(ROOM_RESULTS) == set(get_args(Result))
    for result in set(get_args(Result)) - {"placed", "needless", "withdrawn"}:
        key = GangKey("default", "T", "podgroup", "")
        assert messages.room_not_made(key, result, "").startswith("gang default/T makes no room")


def test_counters_show_what_became_of_places_and_who_went():
    metrics = Metrics()
    for _ in range(2):
        metrics.show_room({"placed": 2}, {"gang": 3})
    sample = metrics.registry.get_sample_value
    assert sample("corral_room_plans_total", {"result": "placed"}) == 2.0
    assert sample("corral_room_victims_total", {"kind": "gang"}) == 3.0


def test_how_long_victims_take_is_counted_from_the_last_eviction_until_the_last_is_gone():
    world = Evicting(two_racks(), [*gang("a", *N1), *gang("b", *N2)])
    world.run(15.0)
    world.let_go("a0")
    world.run(5.0)
    assert list(world.engine.room_plans.drained()) == []
    world.let_go()
    world.run(2.0)
    assert world.results == {"placed": 1}
    (seconds,) = world.engine.room_plans.drained()
    assert seconds == pytest.approx(20.0, abs=2.0)
    assert list(world.engine.room_plans.drained()) == []


def test_victims_that_never_end_are_counted_as_no_time():
    world = Evicting(two_racks(), [*gang("a", *N1), *gang("b", *N2)])
    world.run(DRAIN_SECONDS + 60.0)
    assert "stuck" in world.results
    assert list(world.engine.room_plans.drained()) == []


# -- PodGroups of Volcano --------------------------------------------------------------------------


def test_a_pod_group_goes_as_a_whole_for_one_of_higher_priority_in_its_hyper_node():
    """Two leaves of two nodes, each with a gang of two: the one of lower priority goes."""
    leaves = {"s0": ("n0", "n1"), "s1": ("n2", "n3")}
    hyper_nodes = [record(leaf, 1, exact("Node", *nodes)) for leaf, nodes in leaves.items()]
    groups = [pod_group(name, 2, tier=1) for name in ("low", "middle", "high")]
    running = [
        *runs(*in_group("low", priority=0), on=leaves["s0"]),
        *runs(*in_group("middle", priority=5), on=leaves["s1"]),
    ]
    world = Evicting(
        [node(f"n{at}", gpus=1) for at in range(4)],
        running,
        levels=(),
        waiting=[*hyper_nodes, *groups, *in_group("high", priority=1000)],
    )
    assert world.evicted == ["low0", "low1"]
    world.let_go()
    world.run(2.0)
    assert set(placed(world, "high").values()) == {"n0", "n1"}
    assert world.results == {"placed": 1}


def in_group(name, priority):
    annotations = {GROUP_NAME: name}
    pods = [pod(f"{name}{at}", gpus=1, annotations=annotations) for at in range(2)]
    return [replace(each, priority=priority) for each in pods]


def pod_group(name, least, tier):
    made = volcano.pod_group(name, least, topology=volcano.network_topology(tier))
    made["metadata"]["uid"] = f"uid-of-{name}"
    return decode_pod_group(msgspec.json.encode(made))
