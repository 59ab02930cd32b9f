"""The label keys of pods that records keep: those of the vocabularies, and what objects name.

One set for every pod that is read: from the watch, from a request, after a write.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from app.kube.decoding.decode import Keep


@dataclass(slots=True)
class LabelKeys:
    """It only grows, so a record that has all keys of one edition has those of the earlier ones."""

    always: Keep
    _editions: dict[str, int] = field(default_factory=dict)
    """By key: the number of keys when it had been added."""

    @property
    def edition(self) -> int:
        """How many keys have been added."""
        return len(self._editions)

    def keeps(self, key: str) -> bool:
        """Whether a label with this key is worth its memory."""
        return key in self._editions or self.always(key)

    def edition_of(self, key: str) -> int | None:
        """The first edition with a key that was added; None: it was not."""
        return self._editions.get(key)

    def add(self, key: str) -> None:
        """Keep this key as well, from now on."""
        self._editions.setdefault(key, len(self._editions) + 1)
