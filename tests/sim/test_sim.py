"""Forty histories as a normal test; five hundred are `python -m tests.sim`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.sim.planted import ROOT
from tests.sim.world import World

SEEDS = 40


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
def test_nothing_is_violated_whatever_goes_wrong(seed):
    outcome = World(seed).run()
    assert not outcome.violation, "\n".join((outcome.violation, *outcome.last_lines, outcome.trace))


@pytest.mark.slow
def test_the_same_seed_is_the_same_history_whatever_python_hashes_to():
    digests = {_digest(seed=2, hash_seed=hash_seed) for hash_seed in (1, 2)}
    assert digests == {World(2).run().digest}


@pytest.mark.slow
def test_two_seeds_are_two_histories():
    assert World(1).run().digest != World(2).run().digest


def _digest(seed: int, hash_seed: int) -> str:
    code = f"from tests.sim.world import World; print(World({seed}).run().digest)"
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.strip()
