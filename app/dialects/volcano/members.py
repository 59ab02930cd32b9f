"""Whom the members of a HyperNode name, and what is wrong with them.

    exactMatch    a node, or a HyperNode of a smaller tier
    regexMatch    the nodes in whose names RE2 finds the pattern
    labelMatch    the nodes that a label selector selects

Source: volcano pkg/webhooks/admission/hypernodes/validate/admit_hypernode.go and
pkg/util/hypernode/member_selector.go (v1.15).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from app.dialects.declared import NodesNamed
from app.dialects.flaw import Flaw
from app.dialects.rules import duplicate, forbidden, invalid, required, unsupported
from app.dialects.volcano import selectors
from app.kube.decoding import wire
from app.patterns import InvalidPattern, check, length

KINDS = NODE, HYPER_NODE = "Node", "HyperNode"
MOST_REQUIREMENTS = 64  # of one label selector
MOST_SAID = 200  # characters of RE2's reason, which may hold all of the pattern
# That are looked at in an object about to be stored: 0.03 to 1.5 ms each. If others are none, the
# condition of the HyperNode says so. Characters as `patterns.length` counts them.
MOST_PATTERNS, MOST_CHARACTERS = 16, 1_024

Looks = Callable[[str], bool]


class _Exact(wire.Wire):
    name: wire.Text = None


class _Regex(wire.Wire):
    pattern: wire.Text = None


class MemberSelector(wire.Wire):
    exact_match: _Exact | None = None
    regex_match: _Regex | None = None
    label_match: wire.LabelSelector | None = None


class Member(wire.Wire):
    type: wire.Text = None
    selector: MemberSelector | None = None


@dataclass(frozen=True, slots=True)
class MemberRead:
    """One member as it is understood."""

    is_hyper_node: bool
    named: str | NodesNamed | None
    """The HyperNode, or nodes, that it names; None if a flaw is fatal."""
    flaws: list[Flaw]


@dataclass(slots=True)
class Few:
    """The patterns that are looked at in one object: none of those that are known."""

    known: Collection[str] = ()
    patterns: int = MOST_PATTERNS
    characters: int = MOST_CHARACTERS

    def take(self, pattern: str) -> bool:
        """Whether this one is, too."""
        if pattern in self.known:
            return False
        self.patterns -= 1
        self.characters -= length(pattern)
        return self.patterns >= 0 and self.characters >= 0


def patterns(members: Sequence[Member | None]) -> frozenset[str]:
    """The patterns that members have."""
    selectors = (each.selector for each in members if each is not None)
    return frozenset(_pattern(each) for each in selectors if each is not None)


def every(_pattern: str) -> bool:
    """Looks at every pattern."""
    return True


def read(members: Sequence[Member | None], looks: Looks) -> Iterator[MemberRead]:
    """Every member, with its flaws.

    `looks`: whether a pattern is looked at; of others it is not known whether they are any.
    """
    seen: set[str | NodesNamed] = set()
    for at, each in enumerate(members):
        member, where = each or Member(), f"members[{at}]"
        selector = member.selector or MemberSelector()
        is_plain = member.type in KINDS and _is_exact_only(selector)  # as nearly all are
        flaws = [] if is_plain else list(_member_flaws(member, selector, where, looks))
        if any(flaw.is_fatal for flaw in flaws):
            yield MemberRead(member.type == HYPER_NODE, None, flaws)
            continue
        named = _named(member, selector)
        if named in seen:
            flaws.append(_duplicate(named, f"{where}.selector"))
        seen.add(named)
        yield MemberRead(member.type == HYPER_NODE, named, flaws)


def _member_flaws(
    member: Member, selector: MemberSelector, where: str, looks: Looks
) -> Iterator[Flaw]:
    kind, within = member.type or "", f"{where}.selector"
    is_set = {
        "exactMatch": bool(_exact(selector)),
        "regexMatch": bool(_pattern(selector)),
        "labelMatch": selector.label_match is not None,
    }
    used = [name for name, said in is_set.items() if said]
    if kind not in KINDS:
        yield unsupported(f"{where}.type", kind, KINDS, is_fatal=False)
    if not used:
        yield required(within, "one of exactMatch, regexMatch and labelMatch must be set")
        return
    for name in used[1:]:
        text = f"may not be set together with {used[0]}"
        yield forbidden(f"{within}.{name}", text, is_fatal=False)
    if used[0] == "exactMatch":
        return
    if kind == HYPER_NODE:
        yield forbidden(f"{within}.{used[0]}", "HyperNodes are named by exactMatch only")
    elif used[0] == "labelMatch":
        yield from _label_flaws(selector.label_match, f"{within}.labelMatch")
    elif looks(_pattern(selector)):
        yield from _pattern_flaws(_pattern(selector), f"{within}.regexMatch.pattern")


def _pattern_flaws(pattern: str, where: str) -> Iterator[Flaw]:
    try:
        check(pattern)
    except InvalidPattern as error:
        yield invalid(where, pattern, str(error)[:MOST_SAID])


def _label_flaws(labels: wire.LabelSelector | None, where: str) -> Iterator[Flaw]:
    if labels is not None and not (labels.match_labels or labels.match_expressions):
        yield required(where, "it is empty, and selects no node")
    yield from selectors.flaws_of(labels, where, MOST_REQUIREMENTS)


def _named(member: Member, selector: MemberSelector) -> str | NodesNamed:
    """Whom a member names, none of whose flaws is fatal."""
    exact, pattern = _exact(selector), _pattern(selector)
    if exact:
        return exact if member.type == HYPER_NODE else NodesNamed(name=exact)
    if pattern:
        return NodesNamed(pattern=pattern)
    return NodesNamed(labels=selectors.selector_of(selector.label_match))


def _duplicate(named: str | NodesNamed, where: str) -> Flaw:
    if isinstance(named, str) or named.name:
        exact = named if isinstance(named, str) else named.name
        return duplicate(f"{where}.exactMatch.name", exact, is_fatal=False)
    if named.pattern:
        return duplicate(f"{where}.regexMatch.pattern", named.pattern, is_fatal=False)
    return duplicate(f"{where}.labelMatch", None, is_fatal=False)


def _is_exact_only(selector: MemberSelector) -> bool:
    return bool(_exact(selector)) and selector.regex_match is None and selector.label_match is None


def _exact(selector: MemberSelector) -> str:
    return (selector.exact_match.name or "") if selector.exact_match is not None else ""


def _pattern(selector: MemberSelector) -> str:
    return (selector.regex_match.pattern or "") if selector.regex_match is not None else ""
