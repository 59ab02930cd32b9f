"""What must hold of gangs whose pods are stored where they belong; B1 to B7.

B1  a pod is narrowed to no more nodes than it may be, of which some are there and have places of
    its gang; where the gang is known or the answer is the gate, nothing more is held
B2  places are held, and pods run, for no more pods than the gang has: a place ends as its pod comes
B3  places for pods that do not come end `born_seconds` after the last one that did, and such a gang
    is not born again for a while
B4  no pod is bound that the watch has not shown
B5  a pod is given back only if it was narrowed at its creation, or later where that is set, its
    controller makes it again and no pod of its gang has a node; no pod is that is made again for
    one that was, until the gang runs
B6  no gate is taken off before all pods of the gang are there, if it needs them all to start: from
    then on the pod goes nowhere else
B7  a Job is suspended only if some pod was narrowed so and none has a node, once until it runs; it
    goes on, whoever leads by then, and only if we have suspended it. No pod of a Job is evicted so

That such a gang starts whole and in its domain is judged as that of any gang, and what a namespace
has held for pods that do not exist as that of any (I13).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from app.dialects import corral as own
from app.dialects.spec import GangKey
from app.dialects.workloads.job import JOB
from app.kube.core.objects import PodRecord
from app.state.born.births import FAILED_SECONDS
from app.state.effects import Bind, Effect, Evict, Suspend, Ungate
from app.state.gang.gang import Gang
from tests.sim.clock import Clock
from tests.sim.faults import Hits
from tests.sim.life import Life, OpenBirth
from tests.sim.liveness import goes_back
from tests.sim.told import is_live, key_of, life_of, members_of, pods_of
from tests.sim.violation import require

if TYPE_CHECKING:
    from tests.sim.corral import Corral

SLACK = 0.5  # seconds a deadline may be seen late, beside the tick


@dataclass(slots=True)
class BornChecks:
    """Looks on while a world runs; one for all Corrals."""

    clock: Clock
    hits: Hits
    suspended: Callable[[Corral], None]
    """Told when a Job has been suspended by this Corral."""
    _held: frozenset[str] = frozenset()  # before it is asked about a pod
    _was_known: bool = False

    def asking(self, life: Life, key: GangKey) -> None:
        """Remember what is held before a Corral is asked about a pod."""
        self._held = frozenset(life.engine.books.held)
        self._was_known = key in life.engine.gangs.by_key

    def admitted(self, corral: Corral, key: GangKey, answer: tuple[str, ...] | None) -> None:
        """Raises: Violation."""
        life = life_of(corral)
        more = life.engine.books.held.keys() - self._held
        if self._was_known or answer is None:
            require(not more, f"B1: asked about a pod of {key}, {answer} is said, {more} is held")
        if answer is None:
            return
        if not self._was_known:
            age = self.clock.now - life.births_failed.get(key, -FAILED_SECONDS)
            require(age >= FAILED_SECONDS, f"B3: {key} is born again {age:.0f} s after it failed")
        self._is_narrowed_well(corral, life.engine.gangs.by_key[key], answer)

    def _is_narrowed_well(self, corral: Corral, gang: Gang, answer: tuple[str, ...]) -> None:
        """B1 of an answer that is not the gate; () says that an earlier one stands."""
        what = f"B1: a pod of {gang.key} is narrowed to {answer}"
        require(len(set(answer)) == len(answer) <= corral.settings.narrow_nodes, what)
        places = {gang.plan.nodes[uid] for uid in gang.placeholders if uid in gang.plan.nodes}
        require(bool(places), f"{what}, and no place is held")
        there = places & life_of(corral).streams["Node"].mirror.keys()
        require(not answer or bool(there & set(answer)), f"{what}, places are on {there}")

    def decided(self, corral: Corral, effects: Sequence[Effect]) -> None:
        """B4, B5, B6. Raises: Violation."""
        life = life_of(corral)
        for each in effects:
            if isinstance(each, Ungate):
                self._is_ungated_whole(life, each)
        back = [each.uid for each in effects if isinstance(each, Evict) and each.is_given_back]
        for pod in [pod for pod in pods_of(life) if pod.uid in back]:
            self._is_given_back_well(corral, pod, back)
        for each in effects:
            if isinstance(each, Suspend):
                self._is_suspended_well(corral, each)
        bound = [each for each in effects if isinstance(each, Bind) and key_of(life, each.uid)]
        shown = {pod.uid for pod in pods_of(life)} if bound else ()
        for each in bound:
            require(each.uid in shown, f"B4: {each.name} is bound before it is shown")

    def _is_given_back_well(self, corral: Corral, pod: PodRecord, back: Collection[str]) -> None:
        life = life_of(corral)
        key = key_of(life, pod.uid)
        assert key is not None
        what = f"B5: {pod.name} of {key} is given back"
        goes = goes_back(pod, also_later=corral.settings.narrowed_pods_given_back)
        require(goes, f"{what}: it was not narrowed, or it has a node")
        if own.NARROWED in pod.annotations:
            self.hits.hit("W given back later")
        require(pod.owner is not None, f"{what}: nobody makes it again")
        require(key.source != JOB.source, f"B7: {pod.name} of a Job is evicted")
        bound = [each.name for each in members_of(life, key) if each.node and is_live(each)]
        require(not bound, f"{what}: {bound} run")
        before = life.given_back.setdefault(key, frozenset(back))
        require(pod.uid in before, f"{what}: others were before")

    def suspending(self, corral: Corral, effect: Suspend) -> None:
        """B7, when it is sent. Raises: Violation."""
        if not effect.ends:
            self._has_no_node(life_of(corral), effect)

    def _is_suspended_well(self, corral: Corral, effect: Suspend) -> None:
        life = life_of(corral)
        goes = partial(goes_back, also_later=corral.settings.narrowed_pods_given_back)
        job = life.streams["Job"].mirror[effect.name]
        is_ours = own.SUSPENDED in job.annotations
        if effect.ends:
            require(is_ours, f"B7: {effect.name} goes on, and others have suspended it")
            return
        require(not job.is_suspended, f"B7: {effect.name} is suspended twice")
        pods = self._has_no_node(life, effect)
        require(any(map(goes, pods)), f"B7: {effect.name} is suspended, none of {pods} goes back")
        key = GangKey(effect.namespace, effect.name, JOB.source, effect.uid)
        before = life.given_back.setdefault(key, frozenset(pod.uid for pod in pods))
        is_first = before.issuperset(pod.uid for pod in pods if goes(pod))
        require(is_first, f"B7: {effect.name} is suspended again")

    def _has_no_node(self, life: Life, effect: Suspend) -> list[PodRecord]:
        key = GangKey(effect.namespace, effect.name, JOB.source, effect.uid)
        pods = [each for each in members_of(life, key) if is_live(each)]
        bound = [each.name for each in pods if each.node]
        require(not bound, f"B7: {effect.name} is suspended, and {bound} run")
        return pods

    def _is_ungated_whole(self, life: Life, ungate: Ungate) -> None:
        """B6; of a gang without a birth that is judged as it starts."""
        key = key_of(life, ungate.uid)
        known = None if key is None else life.births.get(key)
        if key is None or known is None or not known.starts_whole:
            return
        gang = life.engine.gangs.by_key[key]
        there = len(members_of(life, key))
        there += sum(uid in life.engine.unseen for uid in gang.members)
        if gang.birth is not None and gang.membership.spec is not None:
            needed = min(gang.membership.spec.pods, known.pods)
            what = f"B6: {ungate.name} is ungated, {there} of {needed} pods of {key} exist"
            require(there >= needed, what)

    def took(self, corral: Corral, life: Life) -> None:
        """B2, B3. Raises: Violation."""
        gangs = life.engine.gangs.by_key
        for key in [key for key in life.given_back if key in gangs and gangs[key].running]:
            del life.given_back[key]
        for key, known in list(life.births.items()):
            gang = gangs.get(key)
            if gang is None or gang.number != known.number or gang.birth is None:
                del life.births[key]
                is_over = self.clock.now >= known.moved_at + corral.settings.born_seconds
                self._note_end(life, key, gang, known, is_over=is_over)
        for key in life.engine.births._open:
            gang = gangs.get(key)
            if gang is not None and gang.birth is not None:
                self._follow(corral, life, gang)

    def _note_end(
        self, life: Life, key: GangKey, gang: Gang | None, known: OpenBirth, *, is_over: bool
    ) -> None:
        """Remember a gang that was not whole in time."""
        if gang is None or gang.number != known.number:
            is_whole = known.most_present > 0  # its pods came, and have gone
            is_failed = not is_whole and is_over  # else its topology has gone, or a node
        else:
            pods, spec = members_of(life, key), gang.membership.spec
            is_whole = spec is None or len(pods) >= min(spec.pods, known.pods)
            is_whole = is_whole or not known.starts_whole
            is_whole = is_whole or any(not is_live(pod) for pod in pods) or gang.has_started
            is_failed = not is_whole
        self.hits.hit("W born whole" if is_whole else "F22 not whole")
        if is_failed:
            life.births_failed[key] = self.clock.now

    def _follow(self, corral: Corral, life: Life, gang: Gang) -> None:
        key, now = gang.key, self.clock.now
        there = len(members_of(life, key))
        known = life.births.get(key)
        if known is None:
            assert gang.birth is not None
            self.hits.hit("W birth")
            spec = gang.membership.spec
            pods = 1 if spec is None else spec.pods
            known = life.births[key] = OpenBirth(gang.number, gang.birth.starts_whole, pods, now)
        if there > known.most_present:
            known.most_present, known.moved_at = there, now
        self._counts(gang)
        since = max(known.moved_at + corral.settings.born_seconds, life.slept_until)
        require(
            now <= since + corral.tick_seconds + SLACK,
            f"B3: {list(gang.placeholders)} of {key} have places, its last pod came"
            f" {now - known.moved_at:.1f} s ago",
        )

    def _counts(self, gang: Gang) -> None:
        """B2."""
        spec = gang.membership.spec
        if spec is None:
            return
        places = gang.placeholders
        # A pod on a node that failed still runs when another place is held for its replacement.
        beside = {uid for uid, each in places.items() if each.is_spare or each.instead_of}
        held = [uid for uid in gang.plan.nodes if uid not in beside]
        runs = [uid for uid in gang.running if uid not in gang.plan.nodes]
        require(
            len(held) + len(runs) <= spec.pods,
            f"B2: {held} of {gang.key} have places and {len(runs)} run of {spec.pods} pods",
        )
