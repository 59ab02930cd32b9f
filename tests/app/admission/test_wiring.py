"""The webhook as a part of the whole program: its settings, its port, its end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.admission.namespaces import METADATA_NAME
from app.errors import SettingsError
from app.labels import selector_from_text
from app.main import started
from app.process.parts import Parts
from app.sandbox import Sandbox
from app.setting_values import Address
from app.settings import Settings, load
from tests.app.admission.port import patch_of, patched, review
from tests.app.polling import until
from tests.certificates import HOST, pair
from tests.cluster import RACK, pod
from tests.workloads import asking, member

ANY_PORT = Address(HOST, 0)


@asynccontextmanager
async def running(folder: Path, **knobs: Any) -> AsyncIterator[Parts]:
    """A Corral with a webhook, beside an empty cluster."""
    certificate, key = pair("first").write(folder)
    async with Sandbox() as sandbox:
        sandbox.write_kubeconfig(folder / "kubeconfig")
        settings = {
            "kubeconfig": folder / "kubeconfig",
            "levels": (RACK,),
            "extender_listen": ANY_PORT,
            "admission_listen": ANY_PORT,
            "admission_cert": certificate,
            "admission_key": key,
        }
        async with started(Settings(**{**settings, **knobs})) as corral:
            yield corral


def trusting(url: str) -> httpx.AsyncClient:
    verify = pair("first").client()
    return httpx.AsyncClient(base_url=url, verify=verify, timeout=5, trust_env=False)


@pytest.mark.slow
async def test_a_running_corral_answers_reviews_and_counts_them_on_its_other_port(tmp_path):
    async with running(tmp_path) as corral, trusting(corral.admission_url) as client:
        answer = await client.post("/mutate", json=review(member("g", 0, 2)))
        assert patch_of(answer.json()["response"])
        async with httpx.AsyncClient(base_url=corral.extender_url, timeout=5) as other:
            metrics = (await other.get("/metrics")).text
        assert "corral_pods_gated_total 1.0" in metrics
        assert 'corral_certificates_total{outcome="loaded",port="admission"} 1.0' in metrics
        for path in ("/metrics", "/healthz", "/filter"):
            assert (await client.post(path)).status_code == 404
    with pytest.raises(httpx.HTTPError):
        async with trusting(corral.admission_url) as client:
            await client.post("/mutate", json=review({}))


@pytest.mark.slow
async def test_the_settings_say_which_pods_are_ours(tmp_path):
    knobs = {
        "scheduler_name": "gangs",
        "admission_namespace_selector": selector_from_text(f"{METADATA_NAME} notin (infra)"),
        "admission_pod_selector": selector_from_text("tier!=web"),
        "kueue_manages": True,
    }
    wanted = asking(required=RACK)
    queue = {"kueue.x-k8s.io/queue-name": "q"}
    async with running(tmp_path, **knobs) as corral, trusting(corral.admission_url) as client:
        for thing, is_changed in (
            (pod("p", annotations=wanted, scheduler="gangs"), True),
            (pod("p", annotations=wanted, scheduler="corral"), False),
            (pod("p", annotations=wanted, scheduler="gangs", namespace="infra"), False),
            (pod("p", annotations=wanted, scheduler="gangs", labels={"tier": "web"}), False),
            (pod("p", annotations=wanted, scheduler="gangs", labels=queue), False),
        ):
            answer = await client.post("/mutate", json=review(thing))
            assert bool(patch_of(answer.json()["response"])) == is_changed


@pytest.mark.slow
@pytest.mark.parametrize(("rules", "roles"), [("kueue", 1), ("kep", 2)])
async def test_the_settings_say_what_makes_a_role(tmp_path, rules, roles):
    things = [member("g", 0, 2), member("g", 1, 2)]
    things[1]["metadata"]["labels"] = {"role": "driver"}
    hashes = set()
    async with (
        running(tmp_path, pod_group_roles=rules) as corral,
        trusting(corral.admission_url) as client,
    ):
        for thing in things:
            answer = await client.post("/mutate", json=review(thing))
            changed = patched(thing, patch_of(answer.json()["response"]))
            hashes.add(changed["metadata"]["annotations"]["kueue.x-k8s.io/role-hash"])
    assert len(hashes) == roles


@pytest.mark.slow
async def test_a_certificate_that_is_not_there_yet_keeps_nothing_from_starting(tmp_path):
    missing = {"admission_cert": tmp_path / "no.crt", "admission_key": tmp_path / "no.key"}
    async with running(tmp_path, **missing) as corral:
        async with trusting(corral.admission_url) as client:
            with pytest.raises(httpx.HTTPError):
                await client.post("/mutate", json=review({}))
        async with httpx.AsyncClient(base_url=corral.extender_url, timeout=5) as other:
            assert (await other.get("/healthz")).status_code == 200


@pytest.mark.slow
async def test_there_is_no_webhook_unless_it_is_asked_for(tmp_path):
    off = {"admission_listen": None, "admission_cert": None, "admission_key": None}
    async with running(tmp_path, **off) as corral:
        assert corral.admission_url == ""


@pytest.mark.parametrize("setting", ["admission_cert", "admission_key"])
async def test_a_port_without_a_certificate_is_a_settings_error_and_no_port_stays_open(
    tmp_path, setting
):
    with socket.create_server((HOST, 0)) as probe:
        address = Address(HOST, probe.getsockname()[1])
    with pytest.raises(SettingsError, match=f"^admission_listen: needs {setting}"):
        async with running(tmp_path, extender_listen=address, **{setting: None}):
            pass
    socket.create_server((HOST, address.port)).close()


def test_the_settings_are_read_from_flags_as_text():
    settings = load(
        {
            "admission_listen": "0.0.0.0:9443",
            "admission_namespace_selector": "team in (a, b), !legacy",
            "admission_cert": "/tls.crt",
        }
    )
    assert settings.admission_listen == Address("0.0.0.0", 9443)
    assert settings.admission_namespace_selector == selector_from_text("team in (a,b),!legacy")
    assert settings.admission_cert == Path("/tls.crt")


@pytest.mark.slow
async def test_a_flood_of_bodies_and_connections_is_bounded_and_reviews_are_answered(tmp_path):
    knobs = {
        "admission_body_bytes": 64 * 1024,
        "admission_under_way_bytes": 512 * 1024,
        "admission_connections": 24,
    }
    async with running(tmp_path, **knobs) as corral:
        async with trusting(corral.admission_url) as client:
            assert (await client.post("/validate", json=review(pod("p")))).status_code == 200
        protocol: Any = corral.ports.admission.server.config.http_protocol_class
        host, port = corral.ports.admission.listener.getsockname()[:2]
        half = b"POST /mutate HTTP/1.1\r\nContent-Length: 65000\r\n\r\n" + b" " * 60_000
        writers = []
        for opening in (*[half] * 20, *[b""] * 30):
            _, writer = await asyncio.open_connection(
                host, port, ssl=pair("first").client(), server_hostname=HOST
            )
            writer.write(opening)
            writers.append(writer)
        sample = corral.metrics.registry.get_sample_value
        await until(lambda: sample("corral_broken_requests_total", {"reason": "busy"}) > 5)
        gave_way = ("idle", "connections")  # the halves that came first, and those that were silent
        broken = [sample("corral_broken_requests_total", {"reason": each}) for each in gave_way]
        assert sum(broken) > 5
        assert protocol.taken.body_bytes <= 512 * 1024
        assert len(corral.ports.admission.server.server_state.connections) <= 24
        async with trusting(corral.admission_url) as client:
            answer = await client.post("/mutate", json=review(member("g", 0, 2)))
            assert patch_of(answer.json()["response"])
        for writer in writers:
            writer.transport.abort()
        await until(lambda: protocol.taken.body_bytes == 0)
