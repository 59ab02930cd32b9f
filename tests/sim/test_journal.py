"""Whatever the simulator does to a Corral, its journal brings the same answers and effects."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from app.state.journal.lines import VERSION
from tests.hash_seeds import SECONDS, patient
from tests.sim.journal import journals, play_again, record
from tests.sim.planted import ROOT
from tests.sim.world import World

SEEDS = (1, 2, 3, 4, 5, 13)  # gangs are born in place in the last
HASH_SEED = "4321"  # of the second process: strings lie in other orders there
GAVE = b'{"line":"out","digest":"'

pytestmark = [pytest.mark.slow, patient]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_history_replays_bit_for_bit_here_and_where_strings_hash_otherwise(seed, tmp_path):
    outcome = record(seed, tmp_path / "j")
    assert not outcome.violation
    paths = journals(tmp_path / "j")
    assert paths
    for path in paths:
        played = play_again(path)
        assert (played.difference, played.notes) == (None, ())
        assert played.lines == len(path.read_bytes().splitlines())
    code, said = replayed_elsewhere(tmp_path / "j")
    assert (code, said.count(": equal, ")) == (0, len(paths)), said


def test_a_recorded_history_is_the_history(tmp_path):
    assert record(1, tmp_path / "j").digest == World(1).run().digest


def test_a_line_that_was_changed_is_reported(tmp_path):
    record(1, tmp_path / "j")
    path = journals(tmp_path / "j")[0]
    lines = path.read_bytes().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if line.startswith(GAVE))
    lines[at] = GAVE + b'0000000000000000"}\n'
    (tmp_path / "changed").write_bytes(b"".join(lines))
    code, said = replayed_elsewhere(tmp_path / "changed")
    assert code == 1
    assert f"changed: differs: line {at}, " in said  # the input is the line before its answer


def test_a_node_of_another_size_is_reported(tmp_path):
    record(1, tmp_path / "j")
    path = journals(tmp_path / "j")[0]
    path.write_bytes(path.read_bytes().replace(b'["nvidia.com/gpu",4]', b'["nvidia.com/gpu",0]'))
    assert play_again(path).difference is not None


def test_a_journal_that_is_none_or_is_not_there_is_said_and_is_not_equal(tmp_path):
    (tmp_path / "bad").write_bytes(b'{"journal":99}\n')
    assert replayed_elsewhere(tmp_path / "bad") == (
        1,
        f"bad: journal line 1: version 99 is not known, only {VERSION}\n",
    )
    code, said = replayed_elsewhere(tmp_path / "none")
    assert (code, "there is no such journal" in said) == (1, True)


def replayed_elsewhere(journal):
    """The exit code and the words of a replay in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.sim", "--replay", str(journal)],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": HASH_SEED, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return done.returncode, done.stdout
