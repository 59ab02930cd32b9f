"""Small bugs, planted in a copy of app/ one at a time; the simulator has to find each of them.

    python -m tests.sim.planted            all of them, up to 500 seeds each
    python -m tests.sim.planted 3 17       some, by number
    python -m tests.sim.planted --list

A bug counts as found by a seed that is clean without it: that seed is played again without the bug.
What random worlds have nothing of, as requests for nodes, is found by a history in
virtual time that a test plays; it has to pass without the bug.
`planted_bugs.py` says what they are, `planted_syntax.py` how they get into the code.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.sim.mode import USUAL, Mode
from tests.sim.planted_bugs import PLANTED
from tests.sim.planted_syntax import Planted, plant

ROOT = Path(__file__).resolve().parents[2]
MOST_SEEDS = 500
PLAY_SECONDS = 1800.0  # for one planted bug; bounds a mutation that makes the engine loop
FOUND = re.compile(r"^seed (\d+), step \d+, [0-9.]+ s: (.*)$", re.MULTILINE)
ERROR = re.compile(r"^E +(.*)$", re.MULTILINE)


def catch(planted: Planted, *, seeds: int = MOST_SEEDS, jobs: int = 2) -> tuple[int, str] | None:
    """A seed that finds the bug and what it says; None if none of so many does."""
    with tempfile.TemporaryDirectory(prefix="planted-") as directory:
        copy = Path(directory)
        for package in ("app", "topology", "tests"):
            shutil.copytree(
                ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__", "*.so")
            )
        plant(planted, copy)
        if planted.test:
            return _found_by_test(planted.test, copy)
        first, end = planted.first, planted.first + seeds
        while first < end:
            mode = planted.mode
            found = first_violation(copy, first, end - first, jobs, mode=mode)
            if found is None:
                return None
            if first_violation(ROOT, found[0], 1, 1, mode=mode) is None:
                return found
            first = found[0] + 1
    return None


def _found_by_test(test: str, copy: Path) -> tuple[int, str] | None:
    """What a test says that fails with the bug and passes without it."""
    status, said = _tested(test, copy)
    if status != pytest.ExitCode.TESTS_FAILED or _tested(test, ROOT)[0] != pytest.ExitCode.OK:
        return None
    return 0, next(iter(ERROR.findall(said)), "")


def _tested(test: str, root: Path) -> tuple[int, str]:
    done = _run(["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", test], root, PLAY_SECONDS)
    return done.returncode, done.stdout


def first_violation(
    root: Path,
    first: int,
    seeds: int,
    jobs: int,
    *,
    mode: Mode = USUAL,
    seconds: float = PLAY_SECONDS,
) -> tuple[int, str] | None:
    """The first of these seeds that the checkout at `root` violates, and what it says.

    Raises: subprocess.TimeoutExpired; RuntimeError if no history was played at all.
    """
    command = ["-m", "tests.sim", "--stop"]
    command += ["--first", str(first), "--seeds", str(seeds), "--jobs", str(jobs)]
    command += mode.options
    done = _run(command, root, seconds)
    found = FOUND.search(done.stdout)
    if found is None and not done.stdout.rstrip().splitlines()[-1:]:
        raise RuntimeError(f"the simulator did not run: {done.stderr[-500:]}")
    return (int(found[1]), found[2]) if found else None


def _run(command: list[str], root: Path, seconds: float) -> subprocess.CompletedProcess[str]:
    """Run a module of the checkout at `root`."""
    return subprocess.run(
        [sys.executable, *command],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.planted", description=__doc__)
    parser.add_argument("numbers", nargs="*", type=int, help="which; none: all")
    parser.add_argument("--list", action="store_true", help="say what they are and stop")
    parser.add_argument("--seeds", type=int, default=MOST_SEEDS)
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    missed = 0
    for number, planted in enumerate(PLANTED):
        if asked.numbers and number not in asked.numbers:
            continue
        print(f"{number:2} {planted.function}: {planted.breaks}", flush=True)
        if asked.list:
            continue
        found = catch(planted, seeds=asked.seeds, jobs=asked.jobs)
        missed += found is None
        by = planted.test if found is None or planted.test else f"seed {found[0]}"
        print(f"     {'NOT FOUND' if found is None else f'{by}: {found[1][:120]}'}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
