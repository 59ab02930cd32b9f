"""The command line. Each command is a file beside this one and imports its weight when it runs.

`corral --help` answers at once because nothing here pulls in the server.
"""

from __future__ import annotations

import typer

from app.cli import audit, demo, doctor, replay, sandbox, serve, token, topology
from app.cli.gangs import explaining, listing

main = typer.Typer(
    name="corral",
    help="Gangs and topology for the stock kube-scheduler.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@main.callback()
def corral() -> None:
    """Gangs and topology for the stock kube-scheduler."""


main.command("serve")(serve.serve)
main.command("demo")(demo.demo)
main.command("sandbox")(sandbox.sandbox)
main.command("gangs")(listing.gangs)
main.command("explain")(explaining.explain)
main.command("audit")(audit.audit)
main.command("doctor")(doctor.doctor)
main.command("replay")(replay.replay)
main.command("token")(token.token)
main.add_typer(topology.commands, name="topology")
