"""/preempt: kube-scheduler's own choice of victims, unchanged.

Victims of one node cannot make room for a gang, so Corral neither adds nor removes any. A node
with no victims at all is passed on as it came: kube-scheduler drops it where it has to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Victims:
    """The pods that would have to go from one node, by uid."""

    uids: tuple[str, ...]
    pdb_violations: int


def choose_victims(victims_by_node: Mapping[str, Victims]) -> Mapping[str, Victims]:
    """The nodes and victims kube-scheduler may choose from."""
    return victims_by_node
