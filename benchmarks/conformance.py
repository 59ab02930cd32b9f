"""Runs recorded cases of other schedulers against ours, and says where we differ.

    python -m benchmarks.conformance kueue FILE...
    python -m benchmarks.conformance kai FILE...
    python -m benchmarks.conformance volcano FILE...

Any file in the formats of ../shared/conformance. Two figures for each: the placement core's own
answers, and those of the product, which a user's objects reach through the dialects. Each case is
equal, or out of every user's reach, or differs on purpose (tables in tests.parity), or is
unexplained; one unexplained case is exit status 1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.parity.peers import PEERS
from tests.parity.tally import Figure, Peer, Tally, tally

SHOWN_MAX = 5  # cases named, and unexplained ones printed in full, per entry


def show(path: Path, result: Tally, peer: Peer) -> None:
    """One paragraph to standard output."""
    print(f"{path.name}: {result.cases} cases")
    for name, figure in (("core", result.core), ("product", result.product)):
        _show_figure(name, figure)
    for name in _names((*result.core.on_purpose, *result.product.on_purpose)):
        if name in peer.reasons:
            print(f"  {name}: {peer.reasons[name]}")


def _show_figure(name: str, figure: Figure) -> None:
    parts = [
        f"{figure.equal} equal",
        *([f"{_cases(figure.out_of_reach)} out of reach"] if figure.out_of_reach else []),
        f"{_cases(figure.on_purpose)} listed deviations",
        f"{len(figure.unexplained)} unexplained",
    ]
    print(f" {name}: {', '.join(parts)}")
    for note, cases in figure.notes.items():
        print(f"  of the equal ones, {note}: {len(cases)}")
    for reason, cases in figure.out_of_reach.items():
        print(f"  out of reach, {reason}: {_shown(cases)}")
    for entry, cases in figure.on_purpose.items():
        print(f"  {entry}: {_shown(cases)}")
    for case, difference in figure.unexplained[:SHOWN_MAX]:
        print(f"  unexplained: case {case}:\n    {difference}")


def _cases(entries: Mapping[str, Sequence[str]]) -> int:
    return sum(map(len, entries.values()))


def _shown(cases: Sequence[str]) -> str:
    more = ", …" if len(cases) > SHOWN_MAX else ""
    return f"{len(cases)} (case {', '.join(cases[:SHOWN_MAX])}{more})"


def _names(entries: Sequence[str]) -> list[str]:
    """The names in entries of which some are several names, each once."""
    return list(dict.fromkeys(name for entry in entries for name in entry.split(" + ")))


def main(words: Sequence[str] | None = None) -> int:
    """Runs the files named on the command line; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scheduler", choices=list(PEERS), help="whose format")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    arguments = parser.parse_args(words)
    peer = PEERS[arguments.scheduler]
    results = [(path, tally(peer, path)) for path in arguments.files]
    for path, result in results:
        show(path, result, peer)
    is_explained = not any(
        result.core.unexplained or result.product.unexplained for _, result in results
    )
    return 0 if is_explained else 1


if __name__ == "__main__":
    sys.exit(main())
