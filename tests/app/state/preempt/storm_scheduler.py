"""kube-scheduler in a storm: what it tries, where it binds, whom it ends.

It knows of pods that others are nominated for, tries a pod anew when something became free, and
brings all nodes to /preempt where fewer important pods would make room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec.structs import replace

from app.state.filter_result import Passed, Pinned, Victims
from tests.app.state.preempt.storm_needs import gpus_of
from tests.app.state.world import Names

if TYPE_CHECKING:
    from tests.app.state.preempt.storm import Storm

TRY_SECONDS = 60  # a pod that has no node is tried again, though nothing has become free


@dataclass
class Preempted:
    """One answer to /preempt: a node, and who goes there."""

    pod: str
    node: str
    victims: int
    needed: int
    why_again: str  # what became of the node of the answer before


@dataclass
class Scheduler:
    """The scheduler of this storm, and what came of its tries."""

    storm: Storm
    tried: dict[str, float] = field(default_factory=dict)
    answers: list[Preempted] = field(default_factory=list)
    killed: list[tuple[str, int, int]] = field(default_factory=list)
    """uid, priority of what it goes with, of the pod that it goes for."""
    needless: int = 0
    """So many pods took a node that others wait for, though there was another one."""

    @property
    def pods(self) -> dict:
        """The pods of the storm, by uid."""
        return self.storm.pods

    def schedule_gangs(self) -> None:
        for gang in list(self.storm.engine.gangs.by_key.values()):
            for uid in list(gang.plan.nodes):
                one = self.pods.get(uid)
                if one is not None and not one.node:
                    answer = self.storm.filter(one)
                    if isinstance(answer, Pinned):
                        self.storm.confirm(self.storm.bind(one, answer.node))
        self._run()

    def _run(self) -> None:
        """Pods that have a node run."""
        for each in list(self.pods.values()):
            if each.node and each.phase == "Pending":
                self.storm.put(replace(each, phase="Running"))

    def schedule_pods(self) -> None:
        for uid in sorted(self.storm.preemptors, key=lambda uid: (-self.pods[uid].priority, uid)):
            one = self.pods[uid]  # another one may have just taken its node
            last = self.tried.get(uid, -1e9)
            if one.node or not (
                last <= self.storm.freed_at or self.storm.now >= last + TRY_SECONDS
            ):
                continue
            self.tried[uid] = self.storm.now + 0.5
            self._try(one)

    def _try(self, one) -> None:
        rivals: Counter[str] = Counter()
        for uid in self.storm.preemptors:
            other = self.pods[uid]
            is_rival = uid != one.uid and other.priority >= one.priority
            if is_rival and other.nominated_node and not other.node:
                rivals[other.nominated_node] += gpus_of(other)
        wanted = gpus_of(one)
        fitting = [on for on, free in self.storm.free.items() if free - rivals[on] >= wanted]
        fitting.sort(key=lambda on: on != one.nominated_node)
        if fitting:
            answer = self.storm.filter(one, fitting)
            assert isinstance(answer, Passed)
            left = [on for on in fitting if on not in answer.without]
            if one.nominated_node in left[:1] or len(left) == 1:
                self.storm.confirm(self.storm.bind(one, left[0]))
                return
            if left:
                scores = self.storm.inputs.prioritize(one, Names(left), self.storm.now)
                on = max(zip(scores, left, strict=True))[1]
                plans = self.storm.engine.room_plans.of
                kept = {node for key in plans for node in self.storm.kept_by(key.name)}
                kept.update(self._nominated())
                if on in kept and not kept.issuperset(left):
                    self.needless += 1
                self.storm.confirm(self.storm.bind(one, on))
                return
        is_waiting = one.nominated_node and any(
            self.pods[uid].is_terminating and self.pods[uid].priority < one.priority
            for uid in self.storm.on_node[one.nominated_node]
        )
        if not is_waiting:
            self._preempt(one, rivals)

    def _nominated(self) -> Iterator[str]:
        """The nodes that pods wait for."""
        waiting = (self.pods[uid] for uid in self.storm.preemptors)
        return (each.nominated_node for each in waiting if not each.node)

    def _preempt(self, one, rivals: Counter[str]) -> None:
        offered: dict[str, tuple[str, ...]] = {}
        for on, uids in self.storm.on_node.items():
            victims = self._victims(one, on, uids, rivals[on])
            if victims:
                offered[on] = victims
        if not offered:
            return
        question = {on: Victims(uids, 0) for on, uids in offered.items()}
        answer, effects = self.storm.inputs.preempt(one, question, self.storm.now)
        self.storm.take(effects)
        if len(answer) > 1:
            self.storm.problems.append(f"P13: {one.name} is answered {len(answer)} nodes")
        for on, chosen in answer.items():
            if set(chosen.uids) != set(offered.get(on, ())) or not chosen.uids:
                self.storm.problems.append(f"P13: {one.name} is answered {chosen}")
            self._note_answer(one, on, chosen.uids, offered)
            for uid in chosen.uids:
                self.killed.append((uid, self.storm.unit_priority(uid), one.priority))
                self.storm.ends(uid, is_preempted=True)
            self.storm.put(replace(self.pods[one.uid], nominated_node=on))

    def _note_answer(self, one, on: str, uids, offered) -> None:
        before = [each for each in self.answers if each.pod == one.name]
        why = ""
        if before:
            its = before[-1].node
            taken = [
                self.pods[u].name
                for u in self.storm.on_node[its]
                if self.pods[u].priority > one.priority
            ]
            why = "taken" if taken else "unknown"
            if not taken:
                self.storm.problems.append(f"P2: {one.name} left {its} for {on}")
        rank = {node: max(self.pods[u].priority for u in each) for node, each in offered.items()}
        least = min(rank.values())
        needed = min(len(each) for node, each in offered.items() if rank[node] == least)
        self.answers.append(Preempted(one.name, on, len(uids), needed, why))

    def _victims(self, one, on: str, uids, rivals: int) -> tuple[str, ...]:
        """As few as are enough, the least important first."""
        lower = [self.pods[u] for u in uids if self.pods[u].priority < one.priority]
        free = self.storm.free[on] - rivals + sum(map(gpus_of, lower))
        wanted, out = gpus_of(one), []
        if free < wanted:
            return ()
        for each in sorted(lower, key=lambda each: (-each.priority, each.name)):
            if free - gpus_of(each) >= wanted:
                free -= gpus_of(each)
            elif not each.is_terminating:
                out.append(each.uid)
        return tuple(out)
