"""The ports that are taken, and those that are not to be."""

from __future__ import annotations

import asyncio
import math
import socket
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import APIRouter

from app.errors import SettingsError
from app.metrics import Metrics
from app.process.serving.ports import (
    CLOSE_SECONDS,
    EXTENDER_TLS,
    Listeners,
    Ports,
    Routes,
    listen_all,
    ports_of,
)
from app.setting_values import MIB, Address
from app.settings import Settings
from tests.certificates import HOST, pair

ALL = "extender_cert, extender_key, extender_client_ca"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """The three settings of a port for clients with a certificate."""
    return dict(
        zip(EXTENDER_TLS, (*pair("first").write(tmp_path), tmp_path / "tls.crt"), strict=True)
    )


async def taken(**settings: Any) -> Listeners:
    """The listeners these settings name, closed again."""
    async with AsyncExitStack() as closing:
        return listen_all(Settings(**settings), Metrics(), closing)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "::ffff:0.0.0.0"])
async def test_beyond_loopback_the_extender_needs_a_certificate_and_an_authority(
    host: str,
) -> None:
    with socket.create_server((HOST, 0)) as probe:
        address = Address(host, probe.getsockname()[1])
    with pytest.raises(SettingsError) as refused:
        await taken(extender_listen=address)
    assert str(refused.value) == (
        f"extender_listen: {address}: not a loopback address: needs {ALL}"
    )
    socket.create_server((HOST, address.port)).close()  # nothing listens there


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "localhost", "::1"])
async def test_on_loopback_it_needs_neither(host: str) -> None:
    _, certificate = (await taken(extender_listen=Address(host, 0))).extender
    assert certificate is None


async def test_with_all_three_it_listens_anywhere(files: dict[str, Path]) -> None:
    address = Address("0.0.0.0", 0)
    _, certificate = (await taken(extender_listen=address, **files)).extender
    assert certificate is not None
    assert certificate.files.client_ca == files["extender_client_ca"]


@pytest.mark.parametrize("missing", EXTENDER_TLS)
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
async def test_a_part_of_the_three_is_refused_everywhere(
    files: dict[str, Path], missing: str, host: str
) -> None:
    del files[missing]
    first = next(iter(files))
    with pytest.raises(SettingsError) as refused:
        await taken(extender_listen=Address(host, 0), **files)
    assert str(refused.value) == f"{first}: {files[first]}: needs {missing} beside it"


@pytest.mark.parametrize(
    ("broken", "named"),
    [
        pytest.param("extender_cert", "extender_cert {file}, extender_key", id="certificate"),
        pytest.param("extender_client_ca", "extender_client_ca {file}: ", id="authority"),
    ],
)
@pytest.mark.parametrize("content", [None, b"", b"no PEM at all"], ids=["absent", "empty", "junk"])
async def test_a_file_that_cannot_be_used_is_named(
    files: dict[str, Path], tmp_path: Path, broken: str, named: str, content: bytes | None
) -> None:
    files[broken] = file = tmp_path / "broken.pem"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SettingsError) as refused:
        await taken(extender_listen=Address(HOST, 0), **files)
    assert str(refused.value).startswith(named.format(file=file))


async def opened(metrics: Metrics, **settings: Any) -> Ports:
    """The ports that these settings name; their sockets are closed again."""
    told = Settings(extender_listen=Address(HOST, 0), **settings)
    async with AsyncExitStack() as closing:
        routes = Routes(*(APIRouter() for _ in range(4)))
        return ports_of(told, metrics, listen_all(told, metrics, closing), routes)


async def test_only_the_ports_that_are_named_are_opened(files: dict[str, Path]) -> None:
    ports = await opened(Metrics())
    assert (ports.api, ports.admission) == (None, None)
    assert ports.all() == (ports.extender,)
    certificate, key, _ = files.values()
    ports = await opened(
        Metrics(),
        api_listen=Address(HOST, 0),
        admission_listen=Address(HOST, 0),
        admission_cert=certificate,
        admission_key=key,
    )
    assert ports.all() == (ports.extender, ports.api, ports.admission)
    assert [port.url.partition(":")[0] for port in ports.all()] == ["http", "http", "https"]


@pytest.mark.parametrize(
    ("sizes", "body", "under_way"),
    [
        pytest.param({}, 32 * MIB, 128 * MIB, id="defaults"),
        pytest.param(
            {"filter_body_bytes": 64 * MIB, "preempt_body_bytes": MIB, "under_way_bytes": MIB},
            64 * MIB,
            256 * MIB,
            id="four_of_the_largest_body",
        ),
        pytest.param({"under_way_bytes": 129 * MIB}, 32 * MIB, 129 * MIB, id="more"),
    ],
)
async def test_what_the_extenders_connections_may_cost_is_as_the_settings_say(
    sizes: dict[str, int], body: int, under_way: int
) -> None:
    metrics = Metrics()
    settings = {"max_connections": 99, "receive_seconds": 3.0, "bind_seconds": 7.5, **sizes}
    config = (await opened(metrics, keep_alive_seconds=100, **settings)).extender.server.config
    bounds = config.http.bounds
    assert (bounds.most_body_bytes, bounds.most_bytes_under_way) == (body, under_way)
    assert (bounds.max_connections, bounds.receive_seconds) == (99, 3.0)
    assert config.timeout_keep_alive == 100
    assert config.timeout_graceful_shutdown == math.ceil(7.5 + CLOSE_SECONDS)
    bounds.on_breach("late")
    sample = ("corral_broken_requests_total", {"reason": "late"})
    assert metrics.registry.get_sample_value(*sample) == 1


async def test_the_webhooks_connections_have_bounds_of_their_own(files: dict[str, Path]) -> None:
    certificate, key, _ = files.values()
    ports = await opened(
        Metrics(),
        admission_listen=Address(HOST, 0),
        admission_cert=certificate,
        admission_key=key,
        admission_body_bytes=MIB,
        admission_under_way_bytes=9 * MIB,
        admission_connections=17,
    )
    config = ports.admission.server.config
    bounds = config.http.bounds
    assert (bounds.most_body_bytes, bounds.most_bytes_under_way) == (MIB, 9 * MIB)
    assert bounds.max_connections == 17
    assert config.timeout_graceful_shutdown == math.ceil(CLOSE_SECONDS)


async def test_with_all_three_it_is_served_over_tls(files: dict[str, Path], tmp_path: Path) -> None:
    settings = Settings(extender_listen=Address(HOST, 0), **files)
    context = pair("first").client_showing(pair("first"), tmp_path)
    async with AsyncExitStack() as closing:
        listeners = listen_all(settings, Metrics(), closing)
        routes = Routes(*(APIRouter() for _ in range(4)))
        port = ports_of(settings, Metrics(), listeners, routes).extender
        serving = asyncio.create_task(port.serve())
        async with httpx.AsyncClient(verify=context, trust_env=False) as client:
            assert (await client.get(port.url)).status_code == 404
        port.close()
        await serving


# -- people's port ---------------------------------------------------------------------------------


def people_files(folder: Path) -> dict[str, Path]:
    """The two settings of people's port."""
    return dict(zip(("api_cert", "api_key"), pair("first").write(folder), strict=True))


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        pytest.param({"api_cert", "api_listen"}, "api_key", id="no_key"),
        pytest.param({"api_key", "api_listen"}, "api_cert", id="no_certificate"),
        pytest.param({"api_cert", "api_key"}, "api_listen", id="no_port"),
    ],
)
async def test_a_part_of_what_peoples_port_needs_is_refused(
    tmp_path: Path, given: set[str], missing: str
) -> None:
    every: dict[str, Any] = {**people_files(tmp_path), "api_listen": Address(HOST, 0)}
    settings = {name: value for name, value in every.items() if name in given}
    with pytest.raises(SettingsError) as refused:
        await taken(extender_listen=Address(HOST, 0), **settings)
    first = next(iter(settings))
    assert str(refused.value) == f"{first}: {settings[first]}: needs {missing} beside it"


async def test_peoples_port_speaks_tls_and_reads_a_new_certificate(tmp_path: Path) -> None:
    """It opens without one that can be read, as gangs start without that port."""
    files = people_files(tmp_path)
    files["api_cert"].unlink()
    settings = Settings(extender_listen=Address(HOST, 0), api_listen=Address(HOST, 0), **files)
    metrics = Metrics()
    async with AsyncExitStack() as closing:
        listeners = listen_all(settings, metrics, closing)
        port = ports_of(settings, metrics, listeners, Routes(*(APIRouter() for _ in range(4)))).api
        assert port is not None
        assert port.url.startswith("https:")
        serving = asyncio.create_task(port.serve())
        for name in ("first", "second"):
            with pytest.raises(httpx.HTTPError):
                await _status(port.url, name)
            pair(name).write(tmp_path)
            assert await _status(port.url, name) == 404
        port.close()
        await serving
    loaded = ("corral_certificates_total", {"port": "api", "outcome": "loaded"})
    assert metrics.registry.get_sample_value(*loaded) == 2
    ends = ("corral_certificate_expiration_timestamp_seconds", {"setting": "api_cert"})
    assert metrics.registry.get_sample_value(*ends)


async def test_peoples_port_has_a_bound_of_its_own_for_connections() -> None:
    settings = {"max_connections": 9_999, "api_connections": 18, "api_listen": Address(HOST, 0)}
    ports = await opened(Metrics(), **settings)
    assert ports.api.server.config.http.bounds.max_connections == 18
    assert ports.extender.server.config.http.bounds.max_connections == 9_999


async def _status(url: str, trusted: str) -> int:
    async with httpx.AsyncClient(verify=pair(trusted).client(), trust_env=False) as client:
        return (await client.get(url)).status_code
