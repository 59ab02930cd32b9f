"""An admission webhook on loopback that answers as the test says, and what names it."""

from __future__ import annotations

import base64
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from tests.certificates import pair

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
MUTATING = f"{CONFIGURATIONS}/mutatingwebhookconfigurations"
VALIDATING = f"{CONFIGURATIONS}/validatingwebhookconfigurations"
EVERY_POD = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"]}

Script = Callable[[dict[str, Any]], Any]


class ScriptedWebhook:
    """Records every request; `answers` gives the response to a path, all but its uid."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.answers: dict[str, Script] = {}

    def asked_at(self, path: str) -> list[dict[str, Any]]:
        return [request for called, request in self.asked if called == path]

    async def serve(self, request: web.Request) -> web.Response:
        review = orjson.loads(await request.read())
        asked = review["request"]
        self.asked.append((request.path, asked))
        answer = self.answers.get(request.path, lambda _: {"allowed": True})(asked)
        if isinstance(answer, Awaitable):
            answer = await answer
        if isinstance(answer, int):
            return web.Response(status=answer)
        response = {"uid": asked["uid"]} | answer
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        return web.Response(body=orjson.dumps(body | {"response": response}))

    def configuration(self, name: str, *hooks: dict[str, Any]) -> dict[str, Any]:
        return {"metadata": {"name": name}, "webhooks": list(hooks)}

    def hook(self, path: str, **fields: Any) -> dict[str, Any]:
        """One webhook that is asked about every pod, at this path."""
        return {
            "name": f"{path.strip('/')}.example.org",
            "clientConfig": {
                "url": self.url + path,
                "caBundle": base64.b64encode(pair("webhook").certificate).decode(),
            },
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "rules": [EVERY_POD],
        } | fields


def patching(*operations: dict[str, Any]) -> Script:
    patch = base64.b64encode(orjson.dumps(operations)).decode()
    return lambda _: {"allowed": True, "patchType": "JSONPatch", "patch": patch}


def refusing(**status: Any) -> Script:
    return lambda _: {"allowed": False} | ({"status": status} if status else {})


@asynccontextmanager
async def scripted_webhook(folder: Path) -> AsyncIterator[ScriptedWebhook]:
    webhook = ScriptedWebhook()
    app = web.Application()
    app.router.add_post("/{path:.*}", webhook.serve)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*pair("webhook").write(folder))
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    webhook.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield webhook
    finally:
        await runner.cleanup()
