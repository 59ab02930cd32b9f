"""How much pods require of nodes: entries of node selectors, lines of affinity, tolerations.

Every node is held against each of these, for all kinds of a gang's pods in one piece. No honest
gang comes near these numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from app.kube.core.objects import Requirement, Shape

MOST_OF_POD = 256  # in each field
MOST_OF_GANG = 512  # of all kinds of its pods together
VALUES = 64  # listed in one requirement: so many more count like another one


def by_field(shape: Shape) -> Iterator[tuple[str, int]]:
    """How many requirements on nodes a shape has, by field of the pod's spec."""
    yield "nodeSelector", len(shape.selector)
    terms = (*shape.terms, *(term for _, term in shape.preferred))
    lines = sum(_weight((*term.expressions, *term.fields)) for term in terms)
    yield "affinity.nodeAffinity", lines
    yield "tolerations", len(shape.tolerations)


def too_many(shapes: Iterable[tuple[Shape, str]]) -> str:
    """Why these shapes, each with a name for its pods, are none of one gang; "" if they may be."""
    total = 0
    for shape, name in dict(shapes).items():
        for field, number in by_field(shape):
            total += number
            if number > MOST_OF_POD:
                return (
                    f"{name}: spec.{field} has {number} requirements, and a pod of a gang may have"
                    f" {MOST_OF_POD}"
                )
    if total <= MOST_OF_GANG:
        return ""
    return (
        f"the nodeSelector, nodeAffinity and tolerations of all kinds of its pods have {total}"
        f" requirements, and a gang may have {MOST_OF_GANG}"
    )


def _weight(lines: tuple[Requirement, ...]) -> int:
    """How many requirements one term counts for, at least one."""
    return max(sum(1 + len(each.values) // VALUES for each in lines), 1)
