"""A simulation in words: a line for each gang, then what there is to say of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from app.cli.common.columns import aligned
from app.cli.gangs import explaining
from app.cli.gangs.explaining import WIDTH

HEADER = ("OBJECT", "GANG", "VERDICT", "PODS", "DOMAINS")
MOST_NODES = 12  # of one gang that are shown
MOST_OBJECTS = 3
MOST_DOMAINS = 4


def lines_of(simulation: dict[str, Any]) -> Iterator[str]:
    """The table, and below it what each gang's place is, or what keeps it from having one."""
    gangs = simulation["gangs"]
    yield from aligned([HEADER, *map(_row, gangs)], "   ")
    for each in gangs:
        yield ""
        yield from _told(each)


def _row(each: dict[str, Any]) -> tuple[str, ...]:
    gang = each["gang"]
    pods = ""
    if gang is not None:
        declared = gang["pods"]["declared"]
        pods = f"{len(each['places'])}/{'?' if declared is None else declared}"
    objects = each["objects"]
    more = f" and {len(objects) - MOST_OBJECTS} more" if len(objects) > MOST_OBJECTS else ""
    named = ", ".join(objects[:MOST_OBJECTS]) + more
    own = "" if gang is None else f"{gang['namespace']}/{gang['name']}"
    return named, own, each["verdict"], pods, _domains(each)


def _domains(each: dict[str, Any]) -> str:
    """Those of the narrowest level that is told."""
    found = each["domains"]
    if not found:
        return ""
    level = found[-1]["level"]
    here = [one["domain"] for one in found if one["level"] == level]
    more = ", …" if len(here) > MOST_DOMAINS else ""
    return f"{level}: {', '.join(here[:MOST_DOMAINS])}{more}"


def _name(each: dict[str, Any]) -> str:
    gang = each["gang"]
    return each["objects"][0] if gang is None else f"{gang['namespace']}/{gang['name']}"


def _told(each: dict[str, Any]) -> Iterator[str]:
    if each["explanation"] is not None:
        yield from explaining.lines_of(each["explanation"])
    else:
        yield f"{'Gang' if each['gang'] else 'Object':{WIDTH}}{_name(each)}"
        if not each["errors"]:
            yield f"{'Message':{WIDTH}}{each['message']}"
    yield from _block("Error", (_error(one) for one in each["errors"]))
    yield from _block("Nodes", _nodes(each["places"]))
    yield from _block("Note", each["notes"])


def _error(each: dict[str, Any]) -> str:
    where = f"{each['object']}: {each['field']}" if each["field"] else each["object"]
    return f"{where}: {each['message']}"


def _nodes(places: list[dict[str, Any]]) -> Iterator[str]:
    """So many pods on each node, in the order of ranks."""
    pods = Counter(place["node"] for place in places)
    for node in list(pods)[:MOST_NODES]:
        first = next(place["pod"] for place in places if place["node"] == node)
        number = "1 pod" if pods[node] == 1 else f"{pods[node]} pods, the first"
        yield f"{node}: {number}: {first}"
    if len(pods) > MOST_NODES:
        yield f"and {len(pods) - MOST_NODES} more nodes: -o json has all"


def _block(word: str, lines: Any) -> Iterator[str]:
    for line in lines:
        yield f"{word:{WIDTH}}{line}".rstrip()
        word = ""
