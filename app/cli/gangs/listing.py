"""`corral gangs`: the gangs that a running Corral knows, a line each."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from app.cli.columns import aligned, on_one_line
from app.cli.gangs import options

HEADER = ("NAMESPACE", "NAME", "SOURCE", "PHASE", "REASON", "PODS", "BOUND", "WAITING", "DOMAINS")


def gangs(
    namespace: options.Namespace = "default",
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="Those of every namespace")
    ] = False,
    phase: Annotated[str, typer.Option(help="Only of this phase, such as waiting")] = "",
    reason: Annotated[str, typer.Option(help="Only with this reason, such as DoesNotFit")] = "",
    output: options.Written = options.Output.TABLE,
    server: options.Server = options.LOCAL,
) -> None:
    """List the gangs and why each is where it is.

    \b
    Examples:
      corral gangs -A --phase waiting
      corral gangs -n team-a -o name

    \b
    Exit code 0: it was answered
              1: Corral refused, or could not be reached
              2: wrong options
    """
    from app.cli.gangs.server import gangs
    from app.cli.topology.options import failures

    query = {"namespace": "" if all_namespaces else namespace, "phase": phase, "reason": reason}
    with failures():
        found = list(gangs(server, **query))
    match output:
        case options.Output.TABLE:
            _print_table(found)
        case options.Output.NAME:
            for each in found:
                typer.echo(options.name_of(each))
        case _:
            options.write(found, output)


def _print_table(gangs: list[dict[str, Any]]) -> None:
    if not gangs:
        typer.echo("No gangs found.", err=True)
        return
    for line in aligned([HEADER, *map(_row, gangs)], "   "):
        typer.echo(on_one_line(line))


def _row(gang: dict[str, Any]) -> tuple[str, ...]:
    pods, waiting = gang["pods"], gang["waiting_seconds"]
    declared = "?" if pods["declared"] is None else pods["declared"]
    return (
        gang["namespace"],
        gang["name"],
        gang["source"],
        gang["phase"],
        gang["reason"],
        f"{pods['there']}/{declared}",
        str(pods["bound"]),
        "" if waiting is None else options.span(waiting),
        ", ".join(gang["domains"]),
    )
