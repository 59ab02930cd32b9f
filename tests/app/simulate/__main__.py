"""python -m tests.app.simulate [--first N] [--last N]

Plays random cases of each kind and prints what came of them: that what is simulated happens, that
relaxations help, and that a body of any content is answered. The exit code is 1 if one fails.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections import Counter
from collections.abc import Callable, Iterable

import structlog

from tests.app.simulate import test_as_created, test_hostile, test_relaxed

LAST = 2_000


def as_created(seed: int) -> Iterable[str]:
    """A verdict for each gang."""
    return [fate[0] for fate in test_as_created.check(seed).values()]


def relaxed(seed: int) -> Iterable[str]:
    """A kind for each relaxation."""
    return list(test_relaxed.check(seed).elements())


def several(seed: int) -> Iterable[str]:
    """The same of gangs of several pod sets."""
    return list(test_relaxed.check_several(seed).elements())


def hostile(seed: int) -> Iterable[str]:
    """Whether it was answered."""
    return [test_hostile.check(seed)]


KINDS: tuple[Callable[[int], Iterable[str]], ...] = (as_created, relaxed, several, hostile)


def main() -> int:
    """Play them all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--last", type=int, default=LAST, help="the first that is not played")
    chosen = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    failed = 0
    for check in KINDS:
        found = Counter[str]()
        for seed in range(chosen.first, chosen.last):
            try:
                found.update(check(seed))
            except Exception as error:
                failed += 1
                print(f"{check.__name__} {seed}: {type(error).__name__}: {error}"[:2_000])
        told = ", ".join(f"{number} {what}" for what, number in found.most_common())
        print(f"{check.__name__}: {chosen.last - chosen.first} cases: {told}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
