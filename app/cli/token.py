"""`corral token`: keep a service account's token in a file, for the container beside this one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

KUBELETS_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def token(
    account: Annotated[
        str, typer.Argument(metavar="NAMESPACE/NAME", help="The service account it is of")
    ],
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where `token` and `ca.crt` are written")
    ],
    service_account: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Who asks for it: as kubelet mounts it")
    ] = KUBELETS_FOLDER,
) -> None:
    """Keep a token of one hour in a file until SIGTERM; deploy/corral.yaml runs this.

    \b
    Example:
      corral token corral-system/corral-scheduler /var/run/corral

    \b
    Exit code 0: a signal ended it
              2: the account, the folder or the identity cannot be used
    """
    from app.cli.common.logs import log_to_stderr
    from app.cli.common.options import USAGE_ERROR
    from app.cli.common.until_signal import run_until_signal
    from app.errors import SettingsError

    namespace, slash, name = account.partition("/")
    if not (namespace and slash and name) or "/" in name:
        typer.echo(f"corral: service account {account!r}: expected NAMESPACE/NAME", err=True)
        raise typer.Exit(USAGE_ERROR)
    log_to_stderr("info")
    try:
        run_until_signal(_keep(namespace, name, folder, service_account))
    except SettingsError as error:
        typer.echo(f"corral: {error}", err=True)
        raise typer.Exit(USAGE_ERROR) from error


async def _keep(namespace: str, name: str, folder: Path, service_account: Path) -> None:
    from app.kube.client.token import TokenFile
    from app.kube.client.transport import Transport

    transport = await Transport.in_cluster(service_account, connections=1)
    try:
        ca = service_account / "ca.crt"
        file = TokenFile(transport, namespace=namespace, name=name, folder=folder, ca=ca)
        await file.run()
    finally:
        await transport.close()
