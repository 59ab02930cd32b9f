"""Why a gang as a whole is invalid: its members contradict each other, or it is too much.

What is wrong with one pod's own claim is its `flaw`. Of a gang that runs, the members that run say
what it is, and only what one search can look at bounds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from app.dialects import workload_level
from app.dialects.spec import ANYWHERE, GangSpec
from app.kube.core.objects import Amounts, Shape
from app.state.gang.members import bounds
from app.state.gang.members.member import Member


def why_invalid(
    live: Sequence[Member], spec: GangSpec | None, joining: Sequence[Member] = (), *, runs: bool
) -> str:
    """What is wrong with a gang first of all, as a sentence; "" if it is valid.

    `spec`: None if it is not known yet, and how many pods there may be neither.
    """
    found = "" if runs else _contradiction(live, spec)
    if found or spec is None:
        return found
    if not runs:
        found = spec.flaw or bounds.too_large(spec) or _too_many_roles(spec, joining)
    return found or _beyond_bounds(spec, joining)


def _contradiction(live: Sequence[Member], spec: GangSpec | None) -> str:
    """The first contradiction among members, as a sentence; "" if they agree."""
    for member in live:
        if member.flaw:
            return member.flaw
    # Pods of a workload may be of two of its revisions: it tells then how many there are.
    sized = live if spec is None or spec.is_said else ()
    first = next((member for member in sized if member.said.pods is not None), None)
    roles: dict[tuple[object, ...], Member] = {}
    for member in live:
        if first and member.said.pods not in (None, first.said.pods):
            return _disagree(first, member, member.said.where, "pods")
        like = roles.setdefault(member.role, member)
        if (like.constraint, like.slices) != (member.constraint, member.slices):
            return _disagree(like, member, "the topology annotations", "constraint")
    return _levels_apart(live, spec) or _said_otherwise(live, spec)


def _levels_apart(live: Iterable[Member], spec: GangSpec | None) -> str:
    """Why what is requested for all members together contradicts itself; "" if it does not."""
    named = list(spec.levels_named) if spec is not None else []
    said: set[int] = set()  # the pods of a template share one
    for member in live:
        if id(member.said) not in said and member.said.together != ANYWHERE:
            named.append((f"pod {member.pod.namespace}/{member.pod.name}", member.said.together))
        said.add(id(member.said))
    return workload_level.contradiction(named)


def _said_otherwise(live: Iterable[Member], spec: GangSpec | None) -> str:
    """Which pod requests another domain than an object does for it, as a sentence; "": none."""
    declared = {} if spec is None else {leaf.name: leaf for leaf in spec.leaves()}
    seen: set[tuple[int, str]] = set()  # the pods of a template share what they say
    for member in live:
        leaf, said = declared.get(member.leaf), member.said
        if leaf is None or leaf.constraint is None or (id(said), leaf.name) in seen:
            continue
        seen.add((id(said), leaf.name))
        own = (said.constraint, said.slices)
        if own not in ((ANYWHERE, ()), (leaf.constraint, leaf.slices)):
            pod = f"pod {member.pod.namespace}/{member.pod.name}"
            where = spec.where if spec is not None else ""
            return f"{pod}: its topology annotations do not say the same as those of {where}"
    return ""


def _too_many_roles(spec: GangSpec, joining: Sequence[Member]) -> str:
    """Why a gang of so many kinds of pods is none, in Kueue's words; "" if it may have them.

    A pod that names no leaf is of the kind of those that are like it.
    Source: kueue pkg/controller/jobs/pod/pod_controller.go (v0.19), ConstructComposableWorkload.
    """
    if spec.most_roles is None:
        return ""
    names = {leaf.name for leaf in spec.leaves()} | {member.leaf for member in joining}
    named, unnamed = (
        {(each.pod.request, each.shape) for each in joining if bool(each.leaf) == is_named}
        for is_named in (True, False)
    )
    if len(names - {""}) + len(unnamed - named) <= spec.most_roles:
        return ""
    return f"pod group can't include more than {spec.most_roles} roles"


def _beyond_bounds(spec: GangSpec, joining: Iterable[Member]) -> str:
    """What the gang has more of than one search looks at, as a sentence; "" if nothing."""
    kinds: dict[tuple[str, Amounts, Shape], str] = {}
    for each in joining:
        kinds.setdefault((each.leaf, each.pod.request, each.shape), each.pod.key)
    to_come = {leaf.like.pod.shape: leaf.name for leaf in spec.leaves() if leaf.like is not None}
    return bounds.too_varied(spec, kinds) or bounds.too_demanding(kinds, to_come)


def _disagree(one: Member, other: Member, where: str, what: str) -> str:
    said = [
        f"pod {member.pod.name} says {_shown(member, what)}"
        for member in sorted((one, other), key=lambda member: member.pod.name)
    ]
    return f"members disagree on {where}: {', '.join(said)}"


def _shown(member: Member, what: str) -> str:
    if what == "pods":
        return str(member.said.pods)
    constraint = member.constraint
    slices = "".join(f", slices of {part.pods} in {part.level}" for part in member.slices)
    if constraint.required:
        return f"required {constraint.required}{slices}"
    return (f"preferred {constraint.preferred}" if constraint.preferred else "anywhere") + slices
