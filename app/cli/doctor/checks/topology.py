"""Whether nodes are in the domains that gangs ask for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from app.cli.doctor.findings import Check, Found, NotChecked, Problem, error, named, note, warning
from app.cli.doctor.seen import OwnSettings, Topology
from app.dialects.nvlink import level_value
from app.dialects.presets import label_levels


def levels(topology: Topology, settings: OwnSettings) -> Iterator[Found]:
    """Whether there are levels, and the settings' are some."""
    if settings.values.levels:
        try:
            label_levels(settings.values.levels)
        except ValueError as wrong:
            yield error(
                settings.where,
                str(wrong),
                "levels: the keys of node labels, widest first",
                field="levels",
                value=",".join(settings.values.levels),
            )
    elif not topology.objects:
        yield warning(
            settings.where,
            "there is no Topology or HyperNode either, so gangs that require a level never start",
            "levels: the keys of node labels, widest first; see `corral topology --levels …`",
            field="levels",
        )


def labels(topology: Topology, settings: OwnSettings) -> Iterator[Found]:
    """Whether every node has the label of each level."""
    if not topology.nodes:
        yield NotChecked("the cluster has no nodes")
        return
    for where, keys in _lists(topology, settings):
        for key in keys:
            lacking = [
                name
                for name, node in sorted(topology.nodes.items())
                if not level_value(node.labels, key)
            ]
            if len(lacking) == len(topology.nodes):
                yield error(
                    where,
                    f"no node has the label {key}: gangs that require this level never start",
                    f"kubectl label node NODE {key}=VALUE",
                )
            elif lacking:
                yield warning(
                    f"{'Node' if len(lacking) == 1 else 'Nodes'} {named(lacking)}",
                    f"no gang that requires a level of {where} gets it",
                    f"kubectl label node {lacking[0]} {key}=VALUE",
                    field=f"metadata.labels[{key}]",
                )


def nesting(topology: Topology, settings: OwnSettings) -> Iterator[Problem]:
    """Whether each domain is in one domain of the next wider level.

    One that is not is several domains, named with what is around them: right where racks are
    numbered anew in each block, and not where one rack's node has the label of another block.
    """
    for where, keys in _lists(topology, settings):
        for wider, level in pairwise(keys):
            parents = defaultdict[str, set[str]](set)
            for node in topology.nodes.values():
                inner, outer = level_value(node.labels, level), level_value(node.labels, wider)
                if inner and outer:
                    parents[inner].add(outer)
            twice = {value: sorted(each) for value, each in parents.items() if len(each) > 1}
            yield from _not_nested(where, wider, level, twice)


def _not_nested(
    where: str, wider: str, level: str, twice: Mapping[str, Sequence[str]]
) -> Iterator[Problem]:
    if not twice:
        return
    value, outer = min(twice.items())
    more = f", and {len(twice) - 1} more values as well" if len(twice) > 1 else ""
    yield note(
        where,
        f"{level}={value} is in {wider}={named(outer)}{more}: these are {len(outer)} domains, and"
        f" no gang that requires {level} is placed across them; if it is one, a label is wrong",
        f"kubectl get nodes -l {level}={value} -L {wider}",
    )


def objects(topology: Topology) -> Iterator[Problem]:
    """Whether the objects that declare topologies mean something."""
    for each in topology.objects:
        for flaw in each.flaws:
            yield error(each.name, flaw, f"kubectl edit {each.name.lower()}")


def _lists(topology: Topology, settings: OwnSettings) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The lists of label keys that are levels, each with what says so."""
    if settings.values.levels:
        try:
            yield f"levels of {settings.where}", label_levels(settings.values.levels)
        except ValueError:
            return  # the check `levels` says so
    for each in topology.objects:
        if each.levels:
            yield each.name, each.levels


_BOTH = ("topology", "settings")
CHECKS = (
    Check("levels", "there are levels that gangs can ask for", _BOTH, levels),
    Check("node-labels", "every node has the label of each level", _BOTH, labels),
    Check("level-nesting", "each domain is in one wider domain", _BOTH, nesting),
    Check("topology-objects", "Topologies and HyperNodes are valid", ("topology",), objects),
)
