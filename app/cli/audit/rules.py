"""The rules by which pods are where a constraint says. Each gives the verdict over one constraint.

required level     all pods that share it are in one domain of the level
preferred level    the same, but that they are not is a note beside MATCH
slices of k        a domain with n pods takes n / k slices, rounded up, and no more are taken in all
                   than there are: which pods are one slice is not written anywhere
leader, family     pods are in the domain where most of the others are
whole              at least the pods that it takes to start have nodes, or have succeeded

A pod on a node whose domain is not known makes a constraint UNOBSERVABLE, unless the others
contradict each other already. Pods that terminate or have ended are not judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from app.cli.audit.gathering import Seen
from app.cli.audit.places import Domain, NotKnown, Places, shown
from app.cli.audit.units import levels_of, running
from app.cli.audit.verdicts import Verdict
from app.dialects.spec import GangKey, GangSpec, GroupSpec, LeafSpec
from topology.model.request import Constraint, Slice

WHOLE = "whole"

Rule = Callable[["Question", Places], Verdict]


@dataclass(frozen=True, slots=True)
class Question:
    """One constraint of one gang, and the pods that share it and run."""

    gang: GangKey
    name: str
    """Of what the constraint is: "gang", "group workers"."""
    constraint: Constraint
    pods: Sequence[Seen]

    @property
    def level(self) -> str:
        """The level that is asked about: that of a preferred one only if none is required."""
        return self.constraint.required or self.constraint.preferred or ""

    def matches(self, text: str) -> Verdict:
        """The verdict that all is as it should be."""
        return Verdict(self.gang, self.name, "MATCH", text, self.level)

    def unobservable(self, text: str, pod: Seen | None = None) -> Verdict:
        """The verdict that it cannot be told, about one pod or about all."""
        if pod is None:
            return Verdict(self.gang, self.name, "UNOBSERVABLE", text, self.level)
        text = f"pod {pod.name} on node {pod.node}: {text}"
        return Verdict(self.gang, self.name, "UNOBSERVABLE", text, self.level, pod.name, pod.node)

    def violated(self, pod: Seen, text: str, here: str, there: str) -> Verdict:
        """The verdict that a pod is in one domain and would have to be in another one."""
        text = f"pod {pod.name} on node {pod.node} is in {self.level} {here}, {text}"
        values = (here, there)
        return Verdict(
            self.gang, self.name, "VIOLATION", text, self.level, pod.name, pod.node, values
        )


def answered(asked: Question, places: Places | str, rule: Rule | None = None) -> Verdict | None:
    """The verdict over a constraint; None if it says nothing, or no pod shares it.

    `places`: a sentence where its topology is not there.
    """
    if not asked.level or not asked.pods:
        return None
    if isinstance(places, str):
        return asked.unobservable(places)
    absent = [each for each in levels_of(asked.constraint) if not places.has(each)]
    if absent:
        name = places.topology.name if places.topology else ""
        return asked.unobservable(f"topology {name} has no level {absent[0]}")
    return (rule or together)(asked, places)


# -- levels --------------------------------------------------------------------------------------


def together(asked: Question, places: Places) -> Verdict:
    """Whether the pods are in one domain of the required level, and of the preferred one."""
    required, preferred = asked.constraint.required, asked.constraint.preferred
    if required is None:
        return asked.matches(_preferred(asked.level, asked.pods, places))
    by_domain, unknown = _split(asked.pods, required, places)
    if len(by_domain) > 1:
        return _apart(asked, by_domain)
    if unknown:
        return _not_known(asked, unknown)
    (domain,) = by_domain
    text = f"{_are(len(asked.pods))} in {required} {shown(domain)}"
    if preferred and preferred != required:
        text += f"; {_preferred(preferred, asked.pods, places)}"
    return asked.matches(text)


def beside(others: Sequence[Seen]) -> Rule:
    """Whether the pods are in the domain where most of the others are."""
    return partial(_beside, others=others)


def _beside(asked: Question, places: Places, *, others: Sequence[Seen]) -> Verdict:
    by_domain, unknown = _split(others, asked.level, places)
    own, own_unknown = _split(asked.pods, asked.level, places)
    if not by_domain:
        return _not_known(asked, unknown)
    home = min(by_domain, key=lambda each: (-len(by_domain[each]), each))
    away = next((each for each in sorted(own) if each != home), None)
    if away is not None:
        return _against(asked, own[away][0], away, home, by_domain[home])
    if own_unknown:
        return _not_known(asked, own_unknown)
    return asked.matches(f"{_are(len(asked.pods))} in {asked.level} {shown(home)}, as the others")


def _split(
    pods: Iterable[Seen], level: str, places: Places
) -> tuple[dict[Domain, list[Seen]], list[tuple[Seen, str]]]:
    """The pods by domain, and those of which it is not known, with the reason."""
    by_domain: dict[Domain, list[Seen]] = {}
    unknown: list[tuple[Seen, str]] = []
    for each in pods:
        domain = places.of(each.node, level)
        if isinstance(domain, NotKnown):
            unknown.append((each, domain.why))
        else:
            by_domain.setdefault(domain, []).append(each)
    return by_domain, unknown


def _apart(asked: Question, by_domain: Mapping[Domain, Sequence[Seen]]) -> Verdict:
    """The violation: a pod where the fewest are, against the domain where most are."""
    home, *_, away = sorted(by_domain, key=lambda each: (-len(by_domain[each]), each))
    found = _against(asked, by_domain[away][0], away, home, by_domain[home])
    outside = len(asked.pods) - len(by_domain[home])
    if outside < 2:
        return found
    more = f"{found.text}; {len(asked.pods)} pods are in {len(by_domain)} domains"
    return Verdict(
        found.gang, found.constraint, found.answer, more, found.level, found.pod, found.node,
        found.values,
    )  # fmt: skip


def _against(
    asked: Question, pod: Seen, away: Domain, home: Domain, others: Sequence[Seen]
) -> Verdict:
    here, there = shown(away, home), shown(home, away)
    other = others[0]
    said = f"and {_are(len(others))} in {there}, such as {other.name} on node {other.node}"
    return asked.violated(pod, said, here, there)


def _not_known(asked: Question, unknown: Sequence[tuple[Seen, str]]) -> Verdict:
    pod, why = unknown[0]
    more = f"; so it is with {len(unknown) - 1} more" if len(unknown) > 1 else ""
    return asked.unobservable(f"{why}{more}", pod)


def _preferred(level: str, pods: Sequence[Seen], places: Places) -> str:
    """What has become of a preferred level, which is never a violation."""
    by_domain, unknown = _split(pods, level, places)
    if len(by_domain) > 1:
        return f"preferred {level} is not met: {_are(len(pods))} in {len(by_domain)} domains"
    if unknown:
        return f"whether preferred {level} is met is not known: {unknown[0][1]}"
    return f"preferred {level} is met: {_are(len(pods))} in {shown(next(iter(by_domain)))}"


# -- slices --------------------------------------------------------------------------------------


def sliced(layer: Slice, pods_in_all: int | None) -> Rule:
    """Whether the pods can be slices that are each in one domain.

    `pods_in_all`: of the pod set, whether they run or not; None: that is not known.
    """
    slices = None if pods_in_all is None else -(-pods_in_all // layer.pods)
    return partial(_sliced, layer=layer, slices=slices)


def _sliced(asked: Question, places: Places, *, layer: Slice, slices: int | None) -> Verdict:
    by_domain, unknown = _split(asked.pods, layer.level, places)
    taken = sum(-(-len(pods) // layer.pods) for pods in by_domain.values())
    if slices is not None and taken > slices:
        return _torn(asked, by_domain, layer, slices)
    if unknown:
        return _not_known(asked, unknown)
    if slices is None and any(len(pods) % layer.pods for pods in by_domain.values()):
        return asked.unobservable("how many pods the gang has is not known")
    domains = "1 domain" if len(by_domain) == 1 else f"{len(by_domain)} domains"
    return asked.matches(f"{_are(len(asked.pods))} whole slices in {domains} of {layer.level}")


def _torn(
    asked: Question, by_domain: Mapping[Domain, Sequence[Seen]], layer: Slice, slices: int
) -> Verdict:
    """The violation: two domains that have parts of slices."""
    parts = sorted(
        (each for each in by_domain if len(by_domain[each]) % layer.pods),
        key=lambda each: (len(by_domain[each]), each),
    )
    away, home = parts[0], parts[-1]
    here, there = shown(away, home), shown(home, away)
    said = (
        f"where {_are(len(by_domain[away]))}, and {_are(len(by_domain[home]))} in {there}:"
        f" {slices} slices of {layer.pods} pods, each in one domain, are not so"
    )
    return asked.violated(by_domain[away][0], said, here, there)


# -- the gang as a whole -------------------------------------------------------------------------


def whole(gang: GangKey, spec: GangSpec, pods: Sequence[Seen]) -> Verdict:
    """Whether as many pods as it takes have nodes, or have succeeded."""
    names = {leaf.name for leaf in spec.leaves()}
    done = [each for each in pods if each.is_done and spec.lifecycle.counts_succeeded]
    live = running(pods)
    read = [each for each in live if not each.flaw]
    settled = Counter(each.leaf if each.leaf in names else "" for each in (*read, *done))
    has = len(live) + len(done)
    text = f"{len(live)} of {_count(spec.pods)} run"
    if done:
        text += f", and {len(done)} have succeeded"
    ending = sum(each.state == "ends" for each in pods)
    beside = f"; {_count(ending)} more terminating" if ending else ""
    if is_enough(spec.root, settled):
        return Verdict(gang, WHOLE, "MATCH", f"{text}{beside}")
    if spec.starts_with is not None and has >= spec.starts_with:
        return Verdict(gang, WHOLE, "MATCH", f"{text}, which is enough to begin with{beside}")
    if len(read) < len(live):
        why = f"which part of it {_count(len(live) - len(read))} of these are is not known"
        return Verdict(gang, WHOLE, "UNOBSERVABLE", f"{text}: {why}{beside}")
    waits = next((each for each in pods if each.state == "waits"), None)
    failed = next((each for each in pods if each.state == "failed"), None)
    # What it declares has no place for them any more, as soon as its owner has seen them end.
    succeeded = next((each for each in pods if each.state == "succeeded" and not done), None)
    if spec.lifecycle.remembers_succeeded and not (waits or failed or ending):
        why = "whether the others have succeeded and were deleted is not known"
        return Verdict(gang, WHOLE, "UNOBSERVABLE", f"{text}: {why}")
    lost = waits or failed or succeeded
    if lost is None:
        why = "the others are not there"
    elif lost is waits:
        why = f"pod {lost.name} has no node"
    else:
        why = f"pod {lost.name} has {lost.state}"
    return Verdict(
        gang, WHOLE, "VIOLATION", f"only {text}: {why}{beside}", pod=lost.name if lost else ""
    )


def is_enough(part: GroupSpec | LeafSpec, settled: Mapping[str, int]) -> bool:
    """Whether these pods, by leaf, are all that a part of a gang takes to start."""
    if isinstance(part, LeafSpec):
        return settled.get(part.name, 0) >= part.least
    return sum(is_enough(each, settled) for each in part.members) >= part.least


def _count(pods: int) -> str:
    return "1 pod" if pods == 1 else f"{pods} pods"


def _are(pods: int) -> str:
    return f"{_count(pods)} {'is' if pods == 1 else 'are'}"
