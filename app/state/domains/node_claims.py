"""Which domains name a node as their member: by its name, by a pattern or by its labels.

    domain ──put──▶ names ─┐
                  patterns ├──of(node)──▶ domains
                    labels ┘

A node is looked up by what it is called and by the labels it has, so what that costs depends on
the domains that name it, and little on how many there are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from app.dialects.declared import NodesNamed
from app.kube.core.objects import NodeRecord
from app.labels import LabelSelector
from app.patterns import Patterns

Label = tuple[str, str]
_Key = TypeVar("_Key", str, Label)


@dataclass(slots=True)
class NodeClaims:
    """What domains say of nodes; nodes themselves are not kept."""

    _of: dict[str, tuple[NodesNamed, ...]] = field(default_factory=dict)  # domain -> its members
    _by_name: dict[str, dict[str, None]] = field(default_factory=dict)  # node -> domains
    _patterns: Patterns = field(default_factory=Patterns)
    _selectors: dict[str, tuple[LabelSelector, ...]] = field(default_factory=dict)
    _by_label: dict[Label, dict[str, None]] = field(default_factory=dict)
    # ^ a label that some selector of these domains requires -> domains
    _by_any: dict[str, None] = field(default_factory=dict)  # domains whose selectors require none

    def put(self, domain: str, nodes: tuple[NodesNamed, ...]) -> None:
        """Let a domain name these nodes from now on, and no others."""
        self.drop(domain)
        if not nodes:
            return
        self._of[domain] = nodes
        for each in nodes:
            if each.name:
                self._by_name.setdefault(each.name, {})[domain] = None
        patterns = [each.pattern for each in nodes if each.pattern]
        if patterns:
            self._patterns.put(domain, patterns)
        selectors = tuple(each.labels for each in nodes if each.labels is not None)
        if selectors:
            self._selectors[domain] = selectors
            for label in _entries(selectors):
                where = self._by_any if label is None else self._by_label.setdefault(label, {})
                where[domain] = None

    def drop(self, domain: str) -> None:
        """Let a domain name no nodes any more."""
        for each in self._of.pop(domain, ()):
            if each.name:
                _discard(self._by_name, each.name, domain)
        self._patterns.drop(domain)
        for label in _entries(self._selectors.pop(domain, ())):
            if label is None:
                self._by_any.pop(domain, None)
            else:
                _discard(self._by_label, label, domain)

    def of(self, node: str, labels: Mapping[str, str]) -> set[str]:
        """The domains that name a node."""
        found = {*self._by_name.get(node, ()), *self._patterns.find(node)}
        maybe = set(self._by_any)
        for label in labels.items() if self._by_label else ():
            maybe.update(self._by_label.get(label, ()))
        for domain in maybe - found:
            if any(selector.matches(labels) for selector in self._selectors[domain]):
                found.add(domain)
        return found

    def named(self, domain: str, nodes: Collection[NodeRecord]) -> Iterator[str]:
        """Those nodes that a domain names by a pattern or by their labels; some of them twice."""
        yield from self._patterns.occurring(domain, (node.name for node in nodes))
        selectors = self._selectors.get(domain, ())
        for node in nodes if selectors else ():
            if any(selector.matches(node.labels) for selector in selectors):
                yield node.name

    def names(self, domain: str) -> Iterator[str]:
        """The nodes that a domain names by their names, whether or not they are there."""
        return (each.name for each in self._of.get(domain, ()) if each.name)


def _entries(selectors: Iterable[LabelSelector]) -> Iterator[Label | None]:
    """Labels of which a node has one if it is selected; None: nothing is known of it."""
    for selector in selectors:
        required = [each for each in selector.requirements if each.operator == "In"]
        if not required:
            yield None
            continue
        fewest = min(required, key=lambda each: len(each.values))
        yield from ((fewest.key, value) for value in sorted(fewest.values))


def _discard(sets: dict[_Key, dict[str, None]], key: _Key, domain: str) -> None:
    domains = sets.get(key)
    if domains is not None:
        domains.pop(domain, None)
        if not domains:
            del sets[key]
