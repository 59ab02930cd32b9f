"""`corral replay`: its options, and what its exit code means."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.cli.common import options

DIFFERENT = 1


def replay(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A journal, of corral serve --journal or of corral record; with --load also a"
            " cluster-snapshot/v1",
        ),
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Say whether the journal shows every promise kept")
    ] = False,
    load: Annotated[
        float | None,
        typer.Option(
            metavar="PODS_PER_SECOND",
            min=0.1,
            max=10_000.0,
            help="Bring the pods of a cluster-snapshot/v1 at this rate, as a load test",
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=1.0, max=3_600.0, help="With --load: for so long at most")
    ] = 60.0,
    overlay: Annotated[
        str, typer.Option(metavar="NAME", help="With --load: topology, from the file beside FILE")
    ] = "",
    gangs: Annotated[
        float,
        typer.Option(min=0.0, max=1.0, help="With --load: the share of the pods that form gangs"),
    ] = 0.5,
    gang_size: Annotated[
        int, typer.Option(metavar="PODS", min=2, max=10_000, help="With --load: of such a gang")
    ] = 8,
    in_flight: Annotated[
        int,
        typer.Option(
            metavar="PODS", min=1, max=16_000, help="With --load: more at one time are not sent"
        ),
    ] = 1_000,
    server: Annotated[
        str,
        typer.Option(
            metavar="URL", help="With --load: a Corral that runs; none: one in a sandbox of its own"
        ),
    ] = "",
    bind: Annotated[
        bool,
        typer.Option("--bind", help="With --server: ask /bind too, which binds pods of the file"),
    ] = False,
    output: options.Written = options.Output.TABLE,
) -> None:
    """Answer every decision of a journal again, and compare bit for bit.

    --check judges instead what the journal says has happened: no pod bound twice, nothing that does
    not fit, every gang whole and in its domains.

    --load brings pods instead, and measures /filter, /prioritize and /bind from the moment that
    each was due: a late answer does not put off the next pod. It starts a cluster and a Corral of
    its own on loopback, unless --server names one.

    \b
    Examples:
      corral replay incident.journal.gz
      corral replay --check -o json incident.journal.gz
      corral replay --load 50 --overlay homogeneous openb-2023.json.gz

    \b
    Exit code 0: every answer is the same, or every promise was kept, or every pod of a load
                 was answered
              1: one is not
              2: wrong options, or a file that cannot be read
    """
    from app.cli.common.options import said_of, usage
    from app.cli.replay import checking, comparing
    from app.errors import DecodeError

    if load is not None:
        if check:
            raise usage("--load and --check exclude each other")
        from app.cli.replay.loading.command import Asked, run

        binds = bind or not server
        asked = Asked(file, load, seconds, overlay, gangs, gang_size, in_flight, server, binds)
        if not run(asked, output):
            raise typer.Exit(DIFFERENT)
        return
    try:
        if check:
            found = checking.checked(file)
            checking.show(found, output)
            is_good = not found.broken
        else:
            is_good = comparing.compare(file)
    except OSError as error:
        raise usage(said_of(error)) from error
    except DecodeError as error:
        raise usage(f"journal {file}: {error}") from error
    if not is_good:
        raise typer.Exit(DIFFERENT)
