"""`corral version`: which program this is, what it speaks, and which one runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.common.options import FAILED, Output, Written
from app.cli.reach.options import reaching

if TYPE_CHECKING:
    from app.cli.reach.way import Corral

HEADER = ("NAME", "VERSION")
TITLES = {
    "extender": "extender",
    "scheduler_config": "scheduler-config",
    "kube_schedulers": "kube-scheduler",
    "admission": "admission",
    "snapshot": "snapshot",
    "journal": "journal",
}


@reaching
def version(
    corral: Corral,
    client: Annotated[bool, typer.Option("--client", help="Ask no running Corral")] = False,
    output: Written = Output.TABLE,
) -> None:
    """Say the version, the build, and the versions of what Corral speaks and writes.

    A running Corral is asked for its own where an option or a kubeconfig leads to one.
    -o name writes the version alone.

    \b
    Examples:
      corral version
      corral version --client -o json
      corral version --server http://127.0.0.1:8888

    \b
    Exit code 0: it is said
              1: the running Corral could not be reached, or is too old to say its version
              2: wrong options
    """
    from dataclasses import asdict

    from app.cli.common.options import note
    from app.cli.gangs.server import NoAnswer, version_of
    from app.cli.reach.forward import NoWay
    from app.version import this_build

    server, problem = None, ""
    if corral.is_named and not client:
        try:
            server = version_of(corral)
        except (NoAnswer, NoWay) as error:
            problem = str(error)
    _write({**asdict(this_build()), "protocols": _protocols(), "server": server}, output)
    if problem:
        note(problem)
        raise typer.Exit(FAILED)


def _protocols() -> dict[str, Any]:
    """Each in the words of who defines it; each number stands where it is used."""
    from app.admission import review
    from app.cli.doctor import configuration, shipped
    from app.cli.record import recording
    from app.extender import models
    from app.state.journal import lines

    return {
        "extender": models.API_VERSION,
        "scheduler_config": configuration.API_VERSION,
        "kube_schedulers": list(shipped.minors()),
        "admission": review.API_VERSION,
        "snapshot": recording.SCHEMA,
        "journal": lines.VERSION,
    }


def _write(said: dict[str, Any], output: Output) -> None:
    from app.cli.common.columns import aligned, on_one_line
    from app.cli.common.options import write

    match output:
        case Output.TABLE:
            for line in aligned([HEADER, *_rows(said)], "   "):
                typer.echo(on_one_line(line))
        case Output.NAME:
            typer.echo(said["version"])
        case _:
            write(said, output)


def _rows(said: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "corral", said["version"]
    yield "commit", said["commit"]
    yield "python", said["python"]
    for name, value in said["protocols"].items():
        yield TITLES[name], ", ".join(value) if isinstance(value, list) else str(value)
    if (server := said["server"]) is not None:
        yield (
            "server",
            f"{server['version']}, commit {server['commit']}, Python {server['python']}",
        )
