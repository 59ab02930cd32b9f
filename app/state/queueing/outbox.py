"""The list of effects that goes out with the answer to an input."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from app.state.effects import Effect


@dataclass(slots=True)
class Outbox:
    """What has to be written to the cluster or answered, in the order it was decided."""

    _effects: list[Effect] = field(default_factory=list)

    def add(self, effect: Effect) -> None:
        """Add one effect."""
        self._effects.append(effect)

    def extend(self, effects: Iterable[Effect]) -> None:
        """Add effects in their order."""
        self._effects.extend(effects)

    def taken(self) -> list[Effect]:
        """Remove and return every effect; the caller carries them out."""
        effects, self._effects = self._effects, []
        return effects
