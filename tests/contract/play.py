"""Plays a scenario over plain HTTP, against anything that answers like an API server.

It knows nothing of Corral but what a user sees: where pods run, what they are told, and events.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.cluster import Cluster, Object, Objects
from tests.contract.scenario import (
    ANOTHER_SCHEDULER,
    GATED,
    NEEDS_NODES,
    Create,
    Delete,
    Expectation,
    Scenario,
)
from tests.workloads import GROUP

# Nobody else tells about these pods but the Job controller, about its Job.
SCHEDULER_REASONS = frozenset({"FailedScheduling", "Scheduled", "Preempted"})


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of every workload, the same in every world.

    placements: gang -> the nodes of its bound pods, sorted. bound: ordinary pod -> whether it is
    bound. told: workload -> what kube-scheduler says on its pods that are not bound.
    """

    placements: dict[str, list[str]]
    bound: dict[str, bool]
    # How many nodes a sentence counts depends on how far others were when the pod was last tried.
    told: dict[str, list[str]] = field(compare=False)


def play(scenario: Scenario, cluster: Cluster) -> Outcome:
    """Does what the scenario says and returns what came of it.

    Raises: AssertionError naming the first expectation that did not come true in its time, and
        what is there instead; Refused.
    """
    _prepare(scenario, cluster)
    for step in scenario.steps:
        match step:
            case Create(_, objects):
                for thing in objects:
                    cluster.create(thing)
            case Delete(pods):
                for name in pods:
                    cluster.delete("Pod", name)
            case Expectation():
                _wait_for(step, scenario, cluster)
    for wanted in scenario.expect:
        _wait_for(wanted, scenario, cluster)
    pods, events = _look(cluster)
    for wanted in scenario.expect:  # all of it still holds, now that the last one has come true
        problem = _unmet(wanted, scenario, pods, events)
        assert not problem, problem
    return _outcome(pods)


def _prepare(scenario: Scenario, cluster: Cluster) -> None:
    cluster.create_all(scenario.node_objects())
    for node in scenario.nodes:
        for filler in node.filler_pods():
            cluster.create(filler)
            cluster.bind(filler["metadata"]["name"], node.name)


def _look(cluster: Cluster) -> tuple[Objects, Objects]:
    return cluster.list("Pod", "default"), cluster.list("Event", "default")


def _wait_for(wanted: Expectation, scenario: Scenario, cluster: Cluster) -> None:
    problem = ""

    def is_met() -> bool:
        nonlocal problem
        problem = _unmet(wanted, scenario, *_look(cluster))
        return not problem

    try:
        cluster.wait(is_met, wanted.within)
    except TimeoutError as late:
        raise AssertionError(f"after {wanted.within:g} s {problem}") from late


def _unmet(wanted: Expectation, scenario: Scenario, pods: Objects, events: Objects) -> str:
    """What is not as it should be, in one sentence; "" when all of it is."""
    mine = [pod for pod in pods if workload_of(pod) == wanted.name]
    nodes = sorted(pod["spec"]["nodeName"] for pod in mine if pod["spec"].get("nodeName"))
    said = {pod["metadata"]["name"]: text for pod, text in waiting(mine)}
    if wanted.bound is not None and len(nodes) != wanted.bound:
        return f"{wanted.name} has {len(nodes)} of {wanted.bound} pods bound: {nodes}; told: {said}"
    is_told = bool(said) and all(_says(text, wanted.told or "") for text in said.values())
    if wanted.told is not None and not is_told:
        return f"not every pod of {wanted.name} is told {wanted.told!r}: {said}"
    if wanted.event is not None:
        texts = list(_said_by_corral(wanted.name, events))
        if not any(wanted.event in text for text in texts):
            return f"no event about {wanted.name} says {wanted.event!r}: {texts}"
    for level, domains in wanted.domains.items():
        domain_of = scenario.domain_of(level)
        found = sorted({domain_of.get(node, "no domain") for node in nodes})
        if found != list(domains):
            return f"{wanted.name} is in {level} {found}, not {list(domains)}"
    return ""


def _says(text: str, wanted: str) -> bool:
    """Whether a pod is told that; one behind the gate may be told by then that it needs nodes."""
    return wanted in text or (wanted == GATED and NEEDS_NODES in text)


def workload_of(pod: Object) -> str:
    """The name of the pod's group, else of the Job that owns it, else its own."""
    metadata = pod["metadata"]
    owners = [owner["name"] for owner in metadata.get("ownerReferences", [])]
    group = metadata.get("annotations", {}).get(GROUP)
    return group or (owners[0] if owners else metadata["name"])


def waiting(pods: Objects) -> list[tuple[Object, str]]:
    """The pods that are not bound, each with what kube-scheduler says on it; "" for nothing yet."""
    return [(pod, told(pod)) for pod in pods if not pod["spec"].get("nodeName")]


def told(pod: Object) -> str:
    """Why kube-scheduler has not bound the pod, as it says itself."""
    return "".join(
        condition.get("message", "")
        for condition in pod.get("status", {}).get("conditions", [])
        if condition["type"] == "PodScheduled" and condition["status"] == "False"
    )


def _said_by_corral(workload: str, events: Objects) -> Iterator[str]:
    for event in events:
        about = event["involvedObject"]["name"]
        is_ours = event["reason"] not in SCHEDULER_REASONS
        if is_ours and (about == workload or about.startswith(f"{workload}-")):
            yield event["message"]


def _outcome(pods: Objects) -> Outcome:
    ours = [pod for pod in pods if pod["spec"]["schedulerName"] != ANOTHER_SCHEDULER]
    placements: dict[str, list[str]] = {}
    bound: dict[str, bool] = {}
    for pod in ours:
        name, node = workload_of(pod), pod["spec"].get("nodeName", "")
        if name == pod["metadata"]["name"]:
            bound[name] = bool(node)
        else:
            placements.setdefault(name, []).extend([node] if node else [])
    said: dict[str, set[str]] = {}
    for pod, text in waiting(ours):
        said.setdefault(workload_of(pod), set()).add(text)
    return Outcome(
        {name: sorted(nodes) for name, nodes in placements.items()},
        bound,
        {name: sorted(texts) for name, texts in said.items()},
    )
