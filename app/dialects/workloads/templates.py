"""Where objects that make pods keep their templates, and how many pods each of them is for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TemplatePlace:
    """Where a kind of object keeps the templates of its pods, and how many pods each is for.

    `holder[*]` stands for every value of a list or mapping. The pods are the product of `counts`;
    each count is the least of its fields below the holder that are set, 1 where none is.
    """

    holder: str
    template: str
    counts: tuple[tuple[str, ...], ...] = ()
    apart: str = ""
    """A template beside this one that takes one of the pods, where it is set."""
    is_grouped: bool = True
    """Whether the object has all pod sets: pod set groups must then be whole in it."""
