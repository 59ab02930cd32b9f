"""What a workload is: its kind, its pods, and what they ask for; drawn at random.

group         plain pods of one group; some are fast: the first pod takes places for all
driver        a group whose first pod declares the others and makes them once it runs
job           a Job's pods
jobset        two Jobs of one JobSet
lws           a LeaderWorkerSet's only group, a leader and its workers
statefulset   one after another, most of them; they run until somebody deletes them
plain         ordinary pods
vcjob         a job of Volcano's, whose pods are made once its PodGroup is Inqueue
podgroup      pods and a PodGroup of Volcano's that a user makes, in any order
vcpods        plain pods, whose PodGroup Volcano's controller makes and then names on them
podcliqueset  pods of one or several PodGangs of Grove's, behind its gate
nativegroup   pods of a PodGroup of scheduling.k8s.io
kaigroup      pods of a PodGroup of KAI's
kaiparts      pods of one whose sub-groups are on different Topologies
composite     pods of PodGroups that are inside a CompositePodGroup

The last eight are drawn in `drawn.py` of `volcano`, `grove`, `native`, `kai` and `composite`, in
seeds that have them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from random import Random
from typing import Any

from app.dialects.kueue.pod_groups import FAST, SPARES
from app.kube.core.objects import Shape, Toleration
from tests.records import BLOCK, PREFERRED, RACK, REQUIRED, SLICE_LAYERS, SLICE_LEVEL, SLICE_SIZE
from tests.records import UNCONSTRAINED as ANYWHERE
from tests.sim.composite.tree import Tree
from tests.sim.grove.pod_clique_set import PodCliqueSet
from tests.sim.kai import tree as kai
from tests.sim.native.pod_group import Policy
from tests.sim.volcano.pod_group import PodGroup

POOL = "pool"
MAINTENANCE = "maintenance"  # key of the taint that some pods tolerate
KINDS = (
    "group", "group", "group", "job", "job", "job", "plain", "plain",
    "driver", "jobset", "lws", "statefulset",
)  # fmt: skip
ANY_SHAPE = Shape()
MOST_USUAL = 8  # pods; where there are larger gangs, they are this share of all workloads
LARGE_SHARE = 0.3
LEAST_HIGH = 100  # priority of pods that others are preempted for; `draw` has none as high
NEVER_SHARE = 0.1  # of those: their preemptionPolicy is Never


@dataclass(frozen=True, slots=True)
class Template:
    """Pods that are alike. `part`: what the workload calls them, where it has several."""

    pods: int
    gpus: int
    cpu: int
    shape: Shape = ANY_SHAPE
    part: str = ""


@dataclass(slots=True, eq=False)
class Workload:
    """One gang, or some ordinary pods. `epoch` grows with each re-creation under the same name."""

    name: str
    kind: str
    templates: tuple[Template, ...]
    annotations: dict[str, str]
    priority: int
    is_gated: bool
    first_priority: int | None = field(default=None, kw_only=True)  # of its first pod, if another
    seconds: float  # that each of its pods runs
    declared: int
    replaces: bool = True  # pods that failed or went are made again
    fails: bool = False  # our search for its places raises
    is_gradual: bool = False  # a pod is only made once another one runs
    is_led: bool = False  # its leader and its workers are one pod set group
    epoch: int = 0
    uids: dict[str, None] = field(default_factory=dict)  # every pod it ever had, this epoch
    names: dict[str, Template] = field(default_factory=dict)  # pods that should be there, by name
    made: dict[str, None] = field(default_factory=dict)  # names of those that were, this epoch
    ended: int = 0  # pods that ended and were made anew, this epoch
    is_over: bool = False
    resized_at: float = -1e9  # when `declared` last changed
    owner_uid: str = ""
    is_owned: bool = False  # ordinary pods that a ReplicaSet makes
    app: str = ""  # label of its pods, by which budgets select them
    pod_group: PodGroup | None = field(default=None, kw_only=True)  # of Volcano's workloads
    pod_clique_set: PodCliqueSet | None = field(default=None, kw_only=True)  # of Grove's
    native: Policy | None = field(default=None, kw_only=True)  # of the PodGroup, if it has one
    composite: Tree | None = field(default=None, kw_only=True)  # of its CompositePodGroup
    kai: kai.Tree | None = field(default=None, kw_only=True)  # of a PodGroup on several Topologies
    failures_left: int | None = None  # pods that may fail before a Job does
    preempts: bool = True  # others may go for its pods
    lacks_volume: str = ""  # "first" or "all" of its pods: kube-scheduler has no node for them

    @property
    def is_gang(self) -> bool:
        return self.kind != "plain"

    @property
    def required(self) -> str:
        """The level all its pods must be in one domain of, or ""."""
        return self.annotations.get(REQUIRED, "")

    def priority_of(self, name: str) -> int:
        """The priority of the pod of this name."""
        if self.first_priority is not None and name.endswith("-0"):
            return self.first_priority
        return self.priority

    def number(self, name: str) -> int:
        """The pod's number among those of its template."""
        number = int(name.rpartition("-")[2])
        for template in self.templates[:-1]:
            if template is self.names[name]:
                break
            number -= template.pods
        return number

    def awaits(self, name: str) -> str:
        """The pod that has to run before this one is made; "": none."""
        if not self.is_gradual or name.endswith("-0"):
            return ""
        before = int(name.rpartition("-")[2]) - 1
        return f"{self.name}-{0 if self.kind == 'driver' else before}"


def draw(rng: Random, most_pods: int, most_gpus: int, gated_share: float) -> Workload:
    """A new workload of a random kind, without a name."""
    kind = rng.choice(KINDS)
    size = min(rng.choice((1, 2, 2, 3, 3, 4, 4, 5, 6, 8)), most_pods)
    if most_pods > MOST_USUAL and rng.random() < LARGE_SHARE:
        size, most_gpus = rng.randint(most_pods // 2, most_pods), 2
    templates = _templates(rng, kind, size, most_gpus)
    pods = sum(template.pods for template in templates)
    is_gang = kind != "plain"
    is_led = kind == "lws" and len(templates) > 1 and rng.random() < 0.5
    is_whole = len(templates) == 1 and kind != "lws"
    return Workload(
        name="",
        kind=kind,
        templates=templates,
        annotations=_annotations(rng, kind, pods if is_whole else 1, is_led) if is_gang else {},
        priority=rng.choice((0, 0, 0, 5, 10)),
        is_gated=is_gang and rng.random() < gated_share,
        seconds=rng.uniform(5.0, 60.0),
        declared=pods,
        replaces=rng.random() < 0.8,
        is_gradual=kind == "driver" or (kind == "statefulset" and rng.random() < 0.7),
        is_led=is_led,
        lacks_volume=rng.choice(("first", "all", "all")) if is_gang and rng.random() < 0.1 else "",
    )


def of_objects(kind: str, templates: tuple[Template, ...], **said: Any) -> Workload:
    """A workload of objects that say what it is, without a name; it runs for long."""
    return Workload(
        name="",
        kind=kind,
        templates=templates,
        annotations={},
        priority=0,
        is_gated=False,
        seconds=1000.0,
        declared=sum(each.pods for each in templates),
        **said,
    )


def drawn_life(rng: Random, made: Workload, gated_share: float) -> Workload:
    """The same workload, of which it is drawn how it goes."""
    made.priority = rng.choice((0, 0, 0, 5, 10))
    made.is_gated = rng.random() < gated_share
    made.seconds = rng.uniform(5.0, 60.0)
    made.replaces = rng.random() < 0.9
    made.lacks_volume = rng.choice(("first", "all")) if rng.random() < 0.05 else ""
    return made


def preemptor(rng: Random, most_gpus: int) -> Workload:
    """Ordinary pods of a priority that no other workload has, without a name."""
    priority = rng.choice((LEAST_HIGH, 1000, 1000))
    made = _ordinary(rng, rng.choice((1, 1, 2, 3)), most_gpus, priority)
    made.preempts = rng.random() >= NEVER_SHARE
    return made


def filler(rng: Random, most_gpus: int) -> Workload:
    """Ordinary pods that take room until a pod of high priority comes, without a name."""
    return _ordinary(rng, rng.randint(1, 4), most_gpus, rng.choice((0, 0, 5)))


def _ordinary(rng: Random, pods: int, most_gpus: int, priority: int) -> Workload:
    gpus = rng.choice((1, most_gpus, most_gpus, max(most_gpus // 2, 1)))
    pool = Shape(selector=((POOL, rng.choice(("a", "b"))),))
    return Workload(
        name="",
        kind="plain",
        templates=(Template(pods, gpus, 1000, rng.choice((ANY_SHAPE, pool))),),
        annotations={},
        priority=priority,
        is_gated=False,
        seconds=rng.uniform(5.0, 60.0),
        declared=pods,
        replaces=rng.random() < 0.5,
    )


def _templates(rng: Random, kind: str, size: int, most_gpus: int) -> tuple[Template, ...]:
    gpus = rng.choice([amount for amount in (1, 1, 2, 4, 8) if amount <= most_gpus])
    shape = Shape()
    if rng.random() < 0.15:
        shape = Shape(selector=((POOL, "a"),))
    elif rng.random() < 0.2:
        shape = Shape(tolerations=(Toleration(MAINTENANCE, "Exists", "", ""),))
    other = rng.choice((0, 1, max(gpus // 2, 1)))
    match kind:
        case "plain":
            most = rng.choice((0, 1, gpus, most_gpus))
            return (Template(rng.randint(1, 3), most, 1000, shape),)
        case "group" if size >= 3 and rng.random() < 0.3:
            first = rng.randint(1, size - 1)
            return (Template(first, gpus, 2000, shape), Template(size - first, other, 500, shape))
        case "driver":
            workers = Template(max(size - 1, 1), gpus, 1000, shape, "workers")
            return (Template(1, other if rng.random() < 0.5 else 0, 500, shape, "driver"), workers)
        case "jobset" if size >= 2:
            workers = Template(size - 1, gpus, 1000, shape, "workers")
            return (Template(1, other, 500, shape, "leader"), workers)
        case "lws" if size >= 2 and rng.random() < 0.6:
            workers = Template(size - 1, gpus, 1000, shape, "worker")
            return (Template(1, other, 500, shape, "leader"), workers)
    return (Template(size, gpus, 1000, shape),)


def _annotations(rng: Random, kind: str, pods: int, is_led: bool) -> dict[str, str]:
    wishes = _wishes(rng, pods)
    if is_led and ANYWHERE in wishes:
        wishes = {PREFERRED: RACK}
    if kind == "group" and rng.random() < 0.3:
        wishes[FAST] = "true"
    if rng.random() < 0.12:
        wishes[SPARES] = rng.choice(("1", "1", "2"))
    return wishes


def _wishes(rng: Random, pods: int) -> dict[str, str]:
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
        return {ANYWHERE: "true"}
    return {REQUIRED: BLOCK if wish == "block" else RACK}
