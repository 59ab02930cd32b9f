"""Many seeds in a few processes, and what they came to: violations, faults hit, one hash."""

from __future__ import annotations

import gc
import hashlib
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from tests.sim.faults import COUNTED, GROWN, least_hits
from tests.sim.journal import record
from tests.sim.mode import USUAL, Mode
from tests.sim.world import Outcome, World

HASH_SEEDS = ("1", "2")  # of two runs that must not differ
PLAY_SECONDS = 7200.0  # bounds either of them
MOST_SHOWN = 10  # violations in full; the rest by seed and sentence


def run_seed(seed: int, *, mode: Mode = USUAL) -> Outcome:
    """Play one seed, and collect what it leaves behind afterwards: little of that is cyclic."""
    gc.freeze()
    gc.disable()
    try:
        return World(seed, mode=mode).run()
    finally:
        gc.enable()
        gc.collect()


def outcomes(seeds: Iterable[int], jobs: int, *, mode: Mode = USUAL) -> Iterator[Outcome]:
    """Every seed's outcome, in order."""
    played = partial(run_seed, mode=mode)
    if jobs == 1:
        yield from map(played, seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        try:
            yield from pool.map(played, seeds, chunksize=4)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def play(first: int, seeds: int, *, jobs: int, stops: bool, mode: Mode = USUAL) -> int:
    """Play them all and print what came of it; 0 if nothing was violated and no row was missed."""
    began = time.monotonic()
    hits: Counter[str] = Counter()
    every = hashlib.sha256()
    bad: list[Outcome] = []
    steps, virtual, played = 0, 0.0, 0
    for outcome in outcomes(range(first, first + seeds), jobs, mode=mode):
        played += 1
        every.update(outcome.digest.encode())
        hits.update(outcome.hits)
        steps, virtual = steps + outcome.steps, virtual + outcome.virtual_seconds
        if outcome.violation:
            bad.append(outcome)
            show(outcome, in_full=len(bad) <= MOST_SHOWN)
            if stops:
                break
    missed = show_hits(hits, played, mode)
    print(
        f"{played} seeds, {steps} steps, {virtual / 3600:.1f} virtual hours"
        f" in {time.monotonic() - began:.0f} s; {len(bad)} violations;"
        f" histories {every.hexdigest()[:16]}"
    )
    return 1 if bad or missed else 0


def play_twice(first: int, seeds: int, *, jobs: int, mode: Mode = USUAL) -> int:
    """Play them in two processes that hash strings differently; 0 if both are clean and alike."""
    digests: list[str] = []
    codes: list[int] = []
    for hash_seed in HASH_SEEDS:
        command = [sys.executable, "-m", "tests.sim", "--first", str(first), "--seeds", str(seeds)]
        done = subprocess.run(
            [*command, "--jobs", str(jobs), *mode.options],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            stdout=subprocess.PIPE,
            text=True,
            timeout=PLAY_SECONDS,
            check=False,
        )
        print(done.stdout, end="", flush=True)
        digests.append(done.stdout.split()[-1] if done.stdout else "")
        codes.append(done.returncode)
    if len(set(digests)) > 1:
        print(f"the same seeds gave different histories: {', '.join(digests)}")
        return 1
    return max(codes)


def show(outcome: Outcome, *, in_full: bool) -> None:
    """One violation, with the end of its history."""
    print(
        f"seed {outcome.seed}, step {outcome.step}, {outcome.at:.3f} s: {outcome.violation}",
        flush=True,
    )
    if in_full:
        for line in outcome.last_lines:
            print(f"    {line}")
        print(outcome.trace)


def show_hits(hits: Counter[str], seeds: int, mode: Mode) -> list[str]:
    """The table of faults; returns those that were hit too rarely, if the run was long enough."""
    missed = [fault for fault in COUNTED if hits[fault] < least_hits(fault, seeds, mode)]
    for fault, meaning in COUNTED.items():
        if fault in GROWN and not mode.growing:
            continue
        mark = "  TOO FEW" if fault in missed else ""
        print(f"{fault:22} {hits[fault]:8}  {meaning}{mark}")
    return missed


def show_one(seed: int, *, trace: bool, journal: Path | None = None, mode: Mode = USUAL) -> int:
    """Play one seed and print its history; `journal` is where the inputs of its engines go."""
    on_line = print if trace else None
    if journal is None:
        outcome = World(seed, mode=mode, on_line=on_line).run()
    else:
        outcome = record(seed, journal, mode=mode, on_line=on_line)
    if outcome.violation:
        show(outcome, in_full=not trace)
        if trace:
            print(outcome.trace)
    print(f"seed {seed}: {outcome.steps} steps, history {outcome.digest[:16]}")
    return 1 if outcome.violation else 0
