"""What a gang cannot start without, where its spec lets it start without the rest.

    LeafSpec.needed    so many pods of the leaf          None: all of them
    GroupSpec.needed   so many members of the group      None: all of them

A member of a group that may be absent is still placed as a whole: as long as it has fewer pods than
it needs itself, they wait. Once one of its pods has a node, each further one is placed as it comes.
So is a member of a gang that runs and of which no pod runs any more, where the gang is repaired
together; such a gang is counted like one that may run without some of its pods.

`pods` and `settled` below count pods by the name of their leaf; of a gang that needs all of its
pods nothing is counted, since these numbers decide nothing there.
Source: KAI-Scheduler pkg/scheduler/api/podgroup_info/allocation_info.go (v0.17).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from app.dialects.spec import GangSpec, GroupSpec, LeafSpec

Pods = Mapping[str, int]


def names_of(spec: GangSpec) -> frozenset[str]:
    """The names of its leaves."""
    return frozenset(leaf.name for leaf in spec.leaves())


def leaf_of(names: Collection[str], claimed: str) -> str:
    """The leaf of a pod whose claim gives this name: one that no leaf has is of the leaf ""."""
    return claimed if claimed in names else ""


def by_leaf(spec: GangSpec, claimed: Iterable[str]) -> Counter[str]:
    """How many pods each leaf has, from the name that each pod's claim gives."""
    if not spec.counts_by_leaf:
        return Counter()
    names = names_of(spec)
    return Counter(leaf_of(names, name) for name in claimed)


def has_enough(spec: GangSpec, pods: Pods) -> bool:
    """Whether these pods are all that the gang needs."""
    return enough(spec.root, pods)[id(spec.root)]


def least_pods(spec: GangSpec) -> int:
    """The fewest pods that are enough."""
    least: dict[int, int] = {}
    for member in reversed(list(_parts(spec.root))):
        needed = member.least
        if isinstance(member, GroupSpec):
            needed = sum(sorted(least[id(each)] for each in member.members)[:needed])
        least[id(member)] = needed
    return least[id(spec.root)]


def left_out(spec: GangSpec, pods: Pods, its_begun: Pods) -> frozenset[str]:
    """The leaves whose pods wait because a group, or the leaf, has too few of them to be whole.

    `pods` are those that could be placed, and those that have a node already; `its_begun`, of
    these the ones whose parts have begun: see `begun`.
    """
    is_enough, is_begun = enough(spec.root, pods), any_of(spec.root, its_begun)
    found: set[str] = set()
    waiting: list[tuple[GroupSpec | LeafSpec, bool]] = [(spec.root, False)]
    while waiting:
        member, is_out = waiting.pop()
        if isinstance(member, LeafSpec):
            found.update((member.name,) if is_out else ())
            continue
        for each in member.members:
            may_join = is_enough[id(each)] or is_begun[id(each)]
            waiting.append((each, is_out or not may_join))
    return frozenset(found)


def begun(settled: Pods, *, runs: bool) -> Pods:
    """Of the settled pods those whose parts have begun: of a gang of which nothing runs, none.

    Those that have succeeded are settled as well, and what runs no more starts anew.
    """
    return settled if runs else {}


def any_of(root: GroupSpec, pods: Pods) -> Mapping[int, bool]:
    """Of each part, by its `id`, whether any of these pods are its own."""
    found: dict[int, bool] = {}
    for member in reversed(list(_parts(root))):
        if isinstance(member, LeafSpec):
            found[id(member)] = pods.get(member.name, 0) > 0
        else:
            found[id(member)] = any(found[id(each)] for each in member.members)
    return found


def enough(root: GroupSpec, pods: Pods) -> Mapping[int, bool]:
    """Of each part, by its `id`, whether these pods are all that it needs."""
    found: dict[int, bool] = {}
    for member in reversed(list(_parts(root))):
        if isinstance(member, LeafSpec):
            there = pods.get(member.name, 0)
        else:
            there = sum(found[id(each)] for each in member.members)
        found[id(member)] = there >= member.least
    return found


def _parts(root: GroupSpec) -> Iterator[GroupSpec | LeafSpec]:
    """Every group and leaf, each before its members."""
    waiting: list[GroupSpec | LeafSpec] = [root]
    while waiting:
        member = waiting.pop()
        yield member
        if isinstance(member, GroupSpec):
            waiting.extend(reversed(member.members))
