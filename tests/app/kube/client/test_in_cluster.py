"""From inside a pod: its service account's files, over TLS, against a scripted API server."""

from __future__ import annotations

import shutil
import ssl

import aiohttp
import certifi
import pytest

from app.errors import Unreachable
from app.kube.client.credentials import RENEW_SECONDS, Credentials
from app.kube.client.transport import Transport
from app.main import build
from app.setting_values import Address
from app.settings import Settings
from tests.app.kube.apiserver import Server, reply, serving
from tests.app.kube.service_account import HOST, mounted, server_tls
from tests.certificates import pair, replace

STRICT = ssl.VERIFY_X509_PARTIAL_CHAIN | ssl.VERIFY_X509_STRICT


@pytest.fixture
async def server(tmp_path, monkeypatch):
    """An API server whose address is where a pod looks for it."""
    async with serving(server_tls(tmp_path)) as running:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", HOST)
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", running.url.rpartition(":")[2])
        running.script = [reply(200, {"major": "1"})]
        yield running


@pytest.fixture
def strict(monkeypatch):
    """Contexts as Python 3.13 makes them: `create_default_context` sets STRICT there.

    Source: docs.python.org/3/library/ssl.html, ssl.create_default_context, "Changed in 3.13".
    """
    made = ssl.create_default_context

    def create(*args, **more):
        context = made(*args, **more)
        context.verify_flags |= STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", create)
    return create


async def version_of(transport: Transport) -> bytes:
    try:
        return await transport.request("GET", "/version")
    finally:
        await transport.close()


def who_asked(server: Server) -> str:
    return server.asked[0].headers["Authorization"]


async def test_a_transport_of_a_pod_asks_the_clusters_api_server_with_the_pods_token(
    server, tmp_path
):
    account = mounted(tmp_path / "account", "of-the-pod")
    assert await version_of(await Transport.in_cluster(account)) == b'{"major": "1"}'
    assert who_asked(server) == "Bearer of-the-pod"


async def test_without_a_kubeconfig_corral_is_its_pods_service_account(server, tmp_path):
    account = mounted(tmp_path / "account", "of-the-pod")
    here = Address("127.0.0.1", 0)
    parts = await build(Settings(extender_listen=here, service_account=account))
    async with parts.closing:
        assert await version_of(parts.transport) == b'{"major": "1"}'
    assert who_asked(server) == "Bearer of-the-pod"


async def test_an_authority_without_key_identifiers_is_trusted_where_python_is_strict(
    server, tmp_path, strict
):
    account = mounted(tmp_path / "account", "of-the-pod")
    context = strict(cafile=account / "ca.crt")
    async with aiohttp.ClientSession() as client:
        with pytest.raises(aiohttp.ClientConnectorCertificateError, match=r"(?i)key identifier"):
            await client.get(f"{server.url}/version", ssl=context)
    assert await version_of(await Transport.in_cluster(account)) == b'{"major": "1"}'


async def test_another_authority_is_not_trusted(server, tmp_path, strict):
    account = mounted(tmp_path / "account", "of-the-pod")
    shutil.copy(certifi.where(), account / "ca.crt")
    with pytest.raises(Unreachable, match=r"(?i)certificate verify failed"):
        await version_of(await Transport.in_cluster(account))
    assert server.asked == []


async def test_an_authority_that_is_replaced_is_trusted_from_then_on(server, tmp_path, clock):
    account = mounted(tmp_path / "account", "of-the-pod")
    authority = account / "ca.crt"
    right, wrong = authority.read_bytes(), pair("another").certificate
    replace(authority, wrong)
    transport = Transport(Credentials.in_cluster(account, clock=clock))
    with pytest.raises(Unreachable, match=r"(?i)certificate verify failed"):
        await transport.request("GET", "/version")
    replace(authority, right)
    clock.now += RENEW_SECONDS
    assert await version_of(transport) == b'{"major": "1"}'


async def test_an_authority_that_was_replaced_is_trusted_no_more(server, tmp_path, clock):
    account = mounted(tmp_path / "account", "of-the-pod")
    transport = Transport(Credentials.in_cluster(account, clock=clock))
    assert await transport.request("GET", "/version") == b'{"major": "1"}'
    replace(account / "ca.crt", pair("another").certificate)
    clock.now += RENEW_SECONDS
    with pytest.raises(Unreachable, match=r"(?i)certificate verify failed"):
        await version_of(transport)


async def test_an_authority_that_cannot_be_read_leaves_the_one_before(server, tmp_path, clock):
    account = mounted(tmp_path / "account", "of-the-pod")
    transport = Transport(Credentials.in_cluster(account, clock=clock))
    replace(account / "ca.crt", b"-----BEGIN CERTIFICATE-----\n")
    clock.now += RENEW_SECONDS
    assert await version_of(transport) == b'{"major": "1"}'
