"""What every history of a run has, whatever its number: options of `python -m tests.sim`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import asdict, dataclass

HELP: Mapping[str, str] = {
    "preempting": "have pods preempted and evicted for others in every history, not in every third",
    "growing": "have nodes come and go as a node autoscaler makes and removes them",
}


@dataclass(frozen=True, slots=True)
class Mode:
    """Without any of them a history has what its number says."""

    preempting: bool = False
    growing: bool = False

    @property
    def options(self) -> list[str]:
        """As on the command line."""
        return [f"--{name}" for name, is_on in asdict(self).items() if is_on]


USUAL = Mode()
PREEMPTING = Mode(preempting=True)
GROWING = Mode(growing=True)


def add_options(parser: ArgumentParser) -> None:
    """Have a parser take them."""
    for name, text in HELP.items():
        parser.add_argument(f"--{name}", action="store_true", help=text)


def mode_of(asked: Namespace) -> Mode:
    """What such a parser was given."""
    return Mode(**{name: getattr(asked, name) for name in HELP})
