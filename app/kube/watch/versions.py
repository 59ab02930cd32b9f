"""Versions of the API server's objects and lists, which can be compared where etcd counts them.

Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions
"""

from __future__ import annotations

MOST_DIGITS = 19  # of 64 bits


def is_before(version: str, other: str) -> bool | None:
    """Tell whether a version is older than another one; None: these cannot be compared."""
    for text in (version, other):
        if not (text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS):
            return None
    return int(version) < int(other)
