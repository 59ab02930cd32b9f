"""README's table of reasons says what Corral says."""

from __future__ import annotations

from pathlib import Path

from app.explain.advice import ADVICE
from app.state.gang.reasons import Reason

README = Path(__file__).resolve().parents[3] / "README.md"
NOTHING = "nothing"


def test_each_reason_is_a_row_with_what_explain_says_of_it() -> None:
    lines = README.read_text(encoding="utf-8").splitlines()
    start = lines.index("| reason | it means | Corral tries again when | to do |") + 2
    rows = [line.strip("| ").split(" | ") for line in lines[start : start + len(Reason)]]
    said = {name.strip("`"): (again, to_do) for name, _, again, to_do in rows}
    assert said == {
        str(reason): (each.tries_again, each.to_do or NOTHING) for reason, each in ADVICE.items()
    }
