"""The plan and the verdict of a gang whose pods are on several topologies.

pod sets ──parts_of──▶ a question for each topology ──requests──▶ `question/parts.py`
its answer ──▶ one plan for all of them, or the verdict of the part that found no place
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.state.cache.topology_books import TopologyBooks
from app.state.gang.gang import Gang
from app.state.plan.assignment import plan_of
from app.state.plan.exclusions import Told, explained
from app.state.plan.question.parts import Across, PartRequests, Placed, Unplaced
from app.state.plan.question.pod_sets import PodSetMembers, are_narrowed_apart
from app.state.plan.question.request import Builder, Question, SearchRequest
from app.state.plan.verdict import BESIDE_OTHERS, NoPlan, Plan

PodSets = tuple[PodSetMembers, ...]


def parts_of(gang: Gang, pod_sets: PodSets) -> tuple[PodSets, ...]:
    """The pod sets by their topology; those that have none come last, for they may be anywhere."""
    spec = gang.membership.spec
    if spec is None or not spec.parts:
        return (pod_sets,)
    found: dict[str | None, list[PodSetMembers]] = {}
    for each in pod_sets:
        found.setdefault(spec.topology_of(each.unplanned[0].leaf), []).append(each)
    anywhere = found.pop(None, [])
    parts = [*found.values(), *filter(None, [anywhere])]
    return tuple(map(tuple, parts)) or ((),)


@dataclass(frozen=True, slots=True)
class InParts:
    """A question in parts, each on its topology."""

    builder: Builder
    parts: Sequence[tuple[Question, TopologyBooks]]

    def requests(self) -> PartRequests:
        """The search for each. Raises: topology.errors.InvalidRequest."""
        return PartRequests(
            tuple(self.builder.request(*part) for part in self.parts),
            tuple(self.builder.tree(*part).is_needed for part in self.parts),
            tuple(self._across()),
        )

    def _across(self) -> Iterator[Across]:
        """The levels that are required of several of them at once."""
        found: dict[int, tuple[str, dict[int, set[str]]]] = {}
        for part, (question, _) in enumerate(self.parts):
            for index, pod_set in enumerate(question.pod_sets):
                for group in pod_set.groups:
                    if level := group.constraint.required:
                        its = found.setdefault(id(group), (level, {}))[1]
                        its.setdefault(part, set()).add(str(index))
        for level, its in found.values():
            if len(its) > 1:
                yield Across(level, {part: frozenset(names) for part, names in its.items()})

    def searches(self) -> Iterator[tuple[TopologyBooks, SearchRequest]]:
        """The same with their topologies, for later."""
        for (_, topology), request in zip(self.parts, self.requests().requests, strict=True):
            yield topology, request

    def plan(self, placed: Placed) -> Plan:
        """A node for each pod that was placed."""
        plan, fallback = Plan(), dict[str, str]()
        for part, placement in sorted(placed.items()):
            question, topology = self.parts[part]
            its = plan_of(question.gang, placement, question.pod_sets, topology)
            plan.nodes.update(its.nodes)
            plan.domains.update(its.domains)
            plan.domain_nodes.update(its.domain_nodes)
            fallback.update(its.fallback)
        return Plan(plan.nodes, plan.domains, plan.domain_nodes, tuple(fallback.items()))

    def no_plan(self, found: Unplaced) -> NoPlan:
        """Why there is none, with what looks up the reasons."""
        question, topology = self.parts[found.part]
        return NoPlan(
            found.why,
            "" if found.is_alone else BESIDE_OTHERS,
            explain=lambda: explained(found.why, self.builder, question, topology, found.request),
            is_narrowed_apart=are_narrowed_apart(question.pod_sets),
        )

    def told(self, part: int, request: SearchRequest) -> Told:
        """A search for a part, with all that its answer is told in."""
        return Told.of(self.builder, *self.parts[part], request)
