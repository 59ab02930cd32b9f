"""Who asks over https, and who signs for the answer: from files, or from a kubeconfig."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

from app.cli.common.options import kubeconfig_path
from app.errors import SettingsError

LONGEST_TOKEN = 64 * 1024  # bytes of the file; Corral takes less


def token_in(file: str) -> str:
    """The token in a file. Raises: SettingsError."""
    try:
        with Path(file).open("rb") as opened:
            content = opened.read(LONGEST_TOKEN + 1)
    except OSError as error:
        raise SettingsError(f"--token-file {file}: {error.strerror or error}") from error
    token = content.strip()
    if not token or len(content) > LONGEST_TOKEN or not token.isascii() or len(token.split()) > 1:
        raise SettingsError(f"--token-file {file}: it has no token")
    return token.decode()


def trusting(authority: str) -> ssl.SSLContext:
    """Trusts who has signed for this authority; "": as this machine does. Raises: SettingsError."""
    try:
        context = ssl.create_default_context(cafile=authority or None)
    except OSError as error:  # ssl.SSLError is one
        why = error.strerror or str(error)
        raise SettingsError(f"--certificate-authority {authority}: {why}") from error
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # as of clusters, whose CAs lack identifiers
    return context


def of_kubeconfig(file: str, context: str) -> tuple[str, str]:
    """The token and the file of the authority that a context has; "" for what it has not.

    `file` "": where kubectl looks. Raises: SettingsError.
    """
    from app.kube.client.credentials import Credentials

    async def read() -> tuple[str, str]:
        found = await Credentials.from_kubeconfig(kubeconfig_path(file), context=context or None)
        bearer = (await found.headers()).get("Authorization", "")
        scheme, _, token = bearer.partition(" ")
        return (token if scheme.lower() == "bearer" else ""), found.authority

    return asyncio.run(read())
