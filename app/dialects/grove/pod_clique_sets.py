"""What Grove's users say of topology in PodCliqueSets, as far as it is wrong.

    spec.template                     topologyConstraint: of each replica of the whole
      podCliqueScalingGroups[]        the same, of each replica of a group of cliques
      cliques[]                       the same, of a clique

A constraint names levels by the domains of a ClusterTopology. Grove's operator has a webhook with
these rules; Corral's has them where that one is not installed, or lets a change of the topology by.
Source: GREP-244 "Topology Constraints in PodCliqueSet", its rules 1 and 2; grove
operator/internal/webhook/admission/pcs/validation/topologyconstraints.go (v0.1.0-alpha.8).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from app.dialects.dialect import CheckedObject, Known, ObjectRules, PodsMade, none_known
from app.dialects.flaw import Flaw
from app.dialects.grove.topology import GROUP, topology_name
from app.dialects.rules import forbidden, invalid, of_spec, required, too_many, unsupported
from app.kube.decoding import wire
from app.kube.decoding.decode import Json, decoded

KIND = "PodCliqueSet"
DEFAULT_TOPOLOGY = "grove-topology"  # of an operator that has no other: v0.1.0-alpha.8
FIXED = "may not change once the PodCliqueSet exists"
MOST_PARTS = 256  # cliques, and groups of them, that are looked at
Field = Literal["required", "preferred"]


class _Pack(wire.Wire):
    required: wire.Text = None
    preferred: wire.Text = None


class _Constraint(wire.Wire):
    topology_name: wire.Text = None
    pack_domain: wire.Text = None
    pack: _Pack | None = None


class _PodSpec(wire.Wire):
    scheduler_name: wire.Text = None


class _CliqueSpec(wire.Wire):
    pod_spec: _PodSpec | None = None


class _Clique(wire.Wire):
    name: wire.Text = None
    labels: wire.Strings = None
    topology_constraint: _Constraint | None = None
    spec: _CliqueSpec | None = None


class _ScalingGroup(wire.Wire):
    name: wire.Text = None
    clique_names: list[wire.Text] | None = None
    topology_constraint: _Constraint | None = None


class _Template(wire.Wire):
    topology_constraint: _Constraint | None = None
    cliques: list[_Clique | None] | None = None
    pod_clique_scaling_groups: list[_ScalingGroup | None] | None = None


class _Spec(wire.Wire):
    template: _Template | None = None


class _PodCliqueSet(wire.Wire):
    metadata: wire.Metadata | None = None
    spec: _Spec | None = None


_POD_CLIQUE_SET = msgspec.json.Decoder(_PodCliqueSet)


@dataclass(frozen=True, slots=True)
class _Said:
    """One constraint: where it stands, and what is around it."""

    where: str
    """The field, below spec."""
    constraint: _Constraint
    parents: tuple[_Said, ...] = ()
    """Those of what it is a part of, the narrowest first."""
    whose: str = ""
    """What has it, whatever its place in a list; "": the whole."""

    @property
    def topology(self) -> str:
        """The name of its topology, or of the one around it; "": none is named."""
        named = (each.constraint.topology_name for each in (self, *self.parents))
        return next(filter(None, named), "")

    def level(self, field: Field) -> str:
        """The domain that it names there; "": none. An older field says required, too."""
        pack = self.constraint.pack or _Pack()
        if field == "preferred":
            return pack.preferred or ""
        return pack.required or self.constraint.pack_domain or ""

    def path(self, field: Field) -> str:
        """The field that names that domain."""
        pack = self.constraint.pack or _Pack()
        if field == "required" and not pack.required and self.constraint.pack_domain:
            return f"{self.where}.packDomain"
        return f"{self.where}.pack.{field}"


def check_pod_clique_set(
    raw: Json, before: Json | None = None, known: Known = none_known
) -> CheckedObject:
    """What is wrong with what a PodCliqueSet says of topology. `known`: topologies by name.

    Raises: DecodeError naming the PodCliqueSet and the field.
    """
    made = decoded(_POD_CLIQUE_SET, raw, KIND)
    was = None if before is None else _template(decoded(_POD_CLIQUE_SET, before, KIND))
    return CheckedObject(of_spec(_flaws(_template(made), was, known)), _pods(made))


def _template(made: _PodCliqueSet) -> _Template:
    return (made.spec and made.spec.template) or _Template()


def _pods(made: _PodCliqueSet) -> tuple[PodsMade, ...] | None:
    """Whose pods it makes; None if a clique leaves that to Grove's operator."""
    cliques = [each for each in _template(made).cliques or () if each is not None]
    specs = [each.spec and each.spec.pod_spec for each in cliques]
    names = [(spec and spec.scheduler_name) or "" for spec in specs]
    if not all(names):
        return None
    pairs = zip(names, cliques, strict=True)
    return tuple(PodsMade(name, _labels(clique)) for name, clique in pairs)


def _labels(clique: _Clique) -> dict[str, str]:
    return {key: value or "" for key, value in (clique.labels or {}).items()}


def _flaws(template: _Template, before: _Template | None, known: Known) -> Iterator[Flaw]:
    for name, parts in (
        ("cliques", template.cliques),
        ("podCliqueScalingGroups", template.pod_clique_scaling_groups),
    ):
        if len(parts or ()) > MOST_PARTS:
            yield too_many(f"template.{name}", len(parts or ()), MOST_PARTS)
            return
    said = _said(template)
    if before is not None:
        yield from _changes(_said(before), said)
        if _names(said) and not _names(_said(before)):
            yield from _topology_flaws(said, known)
        return
    for each in said:
        yield from _own_flaws(each)
    yield from _topology_flaws(said, known)


def _said(template: _Template) -> list[_Said]:
    """Every constraint, each after those that are around it."""
    found: list[_Said] = []
    whole: tuple[_Said, ...] = ()
    if template.topology_constraint is not None:
        whole = (_Said("template.topologyConstraint", template.topology_constraint),)
        found.extend(whole)
    around: dict[str, tuple[_Said, ...]] = {}
    for at, group in enumerate(template.pod_clique_scaling_groups or ()):
        parents = whole
        if group is not None and group.topology_constraint is not None:
            where = f"template.podCliqueScalingGroups[{at}].topologyConstraint"
            whose = f"scaling group {group.name or at}"
            parents = (_Said(where, group.topology_constraint, whole, whose), *whole)
            found.append(parents[0])
        for name in (group.clique_names if group is not None else None) or ():
            around[name or ""] = parents
    for at, clique in enumerate(template.cliques or ()):
        if clique is not None and clique.topology_constraint is not None:
            where = f"template.cliques[{at}].topologyConstraint"
            parents = around.get(clique.name or "", whole)
            whose = f"clique {clique.name or at}"
            found.append(_Said(where, clique.topology_constraint, parents, whose))
    return found


def _names(said: Iterable[_Said]) -> set[str]:
    """The topologies that are named."""
    return {name for each in said if (name := each.constraint.topology_name)}


def _own_flaws(said: _Said) -> Iterator[Flaw]:
    pack = said.constraint.pack
    if pack is not None and pack.required and said.constraint.pack_domain:
        text = "may not be set together with pack.required, which says the same"
        yield forbidden(f"{said.where}.packDomain", text)
    elif not (said.level("required") or said.level("preferred")):
        yield required(said.where, "names no domain: set pack.required or pack.preferred")


def _topology_flaws(said: Sequence[_Said], known: Known) -> Iterator[Flaw]:
    """Rule 1, every domain is one of the topology's; rule 2, none is wider than around it."""
    names = list(dict.fromkeys(filter(None, (each.constraint.topology_name for each in said))))
    if len(names) > 1:
        for each in said:
            name = each.constraint.topology_name
            if name and name != names[0]:
                text = f"must be {names[0]}, as in the rest of the PodCliqueSet"
                yield invalid(f"{each.where}.topologyName", name, text)
        return
    for each in said:
        name = each.topology or DEFAULT_TOPOLOGY
        topology = known(topology_name(name))
        if topology is None:
            where = f"{each.where}.topologyName" if each.topology else each.where
            yield invalid(where, name, "there is no ClusterTopology of this name")
            return
        depth = {domain: at for at, (domain, _) in enumerate(topology.aliases)}
        yield from _level_flaws(each, depth)


def _level_flaws(said: _Said, depth: Mapping[str, int]) -> Iterator[Flaw]:
    """`depth`: of each domain of the topology; 0 is the widest."""
    fields: tuple[Field, ...] = ("required", "preferred")
    for field in fields:
        domain = said.level(field)
        if not domain:
            continue
        if domain not in depth:
            yield unsupported(said.path(field), domain, depth)
            continue
        for parent in said.parents:
            above = parent.level(field)
            if above in depth and depth[above] > depth[domain]:
                text = f"must not be wider than {above} in spec.{parent.path(field)}"
                yield invalid(said.path(field), domain, text)
                break


def _changes(before: Sequence[_Said], after: Sequence[_Said]) -> Iterator[Flaw]:
    """What a PodCliqueSet that is deployed may not change any more; the order of its parts it may.

    Source: Grove operator/internal/webhook/admission/pcs/validation (v0.1.0-alpha.8),
    disallowChangesToTopologyConstraintsWhenPCSIsUpdated.
    """
    was = {each.whose: each for each in before}
    now = {each.whose: each for each in after}
    for whose in dict.fromkeys((*was, *now)):
        then, here = was.get(whose), now.get(whose)
        if then is None or here is None:
            verb, where = ("added", here) if then is None else ("removed", then)
            assert where is not None
            yield forbidden(where.where, f"may not be {verb} once the PodCliqueSet exists")
            continue
        fields: tuple[Field, ...] = ("required", "preferred")
        for field in fields:
            if then.level(field) != here.level(field):
                text = f"{FIXED}: was {then.level(field) or 'not set'}"
                yield forbidden(here.path(field), text)
        named = then.constraint.topology_name
        if named and named != here.constraint.topology_name:
            text = f"{FIXED}: was {named}"
            yield forbidden(f"{here.where}.topologyName", text)


RULES = ObjectRules(GROUP, KIND, check_pod_clique_set)
