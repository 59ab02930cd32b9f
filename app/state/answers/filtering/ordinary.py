"""The answer to /filter for ordinary pods: every candidate but those held for others.

What is held for a gang of lower priority is no reason to refuse a node where no other is left.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.kube.core.objects import PodRecord
from app.state.answers.filtering.sampling import Sampling
from app.state.answers.kept_nodes import KeptNodes
from app.state.cache import room
from app.state.cache.books import Books
from app.state.filter_result import Candidates, Passed
from app.state.pods.arrivals import Arrivals, WaitingPod
from app.state.pods.assumed_pods import AssumedPods
from app.state.pods.grants import Grants
from app.state.pods.nominations import Nominations
from app.state.pods.rejected_pods import RejectedPods
from app.state.reserve.reservations import Reservations


@dataclass(frozen=True, slots=True)
class OrdinaryPods:
    """Answers for pods that are in no gang."""

    books: Books
    arrivals: Arrivals
    assumed_pods: AssumedPods
    rejected_pods: RejectedPods
    grants: Grants
    nominations: Nominations
    kept_nodes: KeptNodes
    reservations: Reservations
    sampling: Sampling

    def answer(self, pod: PodRecord, candidates: Candidates, now: float) -> Passed:
        """Pass every candidate but those where the pod would take capacity held for gangs."""
        known = self.arrivals.known(pod.namespace, pod.name, pod.uid)
        # At its next /filter an earlier attempt to bind it has failed.
        if known is not None and self.assumed_pods.end(pod.uid):
            self.reservations.capacity_grew()
        self.books.refresh()
        request = pod.request if known is None else known.request
        priority = pod.priority if known is None else known.priority
        closed = self.kept_nodes.closed_to(pod) - self._freed_for(pod.uid)
        if kept := self.nominations.kept(priority, self.nominations.booked(self.books)):
            closed |= room.without_room_beside(self.books, request, kept)
        without = room.held_without_room(self.books, request) | closed
        if without and without.issuperset(candidates.names()):
            # Nothing runs there yet: a pod of higher priority comes first, if it has no other node.
            without = room.held_without_room(self.books, request, priority) | closed
        if known is None and pod.uid in self.arrivals.uids:
            return Passed(without)  # another pod has this uid
        self.rejected_pods.take_back(pod.uid)
        self.grants.refuse(pod.uid, without)
        if without and without.issuperset(candidates.names()):
            self.rejected_pods.add(pod, request)
            if self.sampling.is_sample(len(candidates), pod.shape) and room.has_room(
                self.books, request, without
            ):
                self.rejected_pods.try_again(pod, now)  # its next sample begins at another node
        return Passed(without)

    def is_kept_from(self, uid: str, pod: WaitingPod, node: str) -> bool:
        """Whether a pod that passed may not have this node after all: it is kept for a gang.

        kube-scheduler may have heard of the node, or that it is ready, before Corral did.
        """
        return node in self.kept_nodes.new_nodes.closed_to(pod) - self._freed_for(uid)

    def _freed_for(self, uid: str) -> set[str]:
        """The nodes where others ended for a pod: they are kept for no gang."""
        grant = self.grants.of.get(uid)
        known = self.nominations.of(uid)
        return {each.node for each in (grant, known) if each is not None}
