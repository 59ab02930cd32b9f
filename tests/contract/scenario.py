"""A scenario file, read and checked: nodes, what is done to the cluster, and what must come of it.

    title: a sentence
    levels: [block, rack]                      widest first, as the paths of the nodes have them
    nodes: |
      b1/r1/n1 gpu=8 cpu=64                    path, then what the node offers
      b1/r1/n2 gpu=8 cpu=64 | gpu=4 | cpu=2    …and the pods that run there before anything else
      b1/r1/n3 gpu=8 closed                    cordoned; a node without a path has no labels
    steps:
    - {job: train, pods: 8, requests: {gpu: 4}, required: rack}
    - {group: late, pods: 8, members: 0-6, preferred: rack}      # 7 pods of a group of 8
    - {pod: plain, requests: {gpu: 1}}                           # nothing asked, no gang
    - {pod: queued, requests: {gpu: 1}, queue: team}             # a gang of one
    - {delete: [filler-n2-0]}
    - {until: late, told: waits until all 8, within: 10}         # go on when that is so
    expect:
      train: {bound: 8, rack: [b1/r2]}         pods bound, and the domains they are in
      late: {bound: 0, told: …, event: …}      what its waiting pods are told; an event of Corral's

A key that is not known here is an error. `gated` is the same file with every gang behind the gate
that the webhook would have added: who waits is then never asked for, so kube-scheduler tells its
pods nothing but that they are gated, and the events say why. `behind_webhook` expects the same of
the file as it is, for a world where a real webhook adds that gate.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeGuard

import yaml

from tests.cluster import BLOCK, GPU, HOSTNAME, RACK, Object, Objects, job, node, pod
from tests.workloads import QUEUE, asking, behind_gate, is_gang, member

SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("*.yaml"))

LEVELS = {
    "zone": "topology.kubernetes.io/zone",
    "block": BLOCK,
    "rack": RACK,
    "hostname": HOSTNAME,
}
RESOURCES = {"gpu": GPU}
ANOTHER_SCHEDULER = "another"
GATED = "Scheduling is blocked due to non-empty scheduling gates"  # the API server's own words
NEEDS_NODES = "needs nodes: "  # Corral's, on gated pods for which no node that is there will do

Amounts = Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class Node:
    """A node, and what the pods that run there from the start ask for."""

    path: tuple[str, ...]
    amounts: Amounts
    fillers: tuple[Amounts, ...]
    is_closed: bool = False

    @property
    def name(self) -> str:
        return self.path[-1]

    def filler_pods(self) -> Objects:
        return [
            pod(f"filler-{self.name}-{at}", scheduler=ANOTHER_SCHEDULER, requests=_long(amounts))
            for at, amounts in enumerate(self.fillers)
        ]


@dataclass(frozen=True, slots=True)
class Expectation:
    """What must come true of one workload; None and {} ask nothing.

    `told`: part of what every pod of it that is not bound is told. `event`: part of an event of
    Corral's about it. `domains`: level -> the paths of the domains its pods are in. `within`: in
    seconds.
    """

    name: str
    bound: int | None = None
    told: str | None = None
    event: str | None = None
    domains: Mapping[str, Sequence[str]] = field(default_factory=dict)
    within: float = 20.0


@dataclass(frozen=True, slots=True)
class Create:
    """Objects to create, one after the other; `gang` is what they make up, or the pod's name."""

    gang: str
    objects: tuple[Object, ...]


@dataclass(frozen=True, slots=True)
class Delete:
    """Pods to delete, by name."""

    pods: tuple[str, ...]


Step = Create | Delete | Expectation


@dataclass(frozen=True, slots=True)
class Scenario:
    """One file."""

    title: str
    level_names: tuple[str, ...]
    nodes: tuple[Node, ...]
    steps: tuple[Step, ...]
    expect: tuple[Expectation, ...]

    @property
    def levels(self) -> tuple[str, ...]:
        """Label keys, widest first."""
        return tuple(LEVELS[name] for name in self.level_names)

    def node_objects(self) -> Objects:
        return [
            node(
                one.name,
                labels=dict(zip(self.levels, one.path[:-1], strict=False)),
                gpus=int(one.amounts.get("gpu", 0)),
                cpu=str(one.amounts.get("cpu", 64)),
                is_unschedulable=one.is_closed,
            )
            for one in self.nodes
        ]

    @property
    def pods_in_gangs(self) -> int:
        """How many pods of gangs its steps create, those of Jobs among them."""
        return sum(
            thing["spec"]["parallelism"] if thing["kind"] == "Job" else 1
            for step in self.steps
            if isinstance(step, Create)
            for thing in step.objects
            if is_gang(thing)
        )

    def domain_of(self, level: str) -> dict[str, str]:
        """Node name -> the path of its domain at the level called that; only labelled nodes."""
        depth = (*self.level_names, "hostname").index(level) + 1
        labelled = [one for one in self.nodes if len(one.path) > len(self.level_names)]
        return {one.name: "/".join(one.path[:depth]) for one in labelled}


def load(path: Path) -> Scenario:
    """The scenario in a file.

    Raises: KeyError, TypeError, ValueError for what is not understood.
    """
    text = yaml.safe_load(path.read_text(encoding="utf-8"))
    return _scenario(**text)


def gated(scenario: Scenario) -> Scenario:
    """The same with every gang behind our gate; all is expected but what its waiting pods read."""
    expected = behind_webhook(scenario)
    steps = tuple(
        Create(step.gang, tuple(behind_gate(thing) for thing in step.objects))
        if _is_of_gang(step)
        else step
        for step in expected.steps
    )
    return replace(expected, steps=steps)


def behind_webhook(scenario: Scenario) -> Scenario:
    """The same manifests, where whoever lets them in puts every gang behind our gate."""
    gangs = {step.gang for step in scenario.steps if _is_of_gang(step)}

    def as_gated(wanted: Expectation) -> Expectation:
        is_told = wanted.told is not None and wanted.name in gangs
        return replace(wanted, told=GATED) if is_told else wanted

    return replace(
        scenario,
        title=f"{scenario.title} (gated)",
        steps=tuple(
            as_gated(one) if isinstance(one, Expectation) else one for one in scenario.steps
        ),
        expect=tuple(as_gated(one) for one in scenario.expect),
    )


def without(scenario: Scenario, names: Collection[str]) -> Scenario:
    """The same as if these workloads were never created, nor anything expected of them."""

    def is_other(one: Step) -> bool:
        match one:
            case Create(name) | Expectation(name):
                return name not in names
        return True

    return replace(
        scenario,
        steps=tuple(step for step in scenario.steps if is_other(step)),
        expect=tuple(wanted for wanted in scenario.expect if is_other(wanted)),
    )


def _is_of_gang(step: Step) -> TypeGuard[Create]:
    return isinstance(step, Create) and is_gang(step.objects[0])


def _scenario(
    title: str,
    levels: Sequence[str],
    nodes: str,
    steps: Sequence[Mapping[str, Any]],
    expect: Mapping[str, Mapping[str, Any]],
) -> Scenario:
    return Scenario(
        title,
        tuple(levels),
        tuple(_node(line) for line in nodes.splitlines() if line.strip()),
        tuple(_step(**step) for step in steps),
        tuple(_expectation(name, **wanted) for name, wanted in expect.items()),
    )


def _node(line: str) -> Node:
    head, *fillers = line.split("|")
    path, *words = head.split()
    amounts = _amounts([word for word in words if word != "closed"])
    return Node(
        tuple(path.split("/")),
        amounts,
        tuple(_amounts(filler.split()) for filler in fillers),
        is_closed="closed" in words,
    )


def _amounts(words: Sequence[str]) -> dict[str, str | int]:
    return dict(word.split("=", 1) for word in words)  # type: ignore[misc]


def _step(**step: Any) -> Step:
    verb, name = next(iter(step.items()))
    rest = {key: value for key, value in step.items() if key != verb}
    match verb:
        case "job":
            return Create(name, (_job(name, **rest),))
        case "group":
            return Create(name, _group(name, **rest))
        case "pod":
            return Create(name, (_pod(name, **rest),))
        case "delete":
            return Delete(tuple(name), **rest)
        case "until":
            return _expectation(name, **rest)
    raise ValueError(f"no step is called {verb!r}")


def _job(name: str, *, pods: int, requests: Amounts, queue: str = "", **asked: Any) -> Object:
    return job(
        name,
        pods=pods,
        requests=_long(requests),
        labels=_labels(queue),
        annotations=_annotations(**asked),
    )


def _group(
    name: str,
    *,
    pods: int,
    requests: Amounts,
    members: str | int | None = None,
    total: str | None = None,
    **asked: Any,
) -> tuple[Object, ...]:
    first, _, last = str(f"0-{pods - 1}" if members is None else members).partition("-")
    annotations, amounts = _annotations(**asked), _long(requests)
    return tuple(
        member(
            name,
            number,
            pods if total is None else total,
            requests=amounts,
            annotations=annotations,
        )
        for number in range(int(first), int(last or first) + 1)
    )


def _pod(name: str, *, requests: Amounts, scheduler: str = "corral", queue: str = "") -> Object:
    return pod(name, requests=_long(requests), scheduler=scheduler, labels=_labels(queue))


def _labels(queue: str) -> dict[str, str]:
    return {QUEUE: queue} if queue else {}


def _annotations(
    *,
    required: str | None = None,
    preferred: str | None = None,
    unconstrained: bool = False,
    annotations: Mapping[str, str] | None = None,
) -> dict[str, str]:
    asked = asking(
        required=required and LEVELS.get(required, required),
        preferred=preferred and LEVELS.get(preferred, preferred),
        unconstrained=unconstrained,
    )
    return asked | dict(annotations or {})


def _expectation(name: str, **wanted: Any) -> Expectation:
    domains = {level: sorted(wanted.pop(level)) for level in LEVELS if level in wanted}
    return Expectation(name, domains=domains, **wanted)


def _long(amounts: Amounts) -> dict[str, str | int]:
    return {RESOURCES.get(name, name): amount for name, amount in amounts.items()}
