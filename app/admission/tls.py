"""The webhook's certificate, exchanged while the port is open.

Every handshake looks whether the two files are still those that were read: two `stat` calls. New
ones are tried on their own first, so a broken pair (half written, or of two different keys) leaves
the one before in use. Connections that exist keep what they have; the API server makes a new one
soon enough.

No pair at all is no reason to end: pods are then created without us, and a Secret that is mounted
later is seen at the next handshake.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path

import structlog

from app.errors import SettingsError

log = structlog.get_logger(__name__)

_Stamp = tuple[tuple[int, int, int] | None, ...]


class Certificate:
    """Two files as a TLS server context. `on_change` gets "loaded" or "refused" each time."""

    def __init__(
        self, certificate: Path, key: Path, on_change: Callable[[str], None] = lambda _outcome: None
    ) -> None:
        self._files = (certificate, key)
        self._on_change = on_change
        self._stamp: _Stamp | None = None
        self._current: ssl.SSLContext | None = None
        self.context = _server_context()
        self.context.sni_callback = self._handshake
        self._refresh()

    @property
    def is_loaded(self) -> bool:
        """Whether there is a pair to serve with."""
        return self._current is not None

    def _handshake(
        self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext
    ) -> int | None:
        """Gives one connection the newest good pair; called before any certificate is sent."""
        self._refresh()
        if self._current is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        connection.context = self._current
        return None

    def _refresh(self) -> None:
        """Read the files again if they changed; a pair that was refused is not tried twice."""
        stamp = tuple(_stamp(file) for file in self._files)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        certificate, key = self._files
        context = _server_context()
        try:
            context.load_cert_chain(certificate, key, password=_no_password)
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            self._on_change("refused")
            log.error(
                "certificate refused",
                certificate=str(certificate),
                key=str(key),
                problem=str(error),
                is_older_one_kept=self.is_loaded,
            )
            return
        self._current = context
        self._on_change("loaded")
        log.info("certificate loaded", certificate=str(certificate))


def certificate_of(
    certificate: Path | None, key: Path | None, on_change: Callable[[str], None]
) -> Certificate:
    """The certificate the settings name. Raises: SettingsError where one of them is missing."""
    if certificate is None or key is None:
        missing = "admission_cert" if certificate is None else "admission_key"
        raise SettingsError(f"admission_listen: needs {missing}: a webhook is served over TLS only")
    return Certificate(certificate, key, on_change)


def _server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _stamp(file: Path) -> tuple[int, int, int] | None:
    """What changes when a file is written, replaced, or its link is pointed elsewhere."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _no_password() -> str:
    # Without this OpenSSL would ask on the terminal.
    raise ValueError("the key is encrypted")
