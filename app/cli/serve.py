"""`corral serve`: run the extender against a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.common.options import USAGE_ERROR

if TYPE_CHECKING:
    from app.settings import Settings

OTHER_FILES = 512  # open beside connections: those to the API server, and our own files


def serve(
    kubeconfig: Annotated[
        Path | None, typer.Option(metavar="FILE", help="How to reach the cluster; none: in-cluster")
    ] = None,
    extender_listen: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Where kube-scheduler asks [127.0.0.1:8888]"),
    ] = None,
    api_listen: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Where people ask; none: nowhere")
    ] = None,
    levels: Annotated[
        str | None,
        typer.Option(metavar="KEY,KEY,…", help="Node labels, widest first, or a preset's name"),
    ] = None,
    scheduler_name: Annotated[
        str | None,
        typer.Option(metavar="NAME,…", help="Plan for pods of these spec.schedulerName [corral]"),
    ] = None,
    volcano_scheduler_conf: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Volcano's scheduler's, for how full HyperNodes count"),
    ] = None,
    journal: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write every input there, for `corral replay`"),
    ] = None,
    settings: Annotated[
        Path | None, typer.Option(metavar="FILE", help="YAML file with any of the settings")
    ] = None,
) -> None:
    """Serve kube-scheduler's extender verbs until SIGTERM.

    \b
    Examples:
      corral serve --kubeconfig admin.conf --levels example.com/block,example.com/rack
      corral serve --settings corral-settings.yaml --api-listen 0.0.0.0:8080

    \b
    Exit code 0: a signal ended it
              2: a setting, the kubeconfig or a certificate cannot be used
    """
    from app.errors import SettingsError
    from app.settings import load

    flags: dict[str, object] = {
        "kubeconfig": kubeconfig,
        "extender_listen": extender_listen,
        "api_listen": api_listen,
        "levels": levels,
        "scheduler_name": scheduler_name,
        "volcano_scheduler_conf": volcano_scheduler_conf,
        "journal": journal,
        "settings": settings,
    }
    try:
        run(load(flags))
    except SettingsError as error:
        typer.echo(f"corral: {error}", err=True)
        raise typer.Exit(USAGE_ERROR) from error


def run(settings: Settings) -> None:
    """Run one Corral in its own event loop until a signal stops it.

    Raises: SettingsError for what the operator has to change.
    """
    import asyncio
    import os

    import structlog
    import uvloop

    from app import main
    from app.cli.common.logs import log_to_stderr
    from app.cli.common.misspelt import misspelt

    log_to_stderr(settings.log_level)
    for variable, alike in misspelt(os.environ):
        said = {"meant": alike} if alike else {}
        structlog.get_logger().warning("no such setting", variable=variable, **said)
    raise_file_limit(
        settings.max_connections + settings.api_connections + settings.admission_connections
    )

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main.serve(settings))


def raise_file_limit(connections: int) -> None:
    """Let this process hold that many connections, as far as its hard limit allows."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    raised = file_limit(soft, hard, connections, unlimited=resource.RLIM_INFINITY)
    if raised != soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))


def file_limit(soft: int, hard: int, connections: int, *, unlimited: int) -> int:
    """The soft limit of open files for that many connections; never below the one there is."""
    wanted = connections + OTHER_FILES
    if soft == unlimited or soft >= wanted:
        return soft
    return wanted if hard == unlimited else min(wanted, hard)
