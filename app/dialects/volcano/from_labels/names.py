"""Names of HyperNodes from paths of labels: readable where they can be, unique always.

    block=b1, rack=r1     ─▶  hypernode-b1.r1
    block=b1, rack=R_1    ─▶  hypernode-b1.r-1-0f3a8c21d5     of the path's hash
    block=b1, rack=r.1    ─▶  the same: with a dot it could be the path r, 1

A name follows from its path alone, so no node that comes or goes renames another domain.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from app.dialects.volcano.from_labels.domains import Path

PREFIX = "hypernode"  # as Volcano's discoverer begins its names
LONGEST = 253  # characters of an object's name
HASH_DIGITS = 10  # 40 bits: two of 10,000 paths with one text share it in 1 of 20,000 clusters

_PLAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_HASHED = re.compile(rf"-[0-9a-f]{{{HASH_DIGITS}}}$", re.ASCII)
_OTHER = re.compile(r"[^a-z0-9]+", re.ASCII)


def path_name(path: Path, prefix: str = PREFIX) -> str:
    """The name of the domain with that path: a lowercase RFC 1123 subdomain, if the prefix is one.

    A plain name never ends like one with a hash.
    """
    values = [value for _, value in path]
    name = f"{prefix}-{'.'.join(values)}"
    is_plain = all(_PLAIN.fullmatch(value) for value in values)
    if is_plain and len(name) <= LONGEST and not _HASHED.search(name):
        return name
    cleaned = ".".join(cleaned_value(value) for value in values)
    kept = f"{prefix}-{cleaned}"[: LONGEST - HASH_DIGITS - 1].rstrip("-.")
    return f"{kept}-{digest(values)[:HASH_DIGITS]}"


def cleaned_value(value: str) -> str:
    """A value with nothing but what may stand between two dots of a name."""
    return _OTHER.sub("-", value.lower()).strip("-") or "x"


def digest(texts: Iterable[str]) -> str:
    """A hash of texts, as hexadecimal digits; not the same for other texts or another split."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()
