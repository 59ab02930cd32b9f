"""kube-scheduler of the simulator chooses victims as the sandbox's does, which is another program.

The sandbox's is held against the real one: tests/contract/preemption/choices.py.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from app.dialects.budgets.dialect import KIND, BudgetRecord
from app.kube.core.objects import PodRecord
from app.sandbox.apiserver.storage.store import Stored
from app.sandbox.scheduler.cycle.diagnosis import Diagnosis
from app.sandbox.scheduler.cycle.filters import filter_nodes
from app.sandbox.scheduler.cycle.preemption import DryRun as SandboxDryRun
from app.sandbox.scheduler.cycle.preemption import preempt
from app.sandbox.scheduler.facts.node_table import NodeTable
from app.sandbox.scheduler.facts.pod_facts import PodFacts, facts_of
from app.state.filter_result import Victims
from tests.app.sandbox import objects
from tests.records import GPU, node, pod
from tests.sim.cache import Cache
from tests.sim.victims import DryRun

NODES = tuple(f"n{number}" for number in range(5))
GPUS = 8
APPS = ("a", "b", "c")
PRIORITY = 10
CASES = 400


@dataclass
class Case:
    """The same cluster for both, and a pod that wants room."""

    cache: Cache
    table: NodeTable = field(default_factory=NodeTable)
    started: dict[str, float] = field(default_factory=dict)
    budgets: list[BudgetRecord] = field(default_factory=list)
    objects: list[dict[str, Any]] = field(default_factory=list)  # those budgets, as the API has it
    rivals: list[PodFacts] = field(default_factory=list)


def facts(record: PodRecord, started: str = "") -> PodFacts:
    """What the sandbox's scheduler knows of a pod."""
    gpus = dict(record.request).get(GPU, 0)
    body = objects.pod(record.name, cpu="0", limits={GPU: str(gpus)}, priority=record.priority)
    body["metadata"] |= {
        "namespace": record.namespace,
        "uid": record.uid,
        "labels": dict(record.labels),
    }
    body["spec"]["nodeName"] = record.node
    body["spec"]["containers"][0]["resources"]["requests"] = {GPU: str(gpus)}
    body["status"] = {"nominatedNodeName": record.nominated_node}
    if started:
        body["status"]["startTime"] = started
    return facts_of(Stored(body, 1))


def drawn(rng: Random) -> Case:
    """Nodes that are nearly full of pods of several priorities."""
    mirror = {name: node(f"b0/r0/{name}", gpus=GPUS) for name in NODES}
    case = Case(Cache(SimpleNamespace(mirror=mirror)))  # type: ignore[arg-type]
    stored = [objects.node(name, **{GPU: str(GPUS)}) for name in NODES]
    case.table.set_nodes([Stored(each, 1) for each in stored])
    days = iter(rng.sample(range(10, 90), 60))
    for name in NODES:
        left = GPUS
        while left:
            gpus = rng.randint(1, left)
            left -= gpus
            _add(case, rng, name, gpus, next(days))
    for number in range(rng.randint(0, 3)):
        _protect(case, rng, f"budget-{number}")
    for number in range(rng.randint(0, 2)):
        _nominate(case, rng, f"rival-{number}")
    return case


def _add(case: Case, rng: Random, on: str, gpus: int, day: int) -> None:
    labels = {"app": rng.choice(APPS)} if rng.random() < 0.7 else {}
    priority = rng.choice((0, 0, 5, PRIORITY))
    record = pod(f"p{len(case.started)}", gpus=gpus, cpu=0, on=on, priority=priority, labels=labels)
    case.started[record.uid] = day
    case.cache.bound[record.uid] = record
    case.table.add_pod(facts(record, f"2026-{1 + day // 28:02}-{1 + day % 28:02}T00:00:00Z"), on)


def _protect(case: Case, rng: Random, name: str) -> None:
    apps = tuple(rng.sample(APPS, rng.randint(1, 2)))
    allowed = rng.choice((0, 0, 1, 2))
    record = BudgetRecord(
        kind=KIND,
        namespace="default",
        name=name,
        uid=name,
        version="1",
        requirements=(("app", "In", apps),),
    )
    case.budgets.append(msgspec.structs.replace(record, allowed=allowed))
    selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": list(apps)}]}
    case.objects.append(
        {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": selector},
            "status": {"disruptionsAllowed": allowed},
        }
    )


def _nominate(case: Case, rng: Random, name: str) -> None:
    priority = rng.choice((5, PRIORITY, PRIORITY + 1))
    record = pod(name, gpus=rng.randint(1, 4), cpu=0, priority=priority)
    record = msgspec.structs.replace(record, nominated_node=rng.choice(NODES))
    case.cache.nominate(record, record.nominated_node)
    if priority >= PRIORITY:
        case.rivals.append(facts(record))


def sandbox_choice(case: Case, wanted: PodFacts) -> tuple[dict[str, Victims], str]:
    """What each candidate costs, and the node that is chosen."""
    columns = np.arange(len(NODES), dtype=np.intp)
    outcome = filter_nodes(case.table, wanted, columns, len(NODES), case.rivals)
    assert not outcome.feasible_names()
    diagnosis = Diagnosis(len(NODES))
    diagnosis.add_outcome(outcome)
    dry_run = SandboxDryRun(case.table, wanted, case.rivals, case.objects)
    found, _ = dry_run.candidates(diagnosis, 100)
    candidates = {
        name: Victims(tuple(each.uid for each in victims.pods), victims.pdb_violations)
        for name, victims in found.items()
    }
    answer = asyncio.run(
        preempt(case.table, wanted, diagnosis, (), rivals=case.rivals, budgets=case.objects)
    )
    return candidates, answer.node


@pytest.mark.parametrize("half", [0, 1])
def test_the_same_pods_would_go_and_the_same_node_is_chosen(half: int) -> None:
    chosen = broken = 0
    for number in range(half, CASES, 2):
        rng = Random(f"victims {number}")
        case = drawn(rng)
        wanted = pod("wanted", gpus=rng.randint(1, GPUS), cpu=0, priority=PRIORITY)
        dry_run = DryRun(case.cache, wanted, case.budgets, case.started)
        found = {name: each for name in NODES if (each := dry_run.victims(name)) is not None}
        candidates, node_chosen = sandbox_choice(case, facts(wanted))
        assert found == candidates, f"case {number}"
        if found:
            chosen += 1
            broken += any(each.pdb_violations for each in found.values())
            assert dry_run.best(found) == node_chosen, f"case {number}"
    assert chosen > CASES // 4
    assert broken > CASES // 20
