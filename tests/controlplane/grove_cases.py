"""The cases of Grove's end-to-end tests on topologies that its operator of this version can do.

Each has the pods that must be in one domain. The cluster is theirs as well: 28 nodes, 7 to a rack,
20 to a block, so that the third rack is in two blocks. Pods are larger than theirs, so that a rack
is too small for some.
Source: grove operator/e2e/tests/topology_test.go, Test_TAS2 … Test_TAS16 (v0.1.0-alpha.8); the
objects are made anew.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from tests.cluster import HOSTNAME, Object, Objects, node
from tests.controlplane.grove import (
    POD_CLIQUE,
    REPLICA,
    SCALING_GROUP,
    SCALING_GROUP_REPLICA,
    clique,
    pod_clique_set,
    scaling_group,
)

LEVELS = {name: f"example.com/{name}" for name in ("zone", "block", "rack")}
KEYS = {**LEVELS, "host": HOSTNAME}
PER = {"zone": 28, "block": 20, "rack": 7}  # nodes, by their numbers: a rack is in two blocks
NODES = 28


def nodes() -> Objects:
    """Those of Grove's end-to-end tests, of eight GPUs each."""
    return [
        node(
            f"n{at:02}",
            gpus=8,
            labels={LEVELS[name]: f"{name}-{at // size}" for name, size in PER.items()},
        )
        for at in range(NODES)
    ]


@dataclass(frozen=True, slots=True)
class Together:
    """Pods that agree in these labels are in one domain of a level."""

    level: str
    by: tuple[str, ...] = ()
    cliques: tuple[str, ...] = ()
    """Only the pods of these; (): all."""

    def apart(self, pods: Objects, nodes: dict[str, Object]) -> dict[tuple[str, ...], set[str]]:
        """The pods that are not: what they agree in -> the domains they are in."""
        domains = defaultdict[tuple[str, ...], set[str]](set)
        for each in pods:
            if not self.cliques or each["spec"]["containers"][0]["name"] in self.cliques:
                labels = each["metadata"]["labels"]
                on = nodes[each["spec"]["nodeName"]]["metadata"]["labels"]
                domains[tuple(labels.get(key, "") for key in self.by)].add(on[KEYS[self.level]])
        assert domains, f"there are no pods of {self.cliques}"
        return {key: found for key, found in domains.items() if len(found) > 1}


EACH_CLIQUE = (POD_CLIQUE,)
EACH_REPLICA = (REPLICA,)
EACH_GROUP = (SCALING_GROUP, SCALING_GROUP_REPLICA)


@dataclass(frozen=True, slots=True)
class Case:
    """A PodCliqueSet of that many pods, and what of them is together."""

    made: Object
    pods: int
    together: tuple[Together, ...] = ()


DISAGGREGATED: dict[str, Any] = {
    "groups": (
        scaling_group("decoder", "dworker", "dleader", replicas=2, pack="rack"),
        scaling_group("prefill", "pworker", "pleader", replicas=2, pack="rack"),
    ),
    "pack": "block",
}
ITS_LEVELS = (
    Together("block", EACH_REPLICA),
    Together("rack", EACH_GROUP, ("dworker", "dleader")),
    Together("rack", EACH_GROUP, ("pworker", "pleader")),
)


def disaggregated(*, replicas: int = 1, pack: str = "") -> Object:
    cliques = [
        clique("dworker", 1, gpus=2),
        clique("dleader", 1, gpus=2),
        clique("pworker", 1, gpus=2, pack=pack),
        clique("pleader", 1, gpus=2),
        clique("router", 2, gpus=1),
    ]
    return pod_clique_set("", *cliques, replicas=replicas, **DISAGGREGATED)


CASES = {
    "tas2-cliques-with-levels-of-their-own": Case(
        pod_clique_set("", clique("small", 3, pack="rack"), clique("large", 9, pack="block")),
        12,
        (Together("rack", cliques=("small",)), Together("block", cliques=("large",))),
    ),
    "tas3-set-alone": Case(
        pod_clique_set(
            "",
            clique("worker", 1),
            clique("router", 2),
            groups=(scaling_group("workers", "worker", replicas=2, least=2),),
            pack="rack",
        ),
        4,
        (Together("rack"),),
    ),
    "tas4-scaling-group-alone": Case(
        pod_clique_set(
            "",
            clique("worker", 3),
            clique("router", 2),
            groups=(scaling_group("workers", "worker", replicas=2, least=2, pack="rack"),),
        ),
        8,
        (Together("rack", EACH_GROUP, ("worker",)),),
    ),
    "tas5-host": Case(
        pod_clique_set("", clique("worker", 2, gpus=4, pack="host")), 2, (Together("host"),)
    ),
    "tas6-clique-of-a-set-in-a-zone": Case(
        pod_clique_set("", clique("worker", 24), pack="zone"), 24, (Together("zone"),)
    ),
    "tas7-no-levels": Case(
        pod_clique_set(
            "",
            clique("worker", 2),
            groups=(scaling_group("workers", "worker", replicas=2, least=2),),
        ),
        4,
    ),
    "tas8-three-levels": Case(
        pod_clique_set(
            "",
            clique("prefill", 2, gpus=4, pack="host"),
            clique("decode", 2, gpus=4, pack="host"),
            groups=(scaling_group("model", "prefill", "decode", replicas=2, least=2, pack="rack"),),
            pack="block",
        ),
        8,
        (Together("host", EACH_CLIQUE), Together("rack", EACH_GROUP), Together("block")),
    ),
    "tas9-set-and-clique": Case(
        pod_clique_set("", clique("worker", 2, gpus=4, pack="host"), pack="block"),
        2,
        (Together("host"), Together("block")),
    ),
    "tas10-scaling-group-scaled": Case(
        pod_clique_set(
            "",
            clique("worker", 3, gpus=4),
            groups=(scaling_group("model", "worker", replicas=3, pack="rack"),),
            pack="block",
        ),
        9,
        (Together("rack", EACH_GROUP), Together("block")),
    ),
    "tas11-scaling-group-and-clique": Case(
        pod_clique_set(
            "",
            clique("worker", 2, gpus=4, pack="host"),
            groups=(scaling_group("workers", "worker", replicas=2, least=2, pack="rack"),),
        ),
        4,
        (Together("host", EACH_GROUP),),
    ),
    "tas12-many-scaled": Case(
        pod_clique_set(
            "",
            clique("worker", 2, gpus=4, pack="host"),
            groups=(scaling_group("workers", "worker", replicas=10, least=3),),
            pack="block",
        ),
        20,
        (Together("host", EACH_GROUP), Together("block")),
    ),
    "tas13-more-than-a-rack": Case(pod_clique_set("", clique("worker", 10), pack="rack"), 0),
    "tas14-replicas-each-in-a-rack": Case(
        pod_clique_set("", clique("worker", 4), replicas=2, pack="rack"),
        8,
        (Together("rack", EACH_REPLICA),),
    ),
    "tas15-disaggregated": Case(disaggregated(), 10, ITS_LEVELS),
    "tas16-disaggregated-replicas": Case(
        disaggregated(replicas=2, pack="host"), 20, (*ITS_LEVELS, Together("host", EACH_CLIQUE))
    ),
}
