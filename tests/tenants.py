"""A tenant with many half gangs, and another with one: who hears of his first, after how many."""

from __future__ import annotations

from tests.cluster import RACK, Object, Objects
from tests.workloads import asking, behind_gate, member

LOUD, QUIET = "loud", "quiet"
INCOMPLETE = "GangIncomplete"


def half_gang(namespace: str, name: str) -> Object:
    """The one pod of two that is there, as the webhook leaves it."""
    half = behind_gate(member(name, 0, 2, annotations=asking(required=RACK)))
    half["metadata"]["namespace"] = namespace
    return half


def half_gangs(gangs: int) -> Objects:
    """Those of the tenant with many."""
    return [half_gang(LOUD, f"g{number}") for number in range(gangs)]


def about_half_gangs(events: Objects) -> list[str]:
    """The pods whose gangs were reported as incomplete, as namespace/name, first one first."""
    said = [each for each in events if each["reason"] == INCOMPLETE]
    said.sort(key=lambda each: int(each["metadata"]["resourceVersion"]))
    return [f"{each['metadata']['namespace']}/{each['involvedObject']['name']}" for each in said]
