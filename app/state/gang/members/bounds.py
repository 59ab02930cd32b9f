"""What one gang may make the planner look at: pods, kinds of them, and requirements on nodes.

A search judges every node by every requirement of every kind of pods, in one piece. What is beyond
a bound is refused by name and costs nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from app.dialects.spec import MOST_KINDS, MOST_PODS, GangSpec
from app.kube.core.node_requirements import too_many
from app.kube.core.objects import Amounts, Shape
from topology.nested.parts import DEPTH_MAX

Kinds = Mapping[tuple[str, Amounts, Shape], str]
"""The first pod, as namespace/name, of each leaf, request and shape."""


def too_large(spec: GangSpec) -> str:
    """Why a gang is too large or too deep, as a sentence; "" if it is neither."""
    if spec.depth > DEPTH_MAX:
        return f"{spec.where} declares groups in groups {spec.depth} deep, and {DEPTH_MAX} are read"
    if spec.pods <= MOST_PODS:
        return ""
    return f"{spec.where} declares {spec.pods} pods, and a gang may have {MOST_PODS}"


def too_varied(spec: GangSpec, kinds: Kinds) -> str:
    """Why a gang is none whose pods are of too many kinds for one search; "" if it may be.

    What a search costs grows with the square of the kinds. Pods of two leaves are two pod sets to
    it even where they are alike, for each leaf has to have its own.
    """
    if len(kinds) <= MOST_KINDS:
        return ""
    leaves = len({leaf for leaf, *_ in kinds})
    parts = f"{spec.parts_are} of {spec.where}" if spec.parts_are else f"parts of {spec.where}"
    why = f": pods of two of the {leaves} {parts} are of two" if leaves > 1 else ""
    return f"its pods are of {len(kinds)} kinds, and a gang may have {MOST_KINDS}{why}"


def too_demanding(kinds: Kinds, to_come: Mapping[Shape, str]) -> str:
    """Why a gang is none that requires too much of nodes, as a sentence; "" if it is one.

    `to_come`: what pods are declared to be like that do not exist yet, each with its leaf.
    """
    declared = ((shape, f"set {leaf}") for shape, leaf in to_come.items())
    return too_many(chain(declared, ((shape, f"pod {pod}") for (*_, shape), pod in kinds.items())))
