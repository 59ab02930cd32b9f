"""Labels that a pod's own annotations name: kept of that pod, whatever their keys.

    annotations {…-index-label: example.com/rank} ──▶ labels {example.com/rank: "3"}

A tenant chooses the key, so it may cost no pod but the one that says it: one label for each of
these annotations, and only if its value is a number, as nothing else is read of it.
"""

from __future__ import annotations

from collections.abc import Mapping

NAMING = ("kueue.x-k8s.io/pod-group-pod-index-label",)
"""Annotations that name a label; spelled in `app.dialects`, which a test holds against these."""
MOST_KEY = 317  # characters of a label's key: a prefix of 253, a slash, a name of 63
MOST_DIGITS = 20  # of an unsigned integer


def named_labels(
    labels: Mapping[str, str | None] | None, annotations: Mapping[str, str]
) -> dict[str, str]:
    """Return those labels that these annotations name and that are numbers."""
    found: dict[str, str] = {}
    for naming in NAMING:
        key = annotations.get(naming)
        if key is not None and labels and len(key) <= MOST_KEY:
            value = labels.get(key) or ""
            if len(value) <= MOST_DIGITS and value.isascii() and value.isdecimal():
                found[key] = value
    return found
