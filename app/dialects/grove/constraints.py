"""The levels that a PodGang, or a part of it, must or should be in one domain of.

Both are keys of node labels: Grove's operator has translated the names of levels that users write.
Source: grove scheduler/api/core/v1alpha1/podgang.go, TopologyPackConstraint (v0.1.0-alpha.8);
GREP-244 "Topology-Aware Scheduling".
"""

from __future__ import annotations

from collections.abc import Iterator

from app.dialects.flaw import Flaw
from app.dialects.rules import invalid
from app.dialects.spec import ANYWHERE
from app.kube.decoding import wire
from app.labels import is_label_key
from topology.model.request import Constraint


class PackConstraint(wire.Wire):
    required: wire.Text = None
    preferred: wire.Text = None


class TopologyConstraint(wire.Wire):
    pack_constraint: PackConstraint | None = None


def constraint_of(said: TopologyConstraint | None) -> Constraint:
    """What it says, if it has no flaw."""
    if said is None or said.pack_constraint is None:
        return ANYWHERE
    return Constraint(said.pack_constraint.required or None, said.pack_constraint.preferred or None)


def flaws_of(said: TopologyConstraint | None, where: str) -> Iterator[Flaw]:
    """Every rule that it breaks. Whether a topology has its levels is not known here."""
    if said is None or said.pack_constraint is None:
        return
    pack = said.pack_constraint
    for key, field in ((pack.required, "required"), (pack.preferred, "preferred")):
        if key and not is_label_key(key):
            yield invalid(f"{where}.packConstraint.{field}", key, "must be the key of a node label")
