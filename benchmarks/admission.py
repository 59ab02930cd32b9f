"""What a call of the webhook costs Corral, beside an endpoint that only decodes the review.

    python -m benchmarks.admission [--json] [--seconds 4]

One server process has the webhook's routes behind TLS, and an engine that knows 1,000 nodes and 400
Jobs. A client sends the same reviews to a route and to /review in turns, over one kept-alive
loopback connection, as kube-apiserver does. The pods are of 3 kB, as a Job's controller creates
them. Figures are medians over blocks of requests: server CPU per request.

A pod that is born in place is asked about once; every eighth is the first of its gang, for which
all eight are planned. The engine's ticks are in the figures, and in the baseline's. Ordinary pods
are kept away from the webhook by the conditions of deploy/webhook.yaml.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import ssl
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice, repeat
from multiprocessing.connection import Connection
from pathlib import Path

from fastapi import APIRouter, FastAPI, Request, Response

from app.admission import review
from app.admission.routes import MUTATE, VALIDATE, Desk, Place, webhook
from app.admission.scope import Scope
from app.dialects.registry import DIALECTS
from app.dialects.workloads.job import COMPLETION_INDEX as INDEX
from app.dialects.workloads.job import decode_job
from app.extender.guard import Bounds
from app.extender.server import listen, server_of
from app.kube.core.objects import PodRecord
from app.kube.decoding.decode import decode_node, with_kept
from app.kube.watch.events import Listed
from app.metrics import Metrics
from app.process.engine_settings import engine_settings
from app.setting_values import Address
from app.settings import Settings
from app.state.engine import Engine
from benchmarks.filter import Client, bare, gang, racks, served, stored
from benchmarks.table import Row, show
from tests.app.admission.port import review as review_of
from tests.certificates import pair
from tests.cluster import BLOCK, GPU, RACK, Object, job
from tests.workloads import asking

TARGET = "<= 200 us"  # of a new pod, which costs one call
NODES, JOBS, PODS_PER_JOB, GPUS = 1000, 400, 8, 2
CALLS_PER_BLOCK = 24  # three gangs
BORN = "/born"  # before the routes of a webhook by which gangs are born in place


def serve(folder: str, port: Connection) -> None:
    """Serves until the process is ended; tells its port first."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(Path(folder), port))


async def _serve(folder: Path, port: Connection) -> None:
    settings = Settings(levels=(BLOCK, RACK), born_seconds=600, absent_share_per_namespace=1.0)
    engine = _engine(settings)
    app = FastAPI(redirect_slashes=False, openapi_url=None, docs_url=None, redoc_url=None)
    desk = Desk(Scope("corral"), DIALECTS, Metrics(DIALECTS.kinds), settings.admission_body_bytes)
    app.include_router(webhook(desk))
    app.include_router(webhook(replace(desk, place=_place(engine))), prefix=BORN)
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
    ticking = asyncio.create_task(_tick(engine, settings.tick_seconds))
    port.send(listener.getsockname()[1])
    await server.serve(sockets=[listener])
    ticking.cancel()


def _engine(settings: Settings) -> Engine:
    """An engine that has heard of the cluster and of every Job, and of no pod."""
    engine = Engine(engine_settings(settings))
    jobs = (
        {**each, "metadata": {**each["metadata"], "uid": f"uid-of-{name}"}}
        for name, each in ((name, _job(name)) for name in _job_names())
    )
    known: dict[str, Listed] = {
        "Node": Listed("Node", tuple(decode_node(_json(each)) for each in racks(NODES))),
        "Job": Listed(
            "Job", tuple(decode_job(_json(each), engine.dialects.keeps) for each in jobs)
        ),
    }
    now = time.monotonic()
    for kind in (*(kind for kind in DIALECTS.kinds if kind != "Pod"), "Pod"):
        engine.apply(known.get(kind, Listed(kind, ())), now)
    engine.tick(now)
    return engine


def _place(engine: Engine) -> Place:
    """What the webhook asks the engine, as `app.main` wires it."""

    def place(pod: PodRecord, namespace: str) -> tuple[str, ...] | None:
        short = with_kept(pod, engine.dialects.keeps)
        return engine.admit(short, namespace, time.monotonic())[0]

    return place


async def _tick(engine: Engine, seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds)
        engine.tick(time.monotonic())


def _decoding() -> APIRouter:
    """/review: the least a webhook does with a request."""
    router = APIRouter()

    @router.route("/review", methods=["POST"])
    async def decode(request: Request) -> Response:
        asked = review.request_of(await request.body())
        return Response(review.allowed(asked.uid), media_type="application/json")

    return router


# -- what is asked -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Case:
    """Reviews that are sent to a path in blocks, and what each answer's patch has in it."""

    name: str
    path: str
    blocks: Iterator[list[bytes]]
    patch: bytes = b""
    target: str = ""


def cases() -> list[Case]:
    """All of them."""
    made = asking(required=RACK)
    member = {**gang("planned", 8)[0]}
    member["metadata"] = {**member["metadata"], "annotations": made | _annotations(member)}
    train = review_of(job("train", pods=8, annotations=made))
    return [
        Case("a member of a gang is created", MUTATE, _same(member), b"corral.dev/gang", TARGET),
        Case("a pod is born in place", BORN + MUTATE, _in_gangs(), b"nodeAffinity", TARGET),
        Case("an ordinary pod is created", MUTATE, _same(stored("web", GPU, 1, {}))),
        Case("a Job is created", VALIDATE, repeat([_json(train)] * CALLS_PER_BLOCK)),
    ]


def _same(pod: Object) -> Iterator[list[bytes]]:
    return repeat([_json(review_of(pod))] * CALLS_PER_BLOCK)


def _in_gangs() -> Iterator[list[bytes]]:
    """The pods of every Job, each once."""
    pods = (_json(review_of(each)) for name in _job_names() for each in _pods_of(name))
    while block := list(islice(pods, CALLS_PER_BLOCK)):
        yield block


def _job_names() -> Iterator[str]:
    return (f"train-{number}" for number in range(JOBS))


def _job(name: str) -> Object:
    requests: dict[str, str | int] = {"cpu": 1, GPU: GPUS}
    made = job(
        name,
        pods=PODS_PER_JOB,
        namespace="team",
        requests=requests,
        annotations=asking(required=RACK),
    )
    made["spec"]["backoffLimit"] = PODS_PER_JOB
    return made


def _pods_of(name: str) -> Iterator[Object]:
    """The pods of a Job as its controller creates them."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "controller": True}
    for number in range(PODS_PER_JOB):
        made = stored("", GPU, GPUS, asking(required=RACK) | {INDEX: str(number)})
        made["metadata"] |= {
            "namespace": "team",
            "generateName": f"{name}-{number}-",
            "labels": {INDEX: str(number), "batch.kubernetes.io/job-name": name},
            "ownerReferences": [{**owner, "uid": f"uid-of-{name}"}],
        }
        del made["metadata"]["name"], made["metadata"]["uid"]
        yield made


def _annotations(thing: Object) -> dict[str, str]:
    found: dict[str, str] = thing["metadata"]["annotations"]
    return found


def _json(thing: object) -> bytes:
    return json.dumps(thing, separators=(",", ":")).encode()


# -- what it costs -----------------------------------------------------------------------------


def measure(seconds: float) -> list[Row]:
    """Every case, on one server."""
    with tempfile.TemporaryDirectory(prefix="corral-bench-") as folder:
        pair("webhook").write(Path(folder))
        with served(serve, folder, tls=pair("webhook").client()) as client:
            return [_measured(client, seconds, case) for case in cases()]


def _measured(client: Client, seconds: float, case: Case) -> Row:
    """A case for this time, or until all there is to ask has been asked."""
    took: list[float] = []
    barest: list[float] = []
    until = time.perf_counter() + seconds
    for block in case.blocks:
        barest.append(_block(client, "/review", block)[0])
        cpu, answers = _block(client, case.path, block)
        took.append(cpu)
        for answer in answers:
            _check(case, answer)
        if time.perf_counter() >= until:
            break
    value, baseline = (statistics.median(each[1:]) * 1e6 for each in (took, barest))  # once warm
    return Row("admission", case.name, NODES, value, "us", baseline, value / baseline, case.target)


def _block(client: Client, path: str, bodies: list[bytes]) -> tuple[float, list[bytes]]:
    """CPU of the server per request, and the answers."""
    before = float(client.post("/cpu", b""))
    answers = [client.post(path, body) for body in bodies]
    return (float(client.post("/cpu", b"")) - before) / len(bodies), answers


def _check(case: Case, answer: bytes) -> None:
    """Raises: AssertionError."""
    response = json.loads(answer)["response"]
    patch = base64.b64decode(response.get("patch", ""))
    if not response["allowed"] or case.patch not in patch or (patch and not case.patch):
        raise AssertionError(f"{case.name}: {response} {patch!r}")


def main() -> None:
    """Measures and prints one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    parser.add_argument("--seconds", type=float, default=4.0, help="each case")
    arguments = parser.parse_args()
    show(measure(arguments.seconds), as_json=arguments.json)


if __name__ == "__main__":
    main()
