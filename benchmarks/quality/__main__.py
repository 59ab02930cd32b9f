"""How good the places are that the planner chooses.

    python -m benchmarks.quality [--json] [--gangs 2000]

`refused`: gangs refused though there is room for them, of 10,000. The clusters are small and
filled around a hidden packing, so that little or nothing is to spare (`feasible`); `baseline` is
what the search before, without packing anew, refuses of the same gangs.
"""

from __future__ import annotations

import argparse
import time

from benchmarks.quality.feasible import instance
from benchmarks.table import Row, show
from topology import NoFit, Options, find

TRIES = 32  # as the planner has them
KINDS = {
    "pods alike, a rack for each pod set": (False, False, "0"),
    "pods of several shapes, a rack for each": (True, False, "<= 10"),
    "pods alike, groups in racks in one block": (False, True, "<= 10"),
    "pods of several shapes, groups in racks": (True, True, "<= 10"),
}
# Measured at 1212de4, on the first 2,000 gangs of each kind, by this file's own questions.
BEFORE = {False: {False: 760.0, True: 380.0}, True: {False: 845.0, True: 740.0}}


def refused(gangs: int, kind: str) -> list[Row]:
    """False refusals of one kind, and how long the searches took."""
    is_mixed, is_nested, target = KINDS[kind]
    wrong, worst, total = 0, 0.0, 0.0
    for seed in range(gangs):
        made = instance(seed, is_mixed=is_mixed, is_nested=is_nested)
        began = time.process_time()
        found = find(made.capacity.tree, made.capacity, made.gang, {}, Options(tries=TRIES))
        seconds = time.process_time() - began
        wrong += isinstance(found, NoFit)
        worst, total = max(worst, seconds), total + seconds
    before = BEFORE[is_mixed][is_nested]
    per = wrong * 10_000 / gangs
    return [
        Row("refused", kind, 0, per, "of 10,000", before, per / before, target),
        Row("search, mean", kind, 0, total * 1e3 / gangs, "ms"),
        Row("search, longest", kind, 0, worst * 1e3, "ms"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--gangs", type=int, default=2000, help="of each kind")
    options = parser.parse_args()
    show([row for kind in KINDS for row in refused(options.gangs, kind)], as_json=options.json)


if __name__ == "__main__":
    main()
