"""What a tenant can create who may create pods in his own namespace, and nothing else.

Each attack is some pods, as small as they can be; reference/reliability.md, sections 2 and 5.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import chain

from tests.cluster import GPU, HOSTNAME, RACK, Objects, pod
from tests.tenants import LOUD, half_gangs
from tests.workloads import GROUP, TOTAL, asking, members

KUEUE = "kueue.x-k8s.io/"
SETS = KUEUE + "pod-group-sets"
ROLE = KUEUE + "pod-group-role"
FAST = KUEUE + "pod-group-fast-admission"
KIB = 1024


def yaml_bombs() -> Objects:
    """A declaration that YAML reads as one number to base 60, in time square to its length."""
    number = "- 1" + ":1" * (100 * KIB) + ".5"
    said = {GROUP: "bomb", TOTAL: "4", SETS: number}
    return [pod(f"bomb-{at}", namespace=LOUD, annotations=said) for at in range(4)]


def driver(workers: int) -> Objects:
    """A small pod that declares so many workers with a GPU each."""
    container = {"name": "c", "image": "i", "resources": {"requests": {GPU: "1"}}}
    template = {"spec": {"containers": [container]}}
    sets = [{"name": "driver", "count": 1}, {"name": "w", "count": workers, "template": template}]
    said = {GROUP: f"d{workers}", TOTAL: str(workers + 1), SETS: json.dumps(sets)}
    said[ROLE] = "driver"
    return [pod(f"d{workers}", namespace=LOUD, requests={"cpu": "10m"}, annotations=said)]


def fast_admissions() -> Objects:
    """The first pods of groups of 100,000, which start with places held for the others."""
    return [
        pod(
            f"fast-{at}",
            namespace=LOUD,
            requests={"cpu": "1m"},
            annotations={GROUP: f"fast-{at}", TOTAL: "100000", FAST: "true"},
        )
        for at in range(10)
    ]


def shapes() -> Objects:
    """Gangs that fit nowhere, each with an affinity of its own."""
    made: Objects = []
    for at in range(100):
        pods = members(f"shape-{at}", 2, requests={GPU: 9}, annotations=asking(required=RACK))
        term = {"matchExpressions": [{"key": HOSTNAME, "operator": "NotIn", "values": [f"x{at}"]}]}
        required = {"nodeSelectorTerms": [term]}
        for each in pods:
            each["metadata"]["namespace"] = LOUD
            each["spec"]["affinity"] = {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
            }
        made.extend(pods)
    return made


def made_up_resources() -> Objects:
    """Pods that request thousands of resources no node has heard of."""
    return [
        pod(
            f"made-up-{at}",
            namespace=LOUD,
            requests={f"example.com/r{at}-{number}": 1 for number in range(100)},
        )
        for at in range(20)
    ]


def large_affinities() -> Objects:
    """Pods whose affinity alone is 300 KiB, all different."""
    made: Objects = []
    for at in range(20):
        values = [f"node-{at}-{number:06}-{'x' * 40}" for number in range(5_000)]
        term = {"matchExpressions": [{"key": HOSTNAME, "operator": "NotIn", "values": values}]}
        required = {"nodeSelectorTerms": [term]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        made.append(pod(f"large-{at}", namespace=LOUD, requests={GPU: 9}, affinity=affinity))
    return made


def starving() -> Objects:
    """A gang that no rack takes while others run there."""
    pods = members("starving", 8, requests={GPU: 8}, annotations=asking(required=RACK))
    for each in pods:
        each["metadata"]["namespace"] = LOUD
    return pods


ATTACKS: dict[str, Callable[[], Objects]] = {
    "YAML bombs": yaml_bombs,
    "a driver with 1,273 workers": lambda: driver(1_273),
    "a driver with as many as he may hold": lambda: driver(32),
    "fast admission of 100,000": fast_admissions,
    "100 gangs of as many shapes": shapes,
    "2,000 made-up resources": made_up_resources,
    "20 affinities of 300 KiB": large_affinities,
    "a gang that starves": starving,
    "300 half gangs": lambda: half_gangs(300),
}


def all_of_them() -> Objects:
    """Everything at once."""
    return list(chain.from_iterable(attack() for attack in ATTACKS.values()))
