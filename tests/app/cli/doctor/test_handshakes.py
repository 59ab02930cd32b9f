"""Whether the API server would trust what the webhook serves, against real TLS on loopback."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID

from app.cli.doctor.reading import cluster, handshakes
from app.cli.doctor.reading.handshakes import handshakes as made
from app.cli.doctor.seen import Handshake, Unread, Webhooks, WebhookService
from app.dialects import corral
from tests.certificates import HOST, client, pair

BUNDLES = {name: base64.b64encode(pair(name).certificate).decode() for name in ("served", "else")}
SERVICE = "corral-system/corral-webhook"


@asynccontextmanager
async def port_of(name: str, folder: Any, *, by: str = "", asks: str = "") -> AsyncIterator[int]:
    """A port that serves TLS with this certificate. `asks`: who signs for its clients."""
    usage = ExtendedKeyUsageOID.SERVER_AUTH
    own = client(name, by=by, usage=usage) if by else pair(name)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*own.write(folder))
    if asks:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=pair(asks).certificate.decode())

    async def ignore(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(ignore, HOST, 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


def webhooks(bundle: str, *, url: str = "", service: WebhookService | None = None) -> Webhooks:
    """One webhook of Corral's, that calls a URL or a Service."""
    target: dict[str, Any] = {"url": url}
    if not url:
        target = {"service": {"namespace": "corral-system", "name": "corral-webhook"}}
    each = {"name": f"pods{corral.WEBHOOKS}", "clientConfig": {**target, "caBundle": bundle}}
    configuration = {"metadata": {"name": "webhook.corral.dev"}, "webhooks": [each]}
    return Webhooks((configuration,), (), {} if service is None else {SERVICE: service})


async def tried(port: int, bundle: str) -> Handshake:
    found = await made(webhooks(bundle, url=f"https://{HOST}:{port}/mutate"))
    assert not isinstance(found, Unread), found
    (only,) = found.values()
    assert only.address == f"{HOST}:{port}"
    return only


async def test_a_certificate_that_is_in_the_bundle_is_trusted(tmp_path):
    async with port_of("served", tmp_path) as port:
        assert (await tried(port, BUNDLES["served"])).problem == ""


async def test_one_that_an_authority_in_the_bundle_has_signed_is_trusted(tmp_path):
    async with port_of("leaf", tmp_path, by="else") as port:
        assert (await tried(port, BUNDLES["else"])).problem == ""


async def test_one_that_nothing_in_the_bundle_knows_is_not(tmp_path):
    async with port_of("served", tmp_path) as port:
        assert "self-signed certificate" in (await tried(port, BUNDLES["else"])).problem


async def test_one_with_another_name_than_the_services_is_not(tmp_path):
    async with port_of("served", tmp_path) as port:
        behind = WebhookService(True, 1, (443,), ((HOST, port),))
        found = await made(webhooks(BUNDLES["served"], service=behind))
    (only,) = found.values()
    assert "corral-webhook.corral-system.svc" in only.problem


async def test_a_port_that_asks_for_a_certificate_is_trusted_all_the_same(tmp_path):
    async with port_of("served", tmp_path, asks="else") as port:
        assert (await tried(port, BUNDLES["served"])).problem == ""


async def test_a_port_that_is_not_reached_is_named_with_what_would_tell(monkeypatch):
    monkeypatch.setattr(handshakes, "SECONDS", 0.2)
    found = await made(webhooks(BUNDLES["served"], url=f"https://{HOST}:9/mutate"))
    assert isinstance(found, Unread)
    assert f"{HOST}:9 is not reached from here" in found.why
    assert "--canary" in found.why


@pytest.mark.parametrize("service", [None, WebhookService(False), WebhookService(True, 0, (443,))])
async def test_without_an_address_nothing_is_known(service):
    found = await made(webhooks(BUNDLES["served"], service=service))
    assert isinstance(found, Unread)


async def test_addresses_are_those_of_ready_pods_and_the_ports_behind_the_service():
    slices = {
        "ports": [{"port": 9443}],
        "endpoints": [
            {"addresses": ["10.0.0.7"], "conditions": {"ready": True}},
            {"addresses": ["10.0.0.8"], "conditions": {"ready": False}},
        ],
    }
    answers = {
        "services/corral-webhook": {"spec": {"ports": [{"port": 443}]}},
        "endpointslices": {"items": [slices]},
    }

    class Api:
        async def request(self, method: str, path: str, **_: Any) -> bytes:
            import json

            found = next(each for name, each in answers.items() if path.endswith(name))
            return json.dumps(found).encode()

    found = await cluster._service(Api(), "corral-system", "corral-webhook")
    assert found == WebhookService(True, 1, (443,), (("10.0.0.7", 9443),))
