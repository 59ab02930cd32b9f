"""A cluster whose webhook asks about each pod before it is created."""

from __future__ import annotations

import msgspec

from app.dialects import corral
from app.kube.core.objects import PodRecord, Requirement, Term
from app.state.effects import EvictOutcome
from tests.app.state.world import World
from tests.records import RACK, job, job_pods, node

SECONDS = 10.0
ASKED = {"kueue.x-k8s.io/podset-required-topology": RACK}


def rack(number: int, nodes: int = 4) -> list:
    return [node(f"b0/r{number}/n{number}{i}") for i in range(nodes)]


class Nursery(World):
    """Asks about pods before they are created, as the webhook does."""

    def asked(self, pod: PodRecord) -> tuple[str, ...] | None:
        """The nodes to narrow the pod to, which has neither name nor uid yet."""
        unborn = msgspec.structs.replace(pod, name="", uid="")
        answer, effects = self.engine.admit(unborn, pod.namespace, self.now)
        self._take(effects)
        return answer

    def created(self, pod: PodRecord) -> PodRecord:
        """The pod as it is stored: narrowed, or behind our gate."""
        answer = self.asked(pod)
        if answer is None:
            return msgspec.structs.replace(pod, gates=(corral.GATE,))
        terms = tuple(
            Term(fields=(Requirement("metadata.name", "In", (name,)),)) for name in answer
        )
        shape = msgspec.structs.replace(pod.shape, terms=terms)
        said = {**pod.annotations, corral.BORN: corral.NODES}
        return msgspec.structs.replace(pod, shape=shape, annotations=said)

    def evicted(self, pod: PodRecord, outcome: EvictOutcome) -> None:
        """The API server has answered to an eviction, or has not."""
        self._take(self.inputs.eviction_finished(pod.uid, outcome, self.now))


def train(pods: int = 4) -> tuple[list, list[PodRecord]]:
    """A Job, which the watch shows, and its pods, which are about to be created."""
    return [job("train", pods)], job_pods("train", pods, **ASKED)


def nursery(nodes: list, jobs: list, pods: list = (), **settings: object) -> Nursery:
    return Nursery(nodes, pods, jobs, **{"born_seconds": SECONDS, **settings})


def fast(pods: list[PodRecord]) -> list[PodRecord]:
    """The same pods, whose group starts with the first of them."""
    flag = {"kueue.x-k8s.io/pod-group-fast-admission": "true"}
    return [
        msgspec.structs.replace(each, annotations={**each.annotations, **flag}) for each in pods
    ]
