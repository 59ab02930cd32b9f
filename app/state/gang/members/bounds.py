"""What one gang may make the planner look at: pods, kinds of them, and requirements on nodes.

A search judges every node by every requirement of every kind of pods, in one piece. No honest gang
comes near these numbers; what is beyond them is refused by name and costs nothing more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from app.dialects.spec import MOST_PODS, GangSpec
from app.kube.core.objects import Amounts, Requirement, Shape
from topology.nested.parts import DEPTH_MAX

MOST_KINDS = 64  # of pods in one gang: what a search costs grows with their square
MOST_REQUIREMENTS = 256  # of one pod, in each field
MOST_REQUIREMENTS_OF_GANG = 1_024  # of all its kinds together
VALUES = 64  # listed in one requirement: so many more count like another one

Kinds = Mapping[tuple[str, Amounts, Shape], str]
"""The first pod, as namespace/name, of each leaf, request and shape."""


def too_large(spec: GangSpec) -> str:
    """Why a gang is too large or too deep, as a sentence; "" if it is neither."""
    if spec.depth > DEPTH_MAX:
        return f"{spec.where} declares groups in groups {spec.depth} deep, and {DEPTH_MAX} are read"
    if spec.pods <= MOST_PODS:
        return ""
    return f"{spec.where} declares {spec.pods} pods, and a gang may have {MOST_PODS}"


def too_varied(kinds: Kinds) -> str:
    """Why a gang is none whose pods are of too many kinds for one search; "" if it may be."""
    if len(kinds) <= MOST_KINDS:
        return ""
    return f"its pods are of {len(kinds)} kinds, and a gang may have {MOST_KINDS}"


def too_demanding(kinds: Kinds, to_come: Collection[Shape]) -> str:
    """Why a gang is none that requires too much of nodes, as a sentence; "" if it is one.

    `to_come`: what pods are declared to be like that do not exist yet.
    """
    total = 0
    named = {**dict.fromkeys(to_come, ""), **{shape: pod for (_, _, shape), pod in kinds.items()}}
    for shape, pod in named.items():
        for field, number in _by_field(shape):
            total += number
            if number > MOST_REQUIREMENTS:
                whose = f"pod {pod}" if pod else "a pod that is declared"
                return (
                    f"{whose}: spec.{field} has {number} requirements, and a pod of a gang may"
                    f" have {MOST_REQUIREMENTS}"
                )
    if total <= MOST_REQUIREMENTS_OF_GANG:
        return ""
    return (
        f"the nodeSelector, nodeAffinity and tolerations of all kinds of its pods have {total}"
        f" requirements, and a gang may have {MOST_REQUIREMENTS_OF_GANG}"
    )


def _by_field(shape: Shape) -> Iterator[tuple[str, int]]:
    """How many requirements on nodes a shape has, by field of the pod's spec."""
    yield "nodeSelector", len(shape.selector)
    terms = (*shape.terms, *(term for _, term in shape.preferred))
    lines = sum(_weight((*term.expressions, *term.fields)) for term in terms)
    yield "affinity.nodeAffinity", lines
    yield "tolerations", len(shape.tolerations)


def _weight(lines: tuple[Requirement, ...]) -> int:
    """How many requirements one term counts for, at least one."""
    return max(sum(1 + len(each.values) // VALUES for each in lines), 1)
