"""What commands have in common: options, how answers are written, and how commands end.

Exit codes, in every command that does not say otherwise: 0 it was done, 1 it failed or something
is wrong in the cluster, 2 the options or a file that they name cannot be used.
"""

from __future__ import annotations

import enum
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from app.cli.common.columns import on_one_line

FAILED = 1  # what was read cannot be used, the API server did not answer, or something is wrong
USAGE_ERROR = 2  # the user has to change something
NOT_READ = 141  # as a shell counts a program whose output is not read any more
HOME_KUBECONFIG = "~/.kube/config"  # where kubectl looks


class Output(enum.StrEnum):
    """How an answer is written."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


NO_NAMESPACE = "default"  # where kubectl looks if its context names none
Namespace = Annotated[
    str,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAME",
        help="Its namespace; none: that of the kubeconfig's context, else default",
    ),
]
AllNamespaces = Annotated[
    bool, typer.Option("--all-namespaces", "-A", help="Those of every namespace")
]
Written = Annotated[
    Output, typer.Option("--output", "-o", help="How the answer is written. Example: -o json")
]
Kubeconfig = Annotated[
    str | None,
    typer.Option(
        "--kubeconfig",
        metavar="FILE",
        envvar="KUBECONFIG",
        help="How to reach the cluster; none: ~/.kube/config, else in-cluster."
        " Example: --kubeconfig admin.conf",
    ),
]
Context = Annotated[
    str | None,
    typer.Option(
        "--context",
        metavar="NAME",
        help="Of the kubeconfig; none: its current one. Example: --context prod",
    ),
]


def write(answer: Any, output: Output) -> None:
    """Write an answer as data, for a program."""
    if output is Output.YAML:
        import yaml

        typer.echo(yaml.safe_dump(answer, sort_keys=False, allow_unicode=True), nl=False)
    else:
        import json

        typer.echo(json.dumps(answer, indent=2))


def namespace_at(kubeconfig: str | None, context: str | None) -> str:
    """The namespace that a context names, as kubectl finds it, or the one it takes without."""
    from app.kube.client.kubeconfig import namespace_of

    return namespace_of(kubeconfig_path(kubeconfig), context) or NO_NAMESPACE


def kubeconfig_path(given: str | None) -> str:
    """Where kubectl reads: what is given, else what the environment says, else in its home."""
    from pathlib import Path

    home = str(Path(HOME_KUBECONFIG).expanduser())
    return given or os.environ.get("KUBECONFIG") or home


def is_flag(given: typer.Context, parameter: str) -> bool:
    """Whether a flag of the command line gave this parameter, and not the environment."""
    source = given.get_parameter_source(parameter)
    return source is not None and source.name == "COMMANDLINE"


def usage(problem: str) -> typer.Exit:
    """Say what is wrong with the options, and the end of the command for it."""
    note(problem)
    return typer.Exit(USAGE_ERROR)


def note(text: str) -> None:
    """Say something beside the output, on stderr."""
    typer.echo(f"corral: {on_one_line(text)}", err=True)


def said_of(error: OSError) -> str:
    """What the system says, after the file that it is about, if there is one."""
    if error.filename is None or not error.strerror:
        return str(error)
    return f"{error.filename}: {error.strerror}"


@contextmanager
def read_to_the_end() -> Iterator[None]:
    """End the command without a word where its output is not: `| head` has what it wants."""
    try:
        yield
    except BrokenPipeError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(NOT_READ) from error


@contextmanager
def failures(failed: int = FAILED) -> Iterator[None]:
    """End the command with one sentence for what goes wrong while something is read.

    `failed`: the exit code where the cluster is to blame.
    """
    from app.errors import CorralError, SettingsError

    try:
        yield
    except BrokenPipeError:
        raise  # for `read_to_the_end`
    except OSError as error:
        raise usage(said_of(error)) from error
    except SettingsError as error:
        raise usage(str(error)) from error
    except CorralError as error:
        note(str(error))
        raise typer.Exit(failed) from error
