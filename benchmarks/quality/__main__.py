"""How good the places are that the planner chooses.

    python -m benchmarks.quality [--json] [--gangs 2000] [--orders 2] [--deals 2]
                                 [--data ../shared/data] [--pictures FOLDER]

`refused`: gangs refused though there is room for them, of 10,000. The clusters are small and
filled around a hidden packing, so that little or nothing is to spare (`feasible`); `baseline` is
what the search before, without packing anew, refuses of the same gangs. Then, in percent, of gangs
that fit exactly into racks of a large cluster (`large`), and how long these searches take.

`switches`: leaf switches per recorded job, replayed (`locality`), by `fewest_domains`; `baseline`
is the least there can be.

`allocated`: the share of a recorded cluster's GPUs that ordinary pods get when they ask for all of
them, and `free racks`, in which nothing runs when half are given out (`allocation`), with
`fewest_fragments` and `device_parts`; `baseline` is without. Means of a few orders of the pods.

`wait`: how long recorded gangs wait in a recorded cluster that is asked for 90 % of its hosts
(`gang_waits`), with `backfill`; `baseline` is without earmarks. Means of a few deals of sizes and
run times. That the longest wait is halved is not reached, and no order of the gangs is known that
does: strictly first come, first served shortens it by 16 to 22 %, and with all run times known a
place for each gang that starves by 22 to 23 %, in a model of the same gangs.

All three are left out without the recorded data, and so said. With `--pictures` the pictures of
README are drawn from it as well: `racks.svg`, `switches.svg`.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from statistics import fmean, median
from typing import Any

from app.state.plan.searches import CELLS_PER_VISIT, PER_NODE
from app.state.settings import EngineSettings
from benchmarks.quality import allocation, gang_waits, locality, pictures
from benchmarks.quality.feasible import instance
from benchmarks.quality.large import instance as of_large
from benchmarks.table import Row, show
from topology import DomainOrder, NoFit, Options, find
from topology.fit.view import Allowance

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
TRIES = 32  # as the planner has them
VISITS = EngineSettings().visits_per_search
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


def large(gangs: int) -> list[Row]:
    """False refusals on a large cluster with little free, and how long the searches took.

    On the loop they have an allowance (`visits_per_search`), and go on in a thread without one.
    """
    refused, milliseconds, on_loop, unfinished = 0, list[float](), list[float](), 0
    for seed in range(gangs):
        made = of_large(seed)
        began = time.process_time()
        found = find(made.capacity.tree, made.capacity, made.gang, {}, Options(tries=TRIES))
        milliseconds.append((time.process_time() - began) * 1e3)
        refused += isinstance(found, NoFit)
        last_visit = VISITS + PER_NODE * len(made.capacity.tree.nodes)
        allowed = Options(tries=TRIES, allowance=Allowance(last_visit, CELLS_PER_VISIT * VISITS))
        began = time.process_time()
        found = find(made.capacity.tree, made.capacity, made.gang, {}, allowed)
        on_loop.append((time.process_time() - began) * 1e3)
        unfinished += isinstance(found, NoFit) and found.is_unfinished
    milliseconds.sort()
    case, nodes = "groups in racks in one block, little free", len(made.capacity.tree.nodes)
    return [
        Row("refused", case, nodes, 100 * refused / gangs, "%"),
        Row("search, median", case, nodes, median(milliseconds), "ms"),
        Row("search, longest", case, nodes, milliseconds[-1], "ms"),
        Row("on the loop, median", case, nodes, median(on_loop), "ms", target="<= 2"),
        Row("on the loop, longest", case, nodes, max(on_loop), "ms", target="<= 20"),
        Row("goes on in a thread", case, nodes, 100 * unfinished / gangs, "%"),
    ]


# Partition, share of the hosts that is closed at random, the ratio to reach.
REPLAYS = {
    "Leonardo booster, 54 % full": ("booster", 0.0, "<= 1.01"),
    "Leonardo booster, a fifth closed, 68 % full": ("booster", 0.2, "<= 1.10"),
    "Leonardo dcgp": ("dcgp", 0.0, "<= 1.01"),
}


def switches(data: Path) -> list[Row]:
    """Switches per job, with Kueue's choice and with ours."""
    rows = []
    for case, (name, closed, target) in REPLAYS.items():
        of = locality.partition(data, name)
        fewest, hosts = fmean(locality.least(of)), len(of.paths)
        for how, order in (("as Kueue", DomainOrder.TIGHTEST), ("fewest", DomainOrder.FEWEST)):
            found = fmean(locality.replayed(of, order, closed=closed))
            reach = target if order is DomainOrder.FEWEST else ""
            rows.append(
                Row(f"switches, {how}", case, hosts, found, "a job", fewest, found / fewest, reach)
            )
    return rows


# The share of the GPUs to reach.
ALLOCATIONS = {"default": ">= 95.2", "multi-GPU": ">= 97.1"}
FREE_RACKS = ">= 47"
FRAGMENTS: dict[str, Any] = {
    "fewest_fragments": True,
    "device_parts": ((allocation.GPU, allocation.WHOLE),),
}


def allocated(data: Path, orders: int) -> list[Row]:
    """GPUs that pods get, and racks that stay free, with our choice and by domains alone."""
    rows = []
    for name, target in ALLOCATIONS.items():
        of = allocation.trace(data, name)
        found = [
            [allocation.replayed(of, order, **settings) for order in range(orders)]
            for settings in (FRAGMENTS, {})
        ]
        case, nodes = f"openb 2023, {name}", len(of.nodes)
        share, known = (100 * fmean(run.allocated for run in runs) for runs in found)
        rows.append(
            Row("allocated", case, nodes, share, "% of the GPUs", known, share / known, target)
        )
        racks, known = (fmean(run.free_racks for run in runs) for runs in found)
        rows.append(
            Row("free racks", case, nodes, racks, "racks", known, racks / known, FREE_RACKS)
        )
    return rows


WAIT_LOAD = 0.9
BACKFILLS: dict[str, dict[str, Any]] = {
    "deadlines": {"backfill": "deadlines", "has_deadlines": True},
    "history": {"backfill": "history"},
}
EARMARKED_SHARE = 0.2  # of the nodes: as many as the largest gang needs


def waits(data: Path, deals: int) -> list[Row]:
    """How long gangs wait on average and at most, with earmarks that others use until then."""
    recorded, rows = gang_waits.trace(data), []
    dealt = [gang_waits.loaded(recorded, WAIT_LOAD, deal) for deal in range(deals)]
    for mode in gang_waits.MODES:
        passing = [gang_waits.replayed(of, mode, earmarks_per_namespace=0) for of in dealt]
        for name, settings in BACKFILLS.items():
            chosen = {"earmarked_share": EARMARKED_SHARE, **settings}
            found = [gang_waits.replayed(of, mode, **chosen) for of in dealt]
            case, hosts = f"Lingjun, {mode}, {name}", len(recorded.nodes)
            for what, target in (("mean", "<= 1.05"), ("longest", "<= 0.5")):
                wait, known = (
                    fmean(getattr(run, what) for run in runs) for runs in (found, passing)
                )
                rows.append(
                    Row(f"wait, {what}", case, hosts, wait, "s", known, wait / known, target)
                )
    return rows


DRAWN = tuple(REPLAYS)[:2]


def draw(data: Path, folder: Path) -> None:
    """Write the pictures of README. Raises: OSError."""
    traces = {name: allocation.trace(data, name) for name in allocation.TRACES}
    pictures.racks(traces, FRAGMENTS, folder / "racks.svg")
    replays = {}
    for case in DRAWN:
        name, closed, _ = REPLAYS[case]
        replays[case] = locality.partition(data, name), closed
    pictures.switches(replays, folder / "switches.svg")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--gangs", type=int, default=2000, help="of each kind")
    parser.add_argument("--data", type=Path, default=DATA, help="the recorded traces")
    parser.add_argument("--orders", type=int, default=2, help="of the pods that ask for GPUs")
    parser.add_argument("--deals", type=int, default=2, help="of the gangs that wait")
    parser.add_argument("--pictures", type=Path, help="where README's pictures are drawn")
    options = parser.parse_args()
    rows = [row for kind in KINDS for row in refused(options.gangs, kind)]
    rows += large(max(1, options.gangs // 20))
    for what, file, measured in (
        ("switches", "hpc-placements.json.gz", switches),
        ("allocated", allocation.NODES, lambda data: allocated(data, options.orders)),
        ("wait", gang_waits.GANGS, lambda data: waits(data, options.deals)),
    ):
        if (options.data / file).is_file():
            rows += measured(options.data)
        else:
            print(f"left out, as {options.data} has no {file}: {what}", file=sys.stderr)
    show(rows, as_json=options.json)
    if options.pictures is not None:
        draw(options.data, options.pictures)


if __name__ == "__main__":
    main()
