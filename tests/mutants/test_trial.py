"""Mutants of a small checkout: what its tests hold is killed, what they cannot tell survives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict

import pytest
from coverage import CoverageData

from tests.mutants.__main__ import show, trials
from tests.mutants.covering import Covering
from tests.mutants.syntax import mutants
from tests.mutants.trial import EVERYTHING, QUICK, Trial, is_simulated, runs_for, tried

QUEUE = "app/state/queue.py"
LONGEST = "from app.state.queue import longest\n"
SIMULATOR = """
import sys
from app.state.queue import urgent

if urgent([3], 3) != [3] and "--seeds" in sys.argv:
    print("seed 4, step 9, 1.5 s: an urgent pod was left out")
print("played")
"""
FILES = {
    "app/__init__.py": "",
    "app/state/__init__.py": "",
    "tests/__init__.py": "",
    "tests/sim/__init__.py": "",
    "pyproject.toml": "[tool.pytest.ini_options]\npythonpath = ['.']\n"
    "markers = ['browser', 'e2e', 'slow', 'thorough']\n",
    "app/state/queue.py": """
def first(waiting):
    return min(waiting)


def urgent(waiting, bound):
    return [each for each in waiting if each >= bound]


def longest(one, other):
    return one if one > other else other


def drained(waiting):
    while waiting:
        waiting.pop()
    return 0
""",
    "tests/app/state/test_queue.py": """
from app.state.queue import drained, first, longest, urgent

def test_the_least_is_first():
    assert first([2, 1, 3]) == 1

def test_what_is_less_is_not_urgent():
    assert urgent([1, 5], 3) == [5]

def test_the_longer_one_is_taken():
    assert (longest(1, 2), longest(2, 1)) == (2, 2)
""",
    "tests/app/test_drained.py": """
from app.state.queue import drained

def test_nothing_is_left():
    waiting = [1]
    assert drained(waiting) == 0
    assert not waiting
""",
    "tests/sim/__main__.py": SIMULATOR,
}


@pytest.fixture
def checkout(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def recorded(checkout):
    """Which tests run which line of the checkout."""
    command = [sys.executable, "-m", "pytest", "-q", "--cov=app", "--cov-context=test"]
    subprocess.run(
        [*command, "--cov-report="],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        check=True,
        timeout=60,
    )
    return Covering(checkout / ".coverage", checkout)


def mutant_with(line):
    """The one mutant of the module that has this line."""
    (found,) = [each for each in mutants(QUEUE, FILES[QUEUE]) if line in each.applied(FILES[QUEUE])]
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "killed_by", "reason"),
    [
        pytest.param(
            "return max(waiting)",
            "folder tests",
            "tests/app/state/test_queue.py::test_the_least_is_first",
            id="the_tests_beside_it",
        ),
        pytest.param(
            "while False:",
            "folder tests",
            "tests/app/test_drained.py::test_nothing_is_left",
            id="the_tests_above_it",
        ),
        pytest.param(
            "if (each > bound)]", "seeds", "seed 4: an urgent pod was left out", id="a_seed"
        ),
        pytest.param(
            "one if (one >= other) else", "nothing", "", id="nothing_where_it_is_the_same"
        ),
    ],
)
def test_a_mutant_is_killed_by(checkout, line, killed_by, reason):
    trial = tried(mutant_with(line), checkout)
    assert (trial.killed_by, trial.reason) == (killed_by, reason)
    assert (checkout / QUEUE).read_text(encoding="utf-8") == FILES[QUEUE]


@pytest.mark.slow
def test_only_tests_that_run_the_line_are_tried_and_they_may_be_anywhere(checkout):
    far = checkout / "tests/topology/test_far.py"
    far.parent.mkdir()
    far.write_text(f"{LONGEST}\ndef test_equal():\n    longest(1, 1)\n")
    covering = recorded(checkout)
    mutant = mutant_with("one if (one >= other) else")
    assert covering.tests_of(mutant, FILES[QUEUE]) == [
        "tests/app/state/test_queue.py::test_the_longer_one_is_taken",
        "tests/topology/test_far.py::test_equal",
    ]
    (checkout / "tests/topology/test_red.py").write_text("def test_red():\n    assert False\n")
    assert tried(mutant, checkout, covering).killed_by == "nothing"
    far.write_text(f"{LONGEST}\ndef test_equal():\n    assert isinstance(longest(1, 1.0), float)\n")
    trial = tried(mutant, checkout, covering)
    assert trial.killed_by == "other tests"
    assert trial.reason == "tests/topology/test_far.py::test_equal"


@pytest.mark.slow
def test_a_line_that_no_recorded_test_runs_is_tried_by_its_folder(checkout):
    tests = checkout / "tests/app/state/test_queue.py"
    tests.unlink()
    covering = recorded(checkout)
    tests.write_text(FILES["tests/app/state/test_queue.py"])
    mutant = mutant_with("return max(waiting)")
    assert covering.tests_of(mutant, FILES[QUEUE]) == []
    assert tried(mutant, checkout, covering).killed_by == "folder tests"


@pytest.mark.slow
def test_the_tests_beside_it_are_tried_as_well_for_some_start_processes(checkout):
    covering = recorded(checkout)
    process = checkout / "tests/app/state/test_process.py"
    code = f"{LONGEST}; assert isinstance(longest(1, 1.0), float)".replace("\n", "")
    process.write_text(
        "import subprocess, sys\n\n"
        f"def test_it():\n    subprocess.run([sys.executable, '-c', {code!r}], check=True)\n"
    )
    trial = tried(mutant_with("one if (one >= other) else"), checkout, covering)
    assert trial.reason == "tests/app/state/test_process.py::test_it"


@pytest.mark.slow
def test_a_trial_finds_what_lies_beside_the_checkout(checkout, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    checkout = checkout.rename(home / "corral")
    (home / "shared").mkdir()
    (home / "shared/case").write_text("1")
    (checkout / "tests/app/state/test_peers.py").write_text(
        "from pathlib import Path\nfrom app.state.queue import longest\n\ndef test_it():\n"
        "    assert longest(1, float(Path('../shared/case').read_text())) == 1\n"
        "    assert isinstance(longest(1, 1.0), float)\n"
    )
    trial = tried(mutant_with("one if (one >= other) else"), checkout)
    assert trial.reason == "tests/app/state/test_peers.py::test_it"


def test_the_tests_of_a_default_are_those_that_run_its_function(tmp_path):
    source = "def first(\n    waiting,\n    least=3,\n):\n    return min(waiting, least)\n"
    data = CoverageData(str(tmp_path / ".coverage"))
    for test, lines in {"tests/a.py::wide": [1, 5, 6, 7], "tests/b.py::narrow": [5]}.items():
        data.set_context(f"{test}|run")
        data.add_lines({QUEUE: lines})
    data.write()
    covering = Covering(tmp_path / ".coverage", tmp_path)
    default = next(each for each in mutants(QUEUE, source) if "least=4" in each.applied(source))
    assert covering.tests_of(default, source) == ["tests/b.py::narrow", "tests/a.py::wide"]


def test_a_record_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no recorded coverage"):
        Covering(tmp_path / ".coverage", tmp_path)


@pytest.mark.slow
def test_a_run_that_does_not_end_kills(checkout):
    trial = tried(mutant_with("        pass\n    return 0"), checkout, tests_seconds=5.0)
    assert trial.killed_by == "folder tests"
    assert trial.reason.endswith("did not end")


@pytest.mark.slow
def test_a_test_that_fails_without_a_mutant_is_no_kill(checkout):
    (checkout / "tests/app/state/test_red.py").write_text("def test_red():\n    assert False\n")
    with pytest.raises(RuntimeError, match="test_red fails without a mutant"):
        tried(mutant_with("one if (one >= other) else"), checkout)


def test_the_runs_for_a_module_are_those_beside_it_then_those_above(checkout):
    (checkout / "tests/app/state/plan").mkdir()
    quick = ["-m", QUICK]
    assert list(runs_for("app/state/plan/order.py", checkout)) == [
        ["-m", EVERYTHING, "tests/app/state/plan"],
        [*quick, "--ignore=tests/app/state/plan", "tests/app/state"],
        [*quick, "--ignore=tests/app/state", "tests/app/test_drained.py"],
    ]
    assert next(runs_for(QUEUE, checkout))[2] == "tests/app/state/test_queue.py"


@pytest.mark.slow
def test_only_what_the_simulator_loads_can_change_its_histories(checkout):
    (checkout / "app/state/report.py").touch()
    assert is_simulated(QUEUE, checkout)
    assert is_simulated("app/state/__init__.py", checkout)
    assert not is_simulated("app/state/report.py", checkout)


def test_what_is_known_already_is_not_tried_again(checkout):
    known = Trial(mutant_with("return max(waiting)"), "", "seeds", "seed 2: it is lost", 1.0)
    kept = checkout / "kept.jsonl"
    kept.write_text(json.dumps(asdict(known)) + "\n")
    assert list(trials([known.mutant], checkout, jobs=1, kept=kept)) == [known]


@pytest.mark.slow
def test_every_trial_is_kept_as_it_ends(checkout):
    kept = checkout / "kept.jsonl"
    mutant = mutant_with("return max(waiting)")
    (first,) = trials([mutant], checkout, jobs=1, kept=kept)
    assert list(trials([mutant], checkout, jobs=1, kept=kept)) == [first]


def test_the_report_shows_the_difference_of_survivors_only(capsys):
    mutant = mutant_with("return max(waiting)")
    show([Trial(mutant, "-a\n+b\n", "nothing", "", 1.0), Trial(mutant, "-c\n", "seeds", "", 1.0)])
    printed = capsys.readouterr().out
    assert "app/state/queue.py:3 survived\n-a\n+b\n" in printed
    assert "-c" not in printed
    assert "nothing             1     50.0" in printed
