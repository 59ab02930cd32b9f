"""What PodGroups are together that are inside CompositePodGroups: one gang, the outermost one's.

    CompositePodGroup train, gang {minGroupCount 2}, topology block
     ├─ CompositePodGroup replica-0, gang {minGroupCount 2}, topology rack
     │    ├─ PodGroup prefill-0, gang {minCount 4}
     │    └─ PodGroup decode-0, gang {minCount 2}, topology host
     └─ …

Of a group with the policy `basic` any part starts by itself, which is a group that needs one. The
domain of a key is searched inside that of the group around it. Where a group has too few groups
inside, the gang waits for these: a name that no pod can claim takes the place of each.

Objects that contradict one another make no gang: the whole tree waits, and its pods say why. The
KEP has kube-scheduler refuse the same, as the API server looks at one object at a time.
Source: KEP-6012 "Group hierarchy", "GangScheduling Plugin Changes".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from app.dialects.flaw import Flaw
from app.dialects.gang_objects import object_of
from app.dialects.native.composites import KIND, MOST_GROUPS, CompositeRecord
from app.dialects.native.pod_groups import PodGroupRecord
from app.dialects.rules import forbidden, invalid, of_spec
from app.dialects.spec import (
    ANYWHERE,
    GangKey,
    GangSpec,
    GroupSpec,
    LeafPods,
    LeafSpec,
    Lifecycle,
    Said,
    SearchPolicy,
    ends_together,
)
from app.kube.core.objects import ObjectRecord
from topology.model.request import Constraint, DomainOrder

SOURCE = "composite"
POLICY = SearchPolicy(order=DomainOrder.FEWEST)
MOST_DEPTH = 4  # groups inside one another, the PodGroup among them
_PARENT = "parentCompositePodGroupName"

Group = PodGroupRecord | CompositeRecord


def key_of(namespace: str, name: str) -> GangKey:
    """The key of a CompositePodGroup of this name, whether or not it is there."""
    return GangKey(namespace, name, SOURCE)


def composite_in(key: GangKey, objects: Collection[ObjectRecord]) -> CompositeRecord | None:
    """The CompositePodGroup of this key; of two while one is made anew, either."""
    return object_of(key, CompositeRecord, objects)


@dataclass(frozen=True, slots=True)
class Around:
    """What a PodGroup is inside."""

    gang: GangKey
    """Of the outermost CompositePodGroup, which may not be there."""
    flaw: str
    """Why the PodGroup is in no gang; "" if it is in one."""


def around(group: PodGroupRecord, objects: Collection[ObjectRecord]) -> Around:
    """The CompositePodGroups around a PodGroup that is inside one."""
    names: list[str] = []
    record: Group | None = group
    while record is not None and record.parent:
        if record.parent in names:
            return Around(key_of(group.namespace, names[0]), _told(group, _circle(group, names)))
        names.append(record.parent)
        record = composite_in(key_of(group.namespace, record.parent), objects)
    flaw = _told(group, _too_deep(group, len(names) + 1)) if len(names) >= MOST_DEPTH else ""
    return Around(key_of(group.namespace, names[-1]), flaw)


def levels_around(group: PodGroupRecord, objects: Collection[ObjectRecord]) -> bool:
    """Whether a CompositePodGroup around a PodGroup has a level; a circle ends the search."""
    parents = {group.parent}
    found = composite_in(key_of(group.namespace, group.parent), objects)
    while found is not None and not has_level(found) and found.parent not in parents:
        parents.add(found.parent)
        found = composite_in(key_of(group.namespace, found.parent), objects)
    return found is not None and has_level(found)


def has_level(record: CompositeRecord) -> bool:
    """Whether its spec or its annotations name a level."""
    return bool(record.level) or {record.constraint, record.together} != {ANYWHERE}


def flaws_around(group: PodGroupRecord, objects: Collection[ObjectRecord]) -> Iterator[str]:
    """What of the CompositePodGroups around a PodGroup, that are there, cannot be kept."""
    name, seen = group.parent, set[str]()
    while name and name not in seen:
        seen.add(name)
        found = composite_in(key_of(group.namespace, name), objects)
        if found is not None and found.flaw:
            yield found.flaw
        name = found.parent if found is not None else ""


def spec_of(
    key: GangKey,
    objects: Collection[ObjectRecord],
    said: Sequence[Said],
    pods: Mapping[str, LeafPods],
) -> GangSpec | None:
    """The spec of a CompositePodGroup that is inside no other; None: it is not there."""
    root = composite_in(key, objects)
    if root is None:
        return None
    inside = _inside(objects)
    group = _group(root, inside, pods, MOST_DEPTH)
    named = levels_named(objects)
    level = together(named, said)
    if level != ANYWHERE:
        group = GroupSpec(key.name, (group,), level)
    said_of_pods = ends_together(said)
    return GangSpec(
        key,
        group,
        f"{KIND} {key}",
        policy=POLICY,
        lifecycle=Lifecycle(
            counts_succeeded=True,
            ends_together=_ends_together(objects) if said_of_pods is None else said_of_pods,
        ),
        flaw=next(_flaws(root, inside, objects), ""),
        levels_named=named,
        says_by_leaf=True,
        awaits=_awaited(root, inside, MOST_DEPTH),
    )


def scheduled(
    root: CompositeRecord, objects: Collection[ObjectRecord], settled: Mapping[str, int]
) -> Mapping[str, bool]:
    """By the uid of each group: whether the pods that have nodes are all that it takes."""
    found: dict[str, bool] = {}
    inside = _inside(objects)

    def look(record: Group, depth: int) -> bool:
        if isinstance(record, PodGroupRecord):
            parts = settled.get(record.name, 0)
        else:
            its = inside.get(record.name, ()) if depth else ()
            parts = sum([look(each, depth - 1) for each in its])
        found[record.uid] = parts >= record.least
        return found[record.uid]

    look(root, MOST_DEPTH)
    return found


# -- the tree --------------------------------------------------------------------------------------


def _inside(objects: Collection[ObjectRecord]) -> Mapping[str, Sequence[Group]]:
    """By the name of a CompositePodGroup: what is inside, each name of a kind once, in order."""
    found: dict[str, dict[tuple[str, str], Group]] = {}
    groups = [each for each in objects if isinstance(each, PodGroupRecord | CompositeRecord)]
    for each in sorted(groups, key=lambda one: (one.name, one.kind, one.uid)):
        if each.parent:
            found.setdefault(each.parent, {}).setdefault((each.kind, each.name), each)
    return {parent: tuple(its.values()) for parent, its in found.items()}


def _group(
    record: CompositeRecord,
    inside: Mapping[str, Sequence[Group]],
    pods: Mapping[str, LeafPods],
    depth: int,
) -> GroupSpec:
    members = tuple(
        _member(each, inside, pods, depth - 1) for each in _parts(record, inside, depth)
    )
    lacking = range(record.least - len(members))
    absent = tuple(LeafSpec(f"{record.name}/{number}", 1, needed=1) for number in lacking)
    own, level = record.constraint, record.level or None
    if level is None or own.required is None:
        # In one constraint: what is preferred is looked for in every domain of the level.
        constraint = replace(own, required=own.required or level)
        return GroupSpec(record.name, members + absent, constraint, needed=record.least)
    group = GroupSpec(record.name, members + absent, own, needed=record.least)
    return GroupSpec(record.name, (group,), Constraint(required=level))


def _parts(
    record: CompositeRecord, inside: Mapping[str, Sequence[Group]], depth: int
) -> Sequence[Group]:
    """What is inside a group. `depth`: how deep the tree goes on; beyond it is not looked at."""
    return inside.get(record.name, ()) if depth > 1 else ()


def _member(
    record: Group,
    inside: Mapping[str, Sequence[Group]],
    pods: Mapping[str, LeafPods],
    depth: int,
) -> GroupSpec | LeafSpec:
    if isinstance(record, CompositeRecord):
        return _group(record, inside, pods, depth)
    its = pods.get(record.name)
    leaf = leaf_of(record, record.name, its.pods if its else 0)
    around = around_leaf(record, leaf)
    return leaf if around == ANYWHERE else GroupSpec(record.name, (leaf,), around)


def around_leaf(record: PodGroupRecord, leaf: LeafSpec) -> Constraint:
    """One domain of a PodGroup's key, but where its leaf has that beside what is preferred."""
    own = leaf.constraint
    if own is not None and own.preferred is not None and own.required == record.level:
        return ANYWHERE
    return Constraint(required=record.level or None)


Levels = tuple[tuple[str, Constraint], ...]


def levels_named(objects: Iterable[ObjectRecord]) -> Levels:
    """By the name of a group: what it requests for all pods of its gang together."""
    groups = (each for each in objects if isinstance(each, PodGroupRecord | CompositeRecord))
    return tuple(
        (f"{_kind_of(each)} {each.key}", each.together)
        for each in groups
        if each.together != ANYWHERE
    )


def together(named: Levels, said: Iterable[Said]) -> Constraint:
    """What is requested for all pods of a gang, by its objects or by its pods."""
    of_pods = (each.together for each in said if each.together != ANYWHERE)
    return named[0][1] if named else next(of_pods, ANYWHERE)


def leaf_of(record: PodGroupRecord, name: str, there: int, said: Collection[Said] = ()) -> LeafSpec:
    """A PodGroup as a leaf of this name, of which so many pods are there, and say this."""
    of_pods = {(each.constraint, each.slices) for each in said}
    constraint, slices = record.constraint, record.slices
    says_it_itself = constraint != ANYWHERE or bool(slices)
    if not says_it_itself and record.level and len(of_pods) == 1:
        ((constraint, slices),) = of_pods
        says_it_itself = constraint.preferred is not None
    if constraint.required is None and constraint.preferred is not None:
        # In one constraint: what is preferred is looked for in every domain of the key.
        constraint = replace(constraint, required=record.level or None)
    return LeafSpec(
        name,
        max(there, record.least),
        constraint if says_it_itself else None,
        slices if says_it_itself else (),
        needed=record.least,
    )


def _ends_together(objects: Collection[ObjectRecord]) -> bool | None:
    """Whether the gang ends as a whole: where a part of it has to, all of it does."""
    said = {
        each.ends_together for each in objects if isinstance(each, PodGroupRecord | CompositeRecord)
    }
    return True if True in said else False if False in said else None


# -- what keeps it from starting -------------------------------------------------------------------


def _awaited(record: CompositeRecord, inside: Mapping[str, Sequence[Group]], depth: int) -> str:
    """What groups have to come before all that a group needs can be there; "": none."""
    parts = _parts(record, inside, depth)
    lacks = [
        why
        for each in parts
        if isinstance(each, CompositeRecord) and (why := _awaited(each, inside, depth - 1))
    ]
    if len(parts) < record.least:
        has = f"{len(parts)} of {record.least} groups"
        return f"CompositePodGroup {record.name}, which has {has}, has the others"
    return lacks[0] if len(parts) - len(lacks) < record.least else ""


def _flaws(
    root: CompositeRecord, inside: Mapping[str, Sequence[Group]], objects: Collection[ObjectRecord]
) -> Iterator[str]:
    """What of a tree cannot be kept, as sentences that name the object."""
    groups = sum(map(len, inside.values()))
    if groups > MOST_GROUPS:
        yield f"{KIND} {root.key} has more groups inside than the {MOST_GROUPS} that are read"
    waiting: list[tuple[Group, int]] = [(root, 1)]
    while waiting:
        record, depth = waiting.pop(0)
        if record.flaw:
            yield record.flaw
        if depth > MOST_DEPTH:
            yield _told(record, _too_deep(record, depth))
            return
        if isinstance(record, CompositeRecord):
            for each in inside.get(record.name, ()):
                yield from (_told(each, flaw) for flaw in _contradictions(record, each))
                waiting.append((each, depth + 1))


def _contradictions(record: CompositeRecord, inner: Group) -> Iterator[Flaw]:
    """What a group says that cannot be beside what the one around it says."""
    if inner.is_basic and not record.is_basic and not inner.flaw:
        text = f"{KIND} {record.name}, which it is inside, counts groups that start as a whole"
        yield forbidden("schedulingPolicy.basic", text)
    if record.ends_together and inner.ends_together is False:
        text = f"all of {KIND} {record.name}, which it is inside, ends together"
        yield forbidden("disruptionMode", text)


def _circle(group: PodGroupRecord, names: Sequence[str]) -> Flaw:
    text = f"it is inside a circle: {' in '.join([*names, names[0]][: MOST_DEPTH + 1])}"
    return invalid(_PARENT, group.parent, text)


def _too_deep(group: Group, depth: int) -> Flaw:
    text = f"groups are inside one another {depth} deep, and {MOST_DEPTH} are read"
    return invalid(_PARENT, group.parent, text)


def _told(group: Group, flaw: Flaw) -> str:
    """A flaw of an object's spec, with the name of the object."""
    return f"{_kind_of(group)} {group.key}: {next(of_spec([flaw]))}"


def _kind_of(group: Group) -> str:
    return KIND if isinstance(group, CompositeRecord) else "PodGroup"
