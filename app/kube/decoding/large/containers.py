"""The containers of a large pod, read a few hundred at a time.

    bytes ──one scan──▶ each as bytes ──a slice──▶ read ──▶ added up (`requests.py`), forgotten
                                 ▲                              │
                                 └──────────── turn ◀───────────┘

All of them count (`parts.py`), and a pod may have 25,000. One call of the decoder for all would
keep the interpreter for ten milliseconds, and so would forgetting them. A slice takes half of one.

A container may also be the only one, and have 28,000 resources. Those are read in slices too, and
told as so many containers: what they request together is the same. Each resource is in one of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice
from typing import TypeVar, overload

import msgspec

from app.kube.core.turns import turn
from app.kube.decoding import wire

MOST = 1_024  # containers of a slice, or resources of one that has more
MOST_BYTES = 2**17  # of a slice, if it is not a single container

Container = wire.Container | None
Slice = tuple[int, Sequence[Container]]
"""Containers that follow each other, and the index of the first."""

_T = TypeVar("_T")


class _Resources(wire.Wire):
    requests: msgspec.Raw = msgspec.Raw(b"null")


class _LongContainer(wire.Wire):
    resources: _Resources | None = None
    restart_policy: wire.Text = None
    name: wire.Text = None


_ONE = msgspec.json.Decoder(wire.Container | None)
_SLICE = msgspec.json.Decoder(list[wire.Container | None])
_LONG = msgspec.json.Decoder(_LongContainer | None)
_QUANTITIES: msgspec.json.Decoder[wire.Quantities] = msgspec.json.Decoder(wire.Quantities)


def slices(containers: Sequence[Container]) -> Iterable[Slice]:
    """These containers in slices; a list, which has been read already, is one.

    Raises: ValueError, RecursionError for a container that cannot be read.
    """
    return containers.slices() if isinstance(containers, Containers) else ((0, containers),)


class Containers(Sequence[Container]):
    """Containers, of which each is read when it is needed. Raises then what `slices` raises."""

    def __init__(self, each: Sequence[msgspec.Raw], path: str) -> None:
        self._each = each
        self._path = path  # of the list in the pod

    def __len__(self) -> int:
        return len(self._each)

    @overload
    def __getitem__(self, index: int) -> Container: ...
    @overload
    def __getitem__(self, index: slice) -> list[Container]: ...
    def __getitem__(self, index: int | slice) -> Container | list[Container]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        one: Container = decoded(_ONE, self._each[index], f"{self._path}[{index}]")
        return one

    def slices(self) -> Iterator[Slice]:
        """All of them in order; one that is long by itself, in as many parts as it needs."""
        first = 0
        while first < len(self):
            end = self._end_of_slice(first)
            if len(self._each[first]) > MOST_BYTES:
                yield from ((first, [part]) for part in self._parts_of(first))
            else:
                yield first, self._read(first, end)
            first = end

    def _end_of_slice(self, first: int) -> int:
        """Where the next one begins: after at least one container."""
        sizes = accumulate(map(len, self._each[first : first + MOST]))
        return first + max(1, bisect_right(list(sizes), MOST_BYTES))

    def _read(self, first: int, end: int) -> list[Container]:
        turn()
        try:
            return _SLICE.decode(b"[%b]" % b",".join(self._each[first:end]))
        except (ValueError, RecursionError):
            return self[first:end]  # which raises, too, and says where

    def _parts_of(self, index: int) -> Iterator[wire.Container]:
        """A long container as several that request the same together."""
        path = f"{self._path}[{index}]"
        turn()
        found = decoded(_LONG, self._each[index], path) or _LongContainer()
        raw = (found.resources or _Resources()).requests
        turn()
        asked = _mapping(_QUANTITIES, raw, f"{path}.resources.requests") or {}
        amounts = iter(asked.items())
        while part := dict(islice(amounts, MOST)):
            turn()
            yield wire.Container(wire.Resources(part), found.restart_policy, found.name)


def _mapping(
    decoder: msgspec.json.Decoder[dict[str, _T] | None], raw: msgspec.Raw, path: str
) -> dict[str, _T] | None:
    """A mapping, read in slices if it is long and has texts as Go writes them.

    It is cut where a text seems to end and a key to begin. If what is before is a mapping, it did:
    JSON is read from left to right, and where a value ends does not depend on what follows.
    """
    if len(raw) <= MOST_BYTES or memoryview(raw)[0] != ord("{"):
        return decoded(decoder, raw, path)
    text, found, begin = bytes(raw), dict[str, _T](), 1
    try:
        while (end := text.find(b'","', begin + MOST_BYTES // 4) + 1) > 0:
            found |= decoder.decode(b"{%b}" % text[begin:end]) or {}
            begin = end + 1
            turn()
        found |= decoder.decode(b"{%b" % text[begin:]) or {}
    except ValueError:
        return decoded(decoder, raw, path)  # one of its texts is a comma, or it is not as it ought
    return found


def decoded(decoder: msgspec.json.Decoder[_T], part: msgspec.Raw, path: str) -> _T:
    """Return the part of an object at this path. Raises: ValueError naming it, RecursionError."""
    try:
        return decoder.decode(part)
    except msgspec.ValidationError as error:
        where = str(error).replace("`$", f"`$.{path}")
        raise ValueError(where if "`$" in where else f"{where} - at `$.{path}`") from error
