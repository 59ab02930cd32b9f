"""The levels that a PodGroup or a sub-group of it must, or should, be in one domain of.

Source: KAI-Scheduler pkg/apis/scheduling/v2alpha2/podgroup_types.go, TopologyConstraint;
pkg/scheduler/plugins/topology/job_filtering.go (v0.13).
"""

from __future__ import annotations

from collections.abc import Iterator

from app.dialects.flaw import Flaw
from app.dialects.kai.keys import LONGEST_NAME
from app.dialects.kai.topology import LONGEST_KEY
from app.dialects.rules import required, too_long
from app.dialects.spec import ANYWHERE
from app.kube.decoding import wire
from topology.model.request import Constraint


class TopologyConstraint(wire.Wire):
    topology: wire.Text = None
    required_topology_level: wire.Text = None
    preferred_topology_level: wire.Text = None


def constraint_of(said: TopologyConstraint | None) -> Constraint:
    """What it says, if none of its flaws is fatal."""
    if said is None or not said.topology:
        return ANYWHERE
    return Constraint(said.required_topology_level or None, said.preferred_topology_level or None)


def flaws_of(said: TopologyConstraint | None, where: str) -> Iterator[Flaw]:
    """Every rule that it breaks. Whether the topology and its levels exist is not known here."""
    if said is None:
        return
    name, levels = (
        said.topology or "",
        (said.required_topology_level, said.preferred_topology_level),
    )
    if len(name) > LONGEST_NAME:
        yield too_long(f"{where}.topology", LONGEST_NAME)
    for level, field in zip(levels, ("required", "preferred"), strict=True):
        if len(level or "") > LONGEST_KEY:
            yield too_long(f"{where}.{field}TopologyLevel", LONGEST_KEY)
    if any(levels) and not name:
        yield required(f"{where}.topology", "a level is a level of a Topology")
    if name and not any(levels):
        text = "a Topology is named, and neither this nor preferredTopologyLevel is"
        yield required(f"{where}.requiredTopologyLevel", text)
