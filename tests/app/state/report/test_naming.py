"""What a tenant is told names no pod or gang of another namespace where the settings say so.

Two tenants, `blue` and `red`, with nodes of 8 GPUs and pods of 8. Nothing that one of them may read
may have the namespace of the other, or the name of one of its pods or gangs; and by default every
sentence names them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
import pytest
from msgspec.structs import replace

from app.dialects.spec import GangKey
from app.state.effects import EmitEvent, Evict, RejectBind, RoomAnswer
from app.state.filter_result import Rejected, Victims
from app.state.journal.lines import ENCODER, first_line, settings_of
from app.state.report.messages import preemption as messages
from app.state.report.naming import Naming, namespace_in
from app.state.settings import EngineSettings
from tests.app.state.preempt import test_making_room as making_room
from tests.app.state.preempt import test_none_goes_in_vain as in_vain
from tests.app.state.preempt.test_making_room import N1, N2, Operated, budget, gang, single
from tests.app.state.preempt.test_room_plans import Evicting, foreign
from tests.app.state.preemptor import Preemptors, hp, rack, running
from tests.app.state.reserve.test_absent import FAST
from tests.app.state.world import World, members
from tests.records import group, pod

BLUE, RED = "blue", "red"
RACK_1 = "cloud.provider.com/topology-rack=b0/r1"
OFF = {"name_other_namespaces": False}
both = pytest.mark.parametrize("settings", [{}, OFF], ids=["named", "off"])


def of(namespace, *pods):
    """The same pods, of a tenant; a uid says nothing to who reads it."""
    return [
        replace(each, namespace=namespace, uid=f"uid-{each.name.encode().hex()}") for each in pods
    ]


def blue_train(number=4, **more):
    return of(BLUE, *making_room.train(number, **more))


def sentences(world, namespace, reason=""):
    """Of the events that this tenant may read."""
    return [
        each.sentence
        for each in world.told(EmitEvent)
        if each.about.namespace == namespace and reason in ("", each.reason)
    ]


class Read:
    """All that each tenant may read of a world, as it goes on."""

    def __init__(self, world):
        self.world = world
        self.texts = {BLUE: [], RED: []}
        self.names = {BLUE: {BLUE}, RED: {RED}}
        self.uids = {}
        self._seen = 0

    def look(self):
        """Take what has come since, and what kube-scheduler is answered about each pod now."""
        world, engine = self.world, self.world.engine
        for each in world.pods.values():
            self.names[each.namespace].add(each.name)
            self.uids[each.uid] = each.namespace
        for key in engine.gangs.by_key:
            self.names[key.namespace].add(key.name)
        for each in list(world.pods.values()):
            if not (each.node or each.gates) and engine.gangs.of_pod(each.uid) is not None:
                answer = world.filter(each)
                if isinstance(answer, Rejected):
                    self.texts[each.namespace].append(answer.sentence)
        for effect in world.effects[self._seen :]:
            self.texts[self._whose(effect)].append(msgspec.json.encode(effect).decode())
        self._seen = len(world.effects)
        for its in engine.gangs.by_key.values():
            told = [its.reporting.sentence, its.ending, *its.reporting.once.values()]
            told += [attempt.sentence for attempt in its.reporting.attempts]
            self.texts[its.key.namespace] += told
        for namespace, texts in self.texts.items():
            texts += [each.sentence for each in engine.reports.decisions.last(namespace, 100)]

    def _whose(self, effect):
        if isinstance(effect, EmitEvent):
            return effect.about.namespace
        if isinstance(effect, RejectBind):
            return self.uids[effect.uid]
        return effect.gang.namespace if hasattr(effect, "gang") else effect.namespace

    def leaks(self, namespace) -> Iterator[str]:
        """What this tenant has read of the other."""
        (other,) = {BLUE, RED} - {namespace}
        names = re.compile(rf"\b({'|'.join(map(re.escape, self.names[other]))})\b")
        return (text for text in self.texts[namespace] if names.search(text))


def check(world, settings, who=(BLUE, RED)):
    """No tenant has read of the other, or each of these has."""
    read = Read(world)
    read.look()
    leaks = {namespace: list(read.leaks(namespace)) for namespace in (BLUE, RED)}
    if settings == OFF:
        assert leaks == {BLUE: [], RED: []}
    else:
        assert {namespace for namespace, its in leaks.items() if its} == set(who)
    assert all(read.texts[namespace] for namespace in who)


# -- who took what was held ------------------------------------------------------------------------


def planned(settings):
    """Places are held for a gang of blue on all nodes."""
    world = World(rack(0, 4), **settings)
    world.put(*of(BLUE, *members("train", 4)))
    assert len(world.held) == 4
    return world


def lost_by(world):
    """Why the gang of blue lost its plan, in the decisions that are remembered."""
    its = world.engine.reports.decisions.last(BLUE, 100)
    (sentence,) = {each.sentence for each in its if each.what == "plan-lost"}
    return sentence


def bound_by_another_scheduler(world):
    world.put(*of(RED, foreign("late", "n00", priority=5)))


def nominated(world):
    (late,) = of(RED, pod("late", priority=5))
    world.put(replace(late, nominated_node="n00"))


def passed_through_filter_and_bind(world):
    (late,) = of(RED, pod("late", priority=5))
    world.put(late)
    world.bind(late, "n00")


@both
@pytest.mark.parametrize(
    "take", [bound_by_another_scheduler, nominated, passed_through_filter_and_bind]
)
def test_who_took_a_node_that_was_held(take, settings):
    world = planned(settings)
    take(world)
    who = "pod red/late" if not settings else "a pod of another namespace"
    assert lost_by(world) == (
        f"gang blue/train lost its plan: capacity held on node n00 was taken by {who} of priority 5"
    )
    check(world, settings, [BLUE])


@both
def test_for_whom_requests_at_bind_were_refused(settings):
    world = planned(settings)
    first, *_ = [each for each in world.pods.values() if each.name == "train0"]
    node = world.filter(first).node
    world.bind(first, node)
    (urgent,) = of(RED, hp())
    world.put(urgent)
    world._take(world.engine.preempt(urgent, {node: Victims((first.uid,), 0)}, world.now)[1])
    (refused,) = world.told(RejectBind)
    who = "pod red/hp" if not settings else "a pod of another namespace"
    assert refused.sentence == (
        f"gang blue/train lost its plan: capacity held on node {node} was taken by {who}"
        " (priority 1000)"
    )
    check(world, settings, [BLUE])


@both
def test_for_whom_kube_scheduler_evicts_members(settings):
    world = running(World(rack(0, 4), **settings), of(BLUE, *members("train", 4)))
    preemptors = Preemptors(world, *of(RED, hp()))
    preemptors.play(1)
    (killed,) = preemptors.killed
    (sentence,) = sentences(world, BLUE, "MemberPreempted")
    who = "pod red/hp" if not settings else "a pod of another namespace"
    assert sentence.startswith(
        f"member blue/{killed} gives way to {who} (priority 1000 over 0) on node n0"
    )
    assert sentence.endswith("the gang keeps 3 of 4 running")
    check(world, settings, [BLUE])


def test_a_pod_of_the_same_namespace_is_named_all_the_same():
    world = planned(OFF)
    world.put(*of(BLUE, foreign("late", "n00", priority=5)))
    assert lost_by(world).endswith("was taken by pod blue/late of priority 5")


# -- places for pods to come -----------------------------------------------------------------------


def with_absent_pods(settings):
    """All nodes but one are held for pods of red that do not exist; the last one has its first."""
    first = pod("evil-0", annotations=group("evil", 4, **FAST))
    world = World(rack(0, 4), of(RED, first), **settings)
    (first,) = world.pods.values()
    world.schedule(first)
    assert len(world.held) == 3
    world.put(*of(BLUE, *members("train", 2)))
    return world


@both
def test_whose_absent_pods_have_the_places(settings):
    world = with_absent_pods(settings)
    (sentence,) = sentences(world, BLUE, "GangNotPlaced")
    whose = "red/evil" if not settings else "another namespace"
    assert sentence.endswith(f"places are held for 3 pods of {whose} that do not exist yet")
    assert world.filter(world.pods[of(BLUE, pod("train0"))[0].uid]).sentence == sentence
    check(world, settings, [BLUE])


# -- room for gangs --------------------------------------------------------------------------------


def told_of_room(settings, running_pods, **more):
    """What runs, as the gang of blue waits for room."""
    return Evicting(rack(1, 4), running_pods, waiting=blue_train(), **settings, **more)


@both
def test_which_gang_goes_for_which(settings):
    world = told_of_room(settings, of(RED, *gang("web", *N1)))
    theirs, ours = (
        ("gang red/web", "gang blue/T") if not settings else ("a gang of another namespace",) * 2
    )
    assert sentences(world, BLUE, "Preempting") == [
        f"gang blue/T (priority 1000) makes room in {RACK_1}: evicts 4 pods of 1 gang: {theirs}"
        " (priority 0)"
    ]
    goes = f"gang red/web (priority 0) gives way to {ours} (priority 1000): its 4 pods are evicted"
    assert sentences(world, RED, "Preempted") == [goes]
    assert {each.sentence for each in world.told(Evict)} == {goes}
    check(world, settings)


@both
def test_which_pods_go_for_a_gang(settings):
    world = told_of_room(settings, of(RED, *[single(f"web{at}", on) for at, on in enumerate(N1)]))
    ours = "gang blue/T" if not settings else "a gang of another namespace"
    assert sentences(world, RED, "Preempted") == [
        f"pod red/web{at} (priority 0) gives way to {ours} (priority 1000): it is evicted"
        for at in range(4)
    ]
    named = [
        f"pod red/web{at}" if not settings else "a pod of another namespace" for at in range(3)
    ]
    assert sentences(world, BLUE, "Preempting") == [
        f"gang blue/T (priority 1000) makes room in {RACK_1}: evicts 4 pods: "
        + ", ".join(f"{each} (priority 0)" for each in named)
        + " and 1 more"
    ]
    check(world, settings)


@both
def test_who_would_have_to_go(settings):
    theirs, mine = of(RED, *gang("web", *N1[:2])), of(BLUE, *gang("own", *N1[2:]))
    world = told_of_room(settings, [*theirs, *mine], preempt="explain")
    who = "gang red/web" if not settings else "a gang of another namespace"
    (sentence,) = sentences(world, BLUE, "RoomByPreemption")
    assert sentence == (
        f"gang blue/T (priority 1000) could start in {RACK_1} if 4 pods of 2 gangs went, and none"
        f" is evicted, as preempt is explain: gang blue/own (priority 0), {who} (priority 0)"
    )
    check(world, settings, [BLUE])


@both
def test_an_answer_that_gangs_of_two_tenants_share_is_worded_for_each(settings):
    full = [*gang("web", *N1), *gang("zoo", *N2)]
    more = [replace(each, priority=1000) for each in members("U", 4)]
    waiting = [*blue_train(), *of(RED, *more)]
    world = Operated(making_room.two_racks(), of(RED, *full), waiting=waiting, **settings)
    world.tick(1.0)
    assert len(world.answers) == 1
    (to_blue,), (to_red,) = (
        sentences(world, BLUE, "RoomByPreemption"),
        sentences(world, RED, "RoomByPreemption"),
    )
    assert "gang red/web (priority 0)" in to_red
    assert ("gang red/web (priority 0)" in to_blue) == (not settings)
    check(world, settings, [BLUE])


@both
def test_which_budgets_keep_the_pods(settings):
    kept = [replace(each, labels={"app": "a"}) for each in gang("a", *N1)]
    theirs, mine = of(RED, *kept[:2]), of(BLUE, *kept[2:])
    budgets = [replace(budget(f"keep-{at}", "a", 0), namespace=at) for at in (RED, BLUE)]
    world = Operated(
        rack(1, 4), [*theirs, *mine], budgets=budgets, waiting=blue_train(), **settings
    )
    (sentence,) = sentences(world, BLUE, "NoRoomByPreemption")
    assert "that disruption budgets keep: " in sentence
    assert "blue/keep-blue" in sentence
    assert ("red/keep-red" in sentence) == (not settings)
    assert ("1 of another namespace" in sentence) is bool(settings)
    check(world, settings, [BLUE])


@both
def test_who_may_not_be_evicted(settings):
    world = told_of_room(settings, of(RED, *gang("web", *N1)), kept=["web1"])
    who = "pod red/web1" if not settings else "a pod of another namespace"
    assert sentences(world, BLUE, "RoomNotMade") == [
        f"gang blue/T makes no room any more: {who} may not be evicted"
    ]
    check(world, settings, [BLUE])


@both
def test_who_took_what_was_freed(settings):
    world = told_of_room(settings, of(RED, *gang("web", *N1)), is_slow=True)
    (urgent,) = of(RED, pod("urgent", priority=2000))
    world.put(urgent)
    world.confirm(world.bind(urgent, "n13"))
    world.tick()
    who = "pod red/urgent" if not settings else "a pod of another namespace"
    assert sentences(world, BLUE, "RoomNotMade") == [
        f"gang blue/T makes no room any more: {who} took what was freed"
    ]
    check(world, settings)


@both
def test_which_pods_do_not_end(settings):
    nodes = [each for at in range(1, 4) for each in rack(at, 2)]
    theirs = [
        single(f"{name}{at}", f"n{at}{number}")
        for at in range(1, 4)
        for number, name in enumerate(("stuck", "ends"))
    ]
    theirs = of(RED, *[replace(each, grace_seconds=30) for each in theirs])
    world = Evicting(nodes, theirs, waiting=blue_train(2), preempted_at_most=1000, **settings)
    in_vain.play(world, in_vain.STOPPED + 300.0)
    told = sentences(world, BLUE, "RoomNotMade")
    if settings:
        who, until = ["a pod of another namespace"] * 2, "a pod of another namespace"
    else:
        who = ["pod red/stuck1", "pod red/stuck2"]
        until = "one of pod red/stuck1 and pod red/stuck2"
    assert told == [
        f"gang blue/T makes no room any more: {who[0]} does not end in time",
        f"gang blue/T makes no room any more: {who[1]} does not end in time; no others are evicted"
        " for now, as others went for it from two places where pods do not end: it waits until"
        f" {until} has ended",
    ]
    check(world, settings)


def test_of_pods_that_do_not_end_one_may_be_named():
    pods = ["pod blue/own", "a pod of another namespace"]
    assert messages.stuck_twice(pods).endswith(
        "until one of pod blue/own and a pod of another namespace has ended"
    )


# -- all of it in one cluster ----------------------------------------------------------------------


KINDS_OF_SENTENCE = (
    "makes room in",
    "gives way to",
    "was taken by",
    "the gang keeps",
    "places are held for",
)


@both
def test_in_a_cluster_where_all_of_that_happens_no_tenant_reads_of_the_other(settings):
    """Room is made, a node is taken, kube-scheduler evicts, and pods to come have the places."""
    world = Evicting(rack(1, 4), (), waiting=(), **settings)
    read = Read(world)
    for one, other in ((BLUE, RED), (RED, BLUE)):
        for happens in (room_is_made, a_member_is_evicted, pods_to_come_have_the_places):
            happens(world, read, one, other)
            read.look()
            world.delete(*list(world.pods.values()))
            world.tick(1.0)
    leaks = {namespace: list(read.leaks(namespace)) for namespace in (BLUE, RED)}
    for namespace, its in leaks.items():
        for kind in KINDS_OF_SENTENCE:
            assert any(kind in text for text in read.texts[namespace]), kind
            assert any(kind in text for text in its) == (not settings), kind
    if settings:
        assert leaks == {BLUE: [], RED: []}


def room_is_made(world, read, one, other):
    """A gang of one goes for a gang of the other, and a pod of one takes the place at last."""
    theirs, thief = gang(f"{one}-web", *N1), foreign(f"{one}-thief", "n10", priority=3000)
    train = [replace(each, priority=1000) for each in members(f"{other}-train", 4)]
    world.put(*of(one, *theirs), *of(other, *train))
    for _ in range(15):
        world.run(1.0)
        read.look()
    world.let_go()
    world.run(3.0)
    assert len(world.held) == 4
    world.put(*of(one, thief))


def a_member_is_evicted(world, read, one, other):
    running(world, of(one, *members(f"{one}-shop", 4)))
    read.look()
    preemptors = Preemptors(world, *of(other, hp(f"{other}-hp")))
    preemptors.play(1)
    assert preemptors.killed


def pods_to_come_have_the_places(world, read, one, other):
    first = of(one, pod(f"{one}-few0", annotations=group(f"{one}-few", 4, **FAST)))
    world.put(*first)
    world.tick(1.0)
    world.schedule(*first)
    assert len(world.held) == 3
    world.put(*of(other, *members(f"{other}-more", 2)))
    world.run(2.0)


# -- what decides it -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    ["red/web", "gang red/web", "pod red/web-0", "red/a and red/b", "one of 200 of namespace red"],
)
def test_the_namespace_in_a_name(words):
    assert namespace_in(words) == "red"


def test_of_budgets_those_of_others_are_counted():
    names = ("red/keep", "blue/keep", "green/a and green/b", "one of 200 of namespace blue")
    answer = RoomAnswer(is_found=False, budgets=names)
    assert Naming().answer(answer, BLUE) is answer
    told = Naming(names_others=False).answer(answer, BLUE)
    assert told.budgets == (
        "blue/keep",
        "one of 200 of namespace blue",
        "2 of other namespaces",
    )


def test_a_namespace_that_begins_like_another_is_another():
    naming = Naming(names_others=False)
    assert naming.pod("blue-2", "web", BLUE) == "a pod of another namespace"
    assert naming.gang(GangKey("blue-2", "web", "job"), BLUE) == "a gang of another namespace"
    assert naming.of(GangKey("blue-2", "web", "job"), BLUE) == "another namespace"
    assert naming.of(GangKey(BLUE, "web", "job"), BLUE) == "blue/web"


def test_a_journal_from_before_the_setting_is_read_as_it_was_written():
    line = msgspec.json.decode(first_line(EngineSettings()))
    del line["settings"]["name_other_namespaces"]
    assert settings_of(ENCODER.encode(line)) == EngineSettings()
    kept = EngineSettings(**OFF)
    assert settings_of(first_line(kept)) == kept
