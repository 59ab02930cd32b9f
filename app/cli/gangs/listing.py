"""`corral gangs`: the gangs that a running Corral knows, a line each."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.common.columns import aligned, on_one_line
from app.cli.gangs import options
from app.cli.reach.options import reaching

if TYPE_CHECKING:
    from app.cli.reach.way import Corral

INTERRUPTED = 130  # as a shell counts Ctrl-C
MOST_DOMAINS = 4  # in a line, as of `corral simulate`; -o json has eight
HEADER = ("NAMESPACE", "NAME", "SOURCE", "PHASE", "REASON", "PODS", "BOUND", "WAITING", "DOMAINS")


def _phase(given: str) -> str:
    """Raises: BadParameter for what is no phase; with --watch no answer would say so."""
    from app.state.gang.gang import Phase

    return _one_of(given, Phase)


def _reason(given: str) -> str:
    """Raises: BadParameter for what is no reason."""
    from app.state.gang.reasons import Reason

    return _one_of(given, Reason)


def _one_of(given: str, those: Iterable[StrEnum]) -> str:
    names = [each.value for each in those]
    if given and given not in names:
        raise typer.BadParameter(f"{given!r} is not one of {', '.join(map(repr, names))}")
    return given


@reaching
def gangs(
    corral: Corral,
    namespace: options.Namespace = "",
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="Those of every namespace")
    ] = False,
    phase: Annotated[
        str, typer.Option(callback=_phase, help="Only of this phase, such as waiting")
    ] = "",
    reason: Annotated[
        str, typer.Option(callback=_reason, help="Only with this reason, such as DoesNotFit")
    ] = "",
    output: options.Written = options.Output.TABLE,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Go on, and show each gang that changes")
    ] = False,
) -> None:
    """List the gangs and why each is where it is.

    In a cluster it runs `kubectl port-forward`, as kubectl's user; no setup is needed.

    \b
    Examples:
      corral gangs -A --phase waiting
      corral gangs -n team-a -w
      corral gangs -A -o name --context prod

    \b
    Exit code 0: it was answered
              1: Corral refused, or could not be reached
              2: wrong options
    """
    from app.cli.gangs.server import gangs

    within = "" if all_namespaces else namespace or corral.namespace
    if watch:
        _watch(corral, within, phase, reason, output)
        return
    found = list(gangs(corral, namespace=within, phase=phase, reason=reason))
    match output:
        case options.Output.TABLE:
            _print_table(found, within)
        case options.Output.NAME:
            for each in found:
                typer.echo(options.name_of(each))
        case _:
            options.write(found, output)


def _watch(corral: Corral, namespace: str, phase: str, reason: str, output: options.Output) -> None:
    """Show gangs until Ctrl-C, or until what is shown is not read any more."""
    import os
    import sys

    from app.cli.gangs import following

    def is_wanted(gang: dict[str, Any]) -> bool:
        return phase in ("", gang["phase"]) and reason in ("", gang["reason"])

    show, synced = following.lines(output), lambda: None
    if output is options.Output.TABLE:
        table = following.Table(HEADER, _row)
        show, synced = table.show, table.synced
    try:
        following.follow(corral, namespace, following.Rows(is_wanted), show, synced)
    except KeyboardInterrupt as error:
        raise typer.Exit(INTERRUPTED) from error
    except BrokenPipeError as error:  # `| head` has what it wants
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from error


def _print_table(gangs: list[dict[str, Any]], namespace: str) -> None:
    if not gangs:
        where = f" in namespace {namespace}" if namespace else ""
        typer.echo(on_one_line(f"No gangs found{where}."), err=True)
        return
    for line in aligned([HEADER, *map(_row, gangs)], "   "):
        typer.echo(on_one_line(line))


def _row(gang: dict[str, Any]) -> tuple[str, ...]:
    pods, waiting, domains = gang["pods"], gang["waiting_seconds"], gang["domains"]
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
        ", ".join(domains[:MOST_DOMAINS]) + (", …" if domains[MOST_DOMAINS:] else ""),
    )
