"""Python's cyclic garbage collector, told what we are like: much that stays, requests that go.

It finds nothing among the records of a cluster, and little among requests, which end by
themselves; left to its own pace it looks at both again and again.
"""

from __future__ import annotations

import gc

# Objects made and not yet dropped between two looks at the youngest, then how many looks until the
# next older ones are looked at. Python's is (700, 10, 10). A look at 10,000 takes a millisecond.
PACE = (10_000, 20, 100)


class Collector:
    """The one collector of this process: settled once, and as it was before after `restore`."""

    def __init__(self) -> None:
        self._pace_before: tuple[int, int, int] | None = None

    def settle(self) -> bool:
        """Take all there is out of its sight, since it is there to stay; False if that is done."""
        if self._pace_before is not None:
            return False
        gc.collect()
        gc.freeze()
        self._pace_before = gc.get_threshold()
        gc.set_threshold(*PACE)
        return True

    def restore(self) -> None:
        """Let it see everything again, at the pace it had."""
        if self._pace_before is not None:
            gc.set_threshold(*self._pace_before)
            gc.unfreeze()
            self._pace_before = None
