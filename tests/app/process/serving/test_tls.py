"""The certificate behind the port: exchanged while it serves, kept when the new one is broken."""

from __future__ import annotations

import asyncio
import math
import os
import socket
import ssl
import time

import httpx
import pytest
import uvloop
from cryptography.x509.oid import ExtendedKeyUsageOID

from app.errors import SettingsError
from app.process.serving.tls import Certificate, Files, Hooks, certificate_of
from tests.app.admission.port import Running, review, running_port
from tests.certificates import HOST, Pair, client, pair, replace

CHANGES = "corral_certificates_total"
ENDS = "corral_certificate_expiration_timestamp_seconds"


def server_of(authority: str, *, days: int) -> Pair:
    """A pair for a server, signed by this authority; it ends in so many days."""
    return client("server", by=authority, usage=ExtendedKeyUsageOID.SERVER_AUTH, days=days)


def served(running: Running, trusted: Pair) -> bool:
    """Whether a new connection is shown the certificate of this pair."""
    port = int(running.url.rpartition(":")[2])
    try:
        with (
            socket.create_connection((HOST, port), timeout=5) as plain,
            trusted.client().wrap_socket(plain, server_hostname=HOST) as secure,
        ):
            return secure.version() is not None
    except ssl.SSLError:
        return False


@pytest.mark.parametrize(
    "factory",
    [
        pytest.param(asyncio.new_event_loop, id="asyncio"),
        pytest.param(uvloop.new_event_loop, id="uvloop_as_served"),
    ],
)
def test_a_new_certificate_is_shown_to_the_next_connection(tmp_path, factory):
    async def exchange() -> None:
        async with running_port(tmp_path) as running:
            assert await asyncio.to_thread(served, running, pair("first"))
            pair("second").write(tmp_path)
            assert await asyncio.to_thread(served, running, pair("second"))
            assert not await asyncio.to_thread(served, running, pair("first"))

    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(exchange())


async def test_a_connection_made_earlier_goes_on_with_the_old_one(tmp_path):
    async with running_port(tmp_path) as running, running.client(pair("first")) as client:
        assert (await client.post("/mutate", json=review({}))).status_code == 200
        pair("second").write(tmp_path)
        assert await asyncio.to_thread(served, running, pair("second"))
        assert (await client.post("/mutate", json=review({}))).status_code == 200


@pytest.mark.parametrize(
    ("file", "content"),
    [
        pytest.param("tls.crt", b"", id="empty_certificate"),
        pytest.param("tls.key", b"no PEM at all", id="garbage_for_a_key"),
        pytest.param("tls.key", pair("second").key, id="key_of_another_certificate"),
        pytest.param("tls.crt", pair("second").certificate[:200], id="half_a_certificate"),
    ],
)
async def test_a_broken_pair_keeps_the_one_before_and_is_counted(tmp_path, file, content):
    async with running_port(tmp_path) as running:
        replace(tmp_path / file, content)
        assert await asyncio.to_thread(served, running, pair("first"))
        assert running.value(CHANGES, port="admission", outcome="refused") == 1
        # The same broken pair is not read once more at each handshake.
        assert await asyncio.to_thread(served, running, pair("first"))
        assert running.value(CHANGES, port="admission", outcome="refused") == 1


async def test_a_pair_that_is_removed_keeps_serving_and_one_that_comes_back_is_taken(tmp_path):
    async with running_port(tmp_path) as running:
        os.remove(tmp_path / "tls.key")
        assert await asyncio.to_thread(served, running, pair("first"))
        pair("second").write(tmp_path)
        assert await asyncio.to_thread(served, running, pair("second"))


async def test_without_a_pair_handshakes_fail_until_there_is_one(tmp_path):
    async with running_port(tmp_path, first=Pair(b"", b"")) as running:
        assert not running.certificate.is_loaded
        assert not await asyncio.to_thread(served, running, pair("first"))
        pair("first").write(tmp_path)
        assert await asyncio.to_thread(served, running, pair("first"))


def test_a_link_pointed_elsewhere_is_a_change(tmp_path):
    """How the kubelet exchanges a mounted Secret: one link for the whole folder."""
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        pair(name).write(tmp_path / name)
    link = tmp_path / "..data"
    link.symlink_to(tmp_path / "first")
    outcomes: list[str] = []
    certificate = Certificate(
        Files("admission", link / "tls.crt", link / "tls.key"), Hooks(outcomes.append)
    )
    other = tmp_path / "..fresh"
    other.symlink_to(tmp_path / "second")
    os.replace(other, link)
    _shake_hands(certificate.context, pair("second").client())
    assert outcomes == ["loaded", "loaded"]


def test_an_encrypted_key_is_refused_without_asking_anyone(tmp_path):
    from cryptography.hazmat.primitives import serialization

    certificate, key = pair("first").write(tmp_path)
    private = serialization.load_pem_private_key(pair("first").key, None)
    replace(
        key,
        private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        ),
    )
    outcomes: list[str] = []
    assert not Certificate(Files("admission", certificate, key), Hooks(outcomes.append)).is_loaded
    assert outcomes == ["refused"]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_tls_1_2_and_newer_are_spoken(tmp_path, version):
    certificate = Certificate(Files("admission", *pair("first").write(tmp_path)))
    client = pair("first").client()
    client.minimum_version = client.maximum_version = version
    assert _shake_hands(certificate.context, client) == version.name.replace("_", ".", 1).replace(
        "TLSv1_", "TLSv1."
    )


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated:DeprecationWarning")
def test_tls_1_1_is_refused(tmp_path):
    certificate = Certificate(Files("admission", *pair("first").write(tmp_path)))
    client = pair("first").client()
    client.set_ciphers("DEFAULT@SECLEVEL=0")
    client.minimum_version = client.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(ssl.SSLError):
        _shake_hands(certificate.context, client)


@pytest.mark.parametrize("missing", ["admission_cert", "admission_key"])
def test_a_port_without_a_certificate_is_refused_by_name(tmp_path, missing):
    files = {"admission_cert": tmp_path / "a", "admission_key": tmp_path / "b", missing: None}
    with pytest.raises(SettingsError, match=f"^admission_listen: needs {missing}"):
        certificate_of("admission", files["admission_cert"], files["admission_key"], None, print)


@pytest.mark.slow
async def test_a_client_that_never_finishes_its_handshake_is_cut_off(tmp_path):
    async with running_port(tmp_path, receive_seconds=0.2) as running:
        began = time.monotonic()
        reader, writer = await asyncio.open_connection(HOST, int(running.url.rpartition(":")[2]))
        async with asyncio.timeout(5):
            assert await reader.read() == b""
        assert time.monotonic() - began >= 0.15
        writer.close()


async def test_plain_http_gets_no_answer(tmp_path):
    async with running_port(tmp_path) as running:
        plain = running.url.replace("https:", "http:")
        async with httpx.AsyncClient(base_url=plain, trust_env=False, timeout=5) as client:
            with pytest.raises(httpx.HTTPError):
                await client.post("/mutate", json=review({}))


def _shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> str | None:
    """A handshake in memory; the version agreed upon. Raises: ssl.SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=HOST),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(10):
        waiting = 0
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                waiting += 1
        if not waiting:
            return ends[0].version()
    raise AssertionError("the handshake does not end")


DAY = 86_400.0


@pytest.mark.parametrize(
    ("own", "days"),
    [
        pytest.param(pair("first"), 1, id="self_signed"),
        pytest.param(server_of("first", days=20), 20, id="of_an_authority"),
        pytest.param(server_of("first", days=-1), -1, id="that_has_ended"),
    ],
)
def test_it_is_told_when_a_certificate_ends(tmp_path, own, days):
    ends = {}
    Certificate(Files("admission", *own.write(tmp_path)), Hooks(on_expiry=ends.__setitem__))
    assert list(ends) == ["admission_cert"]
    assert ends["admission_cert"] == pytest.approx(time.time() + days * DAY, abs=3600)


def test_an_authority_beside_it_in_the_file_that_ends_earlier_counts(tmp_path):
    ends = {}
    certificate, key = server_of("first", days=20).write(tmp_path)
    certificate.write_bytes(certificate.read_bytes() + pair("first").certificate)
    Certificate(Files("admission", certificate, key), Hooks(on_expiry=ends.__setitem__))
    assert ends["admission_cert"] == pytest.approx(time.time() + DAY, abs=3600)


def test_it_is_told_when_the_first_authority_of_clients_ends(tmp_path):
    ends = {}
    authorities = tmp_path / "ca.crt"
    authorities.write_bytes(pair("other").certificate + pair("first").certificate)
    files = Files("extender", *server_of("first", days=20).write(tmp_path), authorities)
    certificate = Certificate(files, Hooks(on_expiry=ends.__setitem__))
    assert certificate.is_loaded
    assert ends["extender_cert"] - ends["extender_client_ca"] == pytest.approx(19 * DAY, abs=3600)


def test_a_certificate_that_no_client_would_take_has_no_end(tmp_path):
    ends = {}
    for_clients = client("no-server", by="first")
    Certificate(Files("admission", *for_clients.write(tmp_path)), Hooks(on_expiry=ends.__setitem__))
    assert math.isnan(ends["admission_cert"])


async def test_a_new_certificate_moves_the_end_that_the_metric_shows(tmp_path):
    async with running_port(tmp_path) as running:
        before = running.value(ENDS, setting="admission_cert")
        server_of("first", days=20).write(tmp_path)
        await asyncio.to_thread(served, running, pair("first"))
        assert running.value(ENDS, setting="admission_cert") - before == pytest.approx(
            19 * DAY, abs=3600
        )
