"""Who makes native PodGroups: before the pods, among them, or seconds after the last one."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from random import Random

import msgspec

from app.kube.core.objects import Owner, PodRecord
from tests.sim.api import ApiServer
from tests.sim.clock import Clock, History
from tests.sim.faults import Hits
from tests.sim.kinds import Template, Workload
from tests.sim.native.pod_group import NATIVE_WORDS, Words
from tests.sim.objects import Json, Objects
from tests.sim.owners import Said

FIRST_SHARE = 0.4  # of PodGroups: they are there before all pods
LATER_SECONDS, LATE_SECONDS, LATE_SHARE = (0.0, 2.0), (2.0, 10.0), 0.25


class PodGroupController:
    """The owner of workloads with a PodGroup, as `owners.py` is that of the others."""

    def __init__(
        self,
        clock: Clock,
        api: ApiServer,
        objects: Objects,
        rng: Random,
        history: History,
        hits: Hits,
        words: Words = NATIVE_WORDS,
    ) -> None:
        self._clock, self._api, self._objects = clock, api, objects
        self._rng, self._history, self._hits, self._words = rng, history, hits, words
        self.first_share = FIRST_SHARE

    def create(self, _api: ApiServer, made: Workload) -> None:
        """Make the PodGroup, now or a while later."""
        made.owner_uid = self._api.new_uid()
        if self._rng.random() < self.first_share:
            self.put(made, made.epoch)
            return
        is_late = self._rng.random() < LATE_SHARE
        seconds = self._rng.uniform(*(LATE_SECONDS if is_late else LATER_SECONDS))
        self._clock.after(seconds, partial(self.put, made, made.epoch))

    def put(self, made: Workload, epoch: int) -> None:
        """Make the PodGroup, if it is not there."""
        is_there = self._objects.get(self._words.kind, made.name) is not None
        if made.is_over or made.epoch != epoch or is_there:
            return
        if any(each.uid in made.uids for each in self._api.pods.values()):
            self._hits.hit("W PodGroup after pods")
        if made.native is not None and made.native.least is None:
            self._hits.hit("W basic")
        self._history.say(f"PodGroup {made.name}: {self.required(made)}")
        metadata = {"generation": 1}
        self._objects.create(
            self._words.kind,
            made.name,
            metadata=metadata,
            spec=self.spec(made),
            status={},
        )

    def change(self, made: Workload) -> None:
        """Write what it requires now into the PodGroup that is there."""
        there = self._objects.get(self._words.kind, made.name)
        if there is not None and there["spec"] != self.spec(made):
            self._history.say(f"PodGroup {made.name} changes: {self.required(made)}")
            generation = there["metadata"]["generation"] + 1
            metadata = {**there["metadata"], "generation": generation}
            self._objects.change(
                self._words.kind, made.name, metadata=metadata, spec=self.spec(made)
            )

    def required(self, made: Workload) -> object:
        """What it requires, as the history has it."""
        return made.native

    def spec(self, made: Workload) -> Json:
        """What it requires, as the PodGroup has it."""
        assert made.native is not None
        return self._words.spec(made.native)

    def may_make(self, _api: ApiServer, _made: Workload, _template: Template) -> bool:
        return True

    def remove(self, _api: ApiServer, made: Workload) -> None:
        """Delete the PodGroup."""
        self._objects.remove(self._words.kind, made.name)

    def tell_status(self, _api: ApiServer, made: Workload, pods: Iterable[PodRecord]) -> None:
        """It tells nobody."""

    def said_on(self, made: Workload, _name: str, _template: Template) -> Said:
        """What one pod says about where it belongs: nothing but in its spec."""
        return {}, {}, Owner("apps/v1", "ReplicaSet", made.name, made.owner_uid)

    def as_created(self, made: Workload, pod: PodRecord) -> PodRecord:
        """The pod with its spec.schedulingGroup."""
        return msgspec.structs.replace(pod, pod_group=made.name)
