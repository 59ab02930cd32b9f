"""L1 when all is quiet: no gang on several Topologies waits that has a place, by brute force.

    each constraint takes a domain ─▶ each leaf may be on the nodes that are in all of its own
    pods as large as the largest ───▶ places on each node ─▶ do all pods find one?

Every choice of domains is tried, and of the members that a sub-group starts with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations, product

from app.kube.core.objects import NodeRecord, PodRecord
from tests.sim.api import KAI_GROUP, ApiServer
from tests.sim.kai.tree import Sub, Tree, by_leaf, leaf_of, tree_of
from tests.sim.objects import Objects
from tests.sim.oracle import Cluster, Taken
from tests.sim.places import is_ready, places_for
from tests.sim.told import is_live

Pods = Mapping[str, int]
"""By leaf."""


@dataclass(frozen=True, slots=True)
class AtRest:
    """Looks at the API server's truth."""

    api: ApiServer
    objects: Objects

    def waits_in_vain(
        self,
        name: str,
        members: Collection[PodRecord],
        taken: Taken,
        among: Cluster | None = None,
    ) -> str:
        """Where the waiting pods of a PodGroup have a place; "" if they have none for certain.

        `among`: the nodes, and the pods that count; None: all. No room is made for pods on
        different Topologies: there they have none.
        """
        body = self.objects.get(KAI_GROUP, name)
        if body is None:
            return ""
        its, cluster = tree_of(body), among or self.api
        live = [pod for pod in members if is_live(pod)]
        waiting = [pod for pod in live if not pod.node and is_ready(pod)]
        bound = [pod for pod in live if pod.node]
        done = [pod for pod in members if pod.phase == "Succeeded"]
        if not waiting or (done and not bound):
            return ""  # of what is gone not all is known
        if among is not None and len({its.topologies(leaf_of(pod)) for pod in waiting}) > 1:
            return ""
        homes = homes_of(its, bound, cluster.nodes)
        if homes is None:
            return ""
        room = places_for(cluster, waiting, taken).of
        search = Search(its, cluster.nodes, room, homes)
        for pods in enough(its, by_leaf([*bound, *done]), by_leaf(waiting), has_begun=bool(bound)):
            found = search.domains_for(pods)
            if found is not None:
                return f"{dict(pods)} in {found}"
        return ""


def homes_of(
    its: Tree, bound: Collection[PodRecord], nodes: Mapping[str, NodeRecord]
) -> dict[str, str] | None:
    """The domain of each sub-group with pods that run; None: those of some are not together."""
    homes: dict[str, str] = {}
    for pod in bound:
        if pod.node not in nodes:
            return None
        for sub in its.path(leaf_of(pod)):
            if sub.within is not None:
                here = sub.within.domain(nodes[pod.node])
                if not here or homes.setdefault(sub.name, here) != here:
                    return None
    return homes


def enough(its: Tree, there: Pods, ready: Pods, *, has_begun: bool) -> Iterator[Pods]:
    """Pods that wait, by leaf, of which all are to get nodes if they can.

    Before the gang starts any that it can start with; after that what it lacks, or one more.
    """
    if not has_begun:
        for pods in _needed(its, its.root):
            if pods and all(ready.get(leaf, 0) >= each for leaf, each in pods.items()):
                yield pods
        return
    if not its.is_met("", there):
        # Which members it goes on with where it needs some of them is its own choice.
        lacking = {
            each.name: max((each.least or 0) - there.get(each.name, 0), 0) for each in its.leaves
        }
        has_choice = any(not its.is_leaf(each.name) and each.least is not None for each in its.subs)
        for pods in (dict(ready), *([] if has_choice else [lacking])):
            after = Counter(there) + Counter(pods)
            is_ready_now = all(ready.get(leaf, 0) >= each for leaf, each in pods.items())
            if is_ready_now and its.is_met("", after):
                yield pods
        return
    for leaf in its.leaves:
        around = its.path(leaf.name)[1:-1]
        pods = max((leaf.least or 0) - there.get(leaf.name, 0), 1)
        if ready.get(leaf.name, 0) >= pods and all(its.is_met(e.name, there) for e in around):
            yield {leaf.name: pods}


def _needed(its: Tree, sub: Sub) -> Iterator[Pods]:
    """What a sub-group may start with."""
    members = its.members(sub.name)
    if not members:
        yield {sub.name: sub.least} if sub.least else {}
        return
    least = len(members) if sub.least is None else sub.least
    for some in combinations(members, least):
        for pods in product(*(tuple(_needed(its, each)) for each in some)):
            yield {leaf: each for its_pods in pods for leaf, each in its_pods.items()}


@dataclass(slots=True)
class Search:
    """Every choice of domains for the sub-groups of a PodGroup."""

    its: Tree
    nodes: Mapping[str, NodeRecord]
    room: Pods
    """Places, by node."""
    homes: Mapping[str, str]
    """Domains that are chosen already, by sub-group."""
    _inside: dict[str, dict[str, frozenset[str]]] = field(init=False)
    """By sub-group with a constraint: its domains, with their nodes."""

    def __post_init__(self) -> None:
        self._inside = {}
        for sub in (self.its.root, *self.its.subs):
            if sub.within is None:
                continue
            found: dict[str, set[str]] = {}
            for name in self.room:
                if domain := sub.within.domain(self.nodes[name]):
                    found.setdefault(domain, set()).add(name)
            home = self.homes.get(sub.name)
            self._inside[sub.name] = {
                domain: frozenset(names)
                for domain, names in sorted(found.items())
                if home in (None, domain)
            }

    def domains_for(self, pods: Pods) -> dict[str, str] | None:
        """The domains of a place for so many pods of each leaf; None: there is none."""
        asked = {leaf: each for leaf, each in pods.items() if each}
        paths = {leaf: [sub.name for sub in self.its.path(leaf)] for leaf in asked}
        chosen = [name for name in self._inside if any(name in path for path in paths.values())]
        for domains in product(*(self._inside[name] for name in chosen)):
            at = dict(zip(chosen, domains, strict=True))
            may = {
                leaf: [
                    node
                    for node in self.room
                    if all(node in self._inside[sub][at[sub]] for sub in path if sub in at)
                ]
                for leaf, path in paths.items()
            }
            if _all_fit(asked, may, self.room):
                return at
        return None


def _all_fit(pods: Pods, may: Mapping[str, Collection[str]], room: Pods) -> bool:
    """Whether all pods find a place: those that are in the way move to others of theirs."""
    on: dict[str, Counter[str]] = {node: Counter() for node in room}

    def put(leaf: str, seen: set[str]) -> bool:
        for node in may[leaf]:
            if node in seen:
                continue
            seen.add(node)
            if on[node].total() < room[node]:
                on[node][leaf] += 1
                return True
            for other in [each for each in on[node] if on[node][each] and each != leaf]:
                if put(other, seen):
                    on[node][other] -= 1
                    on[node][leaf] += 1
                    return True
        return False

    return all(put(leaf, set()) for leaf, each in pods.items() for _ in range(each))
