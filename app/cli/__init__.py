"""The command line. Each command is a file beside this one and imports its weight when it runs.

`corral --help` answers at once because nothing here pulls in the server. `kubectl-corral` is the
same program under a name by which kubectl finds it: `kubectl corral gangs`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from app.cli import audit, demo, doctor, sandbox, serve, token, topology, version
from app.cli.common.options import read_to_the_end
from app.cli.gangs import explaining, listing
from app.cli.record import command as record
from app.cli.replay import command as replay
from app.cli.simulate import command as simulate


class _Commands(TyperGroup):
    """All commands end alike where their output is not read to its end, as by `| head`."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that the words name."""
        with read_to_the_end():
            return super().invoke(ctx)


main = typer.Typer(
    name="corral",
    cls=_Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _say_version(is_asked: bool) -> None:
    if is_asked:
        from app.version import this_build

        typer.echo(f"corral {this_build().version}")
        raise typer.Exit


@main.callback()
def corral(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_say_version, is_eager=True, help="Say it, and exit"),
    ] = False,
) -> None:
    """Gangs and topology for the stock kube-scheduler.

    \b
    Examples:
      corral demo
      corral explain training-job -n team-a
      kubectl corral gangs -A --phase waiting

    \b
    Exit code 0: it is done, or all is well
              1: it failed, or something is wrong in the cluster
              2: wrong options, or a file that cannot be used
    Where a command has others, its own --help says so.
    """
    _have_a_home()


def _have_a_home() -> None:
    """Give a user without one, as of an image that names a number alone, the root folder.

    A kubeconfig is looked for at home, by us and as soon as kubernetes-asyncio is imported.
    """
    try:
        Path.home()
    except RuntimeError:
        os.environ["HOME"] = "/"


main.command("serve")(serve.serve)
main.command("demo")(demo.demo)
main.command("sandbox")(sandbox.sandbox)
main.command("gangs")(listing.gangs)
main.command("explain")(explaining.explain)
main.command("audit")(audit.audit)
main.command("simulate")(simulate.simulate)
main.command("doctor")(doctor.doctor)
main.command("record")(record.record)
main.command("replay")(replay.replay)
main.command("token")(token.token)
main.command("version")(version.version)
main.add_typer(topology.commands, name="topology")
