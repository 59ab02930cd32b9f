"""A running webhook port over TLS, and reviews as the API server writes them."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from app.admission.routes import Desk, Place, nowhere, webhook
from app.admission.scope import Scope
from app.dialects.registry import DIALECTS
from app.extender.guard import Bounds
from app.extender.server import Server, listen, server_of, url_of
from app.metrics import Metrics
from app.process.serving.ports import hooks_of
from app.process.serving.tls import Certificate, Files
from app.setting_values import Address
from app.settings import EngineOptions
from tests.certificates import Pair, pair

SCOPE = Scope("corral")
BESIDE_KUEUE = DIALECTS.configured(EngineOptions(kueue_manages=True))
UID = "705ab4f5-6393-11e8-b7cc-42010a800002"


@dataclass
class Running:
    """The port under test."""

    url: str
    metrics: Metrics
    certificate: Certificate
    folder: Path
    server: Server

    def client(self, trusted: Pair) -> httpx.AsyncClient:
        """A client that trusts this pair only."""
        return httpx.AsyncClient(
            base_url=self.url, verify=trusted.client(), timeout=5.0, trust_env=False
        )

    def value(self, name: str, **labels: str) -> float:
        """One sample of the metrics."""
        found = self.metrics.registry.get_sample_value(name, labels)
        assert found is not None, name
        return found


@asynccontextmanager
async def running_port(
    folder: Path,
    *,
    scope: Scope = SCOPE,
    first: Pair | None = None,
    client_ca: Path | None = None,
    most_body_bytes: int = 8 * 1024 * 1024,
    receive_seconds: float = 5.0,
    place: Place = nowhere,
    marks: bool = False,
) -> AsyncIterator[Running]:
    """Serve on a free port of the loopback until the block ends."""
    (first or pair("first")).write(folder)
    metrics = Metrics(DIALECTS.kinds)
    certificate = Certificate(
        Files("admission", folder / "tls.crt", folder / "tls.key", client_ca),
        hooks_of("admission", metrics),
    )
    app = FastAPI(redirect_slashes=False, openapi_url=None, docs_url=None, redoc_url=None)
    app.include_router(
        webhook(Desk(scope, DIALECTS, metrics, most_body_bytes, place=place, marks=marks))
    )
    bounds = Bounds(
        receive_seconds,
        most_body_bytes,
        100,
        32 * 1024 * 1024,
        lambda reason: metrics.broken_requests[reason].inc(),
    )
    listener = listen("admission_listen", Address("127.0.0.1", 0))
    server = server_of(
        app, bounds, keep_alive_seconds=120, finish_seconds=1, tls=certificate.context
    )
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    await server.startup(sockets=[listener])
    try:
        yield Running(url_of(listener, "https"), metrics, certificate, folder, server)
    finally:
        for each in server.servers:
            each.close()
        for connection in tuple(server.server_state.connections):
            connection.transport.abort()
        if server.server_state.tasks:
            await asyncio.wait(server.server_state.tasks, timeout=5)


def review(
    thing: object,
    *,
    before: object = None,
    operation: str = "CREATE",
    group: str | None = None,
    kind: str | None = None,
    uid: str = UID,
    **more: Any,
) -> dict[str, Any]:
    """An AdmissionReview about an object, as an API server of today writes it."""
    whole = thing if isinstance(thing, dict) else {}
    api_version = whole.get("apiVersion", "v1")
    home, _, version = api_version.rpartition("/")
    metadata = whole.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    return {
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": uid,
            "kind": {
                "group": home if group is None else group,
                "version": version,
                "kind": whole.get("kind", "Pod") if kind is None else kind,
            },
            "resource": {"group": home, "version": version, "resource": "pods"},
            "name": metadata.get("name", ""),
            "namespace": metadata.get("namespace", "team"),
            "operation": operation,
            "userInfo": {"username": "somebody", "groups": ["system:authenticated"]},
            "object": thing,
            "oldObject": before,
            "dryRun": False,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
            **more,
        },
    }


def patch_of(response: dict[str, Any]) -> list[dict[str, Any]]:
    """The operations in a response; none where there is no patch."""
    if "patch" not in response:
        return []
    assert response["patchType"] == "JSONPatch"
    operations: list[dict[str, Any]] = json.loads(base64.b64decode(response["patch"]))
    return operations


def patched(thing: dict[str, Any], operations: list[dict[str, Any]]) -> dict[str, Any]:
    """The object after a JSON patch, read strictly by RFC 6902: what cannot apply raises."""
    thing = json.loads(json.dumps(thing))
    for each in operations:
        parts = each["path"].split("/")[1:]
        *above, last = (part.replace("~1", "/").replace("~0", "~") for part in parts)
        place: Any = thing
        for part in above:
            place = place[int(part)] if isinstance(place, list) else place[part]
        _carry_out(each, place, last)
    return thing


def _carry_out(operation: dict[str, Any], place: Any, last: str) -> None:
    key: Any = int(last) if isinstance(place, list) and last != "-" else last
    match operation["op"]:
        case "add" if isinstance(place, list):
            place.insert(len(place) if key == "-" else key, operation["value"])
        case "add":
            place[key] = operation["value"]
        case "remove":
            del place[key]
        case "test":
            assert place[key] == operation["value"]
        case other:
            raise AssertionError(other)
