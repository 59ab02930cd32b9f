"""What a call of the webhook costs Corral, beside an endpoint that only decodes the review.

    python -m benchmarks.admission [--json] [--seconds 4]

One server process has the webhook's routes behind TLS. A client sends the same review to a route
and to /review in turns, over one kept-alive loopback connection, as kube-apiserver does. The pods
are of 3 kB, as a Job's controller creates them. Figures are medians over blocks of requests: server
CPU per request.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import ssl
import statistics
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path

from fastapi import APIRouter, FastAPI, Request, Response

from app.admission import review
from app.admission.routes import MUTATE, VALIDATE, Desk, webhook
from app.admission.scope import Scope
from app.dialects.registry import DIALECTS
from app.extender.guard import Bounds
from app.extender.server import listen, server_of
from app.metrics import Metrics
from app.settings import Address, Settings
from benchmarks.filter import Client, bare, gang, in_turns, served
from benchmarks.table import Row, show
from tests.app.admission.port import review as review_of
from tests.certificates import pair
from tests.cluster import RACK, Object, job
from tests.workloads import asking

TARGET = "<= 200 us"  # of a new pod, which costs one call


def serve(folder: str, port: Connection) -> None:
    """Serves until the process is ended; tells its port first."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(Path(folder), port))


async def _serve(folder: Path, port: Connection) -> None:
    settings = Settings()
    app = FastAPI(redirect_slashes=False, openapi_url=None, docs_url=None, redoc_url=None)
    desk = Desk(Scope("corral"), DIALECTS, Metrics(DIALECTS.kinds), settings.admission_body_bytes)
    app.include_router(webhook(desk))
    app.include_router(_decoding())
    app.include_router(bare())
    bounds = Bounds(
        receive_seconds=settings.receive_seconds,
        most_body_bytes=settings.admission_body_bytes,
        max_connections=settings.max_connections,
        most_bytes_under_way=settings.under_way_bytes,
        on_breach=lambda reason: None,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    listener = listen("benchmark", Address("127.0.0.1", 0))
    server = server_of(
        app,
        bounds,
        keep_alive_seconds=settings.keep_alive_seconds,
        finish_seconds=1.0,
        tls=context,
    )
    port.send(listener.getsockname()[1])
    await server.serve(sockets=[listener])


def _decoding() -> APIRouter:
    """/review: the least a webhook does with a request."""
    router = APIRouter()

    @router.route("/review", methods=["POST"])
    async def decode(request: Request) -> Response:
        asked = review.request_of(await request.body())
        return Response(review.allowed(asked.uid), media_type="application/json")

    return router


def cases() -> list[tuple[str, str, Object, str]]:
    """Case, path, the review, and the figure to reach."""
    made = asking(required=RACK)
    member = {**gang("planned", 8)[0]}
    member["metadata"] = {**member["metadata"], "annotations": made | _annotations(member)}
    return [
        ("a member of a gang is created", MUTATE, review_of(member), TARGET),
        ("a Job is created", VALIDATE, review_of(job("train", pods=8, annotations=made)), ""),
    ]


def _annotations(thing: Object) -> dict[str, str]:
    found: dict[str, str] = thing["metadata"]["annotations"]
    return found


def measure(seconds: float) -> list[Row]:
    """Every case, on one server."""
    with tempfile.TemporaryDirectory(prefix="corral-bench-") as folder:
        pair("webhook").write(Path(folder))
        with served(serve, folder, tls=pair("webhook").client()) as client:
            return [_case(client, seconds, *case) for case in cases()]


def _case(client: Client, seconds: float, case: str, path: str, asked: Object, target: str) -> Row:
    body = json.dumps(asked, separators=(",", ":")).encode()
    if not json.loads(client.post(path, body))["response"]["allowed"]:
        raise AssertionError(f"{case}: refused")
    both = in_turns(client, (path, "/review"), body, seconds)
    value, baseline = (statistics.median(each.cpu) * 1e6 for each in both)
    return Row("admission", case, 0, value, "us", baseline, value / baseline, target)


def main() -> None:
    """Measures and prints one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    parser.add_argument("--seconds", type=float, default=4.0, help="each case")
    arguments = parser.parse_args()
    show(measure(arguments.seconds), as_json=arguments.json)


if __name__ == "__main__":
    main()
