"""What a tenant can create who may create pods in his own namespace, and nothing else.

Each attack is some pods, as small as they can be. Pods without a gate are few: kube-scheduler looks
at one after the other, whichever tenant made them.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from itertools import chain

from tests.cluster import GPU, HOSTNAME, RACK, Object, Objects, pod
from tests.tenants import LOUD, half_gangs
from tests.workloads import GROUP, TOTAL, asking, behind_gate, gates_of, members

KUEUE = "kueue.x-k8s.io/"
SETS = KUEUE + "pod-group-sets"
ROLE = KUEUE + "pod-group-role"
FAST = KUEUE + "pod-group-fast-admission"
KIB = 1024
STARVING = "a gang that starves"  # the attack by that name


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
    """A gang that needs all nodes of a rack, and a pod in each of the four that is in its way."""
    pods = members("starving", 8, requests={GPU: 8}, annotations=asking(required=RACK))
    in_the_way = [
        pod(f"short-{rack}", requests={GPU: 8}, nodeName=f"b0-r{rack}-n0") for rack in range(4)
    ]
    return in_namespace(LOUD, [*in_the_way, *(behind_gate(each) for each in pods)])


def requirements() -> Objects:
    """Gangs of 18 kinds of pods with as many requirements on nodes as are taken, and with more."""
    made: Objects = []
    for at, each in enumerate((28, 28, 28, 300, 2_000)):
        pods = members(f"requires-{at}", 18, requests={GPU: 3}, annotations=asking(required=RACK))
        for number, kind in enumerate(pods):
            lines = [
                {"key": HOSTNAME, "operator": "NotIn", "values": [f"b0-r0-n{line % 8}"]}
                if each < 300
                else {"key": f"k{number}-{line}", "operator": "DoesNotExist"}
                for line in range(each - number % 2)
            ]
            kind["spec"]["affinity"] = required_of({"matchExpressions": lines})
            kind["spec"]["tolerations"] = [{"key": f"t{number}", "operator": "Exists"}]
        made.extend(behind_gate(kind) for kind in in_namespace(LOUD, pods))
    return made


def long_texts() -> Objects:
    """Groups whose names are 200 KiB, and lists of as many hosts as are read."""
    made: Objects = []
    for at in range(40):
        name = f"{at:06}" + "x" * 200 * KIB
        hosts = [f"n{at}-{number}" for number in range(2_000)]
        term = {"matchExpressions": [{"key": HOSTNAME, "operator": "NotIn", "values": hosts}]}
        made += [
            pod(f"long-{at}", annotations={GROUP: name, TOTAL: "2"}),
            pod(
                f"hosts-{at}",
                requests={GPU: 9},
                annotations=asking(required=RACK),
                affinity=required_of(term),
            ),
        ]
    return [behind_gate(each) for each in in_namespace(LOUD, made)]


def required_of(*terms: Object) -> Object:
    """Required node affinity of these terms."""
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def harmless(pods: Objects) -> Objects:
    """The same pods to kube-scheduler, that say nothing to Corral, gated where those are.

    As large as they are, but for what is beyond 250 KiB: an annotation may not have more.
    """
    made = copy.deepcopy(pods)
    for at, each in enumerate(made):
        padding = "x" * min(len(json.dumps(each["metadata"])), 250 * KIB)
        each["metadata"] = {
            "name": f"plain-{at}",
            "namespace": LOUD,
            "annotations": {"example.com/says-nothing": padding},
        }
        each["spec"].pop("schedulingGroup", None)
        if gates_of(each):
            each["spec"]["schedulingGates"] = [{"name": "example.com/later"}]
    return made


def born_anywhere() -> Objects:
    """Gangs that say they were born in place: each pod may go to one node that is not there."""
    made: Objects = []
    for at in range(10):
        field = {"key": "metadata.name", "operator": "In", "values": [f"nowhere-{at}"]}
        required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        said = asking(required=RACK) | {"corral.dev/born": "nodes"}
        pods = members(f"born-{at}", 2, requests={GPU: 1}, annotations=said, affinity=affinity)
        made.extend(in_namespace(LOUD, pods))
    return made


def of_no_group() -> Objects:
    """Pods of PodGroups that are not there, in the words of four vocabularies."""
    made: Objects = []
    for at in range(10):
        group = f"none-{at}"
        made += [
            pod(f"{group}-native", namespace=LOUD, schedulingGroup={"podGroupName": group}),
            pod(
                f"{group}-volcano",
                namespace=LOUD,
                annotations={"scheduling.k8s.io/group-name": group},
            ),
            pod(f"{group}-kai", namespace=LOUD, annotations={"pod-group-name": group}),
            pod(f"{group}-grove", namespace=LOUD, labels={"grove.io/podgang": group}),
        ]
    return made


def fragments() -> Objects:
    """Pods of which each requests other parts of devices, and more than any node has."""
    amounts = [{GPU: 2**40, f"example.com/part-{at}": at + 1} for at in range(100)]
    return [
        pod(f"part-{at}", namespace=LOUD, requests=each, nodeName=f"nowhere-{at}")
        for at, each in enumerate(amounts)
    ]


def provisioning() -> Objects:
    """Gangs that ask for nodes by as many classes, and consume requests that are not theirs."""
    made: Objects = []
    for at in range(100):
        said = asking(required=RACK) | {
            "corral.dev/provisioning-class": f"class-{at}.example.com",
            "autoscaling.x-k8s.io/consume-provisioning-request": f"corral-{at:016x}-1",
        }
        pods = members(f"asks-{at}", 2, requests={GPU: 8}, annotations=said)
        made.append(behind_gate(in_namespace(LOUD, pods)[0]))
    return made


def made_up_levels() -> Objects:
    """Gangs that require levels and tiers no topology has."""
    made: Objects = []
    for at in range(100):
        for level in (f"example.com/level-{at}", f"tier-{at}"):
            name = level.replace("example.com/", "")
            pods = members(name, 2, requests={GPU: 1}, annotations=asking(required=level))
            made.extend(behind_gate(each) for each in in_namespace(LOUD, pods))
    return made


def in_namespace(namespace: str, pods: Objects) -> Objects:
    """The same pods, there."""
    for each in pods:
        each["metadata"]["namespace"] = namespace
    return pods


ATTACKS: dict[str, Callable[[], Objects]] = {
    "YAML bombs": yaml_bombs,
    "a driver with 1,273 workers": lambda: driver(1_273),
    "a driver with as many as he may hold": lambda: driver(32),
    "fast admission of 100,000": fast_admissions,
    "100 gangs of as many shapes": shapes,
    "90 pods of up to 2,000 requirements": requirements,
    "40 names of 200 KiB and as many lists of hosts": long_texts,
    "2,000 made-up resources": made_up_resources,
    "20 affinities of 300 KiB": large_affinities,
    STARVING: starving,
    "300 half gangs": lambda: half_gangs(300),
    "10 gangs born nowhere": born_anywhere,
    "40 pods of no PodGroup": of_no_group,
    "100 parts of devices, on nodes that are not there": fragments,
    "100 classes of requests for nodes": provisioning,
    "200 made-up levels": made_up_levels,
}


def all_of_them() -> Objects:
    """Everything at once."""
    return list(chain.from_iterable(attack() for attack in ATTACKS.values()))
