"""Who creates pods: Jobs, pod groups, drivers that make ordinary pods.

A workload wants a number of live pods and makes those that are missing, as the Job controller or a
driver of a pod group would; both look at the API server's truth, a moment late.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import partial
from random import Random

import msgspec

from app.dialects.corral import GATE, MANAGED
from app.kube.objects import Owner, PodRecord, Shape, Toleration
from tests.records import (
    BLOCK,
    PREFERRED,
    RACK,
    REQUIRED,
    SLICE_LAYERS,
    SLICE_LEVEL,
    SLICE_SIZE,
    UNCONSTRAINED,
    group,
    job,
    pod,
)
from tests.sim.api import ApiServer
from tests.sim.clock import Clock, History
from tests.sim.faults import Hits
from tests.sim.kube_scheduler import SCHEDULER
from tests.sim.kubelets import Kubelets

INDEX = "batch.kubernetes.io/job-completion-index"
FOREIGN_GATE = "example.com/quota"
POOL = "pool"
MAINTENANCE = "maintenance"  # key of the taint that some pods tolerate


ANY_SHAPE = Shape()


@dataclass(frozen=True, slots=True)
class Template:
    """Pods that are alike."""

    pods: int
    gpus: int
    cpu: int
    shape: Shape = ANY_SHAPE


@dataclass(slots=True, eq=False)
class Workload:
    """One gang, or some ordinary pods. `epoch` grows with each re-creation under the same name."""

    name: str
    kind: str  # "group", "job" or "plain"
    templates: tuple[Template, ...]
    annotations: dict[str, str]
    priority: int
    is_gated: bool
    seconds: float  # that each of its pods runs
    declared: int
    replaces: bool = True  # pods that failed or went are made again
    epoch: int = 0
    uids: dict[str, None] = field(default_factory=dict)  # every pod it ever had, this epoch
    names: dict[str, Template] = field(default_factory=dict)  # pods that should be there, by name
    is_over: bool = False
    resized_at: float = -1e9  # when `declared` last changed
    job_uid: str = ""
    lacks_volume: str = ""  # "first" or "all" of its pods: kube-scheduler has no node for them

    @property
    def is_gang(self) -> bool:
        return self.kind != "plain"

    @property
    def required(self) -> str:
        """The level all its pods must be in one domain of, or ""."""
        return self.annotations.get(REQUIRED, "")


class Workloads:
    """All of them, and the kubelets that run their pods."""

    def __init__(
        self, clock: Clock, api: ApiServer, rng: Random, history: History, hits: Hits
    ) -> None:
        self.all: dict[str, Workload] = {}
        self.of_uid: dict[str, Workload] = {}
        self.gated_share = 0.0
        self.wall_offset = 0.0  # of the API server's clock, in seconds
        self._clock, self._api, self._rng = clock, api, rng
        self._history, self._hits = history, hits
        self._names = 0
        self._made: dict[str, None] = {}  # names that some pod has had
        self.kubelets = Kubelets(clock, api, rng, history, self._seconds_of)

    def _seconds_of(self, uid: str) -> float | None:
        workload = self.of_uid.get(uid)
        return None if workload is None else workload.seconds

    # -- making them ---------------------------------------------------------------------------

    def create(self, most_pods: int, most_gpus: int) -> Workload:
        """A new workload of a random kind."""
        rng = self._rng
        self._names += 1
        kind = rng.choice(("group", "group", "job", "job", "plain"))
        size = rng.choice((1, 2, 2, 3, 3, 4, 4, 5, 6, 8))
        templates = self._templates(kind, min(size, most_pods), most_gpus)
        pods = sum(template.pods for template in templates)
        workload = Workload(
            name=f"{kind[0]}{self._names}",
            kind=kind,
            templates=templates,
            annotations=self._wishes(pods) if kind != "plain" else {},
            priority=rng.choice((0, 0, 0, 5, 10)),
            is_gated=kind != "plain" and rng.random() < self.gated_share,
            seconds=rng.uniform(5.0, 60.0),
            declared=pods,
            replaces=rng.random() < 0.8,
            lacks_volume=rng.choice(("first", "all", "all"))
            if kind != "plain" and rng.random() < 0.1
            else "",
        )
        self.all[workload.name] = workload
        self._begin(workload)
        return workload

    def _templates(self, kind: str, size: int, most_gpus: int) -> tuple[Template, ...]:
        rng = self._rng
        gpus = rng.choice([amount for amount in (1, 1, 2, 4, 8) if amount <= most_gpus])
        shape = Shape()
        if rng.random() < 0.15:
            shape = Shape(selector=((POOL, "a"),))
        elif rng.random() < 0.2:
            shape = Shape(tolerations=(Toleration(MAINTENANCE, "Exists", "", ""),))
        if kind == "plain":
            return (Template(rng.randint(1, 3), rng.choice((0, 1, gpus, most_gpus)), 1000, shape),)
        if kind == "group" and size >= 3 and rng.random() < 0.3:
            first = rng.randint(1, size - 1)
            other = rng.choice((0, 1, max(gpus // 2, 1)))
            return (Template(first, gpus, 2000, shape), Template(size - first, other, 500, shape))
        return (Template(size, gpus, 1000, shape),)

    def _wishes(self, pods: int) -> dict[str, str]:
        rng = self._rng
        wish = rng.choice(("rack", "rack", "rack", "block", "prefer", "any", "slices", "layers"))
        level = rng.choice((BLOCK, RACK))
        if wish == "slices" and pods % 2 == 0:
            return {REQUIRED: BLOCK, SLICE_LEVEL: RACK, SLICE_SIZE: "2"}
        if wish == "layers" and pods % 4 == 0:
            layers = [{"topology": BLOCK, "size": 4}, {"topology": RACK, "size": 2}]
            return {SLICE_LAYERS: json.dumps(layers)}
        if wish == "prefer":
            return {PREFERRED: level}
        if wish == "any":
            return {UNCONSTRAINED: "true"}
        return {REQUIRED: BLOCK if wish == "block" else RACK}

    def _begin(self, workload: Workload) -> None:
        """Make the workload's objects, its pods one after another."""
        workload.names = {}
        workload.uids = {}
        workload.is_over = False
        self._history.say(
            f"create {workload.kind} {workload.name}: {workload.declared} pods"
            f" {workload.annotations} {'gated' if workload.is_gated else ''}"
        )
        if workload.kind == "job":
            workload.job_uid = self._api.new_uid()
            record = job(workload.name, workload.declared, completions=workload.declared)
            self._api.create("Job", msgspec.structs.replace(record, uid=workload.job_uid))
        index = 0
        for template in workload.templates:
            for _ in range(template.pods):
                workload.names[f"{workload.name}-{index}"] = template
                index += 1
        epoch = workload.epoch
        for name in workload.names:
            self._clock.after(
                self._rng.uniform(0.0, 2.0), partial(self._make, workload, name, epoch)
            )
        self._clock.after(3.0, lambda: self._reconcile(workload, epoch))

    def _make(self, workload: Workload, name: str, epoch: int) -> None:
        is_wanted = not workload.is_over and workload.epoch == epoch and name in workload.names
        if not is_wanted or name in self._api.pods:
            return
        if name in self._made:
            self._hits.hit("F4 same name")
        self._made[name] = None
        template = workload.names[name]
        uid = self._api.new_uid()
        annotations = dict(workload.annotations)
        labels: dict[str, str] = {}
        owner = None
        if workload.kind == "group":
            annotations = {**group(workload.name, workload.declared), **annotations}
        elif workload.kind == "job":
            owner = Owner("batch/v1", "Job", workload.name, workload.job_uid)
            labels = {INDEX: name.rpartition("-")[2]}
        gates: tuple[str, ...] = (GATE,) if workload.is_gated else ()
        if workload.is_gated and self._rng.random() < 0.1:
            gates = (GATE, FOREIGN_GATE)
            self._clock.after(self._rng.uniform(1.0, 10.0), lambda: self._drop_gate(name, uid))
        if workload.is_gated:
            labels = {**labels, MANAGED: "true"}
        self._register(workload, uid)
        self._api.create(
            "Pod",
            pod(
                name,
                uid=uid,
                gpus=template.gpus,
                cpu=template.cpu,
                annotations=annotations,
                labels=labels,
                gates=gates,
                owner=owner,
                scheduler=SCHEDULER,
                priority=workload.priority,
                shape=template.shape,
                created=self._wall_time(),
            ),
        )

    def _register(self, workload: Workload, uid: str) -> None:
        workload.uids[uid] = None
        self.of_uid[uid] = workload

    def lacks_volume(self, waiting: PodRecord) -> bool:
        """Whether kube-scheduler waits for something of the pod's that we know nothing of."""
        workload = self.of_uid.get(waiting.uid)
        if workload is None or workload.lacks_volume != "first":
            return workload is not None and bool(workload.lacks_volume)
        return waiting.name.endswith("-0")

    def _drop_gate(self, name: str, uid: str) -> None:
        found = self._api.pods.get(name)
        if found is not None and found.uid == uid:
            gates = tuple(gate for gate in found.gates if gate != FOREIGN_GATE)
            self._api.change("Pod", name, gates=gates)

    def _wall_time(self) -> str:
        seconds = int(self._clock.now + self.wall_offset) + 7200
        hours, rest = divmod(seconds, 3600)
        return f"2026-01-01T{hours % 24:02}:{rest // 60:02}:{rest % 60:02}Z"

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
        succeeded = sum(found.phase == "Succeeded" for found in pods)
        record = self._api.objects["Job"].get(workload.name)
        if record is not None and record.succeeded != succeeded:
            self._api.change("Job", workload.name, succeeded=succeeded)
        if succeeded >= workload.declared:
            self._hits.hit("F12 completed")
            self._clock.after(self._rng.uniform(0.0, 10.0), lambda: self._end(workload, epoch))
            return
        for found in pods:
            if found.phase == "Failed":
                self._api.remove("Pod", found.name)
        if workload.replaces:
            for name in workload.names:
                if name not in self._api.pods:
                    self._clock.after(
                        self._rng.uniform(0.1, 1.0),
                        partial(self._make, workload, name, epoch),
                    )
        self._clock.after(1.0, lambda: self._reconcile(workload, epoch))

    def _end(self, workload: Workload, epoch: int) -> None:
        if not workload.is_over and workload.epoch == epoch:
            self.delete(workload)

    def delete(self, workload: Workload) -> None:
        """Delete the workload and all its pods."""
        self._history.say(f"delete {workload.name}")
        workload.is_over = True
        if workload.name in self._api.objects["Job"]:
            self._api.remove("Job", workload.name)
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
        self._api.change("Job", workload.name, parallelism=declared, completions=declared)
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
