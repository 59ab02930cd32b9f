"""A full cluster, and very many that preempt at once: pods of their own, and gangs that wait.

    every second   kube-scheduler tries pods and preempts ─▶ /filter, /bind, /preempt
                   the engine's questions are answered, its evictions carried out, one by one
                   pods that end are gone after their grace period; owners make theirs anew

Nodes have 8 GPUs. Gangs require a rack, and their pods take all of a node or half of one. For each
that preempts, what it needs is found apart from the engine, from what runs at that moment: how many
pods would have to go at least (`storm_needs`).
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from itertools import count
from random import Random

from msgspec.structs import replace

from app.dialects.budgets.dialect import BudgetRecord
from app.kube.watch.events import Listed
from app.state.effects import Evict, RejectBind, SeekRoom, TryEviction
from tests.app.state.preempt.storm_needs import GPUS, LABEL, Needs, Plan, gpus_of, whose
from tests.app.state.preempt.storm_scheduler import Scheduler
from tests.app.state.preempt.test_making_room import KINDS
from tests.app.state.world import World
from tests.records import GPU, RACK, REQUIRED, group, job, job_owner, node, pod
from tests.room_question import question_of
from topology import invariants

RACKS, NODES_PER_RACK = 40, 10
AUDIT_SECONDS = 60
EVICTIONS_PER_SECOND = 10


class Storm(World):
    """The cluster. `play` lets time pass; what is counted is looked at afterwards."""

    def __init__(self, seed: int, **settings: object) -> None:
        self.dice = Random(f"storm {seed}")
        self.scheduler = Scheduler(self)
        self.needs = Needs(self)
        self.numbers = count()
        self.clock = 0
        self.on_node: dict[str, dict[str, None]] = defaultdict(dict)  # uids of pods
        self.free: dict[str, int] = {}
        self.gone_at: dict[str, float] = {}  # uid -> when a pod that ends is gone
        self.queue: deque[Evict] = deque()
        self.again: list[tuple[float, object]] = []  # pods that owners make anew, and when
        self.preemptors: set[str] = set()  # uids of ordinary pods
        self.freed_at = 0.0
        self.plans: list[Plan] = []
        self.live: dict[str, Plan] = {}  # by gang
        self.evicted: list[tuple[str, int, int]] = []
        self.last_loss = 0.0
        self.not_allowed: list[str] = []
        """Pods whose eviction was asked for, though their budget did not allow it."""
        self.most_going = self.most_plans = 0
        self.problems: list[str] = []
        nodes = [
            node(f"b{rack // 10}/r{rack}/r{rack}-{place}", gpus=GPUS)
            for rack in range(RACKS)
            for place in range(NODES_PER_RACK)
        ]
        self.free = {each.name: GPUS for each in nodes}
        self.rack_of = {each.name: each.labels[RACK] for each in nodes}
        self.allowed: dict[str, int] = {}  # budget -> how many pods may be away
        self.sizes: dict[str, int] = {}  # of gangs with a budget
        self.jobs: dict[str, int] = {}
        pods = self._filled()
        limits = {
            "preempt": "on",
            "preempt_per_namespace": 10_000,
            "preempted_at_most": 10_000,
            "kinds": KINDS,
            "bare_victims": True,
            "earmarks_per_namespace": 0,
        }
        jobs = [job(name, size) for name, size in self.jobs.items()]
        super().__init__(nodes, pods, jobs, **{**limits, **settings})
        for each in pods:
            self._place(each)
        self._budgets(is_first=True)
        edition = self.engine.kept_keys.labels.edition
        self.apply(Listed("Pod", tuple(self.pods.values()), edition=edition))

    # -- what runs before ------------------------------------------------------------------------

    def _filled(self) -> list:
        """About a hundred gangs, and pods of their own on what is left of their racks."""
        made, gangs = [], count()
        for rack in range(RACKS):
            free = [f"r{rack}-{place}" for place in range(NODES_PER_RACK)]
            self.dice.shuffle(free)
            for _ in range(self.dice.choice((2, 2, 3, 3))):
                size = min(self.dice.randint(2, 5), len(free))
                if size >= 2:
                    its, free = free[:size], free[size:]
                    made += self._gang(f"g{next(gangs)}", its)
            for on in free:
                made += self._singles(on)
        return made

    def _gang(self, name: str, nodes: list[str]) -> list:
        priority = self.dice.choice((0, 0, 10, 20, 50, 100))
        labels, owner = {}, None
        annotations = group(name, len(nodes), RACK)
        if self.dice.random() < 0.5:
            self.jobs[name], owner = len(nodes), job_owner(name)
            annotations = {REQUIRED: RACK}
        if self.dice.random() < 0.15:
            labels, self.allowed[name] = {LABEL: name}, self.dice.choice((0, 1, len(nodes)))
        return [
            pod(
                f"{name}-{number}",
                on=on,
                phase="Running",
                priority=priority,
                labels=labels,
                annotations=annotations,
                owner=owner,
            )
            for number, on in enumerate(nodes)
        ]

    def _singles(self, on: str) -> list:
        sizes = self.dice.choice(((8,), (4, 4), (4, 2), (2, 2, 4)))
        priorities = (0, 0, 5, 10, 50)
        return [
            pod(
                f"s{next(self.numbers)}",
                on=on,
                phase="Running",
                gpus=gpus,
                priority=self.dice.choice(priorities),
            )
            for gpus in sizes
        ]

    # -- who preempts ----------------------------------------------------------------------------

    def comes(self, *, is_gang: bool) -> None:
        """One more that preempts."""
        number, priority = next(self.numbers), self.dice.choice((20, 50, 100, 200, 500, 1000))
        if is_gang:
            name, size = f"t{number}", self.dice.randint(1, 6)
            annotations, gpus = group(name, size, RACK), self.dice.choice((8, 8, 4))
            self.put(
                *[
                    pod(f"{name}-{at}", priority=priority, annotations=annotations, gpus=gpus)
                    for at in range(size)
                ]
            )
        else:
            one = pod(f"hp{number}", priority=priority, gpus=self.dice.choice((8, 8, 4, 2)))
            self.preemptors.add(one.uid)
            self.put(one)

    def leaves(self) -> None:
        """One of the gangs that wait, or have just begun, is deleted."""
        waiting = sorted(name for name in self.live if name.startswith("t"))
        if waiting:
            name = self.dice.choice(waiting)
            self.delete(*[each for each in self.pods.values() if whose(each) == name])

    # -- bookkeeping -----------------------------------------------------------------------------

    def take(self, effects):
        """Keep them to be carried out."""
        self.effects.extend(effects)
        return effects

    _take = take  # `World` audits each time, which is too dear here

    def put(self, *records) -> None:
        for each in records:
            before = self.pods.get(getattr(each, "uid", ""))
            super().put(each)
            if before is not None and each.node and not before.node:
                self._place(each)

    def delete(self, *records) -> None:
        for each in records:
            super().delete(each)
            if each.uid in self.on_node.get(each.node, ()):
                del self.on_node[each.node][each.uid]
                self.free[each.node] += gpus_of(each)
                self.freed_at = self.now
            self.gone_at.pop(each.uid, None)
            self.preemptors.discard(each.uid)

    def _place(self, each) -> None:
        self.on_node[each.node][each.uid] = None
        self.free[each.node] -= gpus_of(each)
        if self.free[each.node] < 0:
            self.problems.append(f"{each.node} is overcommitted by {each.name}")
        for plan in self.live.values():
            if each.node in self.kept_by(plan.gang) and self._is_thief(each, plan):
                self.problems.append(f"P7: {each.name} takes {each.node} from {plan.gang}")

    def kept_by(self, gang: str) -> set[str]:
        """The nodes where places are kept for a gang that waits."""
        for key, room in self.engine.room_plans.of.items():
            if key.name == gang:
                return {each.node for each in room.places.values()}
        return set()

    def _is_thief(self, each, plan: Plan) -> bool:
        """Whether a pod takes what is kept for a gang that it is no more important than."""
        if whose(each) == plan.gang or each.priority > plan.priority:
            return False
        room = next(r for k, r in self.engine.room_plans.of.items() if k.name == plan.gang)
        kept = sum(dict(p.request)[GPU] for p in room.places.values() if p.node == each.node)
        there = sum(
            gpus_of(self.pods[uid])
            for uid in self.on_node[each.node]
            if uid not in plan.victims and not self.pods[uid].is_terminating
        )
        return kept + there > GPUS

    def _budgets(self, *, is_first: bool = False) -> None:
        """What the controller of budgets writes, where it has changed."""
        healthy = Counter(
            each.labels[LABEL]
            for each in self.pods.values()
            if LABEL in each.labels and each.node and not each.is_terminating
        )
        total = {name: self._size(name) for name in self.allowed}
        now = {
            name: max(0, healthy[name] - (total[name] - most))
            for name, most in self.allowed.items()
        }
        if is_first or now != self.disruptions_allowed:
            self.disruptions_allowed = now
            records = tuple(
                BudgetRecord(
                    "PodDisruptionBudget",
                    "default",
                    name,
                    f"uid-{name}",
                    f"{self.now}",
                    ((LABEL, "In", (name,)),),
                    allowed,
                )
                for name, allowed in now.items()
            )
            self.apply(Listed("PodDisruptionBudget", records))

    def _size(self, name: str) -> int:
        if name not in self.sizes:
            self.sizes[name] = sum(each.labels.get(LABEL) == name for each in self.pods.values())
        return self.sizes[name]

    # -- time ------------------------------------------------------------------------------------

    def play(self, seconds: int) -> None:
        """So many seconds pass."""
        for _ in range(seconds):
            self.clock += 1
            for uid in [uid for uid, at in self.gone_at.items() if at <= self.now]:
                self._end(uid)
            due = [each for at, each in self.again if at <= self.now]
            self.again = [(at, each) for at, each in self.again if at > self.now]
            self.put(*due)
            self.scheduler.schedule_gangs()
            self.scheduler.schedule_pods()
            self.tick(1.0)
            self._serve()
            self.most_going = max(self.most_going, len(self.engine.room_plans.going))
            self.most_plans = max(self.most_plans, len(self.engine.room_plans.of))
            self._budgets()
            if self.clock % AUDIT_SECONDS == 0:
                self._audit()

    def _audit(self) -> None:
        self.engine.books.refresh()
        assert self.engine.differences() == []
        for topology in self.engine.books.topologies.values():
            invariants.check(topology.tree, topology.capacity)

    def _end(self, uid: str) -> None:
        ended = self.pods[uid]
        self.delete(ended)
        name = whose(ended)
        if name in self.jobs:
            fresh = replace(
                ended,
                uid=f"{uid.partition('+')[0]}+{next(self.numbers)}",
                node="",
                phase="Pending",
                is_terminating=False,
                is_preempted=False,
                nominated_node="",
            )
            self.again.append((self.now + self.dice.uniform(0.0, 3.0), fresh))

    def ends(self, uid: str, **more: object) -> None:
        """A pod that is deleted runs on for a while."""
        grace = self.dice.choice((0, 5, 30))
        self.put(replace(self.pods[uid], is_terminating=True, grace_seconds=grace, **more))
        self.gone_at[uid] = self.now + grace
        self.last_loss = self.now

    # -- the API server --------------------------------------------------------------------------

    def _serve(self) -> None:
        """Answer questions and dry runs, and carry out the next evictions."""
        while self.effects:
            effects, self.effects = self.effects, []
            for each in effects:
                if isinstance(each, SeekRoom):
                    self._answer(each)
                elif isinstance(each, TryEviction):
                    outcome = "done" if self._may_evict(each.uid) else "failed"
                    outcome = outcome if each.uid in self.pods else "gone"
                    self.take(self.inputs.eviction_tried(each.uid, outcome, self.now))
                elif isinstance(each, Evict):
                    self.queue.append(each)
                elif isinstance(each, RejectBind):
                    self.problems.append(f"a bind of {each.uid} is refused")
        for _ in range(min(EVICTIONS_PER_SECOND, len(self.queue))):
            self._evict(self.queue.popleft())

    def _may_evict(self, uid: str) -> bool:
        one = self.pods.get(uid)
        return one is None or self.disruptions_allowed.get(one.labels.get(LABEL, ""), 1) > 0

    def _evict(self, effect: Evict) -> None:
        uid, outcome = effect.uid, "done"
        if uid not in self.pods or self.pods[uid].is_terminating:
            outcome = "gone"
        elif not self.engine.room_plans.is_wanted(uid):
            outcome = "dropped"
        elif not self._may_evict(uid):
            outcome = "failed"
            self.not_allowed.append(uid)
        else:
            self._note_eviction(uid)
            self.ends(uid)
            self._budgets()
        self.take(self.inputs.eviction_finished(uid, outcome, self.now))

    def _note_eviction(self, uid: str) -> None:
        plans = [plan for plan in self.live.values() if uid in plan.victims]
        if not plans:
            self.problems.append(f"P6, P8: {uid} is evicted for no gang")
            return
        plans[0].evicted += 1
        self.evicted.append((uid, self.unit_priority(uid), plans[0].priority))

    def unit_priority(self, uid: str) -> int:
        name = whose(self.pods[uid])
        if not name:
            return self.pods[uid].priority
        return max(each.priority for each in self.pods.values() if whose(each) == name)

    # -- questions -------------------------------------------------------------------------------

    def _answer(self, effect: SeekRoom) -> None:
        question = question_of(self.engine, effect.gang)
        answer = None if question is None else question.answer()
        gang = self.engine.gangs.by_key.get(effect.gang)
        units = self.needs.units()
        needed, free = None, {}
        if gang is not None and answer is not None:
            needed = self.needs.needs(effect.gang.name, units)
            free = self.needs.free_for(effect.gang.name, gang.membership.lowest_priority)
        before = set(self.engine.room_plans.of)
        self.take(self.inputs.room_found(effect.gang, answer, 0.02, self.now))
        if effect.gang in set(self.engine.room_plans.of) - before and answer.victims:
            self.needs.judge(effect.gang.name, answer, needed, units, free)
        elif answer is not None and not answer.is_found and needed is not None:
            self.problems.append(f"P5: {effect.gang} has room for {needed}, and hears of none")
        self.live = {
            key.name: self.live[key.name]
            for key in self.engine.room_plans.of
            if key.name in self.live
        }
