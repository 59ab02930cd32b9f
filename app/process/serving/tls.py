"""The certificates of a port, exchanged while it is open.

    port            certificate and key    clients are asked for a certificate of
    extender        extender_cert, _key    extender_client_ca, always
    api             api_cert, _key         none: clients have tokens
    admission       admission_cert, _key   admission_client_ca, where there is one

Every handshake looks whether the files are still those that were read: a `stat` call each. New
ones are tried on their own first, so broken ones (half written, or a key of another certificate)
leave those before in use. Connections that exist keep what they have.

A session of an earlier connection is never resumed where clients are asked: a resumed one is not
verified again, so it would outlive the authority that vouched for it.
"""

from __future__ import annotations

import math
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

from app.errors import SettingsError

log = structlog.get_logger(__name__)

NO_CHECK_TIME = 0x200000  # X509_V_FLAG_NO_CHECK_TIME of OpenSSL, which ssl has no name for
HANDSHAKE_TURNS = 4  # of both sides; TLS 1.3 takes two, TLS 1.2 three

_Stamp = tuple[tuple[int, int, int] | None, ...]


@dataclass(frozen=True, slots=True)
class Files:
    """PEM files of one port: "extender", "api" or "admission", as the names of its settings begin.

    `client_ca`: the authorities whose clients are served; None: all clients are.
    """

    port: str
    certificate: Path
    key: Path
    client_ca: Path | None = None


def _nothing(*_told: object) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Hooks:
    """Who is told of what.

    on_change: "loaded" or "refused", each time the files have changed.
    on_failure: a handshake has failed.
    on_expiry: the name of a setting, and the Unix time when what its file says ends.
    """

    on_change: Callable[[str], None] = _nothing
    on_failure: Callable[[], None] = _nothing
    on_expiry: Callable[[str, float], None] = _nothing


class Certificate:
    """Files as a TLS server context."""

    def __init__(self, files: Files, hooks: Hooks | None = None) -> None:
        self.files = files
        self._hooks = hooks or Hooks()
        self.problem = ""
        """What is wrong with the files as they were last read; "": nothing."""
        self._stamp: _Stamp | None = None
        self._current: ssl.SSLContext | None = None
        self.context = self._server_context()
        self.context.sni_callback = self._handshake
        self.context.sslobject_class = _Connection
        self.context.on_failure = self._hooks.on_failure
        self._refresh()

    @property
    def is_loaded(self) -> bool:
        """Whether there is a pair to serve with."""
        return self._current is not None

    def _handshake(
        self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext
    ) -> int | None:
        """Gives one connection the newest good files; called before any certificate is sent.

        OpenSSL takes the authorities from there as well, but whether clients are asked at all
        from the context that the connection began with.
        """
        self._refresh()
        if self._current is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        connection.context = self._current
        return None

    def _refresh(self) -> None:
        """Read the files again if they changed; those that were refused are not tried twice."""
        files = self.files
        named = (files.certificate, files.key, *((files.client_ca,) if files.client_ca else ()))
        stamp = tuple(_stamp(file) for file in named)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        context = self._server_context()
        self.problem = _load(context, files)
        if self.problem:
            self._hooks.on_change("refused")
            log.error("certificate refused", problem=self.problem, is_older_one_kept=self.is_loaded)
            return
        self._current = context
        self._hooks.on_change("loaded")
        ends = {f"{files.port}_cert": _end_of(files.certificate, files.key)}
        if files.client_ca is not None:
            ends[f"{files.port}_client_ca"] = _first_end(context)
        for setting, at in ends.items():
            self._hooks.on_expiry(setting, at)
        log.info("certificate loaded", certificate=str(files.certificate))

    def _server_context(self) -> _Context:
        context = _Context(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self.files.client_ca is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.options |= ssl.OP_NO_TICKET
            context.num_tickets = 0
        return context


class _Context(ssl.SSLContext):
    """A server context whose handshakes tell the client why they failed."""

    on_failure: Callable[[], None]

    def wrap_bio(
        self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *more: Any, **named: Any
    ) -> ssl.SSLObject:
        """One connection's TLS."""
        connection = super().wrap_bio(incoming, outgoing, *more, **named)
        assert isinstance(connection, _Connection)
        connection.outgoing, connection.on_failure = outgoing, self.on_failure
        return connection


class _Connection(ssl.SSLObject):
    """A handshake whose alert is sent.

    asyncio and uvloop drop a connection as soon as its handshake fails, with OpenSSL's alert still
    in memory. So a failure shows first as "more input is needed", upon which they send what there
    is. The client's next byte, its end or the time limit of handshakes then ends the connection.
    """

    outgoing: ssl.MemoryBIO
    on_failure: Callable[[], None]
    _failure: ssl.SSLError | None = None

    def do_handshake(self) -> None:
        if self._failure is not None:
            raise self._failure
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLSyscallError):
            raise
        except ssl.SSLError as error:
            self._failure = error
            self.on_failure()
            if not self.outgoing.pending:
                raise  # no TLS at all, as plain HTTP: there is no alert
            raise ssl.SSLWantReadError from error


def certificate_of(
    port: str,
    certificate: Path | None,
    key: Path | None,
    client_ca: Path | None,
    hooks: Hooks | None = None,
) -> Certificate:
    """The certificate that the settings of a port name.

    Raises: SettingsError where one of the pair is missing.
    """
    if certificate is None or key is None:
        missing = f"{port}_cert" if certificate is None else f"{port}_key"
        raise SettingsError(f"{port}_listen: needs {missing}: this port is served over TLS only")
    return Certificate(Files(port, certificate, key, client_ca), hooks)


def _load(context: ssl.SSLContext, files: Files) -> str:
    """What is wrong with the files, or "": the context has them now."""
    try:
        context.load_cert_chain(files.certificate, files.key, password=_no_password)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        return f"{files.port}_cert {files.certificate}, {files.port}_key {files.key}: {_why(error)}"
    if files.client_ca is None:
        return ""
    try:
        context.load_verify_locations(files.client_ca)
    except OSError as error:
        return f"{files.port}_client_ca {files.client_ca}: {_why(error)}"
    return ""


def _end_of(certificate: Path, key: Path) -> float:
    """When a certificate ends, or the first authority in its file, as Unix time.

    NaN if no client would take it whatever the time. The standard library tells it of a peer only:
    we are our own peer for one handshake.
    """
    try:
        return min(map(_ends, _shown_by(certificate, key)))
    except (OSError, ValueError):  # not for servers, or exchanged since it was loaded
        return math.nan


def _shown_by(certificate: Path, key: Path) -> list[Mapping[str, Any]]:
    """What a client is shown that trusts these certificates and has no clock."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key, password=_no_password)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.load_verify_locations(certificate)
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | NO_CHECK_TIME
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours, theirs = server.wrap_bio(there, back, server_side=True), client.wrap_bio(back, there)
    for _ in range(HANDSHAKE_TURNS):
        for side in (theirs, ours):
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
    return [theirs.getpeercert() or {}, *client.get_ca_certs()]


def _first_end(context: ssl.SSLContext) -> float:
    """When the first of the authorities of a context ends, as Unix time; NaN if it has none."""
    return min(map(_ends, context.get_ca_certs()), default=math.nan)


def _ends(shown: Mapping[str, Any]) -> float:
    return float(ssl.cert_time_to_seconds(shown["notAfter"])) if shown else math.nan


def _why(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else "") or str(error)


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
