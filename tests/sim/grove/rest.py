"""L1 and G5 when all is quiet: no gang waits that need not, and each says what its pods are.

A gang counts as one that has a place only where one was found: all of its pods are taken to be as
large as its largest in each resource, scopes are filled one after the other, the largest first.
What such a search does not find may still fit, and is not judged.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from app.kube.core.objects import PodRecord
from tests.sim.api import CLUSTER_TOPOLOGY, POD_GANG, ApiServer
from tests.sim.faults import Hits
from tests.sim.grove.checks import having_nodes
from tests.sim.grove.reading import (
    Levels,
    PodGang,
    Scope,
    domain_of,
    levels_of,
    pod_gang_of,
)
from tests.sim.objects import Objects
from tests.sim.oracle import Cluster, Taken
from tests.sim.places import Places, is_ready, places_for
from tests.sim.told import is_live
from tests.sim.violation import require


@dataclass(frozen=True, slots=True)
class AtRest:
    """Looks at the API server's truth."""

    api: ApiServer
    objects: Objects
    hits: Hits

    # -- statuses ------------------------------------------------------------------------------

    def check_statuses(self) -> None:
        """Every PodGang with pods says what they are. Raises: Violation."""
        for body in self.objects.of(POD_GANG).values():
            its = pod_gang_of(body)
            pods = [pod for pod in self.api.list("Pod") if its.has(pod)]
            if not pods or all(pod.is_finished for pod in pods):
                continue
            self.hits.hit("W PodGang at rest")
            if any(pod.is_terminating for pod in pods):
                continue  # one of a higher priority is just making room: it is not at rest
            bound = [pod for pod in pods if pod.node and is_live(pod)]
            phase = "Pending"
            if bound:
                phase = "Running" if its.is_whole(having_nodes(pods)) else "Starting"
            # Of one whose pods are not there yet nothing is said.
            phases = (phase,) if bound else (phase, "")
            what = f"G5: PodGang {its.name} is {its.phase!r}"
            require(its.phase in phases, f"{what}, and not {phase}")
            is_running = its.phase == "Running"
            said = its.is_scheduled
            require((said == "True") == is_running, f"{what} with Scheduled {said!r}")
            if bound:
                ready = [pod for pod in bound if pod.health == "ready"]
                is_serving = is_running and bool(ready) and its.is_whole(ready)
                require(
                    (its.says("Ready") == "True") == is_serving,
                    f"{what}, Ready is {its.says('Ready')!r}, and ready are {len(ready)}",
                )
                require(its.says("Unhealthy") != "True", f"{what} and Unhealthy")
            if is_running:
                has_levels = any(each.level for each in its.scope(()).each())
                require(its.score is not None or not has_levels, f"{what} without a score")
            waiting = [pod for pod in pods if is_live(pod) and not pod.node and is_ready(pod)]
            if not bound and its.is_whole(waiting) and any(each.least for each in its.groups):
                require(said == "False", f"{what}, waits, and Scheduled is {said!r}")

    # -- places --------------------------------------------------------------------------------

    def waits_in_vain(
        self,
        name: str,
        members: Collection[PodRecord],
        taken: Taken,
        among: Cluster | None = None,
    ) -> str:
        """Where the waiting pods of a PodGang have a place; "" if they have none for certain.

        Of a gang that runs in part only the pods of one pod group are judged: which of several go
        on first is not. `among`: the nodes, and the pods that count; None: all.
        """
        cluster: Cluster = among or self.api
        body = self.objects.get(POD_GANG, name)
        if body is None:
            return ""
        its = pod_gang_of(body)
        levels = levels_of(self.objects.get(CLUSTER_TOPOLOGY, its.topology))
        live = [pod for pod in members if is_live(pod)]
        waiting = [pod for pod in live if not pod.node and is_ready(pod)]
        if not waiting or any(s.level and s.level not in levels for s in its.scope(()).each()):
            return ""
        bound = [pod for pod in live if pod.node]
        done = [pod for pod in members if pod.phase == "Succeeded"]
        places = places_for(cluster, waiting, taken)
        if bound:
            return self._beside(its, waiting, bound, places, levels, cluster)
        if done or not its.is_whole(waiting):
            return ""
        needed = [
            pod
            for group in its.groups
            for pod in [each for each in waiting if its.group_of(each) == group.name][: group.least]
        ]
        if not needed:
            needed = waiting[:1]
        found = _filled(its.scope(needed), places, levels, cluster)
        return f"{len(needed)} pods, {places.used(found)}" if found is not None else ""

    def _beside(
        self,
        its: PodGang,
        waiting: list[PodRecord],
        bound: list[PodRecord],
        places: Places,
        levels: Levels,
        cluster: Cluster,
    ) -> str:
        """Where a pod goes on that belongs to a gang which runs in part."""
        if len({its.group_of(pod) for pod in waiting}) > 1:
            return ""
        first = waiting[0]
        if all(its.group_of(pod) != its.group_of(first) for pod in bound):
            return ""
        for scope in its.scope([first, *bound]).each():
            if scope.level and first in scope.pods:
                here = {pod.node for pod in scope.pods if pod.node}
                if not here <= cluster.nodes.keys():
                    return ""
                domains = {domain_of(cluster.nodes[on], scope.level, levels) for on in here}
                if len(domains) > 1:
                    return ""
                (domain,) = domains
                places = places.inside(
                    {
                        name
                        for name, node in cluster.nodes.items()
                        if domain_of(node, scope.level, levels) == domain
                    }
                )
        return f"{first.name} beside those that run, {places}" if places.total else ""


def _filled(scope: Scope, places: Places, levels: Levels, cluster: Cluster) -> Places | None:
    """What is left when the pods of a scope have places together; None: no way was found."""
    if not scope.pods:
        return places
    for part in _domains(scope.level, places, levels, cluster):
        if part.total < len(scope.pods):
            continue
        if not scope.inside:
            return places.without(part.first(len(scope.pods)))
        left: Places | None = part
        for each in sorted(scope.inside, key=lambda one: -len(one.pods)):
            left = None if left is None else _filled(each, left, levels, cluster)
        if left is not None:
            return places.without(part.without(left))
    return None


def _domains(level: str, places: Places, levels: Levels, cluster: Cluster) -> list[Places]:
    """The places of each domain of a level, the fewest first."""
    if not level:
        return [places]
    nodes: dict[tuple[str, ...], set[str]] = {}
    for name, node in cluster.nodes.items():
        if domain := domain_of(node, level, levels):
            nodes.setdefault(domain, set()).add(name)
    found = [places.inside(each) for each in nodes.values()]
    return sorted(found, key=lambda each: (each.total, str(each)))
