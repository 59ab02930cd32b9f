"""Every constraint of every gang, asked one after the other.

Where several topologies have a gang's levels, one in which all of it holds is enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from app.cli.audit.gathering import RunningGang, Seen
from app.cli.audit.places import Places
from app.cli.audit.rules import Question, answered, beside, sliced, whole
from app.cli.audit.units import Unit, groups_of, levels_of, running, units_of
from app.cli.audit.verdicts import Verdict
from app.kube.core.objects import NodeRecord
from app.state.cache.topology_books import TopologyBooks
from topology.model.request import Constraint, Slice

WORDS = "words"
PlacesOf = Callable[[str], Places | str]
"""By leaf."""


@dataclass(slots=True)
class Judge:
    """Judges gangs one after the other, and after all of them what they have in common."""

    nodes: Mapping[str, NodeRecord]
    topologies: Mapping[str, TopologyBooks]
    nodes_unread: str = ""
    """Why no node could be read."""
    levels_alone: dict[str, None] = field(default_factory=dict)
    """Levels that gangs name and that no topology has."""
    _places: dict[str, Places] = field(default_factory=dict)
    _families: dict[tuple[str, str, str], list[RunningGang]] = field(default_factory=dict)

    def verdicts(self, gang: RunningGang) -> Iterator[Verdict]:
        """What there is to say of a gang."""
        yield from _words(gang)
        if gang.spec is not None:
            yield whole(gang.key, gang.spec, gang.pods)
            if gang.spec.family is not None:
                at = (gang.key.namespace, gang.key.source, gang.spec.family.name)
                self._families.setdefault(at, []).append(gang)
        units = units_of(gang)
        tried = [
            list(_placed(gang, units, places_of)) for places_of in self._candidates(gang, units)
        ]
        yield from min(tried, key=_badness)

    def of_families(self) -> Iterator[Verdict]:
        """Whether gangs are in the domain of the one whose level they share, for each of them."""
        for (_, _, name), gangs in sorted(self._families.items()):
            leaders = [each for each in gangs if _is_leader(each)]
            level = next(filter(None, map(_required, leaders)), None)
            others = [pod for each in leaders for pod in running(each.pods)]
            if level is None or not others:
                continue
            for gang in gangs:
                asked = Question(gang.key, f"family {name}", Constraint(level), running(gang.pods))
                topology = gang.spec.topology if gang.spec else None
                (places, *_) = self._over_levels({level}, topology)
                found = answered(asked, places, beside(others))
                if found is not None and not _is_leader(gang):
                    yield found

    def _candidates(self, gang: RunningGang, units: Sequence[Unit]) -> Sequence[PlacesOf]:
        """The topologies that may serve a gang, by leaf.

        A sentence where the one it names is not there.
        """
        spec = gang.spec
        if spec is not None and spec.parts:
            return (lambda leaf: self._over_levels(set(), spec.topology_of(leaf))[0],)
        return [_of_every_leaf(each) for each in self._for_all(gang, units)]

    def _for_all(self, gang: RunningGang, units: Sequence[Unit]) -> Sequence[Places | str]:
        """The same of a gang that is on one topology."""
        levels = {level for unit in units for level in levels_of(unit.constraint)}
        levels |= {each.level for unit in units for layers in unit.slices for each in layers}
        if gang.spec is None:
            return self._over_levels(levels, None)
        for constraint in gang.spec.constraints():
            levels.update(levels_of(constraint))
        return self._over_levels(levels, gang.spec.topology)

    def _over_levels(self, levels: set[str], name: str | None) -> Sequence[Places | str]:
        if name is not None:
            named = self.topologies.get(name)
            return (f"its topology {name} is not there" if named is None else self._over(named),)
        found = [
            each
            for each in self.topologies.values()
            if levels <= set(each.levels) and not each.is_joined
        ]
        if found:
            return [self._over(each) for each in found]
        known = {level for each in self.topologies.values() for level in each.levels}
        self.levels_alone.update(dict.fromkeys(sorted(levels - known)))
        return (self._over(None),)

    def _over(self, topology: TopologyBooks | None) -> Places:
        name = "" if topology is None else topology.name
        if name not in self._places:
            self._places[name] = Places(self.nodes, topology, self.nodes_unread)
        return self._places[name]


def _of_every_leaf(places: Places | str) -> PlacesOf:
    return lambda _: places


def _placed(gang: RunningGang, units: Sequence[Unit], places_of: PlacesOf) -> Iterator[Verdict]:
    """Of each group from the root on, then of each pod set."""
    found = [
        answered(Question(gang.key, *each), places_of(each[-1][0].leaf)) for each in groups_of(gang)
    ]
    for unit in units:
        places = places_of(unit.workers[0].leaf if unit.workers else "")
        own = Question(gang.key, unit.name, unit.constraint, unit.workers)
        found.append(answered(own, places))
        if unit.leader is not None and unit.constraint.required:
            name, level = f"leader of {unit.name}", Constraint(unit.constraint.required)
            leader = Question(gang.key, name, level, unit.sets[unit.leader])
            found.append(answered(leader, places, beside(unit.workers)))
        for at, layers in enumerate(unit.slices):
            if at != unit.leader:
                found += [_slices(gang, unit, unit.sets[at], each, places) for each in layers]
    yield from filter(None, found)


def _slices(
    gang: RunningGang, unit: Unit, pods: Sequence[Seen], layer: Slice, places: Places | str
) -> Verdict | None:
    name = f"slices of {layer.pods} of {unit.name}"
    asked = Question(gang.key, name, Constraint(layer.level), pods)
    return answered(asked, places, sliced(layer, _pods_in_all(gang, pods[0])))


def _pods_in_all(gang: RunningGang, one: Seen) -> int | None:
    """How many pods the pod set of this one may have: those that are gone, too. None: not known."""
    if gang.spec is None:
        return None
    there = [each for each in gang.pods if each.state in ("runs", "waits") or each.is_done]
    of_set = sum(each.role is one.role for each in there)
    declared = {leaf.name: leaf.pods + leaf.ended for leaf in gang.spec.leaves()}
    leaves = [each.leaf if each.leaf in declared else "" for each in there]
    own = one.leaf if one.leaf in declared else ""
    # Which of the leaf's pod sets a pod was in that is gone is not known: it may have been this.
    return max(of_set, declared.get(own, 0) - (leaves.count(own) - of_set))


def _words(gang: RunningGang) -> Iterator[Verdict]:
    """Whether what its objects and pods say is known; of pods that are not read, why."""
    unread = "".join(f"; {each}" for each in gang.unread)
    flawed = [each for each in running(gang.pods) if each.flaw]
    if flawed:
        one, more = flawed[0], len(flawed) - 1
        text = f"pod {one.name} on node {one.node} is not read: {one.flaw}"
        text += f"; nor are {more} more" if more else ""
        yield Verdict(gang.key, WORDS, "UNOBSERVABLE", text, pod=one.name, node=one.node)
    elif gang.spec is None:
        text = f"what the gang is to be is not known: {gang.why}{unread}"
        yield Verdict(gang.key, WORDS, "UNOBSERVABLE", text)
    if gang.spec is not None and (gang.why or gang.spec.flaw):
        text = gang.spec.flaw or f"{gang.why}{unread}"
        yield Verdict(gang.key, WORDS, "UNOBSERVABLE", text)


def _is_leader(gang: RunningGang) -> bool:
    spec = gang.spec
    return spec is not None and spec.family is not None and spec.family.is_leader


def _required(gang: RunningGang) -> str | None:
    return gang.spec.root.constraint.required if gang.spec else None


def _badness(verdicts: Iterable[Verdict]) -> tuple[int, int]:
    counted = Counter(each.answer for each in verdicts)
    return counted["VIOLATION"], counted["UNOBSERVABLE"]
