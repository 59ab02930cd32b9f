"""L1 and V6 when all is quiet: no PodGroup waits that need not, and each says what its pods are.

A gang counts as one that has a place only where any way of filling nodes finds it: all of its pods
are taken to be as large as its largest in each resource, and each node to have room for so many
whole ones. What such a search does not find may still fit, and is not judged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from app.kube.core.objects import PodRecord
from tests.sim.api import HYPER_NODE, POD_GROUP, QUEUE, VCJOB, ApiServer
from tests.sim.faults import Hits
from tests.sim.kube_scheduler import SCHEDULER
from tests.sim.objects import Json, Objects
from tests.sim.oracle import Taken
from tests.sim.places import Places, is_ready, places_for
from tests.sim.told import is_live
from tests.sim.violation import require
from tests.sim.volcano.checks import counts_of, is_in, short
from tests.sim.volcano.reading import (
    ANYWHERE,
    Domain,
    Domains,
    Group,
    Policy,
    domains_of,
    group_name_of,
    group_of,
    sub_groups,
    task_of,
)

WITH_NO_PODS = ("Pending", "Inqueue", "Completed")  # phases of a PodGroup whose pods are gone


@dataclass(frozen=True, slots=True)
class AtRest:
    """Looks at the API server's truth."""

    api: ApiServer
    objects: Objects
    hits: Hits

    # -- statuses ------------------------------------------------------------------------------

    def check_statuses(self, waits_for_pods: Collection[str]) -> None:
        """Every PodGroup of ours says what its pods are, and none waits for a queue with room.

        `waits_for_pods`: the names of those that have had no pod yet.
        Raises: Violation.
        """
        groups = [group_of(body) for body in self.objects.of(POD_GROUP).values()]
        for group in groups:
            pods = [pod for pod in self.api.list("Pod") if group_name_of(pod) == group.name]
            ours = [pod for pod in pods if pod.scheduler == SCHEDULER]
            if not ours and not self._job_is_ours(group):
                continue
            self.hits.hit("W PodGroup at rest")
            what = f"V6: PodGroup {group.name}"
            require(
                group.counted == counts_of(ours),
                f"{what} counts {group.counted}, and its pods are {counts_of(ours)}",
            )
            if not ours and group.name in waits_for_pods:
                self._has_no_room(group, groups)
                continue
            phases = _phases(group, ours)
            require(group.phase in phases, f"{what} is {group.phase!r}, and not of {phases}")
            is_running = group.phase in ("Running", "Completed")
            is_said = "Scheduled" in group.conditions
            require(is_running == is_said, f"{what} is {group.phase} with {set(group.conditions)}")
        domains = {each.name: each for each in self._domains().each}
        for name, body in self.objects.of(HYPER_NODE).items():
            nodes = len(domains[name].nodes) if name in domains else 0
            said = body.get("status", {}).get("nodeCount", 0)
            require(said == nodes, f"V6: HyperNode {name} has {nodes} nodes, and says {said}")

    def _has_no_room(self, group: Group, groups: Iterable[Group]) -> None:
        """L1: one that has had no pods waits for its queue, and that has no room for it."""
        phase = group.phase
        require(phase == "Pending", f"L1: PodGroup {group.name} is {phase!r}, and has no pods")
        queue = self.objects.get(QUEUE, group.queue)
        inside = [each for each in groups if is_in(each)]
        lacks = "" if queue is None else short(group, inside, queue)
        require(bool(lacks), f"L1: PodGroup {group.name} is Pending, and its queue has room")

    def _job_is_ours(self, group: Group) -> bool:
        body = self.objects.get(POD_GROUP, group.name) or {}
        owners = [each["uid"] for each in body["metadata"].get("ownerReferences", ())]
        jobs: Mapping[str, Json] = self.objects.of(VCJOB)
        return any(
            job["metadata"]["uid"] in owners and job["spec"]["schedulerName"] == SCHEDULER
            for job in jobs.values()
        )

    # -- places --------------------------------------------------------------------------------

    def waits_in_vain(self, name: str, members: Collection[PodRecord], taken: Taken) -> str:
        """Where the waiting pods of a PodGroup have a place; "" if they have none for certain.

        Of a gang that runs in part only pods of one kind without sub-groups are judged: which of
        several go on first is not.
        """
        body = self.objects.get(POD_GROUP, name)
        if body is None:
            return ""
        group = group_of(body)
        live = [pod for pod in members if is_live(pod)]
        waiting = [pod for pod in live if not pod.node and is_ready(pod)]
        bound = [pod for pod in live if pod.node]
        done = [pod for pod in members if pod.phase == "Succeeded"]
        if not waiting or len(waiting) + len(bound) < len(live):
            return ""
        room = places_for(self.api, waiting, taken)
        if bound:
            return self._beside(group, waiting, bound, len(done), room)
        if done or not group.is_whole(waiting):
            return ""
        for domain in self._domains().up_to(group.tier):
            if self._holds(domain, group, waiting, room):
                return f"{len(waiting)} pods in {domain.name or 'the cluster'}"
        return ""

    def _beside(
        self,
        group: Group,
        waiting: list[PodRecord],
        bound: list[PodRecord],
        done: int,
        room: Places,
    ) -> str:
        """Where pods go on that belong to a gang which runs in part."""
        if group.policies or len({task_of(pod) for pod in (*waiting, *bound)}) > 1:
            return ""
        domain = self._domains().around({pod.node for pod in bound}, group.tier)
        together = max(group.least - len(bound) - done, 1)
        if domain is None or len(waiting) < together or room.inside(domain.nodes).total < together:
            return ""
        return f"{together} pods in {domain.name or 'the cluster'}, where others run"

    def _holds(self, domain: Domain, group: Group, waiting: list[PodRecord], room: Places) -> bool:
        """Whether the domain has room for all of the pods, each sub-group in one of its own."""
        one_kind = len({task_of(pod) for pod in waiting}) == 1
        is_plain = one_kind and not group.policies
        if room.inside(domain.nodes).total < (group.least if is_plain else len(waiting)):
            return False
        return all(self._holds_parts(domain, each, waiting, room) for each in group.policies)

    def _holds_parts(
        self, domain: Domain, policy: Policy, waiting: list[PodRecord], room: Places
    ) -> bool:
        if policy.tier >= ANYWHERE:
            return True
        parts = sub_groups(policy, waiting)
        others = len(waiting) - sum(map(len, parts.values()))
        if any(len(its) != policy.size for its in parts.values()):
            return False
        inside = [each for each in self._domains().up_to(policy.tier) if each.nodes <= domain.nodes]
        widest = [each for each in inside if not any(each.nodes < one.nodes for one in inside)]
        unique = {each.nodes: each for each in widest}.values()
        # Wherever the others go, each of these may lose as many places.
        return sum(
            max(room.inside(each.nodes).total - others, 0) // policy.size for each in unique
        ) >= len(parts)

    def _domains(self) -> Domains:
        return domains_of(self.objects.of(HYPER_NODE), self.api.nodes)


def _phases(group: Group, pods: Collection[PodRecord]) -> tuple[str, ...]:
    """The phases that a PodGroup with these pods may be in."""
    bound, succeeded, _ = counts_of(pods)
    if not pods:
        return WITH_NO_PODS
    if bound:
        return ("Running",) if bound + succeeded >= group.least else ("Unknown",)
    if all(pod.is_finished for pod in pods):
        return ("Completed", "Inqueue")
    return ("Inqueue",)
