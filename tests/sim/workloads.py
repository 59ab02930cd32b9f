"""Who creates pods: controllers of workloads, drivers, and people who make groups of pods.

A workload wants a number of live pods and makes those that are missing, as its controller would;
it looks at the API server's truth, a moment late. What the kinds are is in `kinds.py`, what their
controllers write in `owners.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from random import Random
from typing import TYPE_CHECKING

import msgspec

from app.dialects.corral import GATE, MANAGED
from app.dialects.kueue.pod_groups import FAST, SPARES
from app.dialects.spec import GangKey
from app.dialects.workloads import Template
from app.kube.core.objects import PodRecord
from tests.records import SLICE_LAYERS, SLICE_LEVEL, pod
from tests.sim import kinds, owners
from tests.sim.api import ApiServer
from tests.sim.budgets import APP
from tests.sim.clock import Clock, History
from tests.sim.faults import Hits
from tests.sim.kinds import Workload
from tests.sim.kube_scheduler import SCHEDULER
from tests.sim.kubelets import Kubelets

if TYPE_CHECKING:
    from tests.sim.born import Webhook

FOREIGN_GATE = "example.com/quota"


class Workloads:
    """All of them, and the kubelets that run their pods."""

    def __init__(
        self, clock: Clock, api: ApiServer, rng: Random, history: History, hits: Hits
    ) -> None:
        self.all: dict[str, Workload] = {}
        self.of_uid: dict[str, Workload] = {}
        self.gated_share = 0.0
        self.failing_share = 0.0
        self.apps: tuple[str, ...] = ()  # of which each workload is one, where budgets count
        self.owners_of: dict[str, owners.Owners] = {}  # by kind, in worlds that have such
        self.quota_share = 0.1  # of gated pods that have somebody else's gate as well
        self._clock, self._api, self._rng = clock, api, rng
        self._history, self._hits = history, hits
        self.webhook: Webhook | None = None  # which new pods come by, in worlds that have it
        self._creating: dict[tuple[str, int], None] = {}  # names and epochs, on their way there
        self._names = 0
        self._made: dict[str, None] = {}  # names that some pod has had
        self.kubelets = Kubelets(clock, api, rng, history, self._seconds_of)

    def _seconds_of(self, uid: str) -> float | None:
        workload = self.of_uid.get(uid)
        return None if workload is None else workload.seconds

    def _owners(self, workload: Workload) -> owners.Owners:
        return self.owners_of.get(workload.kind, owners)

    # -- making them ---------------------------------------------------------------------------

    def create(self, most_pods: int, most_gpus: int) -> Workload:
        """A new workload of a random kind."""
        workload = kinds.draw(self._rng, most_pods, most_gpus, self.gated_share)
        workload.name = self.new_name(workload.kind)
        workload.fails = workload.is_gang and self._rng.random() < self.failing_share
        self.begin(workload)
        return workload

    def new_name(self, kind: str) -> str:
        """A name that no workload has had."""
        self._names += 1
        return f"{kind[0]}{self._names}"

    def begin(self, workload: Workload) -> None:
        """Have a workload from now on."""
        self.all[workload.name] = workload
        if self.apps:
            workload.app = self._rng.choice(self.apps)
        for kind in _counted(workload):
            self._hits.hit(kind)
        self._begin(workload)

    def _begin(self, workload: Workload) -> None:
        """Make the workload's objects, its pods one after another."""
        workload.names = {}
        workload.uids = {}
        workload.is_over = False
        self._history.say(
            f"create {workload.kind} {workload.name}: {workload.declared} pods"
            f" {workload.annotations} {'gated' if workload.is_gated else ''}"
        )
        workload.made, workload.ended = {}, 0
        self._owners(workload).create(self._api, workload)
        index = 0
        for template in workload.templates:
            for _ in range(template.pods):
                workload.names[f"{workload.name}-{index}"] = template
                index += 1
        epoch = workload.epoch
        for name in [name for name in workload.names if not workload.awaits(name)]:
            self._clock.after(
                self._rng.uniform(0.0, 2.0), partial(self._make, workload, name, epoch)
            )
        for part in [each.part for each in workload.templates[1:] if workload.kind == "jobset"]:
            self._clock.after(
                self._rng.uniform(0.0, 3.0), partial(self._make_job, workload, part, epoch)
            )
        self._clock.after(3.0, lambda: self._reconcile(workload, epoch))

    def _make_job(self, workload: Workload, part: str, epoch: int) -> None:
        if not workload.is_over and workload.epoch == epoch:
            owners.create_job(self._api, workload, part)

    def _make(self, workload: Workload, name: str, epoch: int) -> None:
        is_wanted = not workload.is_over and workload.epoch == epoch and name in workload.names
        if not is_wanted or name in self._api.pods:
            return
        if not self._owners(workload).may_make(self._api, workload, workload.names[name]):
            return
        if self.webhook is not None:
            self._create(self.webhook, workload, name, epoch)
            return
        made = self._new_pod(workload, name)
        if workload.is_gated:
            made = _gated(made, FOREIGN_GATE if self._rng.random() < self.quota_share else "")
        self._store(workload, made)

    def _create(self, webhook: Webhook, workload: Workload, name: str, epoch: int) -> None:
        """Have a pod created by way of Corral's webhook, unless that is under way."""
        if (name, epoch) in self._creating or webhook.is_held_back(workload, name):
            return
        self._creating[name, epoch] = None

        def done(made: PodRecord | None) -> None:
            del self._creating[name, epoch]
            is_wanted = not workload.is_over and workload.epoch == epoch and name in workload.names
            is_wanted = is_wanted and not owners.is_suspended(self._api, workload)
            if made is not None and is_wanted and name not in self._api.pods:
                self._store(workload, made)

        made = self._new_pod(workload, name)
        if workload.is_gang and self._rng.random() < self.quota_share:
            made = msgspec.structs.replace(made, gates=(*made.gates, FOREIGN_GATE))
        webhook.create(workload, made, done)

    def _new_pod(self, workload: Workload, name: str) -> PodRecord:
        """The pod as its controller makes it: it has no uid yet."""
        template = workload.names[name]
        annotations, labels, owner = self._owners(workload).said_on(workload, name, template)
        if workload.app:
            labels = {**labels, APP: workload.app}
        made = pod(
            name,
            gpus=template.gpus,
            cpu=template.cpu,
            annotations=annotations,
            labels=labels,
            owner=owner,
            scheduler=SCHEDULER,
            priority=workload.priority_of(name),
            shape=template.shape,
        )
        made = msgspec.structs.replace(made, preempts=workload.preempts)
        return self._owners(workload).as_created(workload, made)

    def _store(self, workload: Workload, made: PodRecord) -> None:
        name, uid = made.name, self._api.new_uid()
        if name in self._made:
            self._hits.hit("F4 same name")
        self._made[name] = workload.made[name] = None
        if FOREIGN_GATE in made.gates:
            self._clock.after(self._rng.uniform(1.0, 10.0), lambda: self._drop_gate(name, uid))
        self._register(workload, uid)
        created = self._clock.wall_time()
        self._api.create("Pod", msgspec.structs.replace(made, uid=uid, created=created))

    def _register(self, workload: Workload, uid: str) -> None:
        workload.uids[uid] = None
        self.of_uid[uid] = workload

    def lacks_volume(self, waiting: PodRecord) -> bool:
        """Whether kube-scheduler waits for something of the pod's that we know nothing of."""
        workload = self.of_uid.get(waiting.uid)
        if workload is None or workload.lacks_volume != "first":
            return workload is not None and bool(workload.lacks_volume)
        return waiting.name.endswith("-0")

    def fails(self, key: GangKey) -> bool:
        """Whether our own search for this gang raises."""
        workload = self.all.get(key.name.partition("-")[0])
        return workload is not None and workload.fails

    def is_hopeless(self, waiting: PodRecord) -> bool:
        """Whether the pod cannot start, and nobody is to blame for that here."""
        workload = self.of_uid.get(waiting.uid)
        return self.lacks_volume(waiting) or (workload is not None and workload.fails)

    def _drop_gate(self, name: str, uid: str) -> None:
        found = self._api.pods.get(name)
        if found is not None and found.uid == uid:
            gates = tuple(gate for gate in found.gates if gate != FOREIGN_GATE)
            self._api.change("Pod", name, gates=gates)

    # -- their controllers ---------------------------------------------------------------------

    def live_pods(self, workload: Workload) -> list[PodRecord]:
        """Its pods that the API server has and that have not ended."""
        return [
            found
            for found in self._api.pods.values()
            if found.uid in workload.uids and not found.is_finished
        ]

    def _reconcile(self, workload: Workload, epoch: int) -> None:
        """Make what is missing; tell the Job's status; end what has succeeded throughout."""
        if workload.is_over or workload.epoch != epoch:
            return
        pods = [found for found in self._api.pods.values() if found.uid in workload.uids]
        if owners.is_suspended(self._api, workload):
            self._delete_active(workload, pods)
            pods = []
        self._owners(workload).tell_status(self._api, workload, pods)
        succeeded = sum(found.phase == "Succeeded" for found in pods)
        if max(succeeded, workload.ended) >= workload.declared:
            self._hits.hit("F12 completed")
            self._clock.after(self._rng.uniform(0.0, 10.0), lambda: self._end(workload, epoch))
            return
        for found in pods:
            # The pods of a StatefulSet never end for good.
            if found.phase == "Failed" or (found.is_finished and workload.kind == "statefulset"):
                workload.ended += found.phase == "Succeeded"
                self._api.remove("Pod", found.name)
        for name in workload.names:
            is_wanted = workload.replaces or name not in workload.made
            if is_wanted and name not in self._api.pods and self._may_be_made(workload, name):
                self._clock.after(
                    self._rng.uniform(0.1, 1.0), partial(self._make, workload, name, epoch)
                )
        self._clock.after(1.0, lambda: self._reconcile(workload, epoch))

    def _delete_active(self, workload: Workload, pods: Iterable[PodRecord]) -> None:
        """As the controller of a Job that is suspended; it makes them again when it goes on."""
        for found in pods:
            if not found.is_finished:
                workload.made.pop(found.name, None)
                self._api.remove("Pod", found.name)

    def _may_be_made(self, workload: Workload, name: str) -> bool:
        awaited = workload.awaits(name)
        found = self._api.pods.get(awaited)
        return not awaited or (found is not None and found.phase == "Running")

    def _end(self, workload: Workload, epoch: int) -> None:
        if not workload.is_over and workload.epoch == epoch:
            self.delete(workload)

    def delete(self, workload: Workload) -> None:
        """Delete the workload and all its pods."""
        self._history.say(f"delete {workload.name}")
        workload.is_over = True
        self._owners(workload).remove(self._api, workload)
        for found in list(self._api.pods.values()):
            if found.uid in workload.uids and not found.is_terminating:
                self.delete_pod(found)
        self.all.pop(workload.name, None)

    def recreate(self, workload: Workload) -> None:
        """The same again under the same name, as soon as the names are free."""
        self.delete(workload)
        workload.epoch += 1

        def begin() -> None:
            if any(name in self._api.pods for name in workload.names):
                self._clock.after(0.5, begin)
            elif workload.name not in self.all:
                self.all[workload.name] = workload
                self._begin(workload)

        self._clock.after(self._rng.uniform(0.0, 2.0), begin)

    def delete_pod(self, found: PodRecord) -> None:
        """As anybody may."""
        self._api.delete_pod(found.name, found.uid, self._rng.uniform(0.2, 3.0))

    def resize(self, workload: Workload) -> None:
        """Another parallelism for a Job: more pods, or the last ones deleted."""
        declared = max(1, workload.declared + self._rng.choice((-1, 1)))
        if declared == workload.declared:
            return
        self._history.say(f"resize {workload.name}: {workload.declared} to {declared}")
        workload.declared = declared
        workload.resized_at = self._clock.now
        templates = (Template("", declared, {}),)
        self._api.change("Job", workload.name, templates=templates, completions=declared)
        names = list(workload.names)
        template = workload.templates[0]
        for name in names[declared:]:
            del workload.names[name]
            found = self._api.pods.get(name)
            if found is not None and not found.is_terminating:
                self.delete_pod(found)
        for index in range(len(names), declared):
            workload.names[f"{workload.name}-{index}"] = template

    def add_excess(self, workload: Workload) -> None:
        """One pod more than the group declares."""
        name = f"{workload.name}-x{len(workload.uids)}"
        workload.names[name] = workload.templates[0]
        self._make(workload, name, workload.epoch)

    def add_foreign(self, node: str, gpus: int) -> None:
        """Another scheduler's pod, bound already."""
        self._names += 1
        name = f"f{self._names}"
        uid = self._api.new_uid()
        self._api.create(
            "Pod", pod(name, uid=uid, gpus=gpus, on=node, scheduler="other", phase="Running")
        )
        self._history.say(f"foreign {name} takes {gpus} on {node}")
        seconds = self._rng.uniform(5.0, 60.0)
        self._clock.after(
            seconds, partial(self.kubelets.finish, name, uid, "Succeeded", then_remove=True)
        )


def _gated(made: PodRecord, foreign: str) -> PodRecord:
    """The pod as a webhook that always answers leaves it; `foreign`: another one's gate, or ""."""
    gates = made.gates or ((GATE, foreign) if foreign else (GATE,))
    return msgspec.structs.replace(made, gates=gates, labels={**made.labels, MANAGED: "true"})


def _counted(workload: Workload) -> list[str]:
    """What is counted about a workload that is drawn."""
    found = [f"W {workload.kind}"]
    for key, kind in ((FAST, "W fast"), (SPARES, "W spares"), (SLICE_LEVEL, "W slices")):
        if key in workload.annotations:
            found.append(kind)
    if SLICE_LAYERS in workload.annotations:
        found.append("W slices")
    if workload.is_led:
        found.append("W led")
    if workload.pod_group is not None and workload.pod_group.partitions is not None:
        found.append("W partitions")
    return found
