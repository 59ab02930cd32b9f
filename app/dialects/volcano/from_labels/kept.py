"""HyperNodes that are kept as the labels of nodes are now.

    labels of nodes ─▶ domains ─▶ HyperNodes as the command writes them ─┐
    HyperNodes there ────────────────────────────────────────────────────┴─▶ what is to be written

Those that are kept have one label more than the command gives them, `app.kubernetes.io/managed-by`,
and only they are ever deleted: HyperNodes that were made by hand stay, whatever their prefix is.
One that the command has made for the same domain is taken over. Any other of the same name is left
as it is. Labels that a kept one has beside those of its domain stay.

Labels may be lost by mistake, and a kubelet may write most labels of its own node. So nothing is
changed while most of the nodes that kept HyperNodes name have no domain any more. Nodes that are
gone, or are in another domain, are no such loss.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from app.dialects import topograph
from app.dialects.declared import DomainSpec, NodesNamed
from app.dialects.volcano.from_labels.domains import Labels, domains_of, placed_from_widest
from app.dialects.volcano.from_labels.manifests import Manifest, manifests
from app.dialects.volcano.hyper_nodes import (
    KIND,
    LEVEL,
    MOST_MEMBERS,
    OURS,
    PATH,
    SOURCE,
    HyperNodeRecord,
)
from app.dialects.written import Difference, ObjectWrite
from app.kube.core.objects import ObjectRecord
from app.labels import is_label_value
from topology.errors import InvalidTopology
from topology.model.levels import levels_of

KEPT = {SOURCE: OURS, "app.kubernetes.io/managed-by": OURS}  # labels of those that are kept
LARGEST_LOSS = 0.5  # share of the nodes in them that may lack a domain
MOST_SHOWN = 8  # nodes in a note

Records = Mapping[str, HyperNodeRecord]


@dataclass(frozen=True, slots=True)
class KeptHyperNodes:
    """The HyperNodes of these levels, the widest first, or of the levels that topograph writes."""

    levels: tuple[str, ...]
    kind: str = KIND
    path: str = PATH

    def difference(
        self, nodes: Mapping[str, Labels], there: Mapping[str, ObjectRecord]
    ) -> Difference:
        """What is to be written: the smallest tier first, and at last what is to be deleted."""
        found = {name: each for name, each in there.items() if isinstance(each, HyperNodeRecord)}
        kept = {name: each for name, each in found.items() if _has(each, KEPT)}
        try:
            levels, notes = self._levels_on(nodes)
        except InvalidTopology as error:
            return Difference(notes=(f"HyperNodes stay as they are: {error}",))
        placed = placed_from_widest(_readable(nodes, levels, notes), levels)
        if loss := _loss(kept.values(), nodes, placed.paths):
            return Difference(notes=(*notes, loss))
        made = list(manifests(domains_of([(placed, levels)]), levels))
        large = {_name(each) for each in made if len(each["spec"]["members"]) > MOST_MEMBERS}
        wanted = [_wanted(each, found) for each in made if _name(each) not in large]
        if large:
            notes.append(
                f"HyperNodes of more than {MOST_MEMBERS:,} members are not kept, since none is"
                f" read: {_shown(large)}"
            )
        if not made:
            notes.append(
                "there are no HyperNodes to make: no node has a label that says where it is"
            )
        if others := [each.domain.name for each in wanted if each.is_of_another]:
            notes.append(f"HyperNodes that others have made stay as they are: {_shown(others)}")
        return Difference((*_changes(wanted), *_deletions(kept, large, wanted)), tuple(notes))

    def _levels_on(self, nodes: Mapping[str, Labels]) -> tuple[tuple[str, ...], list[str]]:
        """The levels, and notes on those that are left out. Raises: InvalidTopology."""
        if self.levels != (topograph.NAME,):
            return self.levels, []
        levels, notes = topograph.levels_on(nodes.values())
        return levels_of(levels)[:-1] if levels else (), notes


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A HyperNode as it is to be, and the one of its name."""

    manifest: Manifest
    domain: DomainSpec
    """As Corral reads it."""
    found: HyperNodeRecord | None

    @property
    def labels(self) -> Labels:
        """All that it is to have."""
        labels: Labels = self.manifest["metadata"]["labels"]
        return {**labels, **KEPT}

    @property
    def is_of_another(self) -> bool:
        """Whether the one there is none of ours, or one that was made by hand for other labels."""
        if self.found is None or _has(self.found, KEPT):
            return False
        return not _has(self.found, self.manifest["metadata"]["labels"])

    @property
    def is_change(self) -> bool:
        """Whether it is to be written."""
        if self.found is None:
            return True
        is_there = self.found.domain == self.domain and _has(self.found, self.labels)
        return not (is_there or self.is_of_another)

    def order(self) -> tuple[int, bool, int, str]:
        """The smallest tier first; of one tier those that lose members, so that none is in two."""
        grown = len(self.domain.nodes)
        if self.found is not None:
            grown -= len(self.found.domain.nodes)
        return self.domain.tier, self.found is None, grown, self.domain.name

    def write(self) -> ObjectWrite:
        """What makes it what it is to be."""
        metadata, spec = {"labels": self.labels}, self.manifest["spec"]
        if self.found is None:
            whole = {**self.manifest, "metadata": {**self.manifest["metadata"], **metadata}}
            return ObjectWrite(self.domain.name, whole)
        patch = {"metadata": metadata, "spec": spec}
        return ObjectWrite(self.domain.name, patch, self.found.uid, self.found.version)


def _name(manifest: Manifest) -> str:
    name: str = manifest["metadata"]["name"]
    return name


def _wanted(manifest: Manifest, found: Records) -> _Wanted:
    name, spec = _name(manifest), manifest["spec"]
    named = [(each["type"], each["selector"]["exactMatch"]["name"]) for each in spec["members"]]
    domain = DomainSpec(
        name,
        spec["tier"],
        LEVEL.format(spec["tier"]),
        spec["tierName"],
        tuple(member for kind, member in named if kind == KIND),
        tuple(NodesNamed(member) for kind, member in named if kind != KIND),
    )
    return _Wanted(manifest, domain, found.get(name))


def _changes(wanted: Iterable[_Wanted]) -> Iterator[ObjectWrite]:
    return (each.write() for each in sorted(wanted, key=_Wanted.order) if each.is_change)


def _deletions(
    kept: Records, large: Collection[str], wanted: Iterable[_Wanted]
) -> Iterator[ObjectWrite]:
    """The widest first: what is there names no member that is not. `large`: they stay."""
    stay = {*large, *(each.domain.name for each in wanted)}
    gone = [kept[name] for name in kept.keys() - stay]
    for each in sorted(gone, key=lambda each: (-each.domain.tier, each.name)):
        yield ObjectWrite(each.name, None, each.uid, each.version)


def _loss(kept: Iterable[HyperNodeRecord], nodes: Collection[str], placed: Collection[str]) -> str:
    """Why nothing is changed, if too many nodes that are in HyperNodes have no domain any more."""
    named = {each.name for record in kept for each in record.domain.nodes if each.name in nodes}
    lost = [node for node in named if node not in placed]
    if len(lost) <= LARGEST_LOSS * len(named):
        return ""
    return (
        f"HyperNodes stay as they are: of {len(named)} nodes in them {len(lost)} have no label "
        f"any more that says where they are: {_shown(lost)}"
    )


def _has(record: HyperNodeRecord, labels: Labels) -> bool:
    return labels.items() <= record.labels.items()


def _readable(
    nodes: Mapping[str, Labels], levels: Collection[str], notes: list[str]
) -> dict[str, Labels]:
    """The labels of nodes at these levels; a value that is none is left out, which a note says."""
    found: dict[str, Labels] = {
        node: {level: labels[level] for level in levels if level in labels}
        for node, labels in nodes.items()
    }
    values = {value for labels in found.values() for value in labels.values()}
    invalid = {value for value in values if not is_label_value(value)}
    if not invalid:
        return found
    wrong = [node for node, labels in found.items() if not invalid.isdisjoint(labels.values())]
    notes.append(f"nodes with a label value that is none, which is left out: {_shown(wrong)}")
    return {
        node: {level: value for level, value in labels.items() if value not in invalid}
        for node, labels in found.items()
    }


def _shown(names: Iterable[str]) -> str:
    """The first of them by name."""
    first = sorted(names)
    more = len(first) - MOST_SHOWN
    return ", ".join(first[:MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")
