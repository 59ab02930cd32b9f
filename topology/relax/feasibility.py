"""Whether a problem that was changed a little fits, asked of the search within a budget.

The budget counts searches. Where it ends, what is asked does not fit, so that everything that is
said to fit has been placed by the search itself.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from topology.errors import InvalidRequest
from topology.fit.view import Options
from topology.model.answer import NoFit, Placement
from topology.model.capacity import Capacity
from topology.model.request import Gang
from topology.model.resources import Mask
from topology.model.tree import Tree
from topology.nested.walk import find

SCANNED = 16  # numbers that are tried one by one, where more may fit though fewer do not

_One = TypeVar("_One")
_Fits = Callable[[list[_One]], Placement | None]
"""Where a gang would be with some changes, or None if they are not enough."""


@dataclass(slots=True, eq=False)
class Feasibility:
    """One question, and the searches that may still be spent on it."""

    tree: Tree
    capacity: Capacity
    gang: Gang
    masks: Mapping[Hashable, Mask]
    options: Options
    left: int
    """Searches of all kinds of changes together."""
    is_cut_short: bool = False
    """The share of this kind of changes ended before a search."""
    _floor: int = field(default=0)
    """Searches that are left for the kinds to come."""

    def begin(self, kinds: int) -> None:
        """Gives the next kind of so many its share of what is left."""
        self._floor = self.left - self.left // kinds
        self.is_cut_short = False

    def answer(
        self,
        gang: Gang | None = None,
        capacity: Capacity | None = None,
        masks: Mapping[Hashable, Mask] | None = None,
    ) -> Placement | NoFit | None:
        """What the search says with something else in place of what was asked.

        None: the share is used up.
        Raises: as `walk.find`.
        """
        if self.left <= self._floor:
            self.is_cut_short = True
            return None
        self.left -= 1
        return find(
            self.tree,
            self.capacity if capacity is None else capacity,
            self.gang if gang is None else gang,
            self.masks if masks is None else masks,
            self.options,
        )

    def place(
        self,
        gang: Gang | None = None,
        capacity: Capacity | None = None,
        masks: Mapping[Hashable, Mask] | None = None,
    ) -> Placement | None:
        """The place there would be; none for an invalid gang."""
        try:
            answer = self.answer(gang, capacity, masks)
        except InvalidRequest:
            return None
        return answer if isinstance(answer, Placement) else None

    def most(self, top: int, fits: Callable[[int], bool], *, is_monotone: bool) -> int:
        """The largest number up to `top` that fits; 0: none does.

        Unless it is monotone or at most SCANNED: one that fits, though one more does not.
        """
        if not is_monotone and top <= SCANNED:
            return next((number for number in range(top, 0, -1) if fits(number)), 0)
        if top < 1 or not fits(1):
            return 0
        fitting, too_many = 1, top + 1
        while too_many - fitting > 1:
            middle = (fitting + too_many) // 2
            fitting, too_many = (middle, too_many) if fits(middle) else (fitting, middle)
        return fitting

    def first(self, ones: Sequence[_One], fits: _Fits[_One]) -> tuple[list[_One], Placement] | None:
        """The first of them that are enough, none fewer; None if all are not."""
        place = fits(list(ones)) if ones else None
        if place is None:
            return None
        too_few, enough = 0, len(ones)
        while enough - too_few > 1:
            middle = (too_few + enough) // 2
            found = fits(list(ones[:middle]))
            if found is None:
                too_few = middle
            else:
                enough, place = middle, found
        return list(ones[:enough]), place

    def thinned(self, ones: Sequence[_One], fits: _Fits[_One]) -> list[_One]:
        """What is left of enough of them when each in turn, the last first, is left out if it can.

        Each that stays was needed when it was tried.
        """
        chosen = list(ones)
        for index in range(len(chosen) - 1, -1, -1):
            if len(chosen) == 1 or self.is_cut_short:
                break
            without = chosen[:index] + chosen[index + 1 :]
            if fits(without) is not None:
                chosen = without
        return chosen
