"""The EndpointSlice that leads to the Corral that leads."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from app.kube.leading.endpoint import SHOWN_SECONDS, OnlyEndpoint
from tests.app.kube.apiserver import refusal, reply

SLICES = "/apis/discovery.k8s.io/v1/namespaces/home/endpointslices"
HERE = [{"addresses": ["10.0.0.7"], "conditions": {"ready": True}}]
PORTS = [{"name": "https", "port": 8888, "protocol": "TCP"}]


@pytest.fixture
def endpoint(transport, clock):
    where = {"namespace": "home", "service": "corral-extender", "address": "10.0.0.7"}
    return OnlyEndpoint(transport, **where, port=8888, clock=clock)


def stored(endpoints):
    metadata = {"name": "corral-extender", "resourceVersion": "7", "labels": {"a": "b"}}
    return {"metadata": metadata, "addressType": "IPv4", "endpoints": endpoints, "ports": PORTS}


async def test_it_is_created_for_its_service(server, endpoint):
    server.script += [refusal(404, "NotFound"), reply(201, {})]
    await endpoint.show(True)
    made = server.asked[1]
    assert (made.method, made.path) == ("POST", SLICES)
    assert made.body["metadata"]["labels"]["kubernetes.io/service-name"] == "corral-extender"
    assert made.body["endpoints"] == HERE
    assert made.body["ports"] == PORTS
    assert made.body["addressType"] == "IPv4"


async def test_it_takes_the_place_of_who_led_before(server, endpoint):
    other = [{"addresses": ["10.0.0.8"], "conditions": {"ready": True}}]
    server.script += [reply(200, stored(other)), reply(200, {})]
    await endpoint.show(True)
    written = server.asked[1]
    assert (written.method, written.path) == ("PUT", f"{SLICES}/corral-extender")
    assert written.body["endpoints"] == HERE
    assert written.body["metadata"] == stored(other)["metadata"]  # its version with it


async def test_it_is_looked_at_again_after_a_while_and_at_once_when_it_is_led_anew(
    server, endpoint, clock
):
    server.script += [reply(200, stored(HERE))] * 3
    await endpoint.show(True)
    await endpoint.show(False)
    assert len(server.asked) == 1
    clock.now += SHOWN_SECONDS
    await endpoint.show(False)
    await endpoint.show(True)
    assert [each.method for each in server.asked] == ["GET"] * 3


async def test_what_could_not_be_written_is_told_and_tried_again(server, endpoint):
    server.script += [refusal(403, "Forbidden"), reply(200, stored(HERE))]
    with capture_logs() as logs:
        await endpoint.show(True)
    assert [(each["event"], each["service"]) for each in logs] == [("endpoint", "corral-extender")]
    await endpoint.show(False)
    assert len(server.asked) == 2
