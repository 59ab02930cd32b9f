"""L1 and N4 when all is quiet: no PodGroup waits that need not, and each says what its pods are.

A gang counts as one that has a place only where one domain has room for it, each of its pods taken
to be as large as the largest.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from app.kube.core.objects import PodRecord
from tests.sim.api import ApiServer
from tests.sim.faults import Hits
from tests.sim.native.checks import domain_of
from tests.sim.native.pod_group import NATIVE_WORDS, Words
from tests.sim.objects import Objects
from tests.sim.oracle import Cluster, Taken
from tests.sim.places import is_ready, places_for
from tests.sim.told import has_levels, is_live
from tests.sim.violation import require


@dataclass(frozen=True, slots=True)
class AtRest:
    """Looks at the API server's truth."""

    api: ApiServer
    objects: Objects
    hits: Hits
    words: Words = NATIVE_WORDS

    def check_conditions(self) -> None:
        """Every PodGroup with pods says whether it has started. Raises: Violation."""
        for body in self.objects.of(self.words.kind).values():
            its = self.words.group_of(body)
            pods = [
                pod for pod in self.api.list("Pod") if self.words.group_name_of(pod) == its.name
            ]
            if not pods or all(pod.is_finished for pod in pods):
                continue
            self.hits.hit("W native at rest")
            bound = sum(bool(pod.node) and is_live(pod) for pod in pods)
            done = sum(pod.phase == "Succeeded" for pod in pods)
            waiting = [pod for pod in pods if is_live(pod) and not pod.node and is_ready(pod)]
            said = its.said().get("status", "")
            what = (
                f"N4: PodGroup {its.name} says {said!r}, {bound + done} of {its.least} have nodes"
            )
            if bound + done >= its.least:
                require(said == "True", what)
            elif len(waiting) >= its.least:
                require(said in ("False", "True"), what)  # it may have started before

    def waits_in_vain(
        self,
        name: str,
        members: Collection[PodRecord],
        taken: Taken,
        among: Cluster | None = None,
    ) -> str:
        """Where the waiting pods of a PodGroup have a place; "" if they have none for certain.

        `among`: the nodes, and the pods that count; None: all.
        """
        body = self.objects.get(self.words.kind, name)
        if body is None:
            return ""
        its = self.words.group_of(body)
        live = [pod for pod in members if is_live(pod)]
        waiting = [pod for pod in live if not pod.node and is_ready(pod)]
        bound = {pod.node for pod in live if pod.node}
        done = any(pod.phase == "Succeeded" for pod in members)
        having = sum(bool(pod.node) for pod in live)
        having += sum(pod.phase == "Succeeded" for pod in members)
        lacks = max(its.least - having, 1) if self.words.repairs_together else 1
        least = lacks if bound else its.least
        if len(waiting) < least or not waiting or (done and not bound):
            return ""
        return domain_with_room(among or self.api, its.key, waiting, bound, least, taken)


def domain_with_room(
    cluster: Cluster,
    level: str,
    waiting: Collection[PodRecord],
    bound: Collection[str],
    needed: int,
    taken: Taken,
) -> str:
    """In words: a domain of a level that has room for so many of these pods.

    It has all the nodes that others of the gang are bound to. "" if there is none.
    """
    if not cluster.nodes.keys() >= set(bound):
        return ""
    nodes: dict[str, set[str]] = {}
    for node in cluster.list("Node"):
        if not level or has_levels(node):
            nodes.setdefault(domain_of(node, level), set()).add(node.name)
    places = places_for(cluster, waiting, taken)
    for domain, inside in sorted(nodes.items()):
        if inside.issuperset(bound) and places.inside(inside).total >= needed:
            return f"{needed} pods in {domain or 'the cluster'}"
    return ""
