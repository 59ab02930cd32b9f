"""Queues: Volcano's controllers make no pods for a vcjob whose queue does not exist.

Its scheduler makes `root` and `default` when it starts; where it does not run, Corral makes those
that the operator names.
Source: volcano pkg/scheduler/cache/cache.go, `newDefaultAndRootQueue` (v1.14).
"""

from __future__ import annotations

from app.dialects.spec import Prerequisite

VERSION = "scheduling.volcano.sh/v1beta1"
PATH = f"/apis/{VERSION}/queues"
WEIGHT = 1  # a Queue must have one; nothing is shared out by it here


def queue(name: str) -> Prerequisite:
    """A Queue that is open, and limits nothing."""
    body = {
        "apiVersion": VERSION,
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": WEIGHT},
    }
    return Prerequisite(PATH, name, body)
