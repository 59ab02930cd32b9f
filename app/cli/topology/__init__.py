"""`corral topology`: what the cluster's domains are, and HyperNodes made from labels of nodes.

`reading.py` has where nodes and HyperNodes come from; `show.py`, `usage.py` and `generate.py` have
a command each, `tree.py` how a tree is written, `options.py` what the commands have in common.
"""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from app.cli.topology import generate, show, usage


class ShowsByDefault(TyperGroup):
    """`corral topology` and `corral topology --levels …` mean `corral topology show`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Name the command, if only its options are there; for a shell that completes, none."""
        if ctx.resilient_parsing and not args:
            return super().parse_args(ctx, args)
        if not args or (args[0].startswith("-") and args[0] != "--help"):
            args = ["show", *args]
        return super().parse_args(ctx, args)


_HELP = """Show the topology and what is free in it; make HyperNodes from labels.

Without a command: show.

\b
Examples:
  corral topology --levels example.com/block,example.com/rack
  corral topology usage --free-for nvidia.com/gpu=8
"""
commands = typer.Typer(cls=ShowsByDefault, help=_HELP, no_args_is_help=False)
_generate = typer.Typer()
_generate.command("hypernodes")(generate.hyper_nodes)


@_generate.callback()
def _group() -> None:
    """Write objects of a topology, for `kubectl apply -f -`.

    \b
    Example:
      corral topology generate hypernodes --levels example.com/block,example.com/rack
    """


commands.command("show")(show.show)
commands.command("usage")(usage.usage)
commands.add_typer(_generate, name="generate")
