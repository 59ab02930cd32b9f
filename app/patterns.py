"""Many patterns, looked for in one short text at a time, in the syntax of Go's `regexp`.

    node-a1, node-a2 … ──find──▶ keys of the patterns that occur in it

RE2 is the engine that Go's is made after, and a search takes time in proportion to the text,
whatever the pattern. Patterns are searched for in blocks of
some hundreds at once; a change compiles one block anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import re2  # type: ignore[import-untyped] # it has no stubs

MOST_IN_BLOCK = 512  # patterns; a block is compiled whole
MOST_BLOCK_BYTES = 1 << 26  # that a block and its automaton may grow to
MOST_BYTES = 1 << 16  # that one pattern may take: a block of the largest ones still compiles
LONGEST = 1_024  # characters of one pattern, where a class of Unicode's, such as \pL, …
CLASS_LENGTH = 100  # … counts for these: it takes 0.1 ms to compile
MOST_CHECKED = 1_024  # patterns whose check is remembered: objects are read at each event


def _options(most_bytes: int) -> Any:
    options = re2.Options()
    options.max_mem = most_bytes
    options.log_errors = False
    return options


_OPTIONS, _OF_ONE = _options(MOST_BLOCK_BYTES), _options(MOST_BYTES)


class InvalidPattern(ValueError):
    """The text is no pattern of RE2; the message says why."""


def length(pattern: str) -> int:
    """The characters of a pattern, as `LONGEST` counts them."""
    return len(pattern) + CLASS_LENGTH * (pattern.count(r"\p") + pattern.count(r"\P"))


def check(pattern: str) -> None:
    """Raises: InvalidPattern if it cannot be searched for."""
    if length(pattern) > LONGEST:
        counted = f", where a Unicode class counts for {CLASS_LENGTH}"
        raise InvalidPattern(
            f"longer than {LONGEST} characters{counted if len(pattern) <= LONGEST else ''}"
        )
    if problem := _problem(pattern):
        raise InvalidPattern(problem)


@lru_cache(MOST_CHECKED)
def _problem(pattern: str) -> str:
    try:
        re2.compile(pattern, _OF_ONE)
    except re2.error as error:
        said = error.args[0] if error.args else ""
        return said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    return ""


def _compiled(pattern: str) -> Any:
    return re2.compile(pattern, _OF_ONE)  # which keeps those compiled last


@dataclass(slots=True)
class _Block:
    """Patterns that are compiled together; `of` has their keys, in the order of their numbers."""

    patterns: list[str] = field(default_factory=list)
    _compiled: Any = None

    def add(self, pattern: str) -> None:
        self.patterns.append(pattern)
        self._compiled = None

    def find(self, text: str) -> list[str]:
        """The patterns that occur in the text."""
        if self._compiled is None:
            self._compiled = _together(self.patterns)
        found = self._compiled.Match(text) if self._compiled else None
        if not found:
            return [each for each in self.patterns if _compiled(each).search(text)]
        return [self.patterns[number - 1] for number in found if number]


def _together(patterns: Iterable[str]) -> Any:
    """A set of RE2's, in which an empty pattern comes first; False if it would be too large.

    The empty one occurs in every text: where nothing is found, the automaton had no room to grow.
    """
    together = re2.Set.SearchSet(_OPTIONS)
    for pattern in ("", *patterns):
        together.Add(pattern)
    try:
        together.Compile()
    except re2.error:
        return False
    return together


@dataclass(slots=True)
class Patterns:
    """Patterns by key; one that several keys have is searched for once."""

    _of: dict[str, tuple[str, ...]] = field(default_factory=dict)  # key -> its patterns
    _keys: dict[str, dict[str, None]] = field(default_factory=dict)  # pattern -> those who have it
    _blocks: list[_Block] = field(default_factory=list)
    _in_blocks: set[str] = field(default_factory=set)  # patterns, also those without a key by now

    def put(self, key: str, patterns: Iterable[str]) -> None:
        """Look for these from now on, and for no others of this key. They have been checked."""
        self.drop(key)
        self._of[key] = tuple(dict.fromkeys(patterns))
        for pattern in self._of[key]:
            self._keys.setdefault(pattern, {})[key] = None
            self._include(pattern)
        if len(self._in_blocks) > MOST_IN_BLOCK + 2 * len(self._keys):
            self._rebuild()

    def drop(self, key: str) -> None:
        """Look for the patterns of a key no more."""
        for pattern in self._of.pop(key, ()):
            keys = self._keys[pattern]
            del keys[key]
            if not keys:
                del self._keys[pattern]

    def find(self, text: str) -> set[str]:
        """The keys that have a pattern which occurs in the text."""
        return {
            key
            for block in self._blocks
            for pattern in block.find(text)
            for key in self._keys.get(pattern, ())
        }

    def occurring(self, key: str, texts: Iterable[str]) -> Iterator[str]:
        """Those texts in which a pattern of this key occurs."""
        patterns = list(self._of.get(key, ()))
        block = _Block(patterns)  # a third of what a search for each of them costs, also of one
        return (text for text in texts if patterns and block.find(text))

    def _include(self, pattern: str) -> None:
        if pattern in self._in_blocks:
            return
        if not self._blocks or len(self._blocks[-1].patterns) >= MOST_IN_BLOCK:
            self._blocks.append(_Block())
        self._blocks[-1].add(pattern)
        self._in_blocks.add(pattern)

    def _rebuild(self) -> None:
        """Leave out the patterns that have no key any more."""
        self._blocks, self._in_blocks = [], set()
        for pattern in self._keys:
            self._include(pattern)
