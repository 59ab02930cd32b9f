"""The options of every command that asks a running Corral: `@reaching` adds them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

WAY = "corral"  # the parameter of a command that gets the way
AT = "corral-system/deployment/corral"

Server = Annotated[
    str,
    typer.Option(
        "--server",
        metavar="URL",
        envvar="CORRAL_SERVER",
        help="Where Corral answers; none: in the cluster of the kubeconfig, through `kubectl"
        " port-forward`. Example: --server http://127.0.0.1:8888",
    ),
]
Context = Annotated[
    str,
    typer.Option(
        "--context",
        metavar="NAME",
        help="Of the kubeconfig; none: its current one. Example: --context prod",
    ),
]
Kubeconfig = Annotated[
    str,
    typer.Option(
        "--kubeconfig",
        metavar="FILE",
        help="How to reach the cluster; none: as kubectl does. Example: --kubeconfig admin.conf",
    ),
]
At = Annotated[
    str,
    typer.Option(
        "--at",
        metavar="NAMESPACE/KIND/NAME[:PORT]",
        envvar="CORRAL_AT",
        help="Where Corral runs in the cluster. Example: --at gangs/deployment/corral:8888",
    ),
]
TokenFile = Annotated[
    str,
    typer.Option(
        "--token-file",
        metavar="FILE",
        help="Who asks, where --server is https; none: the token of the kubeconfig, if --context or"
        " --kubeconfig is given. Example: --token-file token",
    ),
]
Authority = Annotated[
    str,
    typer.Option(
        "--certificate-authority",
        metavar="FILE",
        help="Who signs for --server, as PEM; none: that of the kubeconfig, if it is given, else"
        " those of this machine. Example: --certificate-authority ca.crt",
    ),
]

_ADDED: tuple[tuple[str, Any, str], ...] = (
    ("server", Server, ""),
    ("context", Context, ""),
    ("kubeconfig", Kubeconfig, ""),
    ("at", At, AT),
    ("token_file", TokenFile, ""),
    ("certificate_authority", Authority, ""),
)


def reaching(command: Callable[..., None]) -> Callable[..., None]:
    """The command with these options; it gets `corral`, the way that they name, and fails by it."""

    @wraps(command)
    def with_options(**given: Any) -> None:
        from app.cli.common.options import failures
        from app.cli.reach.way import Asked, Corral

        asked = Asked(**{name: given.pop(name) for name, _, _ in _ADDED})
        with failures():
            corral = Corral(asked)
            try:
                command(**given, **{WAY: corral})
            finally:
                corral.close()

    hints = get_type_hints(command, include_extras=True, localns={"Corral": object})
    own = [
        each.replace(annotation=hints[name])
        for name, each in inspect.signature(command).parameters.items()
        if name != WAY
    ]
    kind = inspect.Parameter.KEYWORD_ONLY
    added = [
        inspect.Parameter(name, kind, default=default, annotation=annotation)
        for name, annotation, default in _ADDED
    ]
    parameters = [*own, *added]
    with_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_options.__annotations__ = {each.name: each.annotation for each in parameters}
    del with_options.__wrapped__  # else its signature counts
    return with_options
