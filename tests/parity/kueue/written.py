"""Scenarios written by hand in the format of the recorded ones: three nodes in two racks."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tests.parity.kueue.cases import Case, Json, read_line


def nodes(**racks: Mapping[str, int]) -> list[Json]:
    """Nodes by rack, each with so many cpu; all in one block."""
    return [
        {
            "name": name,
            "labels": {"l/b": "b0", "l/k": rack, "kubernetes.io/hostname": name},
            "allocatable": {"cpu": str(cpu), "pods": "110"},
            "ready": True,
        }
        for rack, cpus in racks.items()
        for name, cpu in cpus.items()
    ]


def line(request: Json | None, count: int, kueue: object, **gates: bool) -> str:
    """One recorded case of one pod set on three nodes."""
    return json.dumps({"scenario": scenario(request, count, **gates), "kueue": kueue})


def scenario(request: Json | None, count: int, **gates: bool) -> Json:
    """One pod set on three nodes, of 4 cpu each; its pods ask for one."""
    return {
        "test": "t",
        "name": "n",
        "featureGates": {
            "TASProfileMixed": True,
            "TASBalancedPlacement": False,
            "TASRespectNodeAffinityPreferred": False,
            "SkipReassignmentForPodOwnedWorkloads": True,
            **gates,
        },
        "levels": ["l/k", "kubernetes.io/hostname"],
        "nodes": nodes(k0={"n1": 4, "n2": 4}, k1={"n3": 4}),
        "aggregatedDomainUsage": {},
        "podSets": [
            {"name": "p", "topologyRequest": request, "requests": {"cpu": 1000}, "count": count}
        ],
    }


def on(*domains: tuple[str, int]) -> Json:
    found = [{"Values": [name], "Count": pods} for name, pods in domains]
    return {"p": {"ta": {"Levels": ["kubernetes.io/hostname"], "Domains": found}, "reason": ""}}


def as_case(scenario: Json, kueue: object) -> Case:
    """A recorded case."""
    return read_line(1, json.dumps({"scenario": scenario, "kueue": kueue}))
