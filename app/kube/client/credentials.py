"""Where the API server is and who we are there: kubeconfig or the pod's service account.

The only importer of kubernetes_asyncio, which reads kubeconfig files, runs exec plugins and
re-reads mounted tokens. Its HTTP client, models and watch are not used: they do not check every
status, bound no wait, and cost 50 times the CPU per event.

Not read: HTTPS_PROXY and ~/.netrc. A proxy is named by `proxy-url` in the kubeconfig.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import ssl
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config import load_incluster_config, load_kube_config

from app.errors import SettingsError
from app.kube.client.kubeconfig import contents_of, current_context

RENEW_SECONDS = 60.0  # client-go re-reads token files as often; mounted tokens live an hour
LOAD_SECONDS = 30.0  # an exec plugin may talk to a cloud, but not for ever
IN_A_POD = "KUBERNETES_SERVICE_HOST"  # kubelet sets it in every pod

_Load = Callable[[], Awaitable[None]]


class Credentials:
    """An address, and a TLS context and headers that stay valid as files and tokens rotate."""

    def __init__(
        self, configuration: Configuration, renew: _Load, clock: Callable[[], float]
    ) -> None:
        self._configuration = configuration
        self._renew = renew
        self._clock = clock
        self._renew_at = clock() + RENEW_SECONDS
        self._renewing: asyncio.Task[None] | None = None  # the last one
        self.url: str = (configuration.host or "").rstrip("/")
        self.proxy: str | None = configuration.proxy
        self.server_name: str | None = configuration.tls_server_name
        self.tls = _tls_context(configuration) if self.url.startswith("https:") else None
        self._pem = _pem_read(configuration) if self.tls is not None else None

    @classmethod
    async def from_kubeconfig(
        cls,
        path: str | Path,
        *,
        context: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> Credentials:
        """Read a context of a kubeconfig, None: its current one; run its exec plugin if it has one.

        `path`: one file, or several as KUBECONFIG has them.
        Raises: SettingsError naming the file.
        """
        configuration = Configuration()
        try:
            contents = contents_of(str(path))
            async with asyncio.timeout(LOAD_SECONDS):
                # Never written back: the file may be a read-only mount shared with others.
                loader = await load_kube_config(
                    os.pathsep.join(contents),
                    context=context or current_context(contents),
                    client_configuration=configuration,
                    persist_config=False,
                )

            async def renew() -> None:
                # Re-reads a token file, and runs the exec plugin again once its token expires.
                await loader.load_and_set(configuration)

            return cls(configuration, renew, clock)
        except Exception as error:  # its loader raises assertions, KeyErrors and YAML errors alike
            why = str(error) or type(error).__name__
            raise SettingsError(f"kubeconfig {path}: {why}") from error

    @classmethod
    def in_cluster(
        cls, folder: str | Path, *, clock: Callable[[], float] = time.monotonic
    ) -> Credentials:
        """Use the service account mounted into this pod.

        Raises: SettingsError outside a pod.
        """
        configuration = Configuration()

        def load() -> None:
            load_incluster_config(  # type: ignore[no-untyped-call]
                configuration,
                token_filename=str(Path(folder) / "token"),
                cert_filename=str(Path(folder) / "ca.crt"),
            )

        async def renew() -> None:
            load()

        try:
            load()
            return cls(configuration, renew, clock)
        except Exception as error:
            outside = f"{IN_A_POD} is not set, as it is in every pod"
            why = outside if IN_A_POD not in os.environ else str(error).rstrip(".")
            raise SettingsError(f"service account of this pod: {why}") from error

    @property
    def authority(self) -> str:
        """The file of who signs for the API server; "": those of this machine do."""
        return self._configuration.ssl_ca_cert or ""

    async def headers(self) -> dict[str, str]:
        """Return the headers that say who we are, renewed at most once a minute."""
        now = self._clock()
        if now >= self._renew_at:
            self._renew_at = now + RENEW_SECONDS  # first, so that concurrent requests go ahead
            # Where the request is given up, this goes on: else a plugin slower than it never ends.
            self._renewing = asyncio.create_task(self._renew_now())
            await asyncio.shield(self._renewing)
        token = self._configuration.api_key.get("BearerToken")
        # Files end in a newline, which no header may contain.
        return {"Authorization": token.strip()} if token else {}

    def expire(self) -> None:
        """Renew before the next request: the API server did not accept who we are."""
        # Not at once for each of many refused requests: a wrong token must not start plugins.
        self._renew_at = min(self._renew_at, self._clock() + RENEW_SECONDS / 10)

    async def _renew_now(self) -> None:
        try:
            async with asyncio.timeout(LOAD_SECONDS):
                await self._renew()
            pem = _pem_read(self._configuration) if self.tls is not None else None
            if pem != self._pem:
                # Another one, for connections from here on: an authority cannot be taken out of it.
                self.tls, self._pem = _tls_context(self._configuration), pem
        except Exception:
            # A half-written file, a plugin that fails: what we have may still be valid. If not,
            # every request says so as a 401, and the next renewal is a minute away.
            return


def _tls_context(configuration: Configuration) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    # Python 3.13 is strict by default; the CAs of many clusters lack the key identifiers.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _pem_read(configuration: Configuration) -> tuple[str | None, bytes, str | None, bytes]:
    """The files of who signs for the API server and of our certificate, and what they say.

    Their times say less: kubelet writes an authority anew with every token.
    """
    authority, certificate = configuration.ssl_ca_cert, configuration.cert_file
    return authority, _digest(authority), certificate, _digest(certificate)


def _digest(path: str | None) -> bytes:
    return hashlib.sha256(Path(path).read_bytes()).digest() if path else b""
