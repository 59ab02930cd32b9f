"""Who makes CompositePodGroups and their PodGroups: each when it comes, before pods or after."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from random import Random

import msgspec

from app.kube.core.objects import Owner, PodRecord
from app.kube.watch.events import Kind
from tests.sim.api import COMPOSITE, NATIVE_GROUP, ApiServer
from tests.sim.clock import Clock, History
from tests.sim.composite.tree import name_of, part_of
from tests.sim.faults import Hits
from tests.sim.kinds import Template, Workload
from tests.sim.objects import Json, Objects
from tests.sim.owners import Said

AT_ONCE_SHARE = 0.4  # of the objects
LATER_SECONDS, LATE_SECONDS, LATE_SHARE = (0.0, 2.0), (2.0, 10.0), 0.15


class CompositeController:
    """The owner of workloads with a CompositePodGroup."""

    def __init__(
        self,
        clock: Clock,
        api: ApiServer,
        objects: Objects,
        rng: Random,
        history: History,
        hits: Hits,
    ) -> None:
        self._clock, self._api, self._objects = clock, api, objects
        self._rng, self._history, self._hits = rng, history, hits
        self.at_once_share = AT_ONCE_SHARE

    def create(self, _api: ApiServer, made: Workload) -> None:
        """Make its objects, each now or a while later."""
        made.owner_uid = self._api.new_uid()
        for kind, name, _ in wanted(made):
            if self._rng.random() < self.at_once_share:
                self.put(made, made.epoch, kind, name)
                continue
            is_late = self._rng.random() < LATE_SHARE
            seconds = self._rng.uniform(*(LATE_SECONDS if is_late else LATER_SECONDS))
            self._clock.after(seconds, partial(self.put, made, made.epoch, kind, name))

    def put(self, made: Workload, epoch: int, kind: Kind, name: str) -> None:
        """Make one of its objects, if it is not there."""
        if made.is_over or made.epoch != epoch or self._objects.get(kind, name) is not None:
            return
        specs = {(of, its): spec for of, its, spec in wanted(made)}
        if kind == COMPOSITE and any(
            self._objects.get(of, its) is not None for of, its in specs if of != kind
        ):
            self._hits.hit("W composite after groups")
        self._history.say(f"{kind} {name}: {specs[kind, name]}")
        self._objects.create(
            kind, name, metadata={"generation": 1}, spec=specs[kind, name], status={}
        )

    def put_all(self, made: Workload) -> None:
        """All that is missing is there."""
        for kind, name, _ in wanted(made):
            self.put(made, made.epoch, kind, name)

    def change(self, made: Workload) -> None:
        """Write what it requires now into the objects that are there."""
        for kind, name, spec in wanted(made):
            there = self._objects.get(kind, name)
            if there is not None and there["spec"] != spec:
                self._history.say(f"{kind} {name} changes: {spec}")
                metadata = there["metadata"]
                metadata = {**metadata, "generation": metadata["generation"] + 1}
                self._objects.change(kind, name, metadata=metadata, spec=spec)

    def may_make(self, _api: ApiServer, _made: Workload, _template: Template) -> bool:
        return True

    def remove(self, _api: ApiServer, made: Workload) -> None:
        """Delete them."""
        for kind, name, _ in wanted(made):
            self._objects.remove(kind, name)

    def tell_status(self, _api: ApiServer, made: Workload, pods: Iterable[PodRecord]) -> None:
        """It tells nobody."""

    def said_on(self, made: Workload, _name: str, _template: Template) -> Said:
        """What one pod says about where it belongs: nothing but in its spec."""
        return {}, {}, Owner("apps/v1", "ReplicaSet", made.name, made.owner_uid)

    def as_created(self, made: Workload, pod: PodRecord) -> PodRecord:
        """The pod with its spec.schedulingGroup."""
        assert made.composite is not None
        part = made.names[pod.name].part
        (group,) = [at for at in range(len(made.composite.groups)) if part_of(at) == part]
        return msgspec.structs.replace(pod, pod_group=name_of(made.name, group))


def wanted(made: Workload) -> Iterator[tuple[Kind, str, Json]]:
    """(kind, name, spec) of its objects."""
    assert made.composite is not None
    yield COMPOSITE, made.name, made.composite.spec()
    for at, group in enumerate(made.composite.groups):
        spec = {**group.spec(), "parentCompositePodGroupName": made.name}
        yield NATIVE_GROUP, name_of(made.name, at), spec
