"""A port that asks its clients for a certificate: one of the right authority, or no answer."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop
from cryptography.x509.oid import ExtendedKeyUsageOID

from tests.app.admission.port import Running, running_port
from tests.certificates import HOST, Pair, client, pair, replace

BOTH_LOOPS = [
    pytest.param(asyncio.new_event_loop, id="asyncio"),
    pytest.param(uvloop.new_event_loop, id="uvloop_as_served"),
]
BOTH_VERSIONS = [
    pytest.param(ssl.TLSVersion.TLSv1_2, id="tls_1_2"),
    pytest.param(ssl.TLSVersion.TLSv1_3, id="tls_1_3"),
]
REQUEST = b"GET / HTTP/1.1\r\nHost: corral\r\n\r\n"
NOT_FOUND = "HTTP/1.1 404"  # an answer

Factory = Callable[[], asyncio.AbstractEventLoop]


def said(running: Running, context: ssl.SSLContext, session: ssl.SSLSession | None = None) -> str:
    """What a request gets: the first words of an answer, or the alert."""
    port = int(running.url.rpartition(":")[2])
    try:
        with (
            socket.create_connection((HOST, port), timeout=5) as plain,
            context.wrap_socket(plain, server_hostname=HOST, session=session) as secure,
        ):
            secure.sendall(REQUEST)
            return secure.recv(12).decode()
    except ssl.SSLError as error:
        return str(error.reason)


def with_clients_of(folder: Path, *authorities: str) -> Path:
    """The file of client authorities, written anew."""
    file = folder / "clients.crt"
    replace(file, b"".join(pair(name).certificate for name in authorities))
    return file


def showing(folder: Path, own: Pair | None) -> ssl.SSLContext:
    """A client that trusts the port, and shows a certificate of its own."""
    server = pair("first")
    return server.client() if own is None else server.client_showing(own, folder)


@pytest.mark.parametrize("factory", BOTH_LOOPS)
@pytest.mark.parametrize("version", BOTH_VERSIONS)
@pytest.mark.parametrize(
    ("own", "answer"),
    [
        pytest.param(client("scheduler", by="clients"), NOT_FOUND, id="right_authority"),
        pytest.param(None, "ALERT_CERTIFICATE_REQUIRED", id="no_certificate"),
        pytest.param(client("other", by="strangers"), "ALERT_UNKNOWN_CA", id="other_authority"),
        pytest.param(pair("other"), "ALERT_UNKNOWN_CA", id="self_signed"),
        pytest.param(
            client("old", by="clients", days=-1), "ALERT_CERTIFICATE_EXPIRED", id="expired"
        ),
        pytest.param(
            client("server", by="clients", usage=ExtendedKeyUsageOID.SERVER_AUTH),
            "ALERT_UNSUPPORTED_CERTIFICATE",
            id="of_a_server",
        ),
    ],
)
def test_only_clients_of_the_authority_get_more_than_an_alert(
    tmp_path: Path, factory: Factory, version: ssl.TLSVersion, own: Pair | None, answer: str
) -> None:
    if own is None and version == ssl.TLSVersion.TLSv1_2:
        answer = "ALERT_HANDSHAKE_FAILURE"  # RFC 5246 7.4.6; 1.3 has an alert of its own
    context = showing(tmp_path, own)
    context.minimum_version = context.maximum_version = version

    async def ask() -> None:
        async with running_port(
            tmp_path, client_ca=with_clients_of(tmp_path, "clients")
        ) as running:
            got = await asyncio.to_thread(said, running, context)
            assert got.endswith(answer)
            failed = running.value("corral_broken_requests_total", reason="handshake")
            assert failed == (answer != NOT_FOUND)

    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(ask())


async def test_an_authority_that_is_exchanged_ends_the_trust_in_the_one_before(
    tmp_path: Path,
) -> None:
    file = with_clients_of(tmp_path, "clients")
    before, after = (
        showing(tmp_path, client("scheduler", by=name)) for name in ("clients", "successors")
    )
    async with running_port(tmp_path, client_ca=file) as running:
        assert await asyncio.to_thread(said, running, before) == NOT_FOUND
        with_clients_of(tmp_path, "clients", "successors")  # both, as long as clients are renewed
        assert await asyncio.to_thread(said, running, before) == NOT_FOUND
        assert await asyncio.to_thread(said, running, after) == NOT_FOUND
        with_clients_of(tmp_path, "successors")
        assert "ALERT_UNKNOWN_CA" in await asyncio.to_thread(said, running, before)
        assert await asyncio.to_thread(said, running, after) == NOT_FOUND


@pytest.mark.parametrize("version", BOTH_VERSIONS)
async def test_a_session_does_not_outlive_its_authority(
    tmp_path: Path, version: ssl.TLSVersion
) -> None:
    context = showing(tmp_path, client("scheduler", by="clients"))
    context.minimum_version = context.maximum_version = version
    async with running_port(tmp_path, client_ca=with_clients_of(tmp_path, "clients")) as running:
        session = await asyncio.to_thread(_session, running, context)
        with_clients_of(tmp_path, "successors")
        assert "ALERT_UNKNOWN_CA" in await asyncio.to_thread(said, running, context, session)


@pytest.mark.parametrize("content", [b"", b"no PEM at all"], ids=["empty", "garbage"])
async def test_a_broken_authority_keeps_the_one_before(tmp_path: Path, content: bytes) -> None:
    file = with_clients_of(tmp_path, "clients")
    context = showing(tmp_path, client("scheduler", by="clients"))
    stranger = showing(tmp_path, client("other", by="strangers"))
    async with running_port(tmp_path, client_ca=file) as running:
        replace(file, content)
        assert await asyncio.to_thread(said, running, context) == NOT_FOUND
        assert "ALERT_UNKNOWN_CA" in await asyncio.to_thread(said, running, stranger)
        assert running.certificate.problem.startswith(f"admission_client_ca {file}: ")


async def test_without_an_authority_that_can_be_read_there_is_no_answer(tmp_path: Path) -> None:
    context = showing(tmp_path, client("scheduler", by="clients"))
    async with running_port(tmp_path, client_ca=tmp_path / "absent.crt") as running:
        assert not running.certificate.is_loaded
        assert "ALERT" in await asyncio.to_thread(said, running, context)


async def test_plain_http_gets_no_byte_and_does_not_wait(tmp_path: Path) -> None:
    async with running_port(
        tmp_path, client_ca=with_clients_of(tmp_path, "clients"), receive_seconds=60
    ) as running:
        reader, writer = await asyncio.open_connection(HOST, int(running.url.rpartition(":")[2]))
        writer.write(REQUEST)
        async with asyncio.timeout(5):
            with contextlib.suppress(ConnectionResetError):  # it had not read all of it
                assert await reader.read() == b""
        writer.close()


def _session(running: Running, context: ssl.SSLContext) -> ssl.SSLSession | None:
    """What a client may resume its connection with."""
    port = int(running.url.rpartition(":")[2])
    with (
        socket.create_connection((HOST, port), timeout=5) as plain,
        context.wrap_socket(plain, server_hostname=HOST) as secure,
    ):
        secure.sendall(REQUEST)
        assert secure.recv(12).decode() == NOT_FOUND
        return secure.session
