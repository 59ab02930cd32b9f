"""Scenarios written by hand in the format of the recorded ones: three nodes in two racks."""

from __future__ import annotations

import json

from tests.parity.kueue.cases import Case, Json, read_line

NODES = [
    {
        "name": name,
        "labels": {"l/k": rack, "kubernetes.io/hostname": name},
        "allocatable": {"cpu": "4", "pods": "110"},
        "ready": True,
    }
    for name, rack in (("n1", "k0"), ("n2", "k0"), ("n3", "k1"))
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
        "nodes": NODES,
        "aggregatedDomainUsage": {},
        "podSets": [
            {"name": "p", "topologyRequest": request, "requests": {"cpu": 1000}, "count": count}
        ],
    }


def on(*domains: tuple[str, int]) -> Json:
    found = [{"Values": [name], "Count": pods} for name, pods in domains]
    return {"p": {"ta": {"Levels": ["kubernetes.io/hostname"], "Domains": found}, "reason": ""}}


def case(scenario: Json, kueue: object) -> Case:
    """A recorded case."""
    return read_line(1, json.dumps({"scenario": scenario, "kueue": kueue}))
