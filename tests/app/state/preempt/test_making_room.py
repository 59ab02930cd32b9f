"""Who would have to go so that a gang that waits has room: the scenarios of an operator's day.

Nodes of 8 GPUs, pods of 8 unless it says otherwise; `T` is a gang of priority 1000 that requires a
rack. All other pods have priority 0, a controller, and run.
"""

from __future__ import annotations

from dataclasses import replace as replace_dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from app.dialects.budgets.dialect import BudgetRecord
from app.kube.core.objects import Owner
from app.kube.watch.events import Listed
from app.state.effects import EmitEvent, Evict, ReadAgain, RoomAnswer, SeekRoom
from app.state.journal.record import Recorder
from app.state.journal.replay import replay
from tests.app.state.preemptor import rack
from tests.app.state.world import LISTED, World, members
from tests.records import PREFERRED, RACK, group, job, job_owner, node, pod
from tests.room_question import question_of

OWNER = job_owner("owner")
README = Path(__file__).parents[4] / "README.md"
KINDS = (*LISTED, "PodDisruptionBudget")


def runs(*pods, on):
    """These pods with a controller, bound to these nodes."""
    nodes = [on] * len(pods) if isinstance(on, str) else on
    return [
        replace(each, node=name, phase="Running", owner=OWNER)
        for each, name in zip(pods, nodes, strict=True)
    ]


def gang(name, *nodes, required=None, **more):
    """A gang that runs on these nodes."""
    return runs(*members(name, len(nodes), required, **more), on=nodes)


def single(name, on, **more):
    return runs(pod(name, **more), on=on)[0]


def train(number=4, **more):
    return [replace(each, priority=1000) for each in members("T", number, **more)]


class Operated(World):
    """A world in which gangs' questions for room are answered."""

    def __init__(self, nodes, pods, *, budgets=(), waiting=None, are_labels_read=True, **settings):
        super().__init__(nodes, pods, **{"kinds": KINDS, **settings})
        self.answers = []
        self.apply(Listed("PodDisruptionBudget", tuple(budgets)))
        if are_labels_read:
            self.read_again()
        self.put(*(train() if waiting is None else waiting))
        self.tick()
        self.tick(10.0)
        self.answer()

    def read_again(self):
        """The pods are listed with the labels that budgets name."""
        edition = self.engine.kept_keys.labels.edition
        self.apply(Listed("Pod", tuple(self.pods.values()), edition=edition))

    def answer(self):
        """What was asked since, answered."""
        for each in self.told(SeekRoom)[len(self.answers) :]:
            question = question_of(self.engine, each.gang)
            answer = None if question is None else question.answer()
            self.answers.append(answer)
            self._take(self.inputs.room_found(each.gang, answer, 0.05, self.now))

    @property
    def said(self):
        """(reason, sentence) of the events about room."""
        return [
            (each.reason, each.sentence)
            for each in self.told(EmitEvent)
            if "RoomByPreemption" in each.reason
        ]


def two_racks():
    """Four nodes in each of two racks."""
    return [*rack(1, 4), *rack(2, 4)]


def asking(*waiting):
    """A full world in which these have asked, and nothing is answered yet."""
    world = World(two_racks(), [*gang("a", *N1), *gang("b", *N2)], kinds=KINDS)
    world.apply(Listed("PodDisruptionBudget", ()))
    world.put(*waiting)
    world.tick()
    world.tick(10.0)
    return world


def names(answer):
    return sorted(name for name, _ in answer.named)


def budget(name, app, allowed):
    requirements = (("app", "In", (app,)),)
    return BudgetRecord(
        "PodDisruptionBudget", "default", name, f"uid-{name}", "1", requirements, allowed
    )


N1, N2 = ("n10", "n11", "n12", "n13"), ("n20", "n21", "n22", "n23")


# -- the least set, with the numbers of reference scenarios ----------------------------------------


def case_7():
    """A gang in one rack, four single pods in the other."""
    singles = [single(f"s{at}", on) for at, on in enumerate(N2)]
    return [*gang("a", *N1), *singles], (0, 4), [f"pod default/s{at}" for at in range(4)]


def case_8():
    """A gang of two beside two free nodes, a gang of four."""
    return [*gang("a", *N1[:2]), *gang("b", *N2)], (1, 2), ["gang default/a"]


def case_9():
    """One pod of a gang of eight that has its others elsewhere, a gang of three."""
    nodes = ("n10", *(f"n3{at}" for at in range(4)), *(f"n4{at}" for at in range(3)))
    return [*gang("a", *nodes), *gang("b", *N2[:3])], (1, 3), ["gang default/b"]


def case_10():
    """Priority comes before number."""
    singles = [single(f"s{at}", on, priority=1) for at, on in enumerate(N2)]
    return (
        [single("a", "n10", priority=5), *singles],
        (0, 4),
        [f"pod default/s{at}" for at in range(4)],
    )


def case_21():
    """Gangs come before pods."""
    singles = [single(f"s{at}", on, gpus=1) for at, on in enumerate(N1)]
    return [*singles, *gang("a", *N2[:2])], (0, 4), [f"pod default/s{at}" for at in range(4)]


@pytest.mark.parametrize("case", [case_7, case_8, case_9, case_10, case_21])
def test_the_least_pods_are_named(case):
    running, lost, who = case()
    nodes = [*two_racks(), *rack(3, 4), *rack(4, 3)]
    # No other rack could take it: they are too small, or full of pods of its own priority.
    full = [single(f"f{on}", on, priority=1000) for on in ("n30", "n40")]
    taken = {each.node for each in running}
    world = Operated(nodes, [*running, *(each for each in full if each.node not in taken)])
    (answer,) = world.answers
    assert answer.is_found
    assert (answer.gangs, answer.pods) == lost
    assert names(answer) == sorted(who)
    assert world.told(Evict) == []


def test_what_lacks_only_with_everything_counted_goes():
    """13: a node whose GPUs and CPUs are taken by different pods is freed of both."""
    taken = [single("gpu", "n10"), single("cpu", "n10", gpus=0, cpu=60_000)]
    waiting = [replace(each, priority=1000) for each in members("T", 1, cpu=32_000)]
    world = Operated(rack(1, 1), taken, waiting=waiting)
    assert names(world.answers[0]) == ["pod default/cpu", "pod default/gpu"]


# -- nobody goes -----------------------------------------------------------------------------------


def test_pods_that_end_already_are_waited_for():
    """12: no other gang goes while one rack empties."""
    ending = [replace(each, is_terminating=True) for each in gang("a", *N1)]
    world = Operated(two_racks(), [*ending, *gang("b", *N2)])
    assert (world.answers[0].is_found, world.answers[0].pods) == (True, 0)
    assert "has room in" in world.said[0][1]
    assert "once the pods that end now have ended" in world.said[0][1]


@pytest.mark.parametrize("never", ["equal priority", "policy"])
def test_no_question_is_asked_where_no_pod_may_go(never):
    """14: all have the same priority, or the gang's preemptionPolicy is Never."""
    priority = 1000 if never == "equal priority" else 0
    running = [*gang("a", *N1, priority=priority), *gang("b", *N2, priority=priority)]
    waiting = [replace(each, preempts=never != "policy") for each in train()]
    world = Operated(two_racks(), running, waiting=waiting)
    assert world.told(SeekRoom) == []
    assert world.said == []


def test_a_gang_that_prefers_a_rack_and_fits_over_two_asks_nothing():
    """23."""
    running = [*gang("a", *N1[:2]), *gang("b", *N2[:2])]
    waiting = [
        replace(each, priority=1000, annotations={**group("T", 4), PREFERRED: RACK})
        for each in members("T", 4)
    ]
    world = Operated(two_racks(), running, waiting=waiting)
    assert world.told(SeekRoom) == []
    assert len(world.held) == 4


def test_a_gang_that_runs_in_part_asks_nothing():
    """24: what is repaired preempts no pods."""
    here = gang("T", *N1[:3], priority=1000)
    here = [replace(each, annotations=group("T", 4, RACK)) for each in here]
    late = replace(pod("late", annotations=group("T", 4, RACK)), priority=1000)
    world = Operated(two_racks(), [*here, single("low", "n13")], waiting=[late])
    assert world.gang("T").membership.bound
    assert world.told(SeekRoom) == []


@pytest.mark.parametrize(("setting", "asks"), [("off", 0), ("explain", 1)])
def test_the_setting_decides(setting, asks):
    world = Operated(two_racks(), [*gang("a", *N1), *gang("b", *N2)], preempt=setting)
    assert len(world.told(SeekRoom)) == asks


# -- who may never go ------------------------------------------------------------------------------


def bare():
    return [replace(each, owner=None) for each in gang("a", *N1)]


def of_daemon_set():
    owner = replace(OWNER, kind="DaemonSet")
    return [replace(each, owner=owner) for each in gang("a", *N1)]


def of_kube_system():
    return [replace(each, namespace="kube-system") for each in gang("a", *N1)]


def of_one_more_important_pod():
    first, *others = gang("a", *N1)
    return [replace(first, priority=1000), *others]


@pytest.mark.parametrize("kept", [bare, of_daemon_set, of_kube_system, of_one_more_important_pod])
def test_some_pods_never_go(kept):
    world = Operated([*rack(1, 4), *rack(2, 1)], [*kept(), single("low", "n20")])
    assert world.answers[0].is_found is False
    assert world.said == [
        (
            "NoRoomByPreemption",
            "gang default/T (priority 1000) has no room even without the pod of lower priority"
            " that may go",
        )
    ]


def test_a_gang_counts_as_its_most_important_pod():
    """One of priority 5 among four is dearer than four of priority 3."""
    first, *others = gang("a", *N1)
    running = [replace(first, priority=5), *others, *gang("b", *N2, priority=3)]
    world = Operated(two_racks(), running)
    assert names(world.answers[0]) == ["gang default/b"]


def test_bare_pods_go_where_the_settings_let_them():
    world = Operated(rack(1, 4), bare(), bare_victims=True)
    assert names(world.answers[0]) == ["gang default/a"]


def test_pods_that_kueue_keeps_the_quota_of_never_go_where_it_runs():
    kept = [replace(each, labels={"kueue.x-k8s.io/managed": "true"}) for each in gang("a", *N1)]
    assert Operated(rack(1, 4), kept, kueue_manages=True).answers[0].is_found is False
    assert Operated(rack(1, 4), kept).answers[0].is_found is True  # anybody may write a label


# -- pods whose Job would fail for good ------------------------------------------------------------


def jobs_of_one(failures_left, *, restarts_left=None):
    """Four Jobs without a gang, of one JobSet each or of none, and the pod of each."""
    sets, jobs, pods = [], [], []
    for at, on in enumerate(N1):
        said = replace(job(f"j{at}", 1), failures_left=failures_left)
        if restarts_left is not None:
            whole = replace(said, kind="JobSet", name=f"s{at}", uid=f"uid-s{at}")
            sets.append(replace(whole, restarts_left=restarts_left))
            owner = Owner("jobset.x-k8s.io/v1alpha2", "JobSet", f"s{at}", f"uid-s{at}")
            said = replace(said, owner=owner)
        jobs.append(said)
        pods.append(replace(single(f"j{at}-0", on), owner=job_owner(f"j{at}")))
    return [*jobs, *sets], pods


@pytest.mark.parametrize(
    ("failures_left", "restarts_left", "is_last"),
    [
        pytest.param(0, None, True, id="none_left"),
        pytest.param(1, None, False, id="one_left"),
        pytest.param(None, None, False, id="any_number"),
        pytest.param(0, 0, True, id="of_a_job_set_that_fails_with_it"),
        pytest.param(0, 1, False, id="of_a_job_set_that_starts_again"),
    ],
)
def test_a_pod_whose_job_would_fail_for_good_goes_last(failures_left, restarts_left, is_last):
    """19: a gang goes before it, though gangs cost more than pods."""
    owners, pods = jobs_of_one(failures_left, restarts_left=restarts_left)
    world = Operated(two_racks(), [*pods, *gang("b", *N2)], waiting=(), jobs=owners)
    world.put(*owners, *train())
    world.tick()
    world.tick(10.0)
    world.answer()
    singles = [f"pod default/j{at}-0" for at in range(4)]
    assert names(world.answers[0]) == (["gang default/b"] if is_last else singles)


def test_where_no_others_are_left_it_is_said_that_their_jobs_would_fail():
    owners, pods = jobs_of_one(0)
    world = Operated(rack(1, 4), pods, jobs=owners)
    (said,) = world.said
    assert said[1].endswith("; the owners of 4 pods would count them as failed and give up")


def of_one_job(failures_left, *, failures=0, pods=4):
    """A Job without a gang, and its pods on the nodes of the first rack."""
    said = replace(job("j", pods), failures_left=failures_left, failures=failures)
    owner = job_owner("j")
    return said, [replace(single(f"j-{at}", N1[at]), owner=owner) for at in range(pods)]


@pytest.mark.parametrize(("failures_left", "is_last"), [(4, False), (3, True), (1, True)])
def test_the_pods_of_one_job_are_counted_together(failures_left, is_last):
    owner, pods = of_one_job(failures_left)
    world = Operated(two_racks(), [*pods, *gang("b", *N2)], jobs=[owner])
    singles = [f"pod default/j-{at}" for at in range(4)]
    assert names(world.answers[0]) == (["gang default/b"] if is_last else singles)


def test_where_the_pods_of_one_job_must_go_it_is_said_of_all_that_it_would_fail():
    owner, pods = of_one_job(3)
    world = Operated(rack(1, 4), pods, jobs=[owner])
    (said,) = world.said
    assert said[1].endswith("; the owners of 4 pods would count them as failed and give up")


@pytest.mark.parametrize(("failures", "is_last"), [(0, True), (1, False)])
def test_a_pod_that_ends_already_counts_until_its_job_has_counted_it(failures, is_last):
    """Three run, of which the Job may lose three."""
    owner, pods = of_one_job(3, failures=failures)
    pods[0] = replace(pods[0], is_terminating=True)
    world = Operated(two_racks(), [*pods, *gang("b", *N2)], jobs=[owner])
    singles = [f"pod default/j-{at}" for at in (1, 2, 3)]
    assert names(world.answers[0]) == (["gang default/b"] if is_last else singles)


def in_a_group(name, nodes, *owners):
    """A pod group of these nodes, whose pods these Jobs have made in turn."""
    pods = [
        replace(each, owner=job_owner(owners[at % len(owners)]))
        for at, each in enumerate(gang(name, *nodes))
    ]
    return pods


@pytest.mark.parametrize(
    ("lefts", "is_last"),
    [
        pytest.param((4,), False, id="one_job_that_lasts"),
        pytest.param((3,), True, id="one_job_that_does_not"),
        pytest.param((2, 2), False, id="two_that_last"),
        pytest.param((2, 1), True, id="two_of_which_one_does_not"),
        pytest.param((None,), False, id="one_of_which_any_number_may_fail"),
    ],
)
def test_a_pod_group_goes_last_if_the_job_of_its_pods_would_fail(lefts, is_last):
    """Of two gangs that are alike otherwise, `a` goes first by its name."""
    jobs = [replace(job(f"j{at}", 4), failures_left=left) for at, left in enumerate(lefts)]
    running = in_a_group("a", N1, *(each.name for each in jobs))
    world = Operated(two_racks(), [*running, *gang("b", *N2)], jobs=jobs)
    assert names(world.answers[0]) == ["gang default/b" if is_last else "gang default/a"]


# -- disruption budgets ----------------------------------------------------------------------------


def protected(allowed, *, others=()):
    """11: a gang that a budget keeps, and whoever else runs."""
    kept = [replace(each, labels={"app": "a"}) for each in gang("a", *N1)]
    return Operated(two_racks(), [*kept, *others], budgets=[budget("keep", "a", allowed)])


def test_a_budget_is_a_wall_and_not_a_price():
    two = [*gang("b", *N2[:2]), *gang("c", *N2[2:])]
    world = protected(1, others=two)
    assert names(world.answers[0]) == ["gang default/b", "gang default/c"]
    assert protected(4, others=two).answers[0].named == (("gang default/a", 0),)


def test_the_budget_that_is_in_the_way_is_named():
    full = [single(f"f{at}", on, priority=1000) for at, on in enumerate(N2)]
    world = protected(1, others=full)
    assert world.answers[0].budgets == ("default/keep",)
    assert world.said[0][0] == "NoRoomByPreemption"
    assert world.said[0][1].endswith("that disruption budgets keep: default/keep")


def test_a_pod_that_two_budgets_select_never_goes():
    kept = [replace(each, labels={"app": "a"}) for each in gang("a", *N1)]
    budgets = [budget("one", "a", 4), budget("two", "a", 4)]
    assert Operated(rack(1, 4), kept, budgets=budgets).answers[0].is_found is False


def test_a_budget_whose_labels_are_not_read_yet_keeps_all_pods_of_its_namespace():
    unread = replace(budget("keep", "a", 9), requirements=(("tier", "Exists", ()),))
    world = Operated(rack(1, 4), gang("a", *N1), budgets=[unread], are_labels_read=False)
    assert world.answers[0].budgets == ("default/keep",)
    assert ReadAgain("Pod") in world.effects
    world.read_again()
    world.tick(60.0)
    world.answer()
    assert world.answers[1].is_found  # no pod has the label


def test_a_pod_that_has_not_begun_is_not_counted_by_its_budget():
    kept = [replace(each, labels={"app": "a"}, phase="Pending") for each in gang("a", *N1)]
    world = Operated(rack(1, 4), kept, budgets=[budget("keep", "a", 0)])
    assert names(world.answers[0]) == ["gang default/a"]


# -- when, and what is said ------------------------------------------------------------------------


def test_the_sentence_names_who_would_go_and_that_nobody_does():
    world = Operated(two_racks(), [*gang("a", *N1), *gang("b", *N2[:2]), *gang("c", *N2[2:])])
    (said,) = world.said
    assert said[0] == "RoomByPreemption"
    assert said[1] == (
        "gang default/T (priority 1000) could start in"
        " cloud.provider.com/topology-rack=b0/r1 if 4 pods of 1 gang went, and none is evicted,"
        " as preempt is explain: gang default/a (priority 0)"
    )


def test_the_example_of_the_readme():
    level = "example.com/rack"
    nodes = [node(name, labels={level: f"r{name[1]}"}) for name in (*N1, *N2)]
    running = [*gang("a", *N1), *gang("b", *N2[:2]), *gang("c", *N2[2:])]
    waiting = [replace(each, priority=1000) for each in members("train", 4, level)]
    world = Operated(nodes, running, waiting=waiting, levels=(level,))
    (said,) = world.said
    assert said[1] in README.read_text(encoding="utf-8")


def test_a_gang_asks_after_ten_seconds_then_after_a_minute_and_then_less_often():
    world = Operated(two_racks(), [*gang("a", *N1), *gang("b", *N2)])
    asked_at = []
    for _ in range(600):
        before = len(world.told(SeekRoom))
        world.tick(1.0)
        if len(world.told(SeekRoom)) > before:
            asked_at.append(world.now)
            world.answer()
    pauses = [later - at for at, later in pairwise(asked_at)]
    assert pauses[:2] == [pytest.approx(120.0, abs=2.0), pytest.approx(240.0, abs=2.0)]
    assert len(world.said) == 1  # the same answer is no news


def test_one_question_is_under_way_at_a_time_and_namespaces_take_turns():
    loud = [
        replace(each, priority=1001 + number, namespace="loud")
        for number in range(5)
        for each in members(f"L{number}", 4)
    ]
    world = Operated(two_racks(), [*gang("a", *N1), *gang("b", *N2)], waiting=[*loud, *train()])
    assert len(world.told(SeekRoom)) == 1
    for _ in range(8):
        world.tick(1.0)
        world.answer()
    asked = [each.gang.namespace for each in world.told(SeekRoom)]
    assert asked.index("default") <= 1
    assert sorted(asked) == ["default", *["loud"] * 5]


def test_gangs_that_are_gone_wait_for_no_turn():
    """While one question is under way a namespace may make and delete any number."""
    gangs = [[replace(each, priority=1000) for each in members(f"w{at}", 4)] for at in range(5)]
    world = asking(*train(), *(each for its in gangs[:3] for each in its))
    waiting = world.engine.making_room._waiting
    assert len(waiting) == 3
    world.delete(*(each for its in gangs[:3] for each in its))
    world.put(*(each for its in gangs[3:] for each in its))
    world.tick(11.0)
    world.tick(1.0)
    assert len(waiting) == 2
    assert {waiting.take().name for _ in range(2)} == {"w3", "w4"}
    assert not waiting


def test_the_most_important_gang_of_a_namespace_asks_before_those_that_waited_longer():
    """A question may take as long as a pause of nine times its length: hundreds take minutes."""
    others = [
        replace(each, priority=100 + number)
        for number in range(20)
        for each in members(f"L{number}", 4)
    ]
    world = Operated(two_racks(), [*gang("a", *N1), *gang("b", *N2)], waiting=others)
    world.put(*train())
    for _ in range(13):
        world.tick(1.0)
        world.answer()
    asked = [each.gang.name for each in world.told(SeekRoom)]
    assert asked[0] == "L19"
    at = asked.index("T")
    assert "L0" not in asked[:at]
    assert len(asked) < 21


def test_three_hundred_gangs_that_are_alike_are_one_question():
    """28: each of them hears the answer."""
    alike = [
        replace(each, priority=1000) for number in range(300) for each in members(f"L{number}", 4)
    ]
    world = Operated(two_racks(), [*gang("a", *N1), *gang("b", *N2)], waiting=alike)
    for _ in range(40):
        world.tick(0.2)
        world.answer()
    assert len(world.told(SeekRoom)) == 1
    assert len({sentence for _, sentence in world.said}) == 300


def test_an_answer_that_never_comes_does_not_stop_the_others():
    other = [replace(each, priority=2000) for each in members("U", 4)]
    world = asking(*train(), *other)
    assert len(world.told(SeekRoom)) == 1
    world.tick(121.0)
    assert len({each.gang for each in world.told(SeekRoom)}) == 2


def test_the_answer_about_a_gang_that_has_started_or_is_gone_is_dropped():
    world = Operated(two_racks(), [*gang("a", *N1), *gang("b", *N2)])
    (asked,) = world.told(SeekRoom)
    found, said = world.answers[0], world.said
    world.delete(*[each for each in world.pods.values() if each.name.startswith("a")])
    world.tick(1.0)
    assert len(world.held) == 4
    world._take(world.inputs.room_found(asked.gang, found, 0.05, world.now))
    assert question_of(world.engine, asked.gang) is None
    world.delete(*[each for each in world.pods.values() if each.name.startswith("T")])
    world._take(world.inputs.room_found(asked.gang, found, 0.05, world.now))
    assert world.said == said


def test_what_is_asked_is_answered_on_a_copy():
    world = asking(*train())
    question = question_of(world.engine, world.gang("T").key)
    world.delete(*[each for each in world.pods.values() if each.name.startswith("a")])
    world.put(*[node(f"b0/r2/n2{at}", gpus=0) for at in range(4)])
    assert names(question.answer()) == ["gang default/a"]


def test_of_a_gang_that_has_changed_before_its_question_is_fetched_nothing_is_searched():
    world = asking(*train())
    steps = world.engine.making_room.request(world.gang("T").key)
    assert next(steps) is None  # the copy has begun
    world.put(*[replace(each, priority=500) for each in train()])
    world.tick()
    assert [each for each in steps if each is not None] == []


def test_a_question_is_about_the_cluster_as_it_is_when_its_last_step_is_made():
    world = asking(*train())
    steps = world.engine.making_room.request(world.gang("T").key)
    next(steps)
    world.delete(*[each for each in world.pods.values() if each.name.startswith("a")])
    *_, question = steps
    answer = question.answer()
    assert (answer.is_found, answer.pods) == (True, 0)


def test_a_question_is_fetched_once():
    world = asking(*train())
    key = world.gang("T").key
    assert question_of(world.engine, key) is not None
    assert question_of(world.engine, key) is None


def test_a_gang_that_was_made_anew_while_its_question_was_answered_hears_nothing():
    world = asking(*train())
    (asked,) = world.told(SeekRoom)
    answer = question_of(world.engine, asked.gang).answer()
    world.delete(*train())
    world.put(*[replace(each, priority=500, uid=f"{each.uid}-again") for each in train()])
    world.tick()
    world._take(world.inputs.room_found(asked.gang, answer, 0.05, world.now))
    assert [each for each in world.told(EmitEvent) if "Room" in each.reason] == []


def test_a_question_is_answered_for_months_without_an_error():
    world = Operated(two_racks(), [*gang("a", *N1), *gang("b", *N2)])
    for _ in range(20):
        world.tick(1000.0)
        world.tick(1.0)
        world.answer()
    assert len(world.answers) == 21
    world.engine.making_room._asked[world.gang("T").key].times = 10_000
    world.tick(1000.0)
    world.tick(1.0)
    world.answer()
    assert len(world.answers) == 22


def test_a_gang_that_waits_for_another_reason_asks_nothing():
    nowhere = [replace(each, priority=1000) for each in members("T", 4, "building")]
    world = Operated(two_racks(), gang("a", *N1), waiting=nowhere)
    assert world.gang("T").reporting.sentence_at is not None
    assert world.told(SeekRoom) == []


def test_where_the_gang_fits_by_now_nothing_is_said():
    world = asking(*train())
    (asked,) = world.told(SeekRoom)
    world._take(world.inputs.room_found(asked.gang, RoomAnswer(True, "rack=r1"), 0.05, world.now))
    assert [each for each in world.told(EmitEvent) if "Room" in each.reason] == []


def test_the_priority_of_pods_counts_before_their_gang_is_sorted_out():
    (important,) = gang("c", "n20", priority=2000)
    world = Operated(two_racks(), [*gang("a", *N1), important])
    unsorted = world.engine.gangs.by_key[world.gang("c").key]
    unsorted.membership = replace_dataclass(unsorted.membership, highest_priority=0)
    standing = world.engine.making_room.question(world.gang("T"), world.now).standing
    named = {standing.name(each) for each in standing.units(1000, world.gang("T").key)}
    assert named == {"gang default/a"}


def test_of_equal_pods_the_same_ones_are_named_whatever_is_heard_of_them():
    running = [single("s0", "n10"), single("s1", "n20")]
    waiting = [replace(each, priority=1000) for each in members("T", 1)]
    nodes = [node("b0/r1/n10"), node("b0/r2/n20")]
    world = Operated(nodes, running, waiting=waiting)
    world.put(replace(running[0], version="2", labels={"x": "y"}))
    world.tick(61.0)
    world.tick(1.0)
    world.answer()
    assert world.answers[0].named == world.answers[1].named


def test_a_gang_counts_with_its_pods_on_nodes_without_a_level():
    beside = [f"x{at}" for at in range(6)]
    running = [*gang("a", *N1[:2], *beside), *gang("b", *N2[:3])]
    world = Operated([*two_racks(), *map(node, beside)], running)
    assert names(world.answers[0]) == ["gang default/b"]
    assert world.answers[0].pods == 3


def test_a_budget_counts_the_pods_of_a_gang_once_they_have_begun():
    kept = [replace(each, labels={"app": "a"}, phase="Pending") for each in gang("a", *N1)]
    world = Operated(rack(1, 4), kept, budgets=[budget("keep", "a", 0)], waiting=())
    world.put(*[replace(each, phase="Running") for each in kept])
    world.put(*train())
    world.tick()
    world.tick(10.0)
    world.answer()
    assert world.answers[0].budgets == ("default/keep",)


def test_a_question_is_part_of_the_journal():
    """What it costs its namespace is counted in the tick that asks."""
    lines = []

    class Recorded(Operated):
        def built(self):
            engine = super().built()
            self.recorder = Recorder(engine, engine.settings, lines.append)
            return engine

    world = Recorded(two_racks(), [*gang("a", *N1), *gang("b", *N2)])
    assert world.answers[0].is_found
    world.delete(*[each for each in world.pods.values() if each.name.startswith("a")])
    world.tick(1.0)
    assert len(world.held) == 4
    assert list(replay(lines)) == []
