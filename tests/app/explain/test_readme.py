"""README's table of reasons says what Corral says."""

from __future__ import annotations

import re
from pathlib import Path

from app.explain.advice import ADVICE
from app.settings import Settings
from app.state.gang.reasons import Reason

WORDS_OF_SETTINGS = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")
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


def test_every_setting_that_is_advised_is_one() -> None:
    advised = {word for each in ADVICE.values() for word in WORDS_OF_SETTINGS.findall(each.to_do)}
    assert "absent_pods_in" in advised  # the only number that a namespace can have of its own
    assert advised <= Settings.model_fields.keys()
