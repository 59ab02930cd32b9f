"""`corral simulate`: what would become of objects if they were created now."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.common.columns import on_one_line
from app.cli.gangs import options
from app.cli.reach.options import reaching

if TYPE_CHECKING:
    from app.cli.reach.way import Corral

NOT_ALL_FIT = 3
NO_GANG = "NoGang"


@reaching
def simulate(
    corral: Corral,
    files: Annotated[
        list[str],
        typer.Option(
            "--filename",
            "-f",
            metavar="FILE",
            help="Objects as YAML or JSON, - for stdin; given again, those of all files at once",
        ),
    ],
    namespace: options.Namespace = "",
    output: options.Written = options.Output.TABLE,
) -> None:
    """Say where gangs would run, or why they would not; nothing is created.

    \b
    Examples:
      corral simulate -f job.yaml
      kubectl create -f job.yaml --dry-run=client -o yaml | corral simulate -f - -o json

    \b
    Exit code 0: every gang fits
              1: Corral does not answer, or refuses to
              2: an option, or the file, cannot be used
              3: some gang does not fit, has to wait, or is not valid
    """
    from app.cli.gangs.server import INVALID, TOO_LARGE, Refused, post
    from app.cli.simulate.rendering import lines_of
    from app.cli.topology.reading import read_bytes, shown

    # JSON is YAML, too; of one file the body is as it is.
    body = b"\n---\n".join(map(read_bytes, files))
    if sys.stderr.isatty():
        typer.echo(f"corral: simulating {len(body)} bytes of objects …", err=True)
    try:
        within = namespace or corral.namespace
        found = post(corral, "simulate", body=body, has="gangs", namespace=within)
    except Refused as error:
        if error.status not in (INVALID, TOO_LARGE):
            raise
        raise options.usage(f"{', '.join(map(shown, files))}: {error}") from error
    match output:
        case options.Output.TABLE:
            for line in lines_of(found):
                typer.echo(on_one_line(line))
        case options.Output.NAME:
            for each in found["gangs"]:
                if each["gang"] is not None:
                    typer.echo(options.name_of(each["gang"]))
        case _:
            options.write(found, output)
    if any(each["verdict"] not in ("Fits", NO_GANG) for each in found["gangs"]):
        raise typer.Exit(NOT_ALL_FIT)
