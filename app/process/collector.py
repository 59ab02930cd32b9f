"""Python's cyclic garbage collector, set for this process: many records stay, requests are short.

Neither leaves cycles behind: records hold none, and a request is freed by its reference counts. At
the default pace the collector would scan all of them again and again.
"""

from __future__ import annotations

import gc

# `gc.set_threshold`: objects allocated and not yet freed between two collections of the youngest
# generation, then how many of those before the next older one. Python's default is (700, 10, 10).
# A collection of 10,000 objects takes a millisecond.
PACE = (10_000, 20, 100)


class Collector:
    """The collector of this process: settled once, and after `restore` as it was before."""

    def __init__(self) -> None:
        self._pace_before: tuple[int, int, int] | None = None

    def settle(self) -> bool:
        """Exempt every object there is now, since they stay; False if that was done before."""
        if self._pace_before is not None:
            return False
        gc.collect()
        gc.freeze()
        self._pace_before = gc.get_threshold()
        gc.set_threshold(*PACE)
        return True

    def restore(self) -> None:
        """Collect everything again, at the pace of before."""
        if self._pace_before is not None:
            gc.set_threshold(*self._pace_before)
            gc.unfreeze()
            self._pace_before = None
