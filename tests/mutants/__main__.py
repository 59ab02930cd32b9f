"""python -m tests.mutants [--count N] [--seed S] [--paths PATH…] [--jobs J]

or with --covered FILE, --resume FILE, or --json.

Draws mutants of `topology` and `app` and tries each of them; `--count` counts those drawn, and a
larger count with the same seed draws the same ones and more. Nothing is drawn from `app/sandbox`:
it stands in for the API server, and what it does is compared with a real one, by tests that are
too slow for this. A mutant that survives takes minutes. It takes less with `--covered FILE`, where
`pytest --cov --cov-context=test` has recorded which tests run which line. With `--resume FILE`
every result is kept in that file as it comes, and a later run goes on from there.

A survivor is equivalent to the code as it is, or shows that a test is missing: whoever reads the
difference decides which. A history of the simulator that merely changes is no violation.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

from tests.mutants.covering import Covering
from tests.mutants.syntax import Mutant, mutants
from tests.mutants.trial import KilledBy, Trial, tried
from tests.sim.planted import ROOT

PACKAGES = ("app", "topology")
LEFT_OUT = "app/sandbox"
MEMORY_BYTES = 8 * 2**30  # of addresses, for a process each: some mutants never stop collecting


def drawn(root: Path, *, count: int, seed: int, paths: Sequence[str] = PACKAGES) -> list[Mutant]:
    """So many mutants of the modules at or below `paths`, in random order."""
    modules = sorted(
        path.relative_to(root)
        for package in PACKAGES
        for path in (root / package).rglob("*.py")
        if any(path.is_relative_to(root / below) for below in paths)
        and not path.is_relative_to(root / LEFT_OUT)
    )
    found = [
        mutant
        for module in modules
        for mutant in mutants(str(module), (root / module).read_text(encoding="utf-8"))
    ]
    random.Random(seed).shuffle(found)
    return found[:count]


def trials(
    found: Sequence[Mutant],
    root: Path,
    covering: Covering | None = None,
    *,
    jobs: int,
    kept: Path | None,
) -> Iterator[Trial]:
    """What became of each, as they end; what the file `kept` already says is not tried again."""
    known = {trial.mutant: trial for trial in _read(kept)}
    yield from (known[mutant] for mutant in found if mutant in known)
    with ThreadPoolExecutor(jobs) as pool:
        running = [
            pool.submit(tried, mutant, root, covering) for mutant in found if mutant not in known
        ]
        try:
            for ended in as_completed(running):
                try:
                    trial = ended.result()
                except RuntimeError as error:  # a test fails without it as well, now and then
                    print(f"not told: {error}", file=sys.stderr, flush=True)
                    continue
                if kept is not None:
                    with kept.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(asdict(trial)) + "\n")
                yield trial
        finally:
            pool.shutdown(cancel_futures=True)


def _read(kept: Path | None) -> Iterator[Trial]:
    if kept is not None and kept.exists():
        for line in kept.read_text(encoding="utf-8").splitlines():
            fields: dict[str, Any] = json.loads(line)
            yield Trial(**{**fields, "mutant": Mutant(**fields["mutant"])})


def show(found: Sequence[Trial]) -> None:
    """The survivors with their differences, then how many were killed by what."""
    for trial in found:
        if trial.killed_by == "nothing":
            print(f"{trial.mutant.path}:{trial.mutant.line} survived\n{trial.diff}")
    counts = Counter(trial.killed_by for trial in found)
    print("killed by     mutants  percent")
    for killed_by in get_args(KilledBy):
        mutants = counts[killed_by]
        print(f"{killed_by:13} {mutants:7}  {100 * mutants / max(len(found), 1):7.1f}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=20, help="how many mutants")
    parser.add_argument("--seed", type=int, default=1, help="which")
    parser.add_argument("--paths", nargs="+", default=PACKAGES, help="files and folders to mutate")
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time")
    parser.add_argument("--covered", type=Path, help="which tests run which line: .coverage")
    parser.add_argument("--resume", type=Path, help="keep what is found here, and go on from it")
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    asked = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    covering = None if asked.covered is None else Covering(asked.covered, ROOT)
    found = []
    mutants = drawn(ROOT, count=asked.count, seed=asked.seed, paths=asked.paths)
    for trial in trials(mutants, ROOT, covering, jobs=asked.jobs, kept=asked.resume):
        found.append(trial)
        at = f"{trial.mutant.path}:{trial.mutant.line}"
        print(f"{at} killed by {trial.killed_by} {trial.reason}", file=sys.stderr, flush=True)
    if asked.json:
        print(json.dumps([asdict(trial) for trial in found], indent=1))
    else:
        show(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
