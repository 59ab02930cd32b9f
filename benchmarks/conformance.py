"""Runs recorded cases of other schedulers against our search, and says where we differ.

    python -m benchmarks.conformance kueue FILE...
    python -m benchmarks.conformance kai FILE...
    python -m benchmarks.conformance volcano FILE...

Any file in the formats of ../shared/conformance. Each case is equal, or differs on purpose (one
table each in tests.parity), or is
unexplained; one unexplained case is exit status 1.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.parity.kai import cases as kai_cases
from tests.parity.kueue.answers import answers
from tests.parity.kueue.cases import Case, read
from tests.parity.kueue.deviations import deviation_of
from tests.parity.kueue.questions import has_remainder
from tests.parity.volcano import cases as volcano_cases
from topology import TopologyError

SHOWN_MAX = 5  # unexplained cases printed in full, per file


@dataclass(slots=True)
class Tally:
    """How the cases of one file came out."""

    cases: int = 0
    equal: int = 0
    cut_short: int = 0
    """Equal ones that were asked for the pods Kueue places of a size that does not divide."""
    deviations: dict[str, list[str]] = field(default_factory=dict)
    """Name in the table -> the cases."""
    unexplained: list[tuple[str, str]] = field(default_factory=list)
    """Case, and the difference."""


def tally(path: Path) -> Tally:
    """Every case of one file of Kueue's."""
    result = Tally()
    for case in read(path):
        result.cases += 1
        _count(result, case)
    return result


def tally_kai(path: Path) -> Tally:
    """Every case of one file of KAI's."""
    result = Tally()
    for case in kai_cases.read(path):
        result.cases += 1
        try:
            wrong = kai_cases.difference(case)
        except (TopologyError, AssertionError, KeyError) as error:
            wrong = f"{type(error).__name__}: {error}"
        _count_one(result, case.name, wrong, kai_cases.LEFT_OUT.get(case.name, ""))
    return result


def tally_volcano(path: Path) -> Tally:
    """Every case of one file of Volcano's, of either kind."""
    result = Tally()
    for case in volcano_cases.read(path):
        result.cases += 1
        try:
            wrong = volcano_cases.difference(case)
        except (TopologyError, AssertionError, KeyError) as error:
            wrong = f"{type(error).__name__}: {error}"
        _count_one(result, case.name, wrong, case.left_out)
    return result


def _count_one(result: Tally, name: str, wrong: str, left_out: str) -> None:
    if not wrong:
        result.equal += 1
    elif left_out:
        result.deviations.setdefault(left_out, []).append(name)
    else:
        result.unexplained.append((name, wrong))


TALLIES = {"kueue": tally, "kai": tally_kai, "volcano": tally_volcano}


def _count(result: Tally, case: Case) -> None:
    try:
        found = answers(case)
    except (TopologyError, AssertionError) as error:
        result.unexplained.append((case.name, f"{type(error).__name__}: {error}"))
        return
    if found == case.expected:
        result.equal += 1
        result.cut_short += has_remainder(case.scenario)
        return
    deviation = deviation_of(case, found)
    if deviation is None:
        result.unexplained.append((case.name, f"{found}\n    not {case.expected}"))
    else:
        result.deviations.setdefault(deviation.name, []).append(case.name)


def show(path: Path, result: Tally) -> None:
    """One paragraph to standard output."""
    listed = Counter({name: len(cases) for name, cases in result.deviations.items()})
    print(
        f"{path.name}: {result.cases} cases, {result.equal} equal, "
        f"{listed.total()} listed deviations, {len(result.unexplained)} unexplained"
    )
    if result.cut_short:
        print(f"  {result.cut_short} of the equal ones ask for the pods Kueue places, not for all")
    for name, cases in result.deviations.items():
        print(f"  {name}: {len(cases)} (case {', '.join(cases[:SHOWN_MAX])})")
    for name, difference in result.unexplained[:SHOWN_MAX]:
        print(f"  unexplained: case {name}:\n    {difference}")


def main(words: Sequence[str] | None = None) -> int:
    """Runs the files named on the command line; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scheduler", choices=list(TALLIES), help="whose format")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    arguments = parser.parse_args(words)
    results = [(path, TALLIES[arguments.scheduler](path)) for path in arguments.files]
    for path, result in results:
        show(path, result)
    return 1 if any(result.unexplained for _, result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
