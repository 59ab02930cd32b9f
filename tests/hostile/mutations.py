"""One input, changed at random places: the fields of its JSON first, then its bytes.

A mutation is a list of numbers. Each of them decides one edit of what the edits before it left, so
that a mutation without some of its numbers is one too: that is how a failure is made small.
"""

from __future__ import annotations

import json
import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

Json = Any

MOST_EDITS = 6
LARGE = 1_000  # values of a document that does not grow further
BYTE_EDITS = 0.15  # share of the mutations that go on to their bytes
DEEP = 120  # Python writes no JSON of more than some 900 levels, which six such edits stay below
NASTY: tuple[Json, ...] = (
    None, True, False, 0, -1, 1, 99_999, 2**31 - 1, -(2**31), 2**31, 2**63,
    -(2**63), 10**30, 0.1, 1e308, -0.0,
    "", " ", "0", "-5", "1e1000000", "1e9", "NaN", "Inf", "0.1m", "1Ki", "1ki", "100m", "1_000",
    "9223372036854775808", "\u0661\u0662\u0663", "0x10", "\x00", "\ud800", "\u00e9", "e\u0301",
    "\u202e",
    "../../etc/passwd", "a" * 253, "a" * 254, "a/b", "kubernetes.io/hostname", "nvidia.com/gpu",
    "true", "True", "<" * 999, "- 1:1:1:1.5", '[{"name":"a","count":1e9}]', "[" * 400,
    "2026-11-31T25:00:00Z", [], {}, [None], [[]], {"": None}, {"a": {}}, [{}] * 64, ["x"] * 300,
    {str(number): number for number in range(300)},
)  # fmt: skip
BYTES = (b"", b"\x00", b"\xff", b'"', b"{", b"]", b",", b"1e999", b"\\ud800", b"\xef\xbb\xbf", b" ")


@dataclass(frozen=True, slots=True)
class Mutation:
    """The edits of one input; `is_rough`: the last of them is made to the bytes."""

    edits: tuple[int, ...]
    is_rough: bool = False

    def applied(self, thing: Json) -> bytes:
        """The input as it is sent. Some values are no valid JSON, as some clients are."""
        document = [_copied(thing)]
        fields = self.edits[:-1] if self.is_rough else self.edits
        for edit in fields:
            _change_field(random.Random(edit), document)
        body = json.dumps(document[0], separators=(",", ":")).encode()
        return _change_bytes(random.Random(self.edits[-1]), body) if self.is_rough else body

    def smaller(self) -> Iterator[Mutation]:
        """The mutations with one edit less."""
        for left_out in range(len(self.edits)):
            edits = self.edits[:left_out] + self.edits[left_out + 1 :]
            is_last = left_out == len(self.edits) - 1
            if edits:
                yield Mutation(edits, self.is_rough and not is_last)


def drawn(rng: random.Random) -> Mutation:
    """Any mutation."""
    edits = tuple(rng.getrandbits(32) for _ in range(rng.randint(1, MOST_EDITS)))
    return Mutation(edits, rng.random() < BYTE_EDITS)


async def smallest(mutation: Mutation, fails: Callable[[Mutation], Awaitable[bool]]) -> Mutation:
    """A mutation that still fails, and does not with any one of its edits left out."""
    for less in mutation.smaller():
        if await fails(less):
            return await smallest(less, fails)
    return mutation


def _change_field(rng: random.Random, document: list[Json]) -> None:
    """Change one value, anywhere in the document."""
    places = [*_places(document)]
    owner, key = rng.choice(places)
    value = owner[key]
    times = 40 if len(places) < LARGE else 1
    match rng.randrange(8):
        case 0 | 1 | 2:
            owner[key] = _copied(rng.choice(NASTY))
        case 3:
            other_owner, other = rng.choice(places)
            owner[key] = _copied(other_owner[other])
        case 4 if isinstance(owner, dict):
            owner[str(rng.choice(NASTY))] = owner.pop(key)
        case 5 if isinstance(value, list) and value:
            owner[key] = [_copied(each) for each in value * times]
        case 6 if isinstance(value, str):
            cut = rng.randrange(len(value) + 1)
            owner[key] = value[:cut] + str(rng.choice(NASTY)) + value[cut:]
        case 7:
            for _ in range(rng.choice((1, DEEP))):
                value = [value] if rng.random() < 0.5 else {"a": value}
            owner[key] = value
        case _ if owner is not document:
            del owner[key]


def _copied(value: Json) -> Json:
    return json.loads(json.dumps(value))


def _places(document: list[Json]) -> Iterator[tuple[Any, Any]]:
    """Every list or mapping with each of its indexes or keys. Not by recursion: it may be deep."""
    left: list[Json] = [document]
    while left:
        owner = left.pop()
        for key in range(len(owner)) if isinstance(owner, list) else list(owner):
            yield owner, key
            if isinstance(owner[key], list | dict):
                left.append(owner[key])


def _change_bytes(rng: random.Random, body: bytes) -> bytes:
    first, last = sorted(rng.randrange(len(body) + 1) for _ in range(2))
    match rng.randrange(4):
        case 0:
            return body[:first]
        case 1:
            return body[:first] + rng.choice(BYTES) + body[first:]
        case 2:
            return body[:first] + body[last:]
        case _:
            return body[:last] + body[first:]
