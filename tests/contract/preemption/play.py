"""Plays one row of the table and says what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from app.sandbox.apiserver.storage.kinds import NODE, POD
from tests.cluster import BLOCK, HOSTNAME, RACK, Object, Objects, job, node, pod
from tests.contract.preemption.cluster import Cluster, cluster, crew
from tests.contract.preemption.table import (
    Again,
    AtBind,
    BindNominated,
    Bound,
    Budget,
    Cordon,
    Delete,
    Fail,
    Gang,
    Gone,
    Lost,
    Nominate,
    Offer,
    Pass,
    Pods,
    Scenario,
    Steal,
    Step,
    Thing,
    Told,
    Ungate,
)
from tests.workloads import asking, behind_gate, members

PROTECTED = {"app": "protected"}
SETTINGS = {"preempt": "on", "bare_victims": True}  # most of these pods have no controller
START_SECONDS = 30.0  # virtual, as all are
CLASSES = (1, 5, 500, 1000, 2000)  # priorities other than 0
IGNORE = {
    "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}],
}


async def play(scenario: Scenario, folder: Path, *, is_gated: bool) -> None:
    """Do what the row says, and compare what came of it.

    Raises: AssertionError naming what is not as the row has it.
    """
    settings = {**SETTINGS, **scenario.settings}
    async with cluster(folder, **settings) as world:
        _prepare(scenario, world)
        for thing in scenario.before:
            await _step(thing, world, is_gated=is_gated)
            has_begun = partial(_has, world, thing)
            await world.until(has_begun, START_SECONDS, f"the start of {thing}")
        await asyncio.sleep(1.0)  # until Corral has read them
        for step in scenario.then:
            await _step(step, world, is_gated=is_gated, seconds=scenario.within)
        await world.until(
            lambda: _outcome(scenario, world) == _expected(scenario),
            scenario.within,
            f"{_expected(scenario)}, and not {_outcome(scenario, world)}",
        )
        await asyncio.sleep(scenario.quiet)
        assert _outcome(scenario, world) == _expected(scenario)
        assert world.bugs == {}
        placed = world.metric("corral_room_plans_total", result="placed")
        assert world.metric("corral_room_drain_seconds_count") >= placed
        if scenario.searches is not None:
            assert world.searches <= scenario.searches, f"{world.searches} searches"
        said = world.said()
        for text in scenario.told:
            assert any(text in each for each in said), f"none of {said} says {text!r}"


def _prepare(scenario: Scenario, world: Cluster) -> None:
    for priority in CLASSES:
        name = {"metadata": {"name": f"p{priority}"}, "value": priority}
        world.create({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", **name})
    for rack, places in scenario.racks.items():
        for place in range(places):
            labels = {BLOCK: "b1", RACK: rack}
            world.create(node(f"{rack}-{place}", labels=labels, gpus=8))


# -- what is expected ------------------------------------------------------------------------------


def _expected(scenario: Scenario) -> dict[str, object]:
    return {
        "gangs broken": scenario.broken,
        "pods lost": scenario.lost,
        "running": dict(scenario.runs),
        "where": dict(scenario.where),
        "bound to where they never may be": [],
    }


def _outcome(scenario: Scenario, world: Cluster) -> dict[str, object]:
    gangs = {each.name for each in _things(scenario) if isinstance(each, Gang)}
    bound, losses = world.bound, world.losses
    never = [
        (name, on)
        for name, on in world.bindings[world.since :]
        if on == world.nominated.get(scenario.never.get(crew(name), ""))
    ]
    return {
        "gangs broken": len(gangs & losses.keys()),
        "pods lost": losses.total(),
        "running": {name: len(_nodes(bound, name)) for name in scenario.runs},
        "where": {
            name: _common(_nodes(bound, name), is_node="-" in on)
            for name, on in scenario.where.items()
        },
        "bound to where they never may be": never,
    }


def _things(scenario: Scenario) -> Iterator[object]:
    yield from scenario.before
    yield from scenario.then


def _nodes(bound: dict[str, str], name: str) -> list[str]:
    return [on for each, on in bound.items() if crew(each) == name]


def _common(nodes: Iterable[str], *, is_node: bool) -> str:
    """The rack, or the node, that all of these are."""
    found = {on if is_node else on.partition("-")[0] for on in nodes}
    return found.pop() if len(found) == 1 else f"{sorted(found)}"


def _has(world: Cluster, thing: Thing) -> bool:
    """Whether all the pods of it are bound."""
    if isinstance(thing, Budget):
        return True
    pods = len(thing.on) or thing.pods if isinstance(thing, Pods) else thing.pods
    return len(_nodes(world.bound, thing.name)) == pods


# -- what is done ----------------------------------------------------------------------------------


async def _step(step: Step, world: Cluster, *, is_gated: bool, seconds: float = 60.0) -> None:
    match step:
        case Pods() | Gang() | Budget():
            _create(step, world, is_gated=is_gated)
        case Lost(wanted):
            await world.until(lambda: len(world.lost) >= wanted, seconds, f"{wanted} are lost")
        case Bound(name, wanted):
            await world.until(
                lambda: len(_nodes(world.bound, name)) >= wanted,
                seconds,
                f"{wanted} pods of {name} are bound",
            )
        case AtBind(wanted):
            await world.until(
                lambda: world.metric("corral_held_binds") == wanted,
                seconds,
                f"{wanted} members wait at /bind",
            )
        case Told(text):
            await world.until(
                lambda: any(text in each for each in world.said()), seconds, f"it is said: {text}"
            )
        case Pass(passing):
            await asyncio.sleep(passing)
        case Delete(pods):
            world.delete(pods)
        case Gone(pods):
            world.end(pods)
        case Again(name):
            world.make_again(name)
        case Cordon(name):
            on = world.pod(name)["status"]["nominatedNodeName"]
            world.change(NODE, on, {"spec": {"unschedulable": True}})
        case Fail(on):
            ready = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
            world.change(NODE, on, {"status": {"conditions": [ready]}}, "status")
            world.delete([name for name, where in world.bound.items() if where == on])
        case Steal(name, on, grace):
            stolen = Pods(name, on, grace=grace, scheduler="another")
            _create(stolen, world, is_gated=False)
        case Ungate(pods, late):
            faults = world.sandbox.faults
            faults.delay(late, verb="patch", resource="pods", requests=pods)
        case Nominate(name, victim):
            _nominate(world, name, world.bound[victim])
            world.condemn(victim)
            world.preempt(victim)
        case BindNominated(name):
            world.bind(name, world.pod(name)["status"]["nominatedNodeName"])
        case Offer(name, victims):
            await _offer(world, name, victims)


def _create(thing: Pods | Gang | Budget, world: Cluster, *, is_gated: bool) -> None:
    if isinstance(thing, Budget):
        world.create(_budget(thing))
        return
    if thing.remade is not None:
        world.remade[thing.name] = thing.remade
    for each in _pods(thing) if isinstance(thing, Pods) else _gang(thing):
        is_found = each["kind"] == "Pod" and "nodeName" in each["spec"]
        is_member = isinstance(thing, Gang)
        world.create(behind_gate(each) if is_gated and is_member and not is_found else each)


def _pods(thing: Pods) -> Objects:
    spec: dict[str, Any] = {"terminationGracePeriodSeconds": thing.grace}
    if thing.within:
        named = {"key": HOSTNAME, "operator": "In", "values": list(thing.within)}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [named]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        spec["affinity"] = {"nodeAffinity": required}
    made = [
        pod(
            f"{thing.name}-{number}",
            requests=thing.amounts,
            scheduler=thing.scheduler,
            **spec,
            **_priority(thing.priority),
        )
        for number in range(len(thing.on) or thing.pods)
    ]
    for each, on in zip(made, thing.on, strict=False):
        each["spec"]["nodeName"] = on
        if thing.started:
            each["status"] = {"phase": "Running", "startTime": thing.started}
    return made


def _gang(thing: Gang) -> Objects:
    annotations = asking(
        required=thing.required or None,
        preferred=thing.preferred or None,
        unconstrained=not (thing.required or thing.preferred),
    )
    if thing.disruption:
        annotations["corral.dev/disruption"] = thing.disruption
    spec: dict[str, Any] = {
        "requests": thing.amounts,
        "annotations": annotations,
        "labels": PROTECTED if thing.is_protected else {},
        "terminationGracePeriodSeconds": thing.grace,
        **_priority(thing.priority),
    }
    if isinstance(thing.on, str) and thing.on:
        spec["nodeSelector"] = {RACK: thing.on}
    if not thing.preempts:
        spec["preemptionPolicy"] = "Never"
    if thing.job:
        made = job(thing.name, pods=thing.pods, **spec)
        made["spec"]["backoffLimit"] = 6
        if thing.job == "goes_on":
            made["spec"]["podFailurePolicy"] = IGNORE
        return [made]
    pods = members(thing.name, thing.pods, **spec)
    for each, on in zip(pods, () if isinstance(thing.on, str) else thing.on, strict=False):
        each["spec"]["nodeName"] = on
    return pods


def _priority(priority: int) -> dict[str, Any]:
    return {"priorityClassName": f"p{priority}"} if priority else {}


def _budget(thing: Budget) -> Object:
    healthy = {"currentHealthy": 4, "desiredHealthy": 4 - thing.allowed, "expectedPods": 4}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": thing.name, "namespace": "default"},
        "spec": {"maxUnavailable": thing.allowed, "selector": {"matchLabels": PROTECTED}},
        "status": {"disruptionsAllowed": thing.allowed, "observedGeneration": 1, **healthy},
    }


# -- what other schedulers do ----------------------------------------------------------------------


def _nominate(world: Cluster, name: str, on: str) -> None:
    world.nominated[name], world.since = on, len(world.bindings)
    world.change(POD, name, {"status": {"nominatedNodeName": on}}, "status")


async def _offer(world: Cluster, name: str, victims: tuple[str, ...]) -> None:
    on = world.bound[victims[0]]
    uids = {world.pod(each)["metadata"]["uid"]: each for each in victims}
    offered = {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": 0}
    question = {
        "Pod": {"apiVersion": "v1", "kind": "Pod", **world.pod(name)},
        "NodeNameToMetaVictims": {on: offered},
    }
    answer = (await world.port.post("/preempt", json=question)).json()
    chosen = answer["NodeNameToMetaVictims"]
    assert list(chosen) == [on]
    named = [uids[each["UID"]] for each in chosen[on]["Pods"]]
    assert named == [victims[0]], "only what is on that node"
    _nominate(world, name, on)
    world.condemn(victims[0])
    world.preempt(victims[0])
