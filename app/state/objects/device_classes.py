"""Resources that kube-scheduler takes from drivers: no node counts them, and no plan does.

While a node has some of one all the same, by a device plugin, pods that request it are planned on
such nodes alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain

from app.dialects.registry import Dialects
from app.kube.core.objects import ObjectRecord
from app.state.cache.books import Books


@dataclass(slots=True)
class DeviceClasses:
    """The classes that the watch shows. Both calls say whether other resources count by now."""

    dialects: Dialects
    books: Books
    _of: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by uid

    def put(self, record: ObjectRecord) -> bool:
        """Learn of an object, which may be a class of devices."""
        names = self.dialects.claimed(record)
        if not names:
            return self.drop(record.uid)
        self._of[record.uid] = names
        return self._settle()

    def drop(self, uid: str) -> bool:
        """Forget an object that is gone."""
        return self._of.pop(uid, None) is not None and self._settle()

    def _settle(self) -> bool:
        return self.books.set_claimable(frozenset(chain.from_iterable(self._of.values())))
