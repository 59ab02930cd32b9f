"""Finds the pod templates in any object that makes pods, as the vocabularies describe them.

Objects come as plain JSON: whatever is not of the expected type is not there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from app.dialects.dialect import Strings
from app.dialects.workloads.templates import TemplatePlace

EVERY = "[*]"
# Looked at in one object, at 60 to 110 us each; what the rest says is found when the gang is read.
# Kueue takes 18.
MOST_TEMPLATES = 32


@dataclass(frozen=True, slots=True)
class Template:
    """What pods of one pod set will be like. `path` is where the template stands in its object."""

    path: str
    scheduler: str
    labels: Strings
    annotations: Strings
    pods: int | None
    """How many pods it is for; None: not known, or none now."""
    is_grouped: bool
    content: Mapping[str, Any]


def templates(thing: object, places: tuple[TemplatePlace, ...]) -> Iterator[Template]:
    """The templates that are set, MOST_TEMPLATES at most, in the order the object has them.

    Of an object with more of them none counts as grouped: others of its pod set group may be left
    out.
    """
    found = list(islice(_every(thing, places), MOST_TEMPLATES + 1))
    is_cut = len(found) > MOST_TEMPLATES
    for each in found[:MOST_TEMPLATES]:
        yield replace(each, is_grouped=False) if is_cut else each


def _every(thing: object, places: tuple[TemplatePlace, ...]) -> Iterator[Template]:
    for place in places:
        for path, holder in _holders(thing, place.holder):
            content = _below(holder, place.template)
            if not isinstance(content, dict):
                continue
            pods = _pods(holder, place)
            yield template_of(f"{path}.{place.template}", content, pods, place.is_grouped)


def template_of(
    path: str, content: Mapping[str, Any], pods: int | None = None, is_grouped: bool = False
) -> Template:
    """The template with this content; a whole pod is one too, at the empty path."""
    labels, annotations = (
        strings_of(_below(content, f"metadata.{name}")) for name in ("labels", "annotations")
    )
    scheduler = _below(content, "spec.schedulerName")
    name = scheduler if isinstance(scheduler, str) else ""
    return Template(path, name, labels, annotations, pods, is_grouped, content)


def strings_of(value: object) -> dict[str, str]:
    """The strings of a mapping; the API server has no others in labels and annotations."""
    if not isinstance(value, dict):
        return {}
    return {key: text for key, text in value.items() if isinstance(text, str)}


def controller_of(thing: object) -> str:
    """The kind of the object's controller, "" if it has none."""
    owners = _below(thing, "metadata.ownerReferences")
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, dict) and owner.get("controller") is True:
            return str(owner.get("kind", ""))
    return ""


def _holders(thing: object, path: str) -> Iterator[tuple[str, object]]:
    before, every, _ = path.partition(EVERY)
    found = _below(thing, before)
    if not every:
        yield before, found
    elif isinstance(found, dict):
        yield from ((f"{before}[{key}]", each) for key, each in found.items())
    elif isinstance(found, list):
        yield from ((f"{before}[{index}]", each) for index, each in enumerate(found))


def _below(thing: object, path: str) -> object:
    for name in path.split("."):
        if not isinstance(thing, dict):
            return None
        thing = thing.get(name)
    return thing


def _pods(holder: object, place: TemplatePlace) -> int | None:
    factors = []
    for fields in place.counts:
        numbers = [_below(holder, field) for field in fields]
        factors.append(min((n for n in numbers if isinstance(n, int)), default=1))
    pods = math.prod(factors)
    if place.apart and isinstance(_below(holder, place.apart), dict):
        pods -= 1
    return pods if pods > 0 else None
