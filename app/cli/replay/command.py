"""`corral replay`: what it does, and what its exit code means."""

from __future__ import annotations

import typer

from app.cli.common import options
from app.cli.replay import options as its

DIFFERENT = 1


def replay(
    file: its.File,
    check: its.Check = False,
    load: its.Load = None,
    seconds: its.Seconds = 60.0,
    overlay: its.Overlay = "",
    levels: its.Levels = None,
    gangs: its.Gangs = 0.5,
    gang_size: its.GangSize = 8,
    in_flight: its.InFlight = 1_000,
    server: its.Server = "",
    bind: its.Bind = False,
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
      corral replay --load 50 --levels example.com/block,example.com/rack cluster.json.gz

    \b
    Exit code 0: every answer is the same, or every promise was kept, or every pod of a load
                 was answered
              1: one is not
              2: wrong options, or a file that cannot be read
    """
    from app.cli.common.options import said_of, usage
    from app.cli.replay import checking, comparing
    from app.cli.topology.options import given_levels
    from app.errors import DecodeError

    if load is not None:
        if check:
            raise usage("--load and --check exclude each other")
        from app.cli.replay.loading.command import Asked, run

        binds, keys = bind or not server, given_levels(levels)
        asked = Asked(
            file, load, seconds, overlay, gangs, gang_size, in_flight, server, binds, keys
        )
        if not run(asked, output):
            raise typer.Exit(DIFFERENT)
        return
    try:
        if check:
            found = checking.checked(file)
            checking.show(found, output)
            is_good = not found.broken
        else:
            compared = comparing.compared(file)
            comparing.show(compared, output)
            is_good = not compared.differences
    except BrokenPipeError:
        raise  # what is written is not read to its end, which ends every command alike
    except OSError as error:
        raise usage(said_of(error)) from error
    except DecodeError as error:
        raise usage(f"journal {file}: {error}") from error
    if not is_good:
        raise typer.Exit(DIFFERENT)
