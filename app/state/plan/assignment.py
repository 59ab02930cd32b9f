"""From a placement to a node for each member: consecutive ranks as close as the tree allows.

    placement ─┐
    settled  ──┴─▶ places of the whole pod set, in the order of the tree ──by rank──▶ members

A member's rank follows from the index that its controller gave it. Ranks are used for all of a
pod set or for none of it: where one is not usable, members take the places in order of seniority,
which is by index too, and the plan says why. Pods without an index have no rank, which is no error.
Source: kueue pkg/controller/tas/topology_ungater.go (v0.16).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from app.dialects.spec import Index
from app.state.cache.topology_books import TopologyBooks
from app.state.gang.gang import Gang
from app.state.gang.members.member import Member
from app.state.gang.parts import DomainNodes
from app.state.plan.question.pins import kept_slots
from app.state.plan.question.pod_sets import PodSetMembers, SetKey, in_turn
from app.state.plan.verdict import Plan
from topology.model.answer import Pairs, Placement, PodSetPlacement
from topology.pod_set import ranks
from topology.pod_set.gaps import NO_GAPS, Gaps

PodsBySlot = Counter[int]


def plan_of(
    gang: Gang, placement: Placement, pod_sets: tuple[PodSetMembers, ...], topology: TopologyBooks
) -> Plan:
    """Assign the unplanned members to the nodes of the placement.

    Where it has fewer places than there are members, those that come first in turn get them.
    """
    plan, fallback = Plan(), dict[str, str]()
    levels: dict[int, int] = {}
    found: dict[int, PodsBySlot] = {}
    for placed in placement.pod_sets:
        index = int(placed.pod_set)
        levels[index] = placed.level
        found[index] = Counter(dict(placed.slots))
        if pod_sets[index].slices:
            found[index].subtract(dict(kept_slots(pod_sets[index], topology)))
    pod_sets = tuple(
        replace(each, unplanned=_seated(gang, each, found[index].total()))
        for index, each in enumerate(pod_sets)
    )
    for indices in _by_pod_set(pod_sets).values():
        assigner = _Assigner(gang, [(pod_sets[index], found[index]) for index in indices], topology)
        slots, why = assigner.slots()
        if why:
            fallback[pod_sets[indices[0]].unplanned[0].leaf] = why
        for index in indices:
            _write(plan, pod_sets[index].unplanned, slots, topology, levels[index])
    why_not = tuple(fallback.items())
    return Plan(plan.nodes, plan.domains, plan.domain_nodes, why_not, topology.name)


def _seated(gang: Gang, pod_set: PodSetMembers, places: int) -> tuple[Member, ...]:
    """The members of a pod set that get a place."""
    if places == len(pod_set.unplanned):
        return pod_set.unplanned
    return tuple(in_turn(gang, pod_set.unplanned)[:places])


def _by_pod_set(pod_sets: tuple[PodSetMembers, ...]) -> Mapping[SetKey, list[int]]:
    """The pod sets that have members to place, by their key."""
    found: dict[SetKey, list[int]] = {}
    for index, pod_set in enumerate(pod_sets):
        if pod_set.unplanned:
            found.setdefault(pod_set.key, []).append(index)
    return found


def _write(
    plan: Plan,
    members: Sequence[Member],
    slots: Mapping[str, int],
    topology: TopologyBooks,
    level: int,
) -> None:
    known: dict[int, tuple[str, DomainNodes]] = {}
    for member in members:
        uid = member.pod.uid
        domain = int(topology.tree.domain_of[level][slots[uid]])
        if domain not in known:
            known[domain] = domain_of(topology, level, domain)
        plan.nodes[uid] = topology.tree.nodes[slots[uid]]
        plan.domains[uid], plan.domain_nodes[uid] = known[domain]


def domain_of(topology: TopologyBooks, level: int, domain: int) -> tuple[str, DomainNodes]:
    """A domain in words and as nodes; its labels are those that a node selector can name."""
    tree = topology.tree
    path = tree.path(level, domain)
    labels = topology.labels_of(zip(topology.levels[: level + 1], path, strict=True))
    found = DomainNodes(tree.nodes[tree.slots(level, domain)], labels)
    return f"{topology.levels[level]}={'/'.join(path)}", found


@dataclass(frozen=True, slots=True)
class _Assigner:
    """The members of one pod set, and the places found for them."""

    gang: Gang
    pod_sets: Sequence[tuple[PodSetMembers, PodsBySlot]]
    topology: TopologyBooks

    def slots(self) -> tuple[dict[str, int], str]:
        """The slot of each unplanned member by uid, and why ranks were not used, if that is a loss.

        It is one where there was a choice, and the pods have indexes.
        """
        slot_of = self.topology.tree.slot_of
        settled = [
            (member, slot_of[node])
            for member, node in self.pod_sets[0][0].settled
            if node in slot_of
        ]
        unplanned = sorted(
            (member for pod_set, _ in self.pod_sets for member in pod_set.unplanned),
            key=lambda member: member.seniority,
        )
        everyone = [*(member for member, _ in settled), *unplanned]
        found, why = self._ranks(everyone)
        if not why:
            seats = ranks.by_rank(
                self._places(settled),
                [
                    ranks.Member(rank, slot)
                    for rank, slot in zip(
                        found,
                        [*(slot for _, slot in settled), *[None] * len(unplanned)],
                        strict=True,
                    )
                ],
            )
            why = _why_not(seats, unplanned, len(settled), self.topology)
            if not why:
                wanted = seats.slots[len(settled) :].tolist()
                return _by_uid(unplanned, wanted), ""
        is_choice = len({slot for _, places in self.pod_sets for slot in +places}) > 1
        is_numbered = any(member.index for member in everyone)
        return dict(self._in_order()), why if is_choice and is_numbered else ""

    def _places(self, settled: Sequence[tuple[Member, int]]) -> PodSetPlacement:
        """Where the whole pod set is, the settled members included."""
        places = Counter(slot for _, slot in settled)
        for _, found in self.pod_sets:
            places.update(found)
        return PodSetPlacement("", 0, Pairs.of([]), Pairs.of(sorted((+places).items())))

    def _in_order(self) -> Iterator[tuple[str, int]]:
        """The places of each pod_set in slot order to its members in order of seniority."""
        for pod_set, places in self.pod_sets:
            members = sorted(pod_set.unplanned, key=lambda member: member.seniority)
            slots = [slot for slot, pods in sorted(places.items()) for _ in range(pods)]
            for member, slot in zip(members, slots, strict=True):
                yield member.pod.uid, slot

    def _ranks(self, members: Sequence[Member]) -> tuple[list[int | None], str]:
        """The rank of each, and why they cannot be used.

        Placeholders take the ranks that are left.
        """
        has_gaps = self.gang.elastic_spec is not None  # some of the numbers may have no place
        is_dense = has_gaps or _is_across(self.gang, members)
        gaps = self._gaps(members)
        found = _dense(members) if is_dense else _numbered(members, gaps)
        seen: dict[int, Member] = {}
        for member, rank in zip(members, found, strict=True):
            if member.pod.uid in self.gang.placeholders:
                continue
            if rank is None:
                return found, _unusable(member, len(members), gaps)
            if rank in seen:
                names = sorted((seen[rank].pod.name, member.pod.name))
                return found, f"pods {names[0]} and {names[1]} have the same index"
            seen[rank] = member
        return _fill_up(found, [member.pod.uid in self.gang.placeholders for member in members]), ""

    def _gaps(self, members: Sequence[Member]) -> Gaps:
        """The numbers that no pod of the pod set has."""
        spec = self.gang.membership.spec
        return NO_GAPS if spec is None or not members else spec.gaps_of(members[0].leaf)


def _by_uid(members: Sequence[Member], slots: Sequence[int]) -> dict[str, int]:
    return {member.pod.uid: slot for member, slot in zip(members, slots, strict=True)}


def _why_not(
    seats: ranks.Seats, unplanned: Sequence[Member], settled: int, topology: TopologyBooks
) -> str:
    """Why members cannot take the places of their ranks; "" if they can."""
    if seats.fallback:
        return "pods that have a node already are not where their index belongs"
    nodes = topology.tree.nodes
    for member, slot in zip(unplanned, seats.slots[settled:].tolist(), strict=True):
        if member.allowed is not None and nodes[slot] not in member.allowed:
            return f"pod {member.pod.name} was narrowed to other nodes than its index asks for"
    return ""


def _is_across(gang: Gang, members: Sequence[Member]) -> bool:
    """Whether the indexes of these members run on over other pod sets of their gang."""
    is_across = any(member.index and member.index.is_across for member in members)
    everyone = (*gang.membership.bound, *gang.planned(), *gang.unplanned())
    return is_across and any(each.role != members[0].role for each in everyone)


def _numbered(members: Sequence[Member], gaps: Gaps) -> list[int | None]:
    """The rank of each member by its own index."""
    return [_rank(member.index, len(members), gaps) for member in members]


def _rank(number: Index | None, pods: int, gaps: Gaps) -> int | None:
    if number is None:
        return None
    numbering = ranks.Numbering(pods, number.offset, number.parts, gaps)
    return ranks.rank_of(numbering, number.index, number.part)


def _dense(members: Sequence[Member]) -> list[int | None]:
    """The rank of each member by the order of indexes; other pod sets have those between."""
    order = {
        number: rank for rank, number in enumerate(sorted({m.index for m in members if m.index}))
    }
    return [order[member.index] if member.index else None for member in members]


def _fill_up(found: Sequence[int | None], is_absent: Sequence[bool]) -> list[int | None]:
    """Every rank once: pods keep theirs, placeholders get theirs or one that is left."""
    taken = {rank for rank, absent in zip(found, is_absent, strict=True) if not absent}
    filled: list[int | None] = []
    later: list[int] = []
    for rank, absent in zip(found, is_absent, strict=True):
        if absent and (rank is None or rank in taken):
            later.append(len(filled))
            rank = None
        taken.add(rank)
        filled.append(rank)
    left = iter(sorted(set(range(len(found))) - taken))
    for position in later:
        filled[position] = next(left)
    return filled


def _unusable(member: Member, pods: int, gaps: Gaps) -> str:
    """Why a pod's index gives it no rank."""
    number, name = member.index, member.pod.name
    if number is None:
        return f"pod {name} has no index"
    if not number.parts:
        first = next(gaps.numbers(number.offset))
        return f"pod {name} has index {number.index}, its {pods} pods count from {first}"
    size = pods // number.parts
    return (
        f"pod {name} has index {number.index} in part {number.part}, its {number.parts} parts"
        f" have {size} pods"
    )
