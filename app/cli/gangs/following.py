"""`corral gangs -w`: the gangs as they are, and then each that changes, until Ctrl-C.

GET /v1/events ──▶ events ──▶ Rows: what is new in them ──▶ a line each
      ▲                │
      └── back-off ────┘  ends, breaks, or is silent: asked again, and told every gang again
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import typer

from app.cli.common.columns import aligned, line_of, on_one_line, widths_of
from app.cli.common.options import note
from app.cli.gangs import options
from app.cli.gangs.server import NoAnswer, Refused, opened
from app.cli.reach.forward import NoWay
from app.cli.reach.way import Corral

SILENT_SECONDS = 45.0  # Corral sends a comment every 15
LONGEST_LINE = 1024 * 1024  # bytes
PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0)  # seconds; then it is given up
MAY_PASS = (429, 500, 502, 503, 504)  # HTTP; another refusal stays one
GAP = "   "
GONE = "gone"  # in place of a phase

Gang = dict[str, Any]
Name = tuple[str, str, str]


class Rows:
    """What has been shown, so that what comes again is not shown again.

    `is_wanted`: which gangs are; one that was is shown once more when it is not any more.
    """

    def __init__(self, is_wanted: Callable[[Gang], bool]) -> None:
        self._is_wanted = is_wanted
        self._shown: dict[Name, Gang] = {}
        self._seen: set[Name] | None = set()  # since the stream began; None: it is in step

    def begin(self) -> None:
        """A stream begins: every gang comes again, and those that do not are gone."""
        self._seen = set()

    def taken(self, kind: str, data: Gang) -> Iterator[Gang]:
        """The gangs to be shown for an event."""
        if kind == "synced" and self._seen is not None:
            for name in [each for each in self._shown if each not in self._seen]:
                yield _gone(self._shown.pop(name))
            self._seen = None
        if kind not in ("gang", "gone"):
            return
        name = data["namespace"], data["name"], data["source"]
        before = self._shown.get(name)
        if kind == "gone":
            if self._shown.pop(name, None) is not None and before is not None:
                yield _gone(before)
            return
        if self._seen is not None:
            self._seen.add(name)
        if before is not None and _mark(before) == _mark(data):
            return
        if self._is_wanted(data):
            self._shown[name] = data
            yield data
        elif before is not None:
            del self._shown[name]
            yield data


def _mark(gang: Gang) -> Gang:
    """All of it but how long it waits, and asks for nodes, which is never the same."""
    needs = gang.get("needs_nodes")
    needs = needs and {**needs, "since_seconds": None}
    return {**gang, "waiting_seconds": None, "needs_nodes": needs}


def _gone(gang: Gang) -> Gang:
    return {**gang, "phase": GONE, "reason": "", "message": "", "waiting_seconds": None}


def events(corral: Corral, namespace: str) -> Iterator[tuple[str, Any]]:
    """(kind, data) of each event of one stream. Raises: NoAnswer; NoWay."""
    answer = opened(corral, ("events",), {"namespace": namespace}, seconds=SILENT_SECONDS)
    with answer:
        kind = ""
        try:
            while line := answer.readline(LONGEST_LINE):
                if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                    raise NoAnswer(f"{corral.named}: an event of over {LONGEST_LINE} bytes")
                if not line.endswith(b"\n"):
                    raise NoAnswer(f"{corral.named}: the stream was cut short")
                name, _, value = line.decode("utf-8").rstrip("\n").partition(": ")
                if name == "event":
                    kind = value
                elif name == "data":
                    yield kind, json.loads(value)
        except (OSError, ValueError) as error:
            raise NoAnswer(f"{corral.named}: {error}") from error


def follow(
    corral: Corral,
    namespace: str,
    rows: Rows,
    show: Callable[[Gang], None],
    synced: Callable[[], None],
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Show gangs for ever, one stream after another.

    Raises: NoAnswer, NoWay: the first stream did not begin, or none for so many PAUSES, or Corral
    refused.
    """
    has_begun, failures = False, 0
    while True:
        try:
            rows.begin()
            for kind, data in events(corral, namespace):
                has_begun, failures = True, 0
                if kind == "end":
                    note(on_one_line(f"{data['reason']}; asking again"))
                for gang in rows.taken(kind, data):
                    show(gang)
                if kind == "synced":
                    synced()
        except (NoAnswer, NoWay) as error:
            stays = isinstance(error, Refused) and error.status not in MAY_PASS
            if not has_begun or stays or failures == len(PAUSES):
                raise
            note(on_one_line(f"{error}; asking again in {PAUSES[failures]:g} s"))
        corral.close()
        sleep(PAUSES[min(failures, len(PAUSES) - 1)])
        failures += 1


class Table:
    """Rows in columns as wide as those that came first; `show` keeps these back until `synced`."""

    def __init__(self, header: tuple[str, ...], row: Callable[[Gang], tuple[str, ...]]) -> None:
        self._header, self._row = header, row
        self._first: list[tuple[str, ...]] | None = []
        self._widths: tuple[int, ...] = ()

    def show(self, gang: Gang) -> None:
        """Print a gang, below those before it."""
        row = self._row(gang)
        if self._first is not None:
            self._first.append(row)
        else:
            _print(line_of(row, self._widths, GAP))

    def synced(self) -> None:
        """All that are there have come."""
        if self._first is not None:
            rows = [self._header, *sorted(self._first)]
            self._widths, self._first = widths_of(rows), None
            for line in aligned(rows, GAP):
                _print(line)


def lines(output: options.Output) -> Callable[[Gang], None]:
    """Prints a gang as data: an object a line, a YAML document, or its name."""

    def show(gang: Gang) -> None:
        match output:
            case options.Output.NAME:
                _print(options.name_of(gang))
            case options.Output.YAML:
                print("---")
                options.write(gang, output)
            case _:
                print(json.dumps(gang), flush=True)

    return show


def _print(line: str) -> None:
    typer.echo(on_one_line(line))
