"""Kubernetes labels: which keys and values are valid, and selectors over them.

    "team in (a,b),!legacy" ──selector_from_text──▶ LabelSelector ──matches(labels)──▶ bool

The text is what `kubectl get --selector` takes, but for the comparisons of numbers (> and <),
which the selectors of API objects do not have either.
Source: kubernetes staging/src/k8s.io/apimachinery/pkg/labels/selector.go (v1.36), Parse.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist"]

_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_TOKEN = re.compile(r"==|!=|[=!(),<>]|[^\s=!(),<>]+", re.ASCII)
_SYMBOLS = ("==", "!=", "=", "!", "(", ")", ",", "<", ">")
_OPERATORS: dict[str, Operator] = {
    "=": "In",
    "==": "In",
    "!=": "NotIn",
    "in": "In",
    "notin": "NotIn",
}
_WRITTEN: dict[str, Operator] = {each: each for each in get_args(Operator)}


def is_label_key(text: str) -> bool:
    """Whether this is a qualified label key as the API server takes it."""
    prefix, slash, name = text.rpartition("/")
    if slash and not (len(prefix) <= 253 and is_subdomain(prefix)):
        return False
    return _NAME.fullmatch(name) is not None


def is_label_value(text: str) -> bool:
    """Whether this is a label value as the API server takes it; an empty one is."""
    return not text or _NAME.fullmatch(text) is not None


def is_subdomain(text: str) -> bool:
    """Whether this is a lowercase RFC 1123 subdomain, of any length."""
    return _PREFIX.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Requirement:
    """One part of a selector: key operator values. `values` are empty where none are compared."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels meets it; NotIn holds without the key, too."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Every requirement must hold; without any, all objects are selected."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        return all(requirement.holds(labels) for requirement in self.requirements)

    @property
    def keys(self) -> frozenset[str]:
        """The label keys that matter to it."""
        return frozenset(requirement.key for requirement in self.requirements)


EVERYTHING = LabelSelector()


def requirement_of(key: str, operator: str, values: Collection[str]) -> Requirement | None:
    """One part of a selector as an API object writes it; None if the API server refuses it.

    Source: kubernetes staging/src/k8s.io/apimachinery/pkg/labels/selector.go (v1.36),
    NewRequirement, without the rules of keys and values.
    """
    known = _WRITTEN.get(operator)
    if not key or known is None or bool(values) != (known in ("In", "NotIn")):
        return None
    return Requirement(key, known, frozenset(values))


def selector_from_text(text: str) -> LabelSelector:
    """The selector that the text says; "" selects everything.

    Raises: ValueError saying what was expected and what is there instead.
    """
    tokens = _Tokens(text)
    if not tokens.next:
        return EVERYTHING
    requirements = [_requirement(tokens)]
    while tokens.next:
        tokens.skip(",")
        requirements.append(_requirement(tokens))
    return LabelSelector(tuple(requirements))


class _Tokens:
    """The symbols and words of a selector, in order; `next` is "" at the end."""

    def __init__(self, text: str) -> None:
        self._rest = iter(_TOKEN.findall(text))
        self.next = next(self._rest, "")

    def take(self) -> str:
        """The next token, which is behind us then."""
        taken, self.next = self.next, next(self._rest, "")
        return taken

    def skip(self, *symbols: str) -> str:
        """The next token, which must be one of these."""
        if self.next not in symbols:
            expected = " or ".join(map(repr, symbols))
            raise ValueError(f"expected {expected}, found {self._found()}")
        return self.take()

    def key(self) -> str:
        """The next token, which must be the key of a label."""
        if not is_label_key(self.next):
            raise ValueError(f"expected the key of a label, found {self._found()}")
        return self.take()

    def value(self) -> str:
        """The next token as the value of a label; "" where another symbol or the end follows."""
        if self.next in _SYMBOLS:
            return ""
        if not is_label_value(self.next):
            raise ValueError(f"expected the value of a label, found {self._found()}")
        return self.take()

    def _found(self) -> str:
        return repr(self.next) if self.next else "the end"


def _requirement(tokens: _Tokens) -> Requirement:
    if tokens.next == "!":
        tokens.take()
        return Requirement(tokens.key(), "DoesNotExist")
    key = tokens.key()
    if tokens.next in ("", ","):
        return Requirement(key, "Exists")
    word = tokens.skip(*_OPERATORS)
    values = _values(tokens) if word in ("in", "notin") else {tokens.value()}
    return Requirement(key, _OPERATORS[word], frozenset(values))


def _values(tokens: _Tokens) -> set[str]:
    """The values in parentheses; between two commas there is an empty one."""
    tokens.skip("(")
    values = {tokens.value()}
    while tokens.skip(",", ")") == ",":
        values.add(tokens.value())
    return values
