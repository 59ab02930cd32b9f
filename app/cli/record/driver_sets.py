"""What is recorded of the pod sets that a driver declares in an annotation, templates and all.

    "[{name, count, template: {…, env, image}}]" ──▶ the same without what no pod is recorded with

The text of an annotation is a tenant's, and a template in it may hold all that a pod may: a part of
it that is not read must not stay. Of a text that cannot be read nothing does.
"""

from __future__ import annotations

from typing import Any

import msgspec

from app.cli.record.fields import kept_template
from app.dialects.kueue.driver_sets import SETS, is_read, plain_sets
from app.kube.core.cached import KIB, cached

NAMED = SETS.encode()  # a line of a journal that has it not needs no look
MOST_TEXTS = 64  # every pod of a group may have the same one


def named_in(made: Any) -> bool:
    """Whether there is such an annotation in it, however deep it is."""
    if isinstance(made, dict):
        return SETS in made or any(map(named_in, made.values()))
    return isinstance(made, list) and any(map(named_in, made))


def thinned(made: Any) -> Any:
    """The same, with what is recorded of each such annotation."""
    if isinstance(made, list):
        return [thinned(each) for each in made]
    if not isinstance(made, dict):
        return made
    return {
        key: kept_text(each) if key == SETS and isinstance(each, str) else thinned(each)
        for key, each in made.items()
    }


@cached(MOST_TEXTS, 64 * KIB)
def kept_text(text: str) -> str:
    """What is recorded of such an annotation."""
    sets = plain_sets(text)
    if sets is None:
        return f"{len(text)} characters that cannot be read"
    for each in sets:
        each["template"] = kept_template(each["template"], is_read)
    return msgspec.json.encode(sets).decode()
