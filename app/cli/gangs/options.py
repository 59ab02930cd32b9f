"""What `corral gangs` and `corral explain` have in common: options, and how they answer."""

from __future__ import annotations

import enum
from typing import Annotated, Any

import typer

LOCAL = "http://127.0.0.1:8888"  # where `corral serve` listens if nothing else is set


class Output(enum.StrEnum):
    """How an answer is written."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


Server = Annotated[
    str,
    typer.Option(
        "--server", metavar="URL", envvar="CORRAL_SERVER", help="Where Corral answers, on loopback"
    ),
]
Namespace = Annotated[str, typer.Option("--namespace", "-n", metavar="NAME", help="Its namespace")]
Written = Annotated[Output, typer.Option("--output", "-o", help="How the answer is written")]


def write(answer: Any, output: Output) -> None:
    """Write what /v1 answered as it is, for a program."""
    if output is Output.YAML:
        import yaml

        typer.echo(yaml.safe_dump(answer, sort_keys=False, allow_unicode=True), nl=False)
    else:
        import json

        typer.echo(json.dumps(answer, indent=2))


def name_of(gang: dict[str, Any]) -> str:
    """How a gang is named among others."""
    return f"{gang['namespace']}/{gang['name']}"


def span(seconds: float) -> str:
    """A time as kubectl writes an age: 45s, 3m, 2h, 5d."""
    for unit, its in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= its:
            return f"{int(seconds // its)}{unit}"
    return f"{int(seconds)}s"
