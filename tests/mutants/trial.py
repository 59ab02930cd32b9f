"""One mutant, tried in a copy of the checkout: by tests, then by the simulator.

Where it is recorded which tests run the mutated line, those are tried, then the tests beside it:
some of these start processes, in which nothing is recorded. Otherwise all tests beside it are tried
and then the quick ones of the folders above: tests mirror the tree, and those of
`topology/fit/view.py` are in `tests/topology/fit`. Of `tests/app` only the files run, since its
folders are other parts of the program. The simulator plays only what it loads.

A test that fails kills the mutant if it succeeds without it, and so does a seed. A run that does
not end kills it too.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Literal

from tests.mutants.covering import Covering
from tests.mutants.syntax import Mutant
from tests.sim.planted import first_violation

SHARED_FOLDER = Path("tests/app")
PEERS = "shared"  # beside the checkout: the recorded cases that tests/parity plays, if it is there
SEEDS = 60
TESTS_SECONDS = 1800.0  # for the tests of one folder
SEEDS_SECONDS = 900.0  # for all seeds
EVERYTHING = "not e2e and not browser and not thorough"  # no browser in so little memory
QUICK = f"{EVERYTHING} and not slow"
FIRST_TESTS = 60  # of those that run the line; most mutants fail one of them
FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
SUCCEEDED = (0, 5)  # pytest's exit codes: all tests passed; no tests there

KilledBy = Literal["folder tests", "other tests", "seeds", "nothing"]


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of a mutant."""

    mutant: Mutant
    diff: str
    killed_by: KilledBy
    reason: str  # the test that failed, or the seed and what it says; "" if it survived
    seconds: float


def tried(
    mutant: Mutant,
    root: Path,
    covering: Covering | None = None,
    *,
    tests_seconds: float = TESTS_SECONDS,
) -> Trial:
    """What became of a mutant in a copy of the checkout at `root`.

    Raises: RuntimeError if what kills it fails without it as well.
    """
    began = time.monotonic()
    source = (root / mutant.path).read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="mutant-") as directory:
        copy = Path(directory) / "checkout"
        shutil.copytree(root, copy, ignore=shutil.ignore_patterns(".*", "__pycache__"))
        if (root.parent / PEERS).is_dir():
            (Path(directory) / PEERS).symlink_to(root.parent / PEERS)
        (copy / mutant.path).write_text(mutant.applied(source), encoding="utf-8")
        covered_by = covering.tests_of(mutant, source) if covering is not None else []
        runs = runs_for(mutant.path, root)
        if covered_by:
            runs = chain(_runs_of(covered_by, copy), islice(runs, 1))
        reason = _failure(mutant, root, copy, runs, tests_seconds)
        killed_by: KilledBy = "folder tests" if _is_near(reason, mutant.path) else "other tests"
        if not reason and is_simulated(mutant.path, root):
            killed_by, reason = "seeds", _violation(mutant, root, copy)
    seconds = round(time.monotonic() - began, 1)
    return Trial(mutant, mutant.diff(source), killed_by if reason else "nothing", reason, seconds)


def runs_for(path: str, root: Path) -> Iterator[list[str]]:
    """Arguments of pytest for a module: its own folder's tests, then those of the folders above."""
    module = Path(path)
    folders = ["tests" / folder for folder in module.parents[:-1]]
    own, *above = [folder for folder in folders if (root / folder).is_dir()]
    yield ["-m", EVERYTHING, *_tests_in(own, root, first=f"test_{module.name}")]
    for below, folder in pairwise([own, *above]):
        yield ["-m", QUICK, f"--ignore={below}", *_tests_in(folder, root)]


def _runs_of(tests: Sequence[str], copy: Path) -> Iterator[list[str]]:
    """Arguments of pytest for these tests, in order: the first few, then the rest."""
    for number, some in enumerate((tests[:FIRST_TESTS], tests[FIRST_TESTS:])):
        if some:
            named = copy / f"tests-{number}.txt"  # too many for a command line
            named.write_text("".join(f"{test}\n" for test in some), encoding="utf-8")
            yield [f"@{named}"]


def _is_near(test: str, path: str) -> bool:
    """Whether a test is in the folder that mirrors a module's, or in one above."""
    own = "tests" / Path(path).parent
    is_run = "::" not in test  # that did not end
    return is_run or Path(test.partition("::")[0]).parent in (own, *own.parents)


def _tests_in(folder: Path, root: Path, first: str = "") -> list[str]:
    if folder == SHARED_FOLDER:
        return sorted(str(file.relative_to(root)) for file in (root / folder).glob("test_*.py"))
    is_there = (root / folder / first).is_file()
    return [*([str(folder / first)] if is_there else []), str(folder)]


def _failure(
    mutant: Mutant, root: Path, copy: Path, runs: Iterator[list[str]], seconds: float
) -> str:
    """The first test that the mutant fails; "" if it passes them all."""
    for arguments in runs:
        code, output = _pytest(copy, arguments, seconds)
        if code in SUCCEEDED:
            continue
        failed = FAILED.search(output)
        if failed is None:
            end = "it did not end" if code is None else f"exit code {code}"
            return f"pytest {' '.join(arguments)}: {end}"
        _restore(mutant, root, copy)
        if _pytest(copy, [failed[1]], seconds)[0] not in SUCCEEDED:
            raise RuntimeError(f"{failed[1]} fails without a mutant:\n{output[-2000:]}")
        return failed[1]
    return ""


def is_simulated(path: str, root: Path) -> bool:
    """Whether the simulator loads a module; without it no history can depend on the module."""
    code = "import sys, tests.sim.__main__; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.split()
    return ".".join(Path(path).with_suffix("").parts).removesuffix(".__init__") in loaded


def _violation(mutant: Mutant, root: Path, copy: Path) -> str:
    """The first seed whose history the mutant spoils; "" if there is none."""
    try:
        found = first_violation(copy, 1, SEEDS, jobs=1, seconds=SEEDS_SECONDS)
    except subprocess.TimeoutExpired:
        return "the simulator did not end"
    except RuntimeError as error:
        return str(error)
    if found is None:
        return ""
    seed, sentence = found
    _restore(mutant, root, copy)
    if first_violation(copy, seed, 1, jobs=1, seconds=SEEDS_SECONDS) is not None:
        raise RuntimeError(f"seed {seed} is violated without a mutant: {sentence}")
    return f"seed {seed}: {sentence}"


def _restore(mutant: Mutant, root: Path, copy: Path) -> None:
    shutil.copy2(root / mutant.path, copy / mutant.path)


def _pytest(copy: Path, arguments: Sequence[str], seconds: float) -> tuple[int | None, str]:
    """Exit code and output; None if it did not end. Nothing that it started is left behind."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", *arguments]
    with subprocess.Popen(
        command,
        cwd=copy,
        # By size and second of change Python cannot tell a mutant that it has compiled from what
        # it was.
        env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as tests:
        try:
            output, _ = tests.communicate(timeout=seconds)
            return tests.returncode, output
        except subprocess.TimeoutExpired:
            return None, ""
        finally:
            with suppress(ProcessLookupError):
                os.killpg(tests.pid, signal.SIGKILL)
