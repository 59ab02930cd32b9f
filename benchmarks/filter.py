"""What /filter and /prioritize cost in the server, beside an endpoint that only decodes the body.

    python -m benchmarks.filter [--json] [--nodes 1000,5000,15000]

One server process with Corral's engine, routes and guard; its watch is stubbed by one list of each
kind: N nodes, a gang of 256 that is planned and one that waits for a member. Another process sends
the same body to a verb and to /decode in turns, over one kept-alive loopback connection, as
kube-scheduler does. Figures are medians: server CPU per request over blocks of requests, and
latency as the client sees it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import socket
import ssl
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

import msgspec
from fastapi import APIRouter, FastAPI, Request, Response

from app.dialects.registry import DIALECTS
from app.extender.guard import Bounds
from app.extender.routes import Limits, Port, verbs
from app.extender.server import listen, server_of
from app.kube.decoding import wire
from app.kube.decoding.decode import decode_node, decode_pod
from app.kube.watch.events import Listed
from app.metrics import Metrics
from app.process.engine_settings import engine_settings
from app.setting_values import Address
from app.settings import Settings
from app.state.engine import Engine
from app.verbs.bind import BindDesk
from benchmarks.table import Row, show
from tests.cluster import BLOCK, GPU, RACK, Object, node, pod

NODES_PER_RACK, RACKS_PER_BLOCK = 16, 16
MEMBERS = 256  # of the planned gang; each holds a node of its own
REQUESTS_PER_BLOCK = 20
SECONDS_PER_CASE = 4.0
MOST_SECONDS = 60.0  # for the server to start or an answer to come
TARGET = "<= 1.5x"  # of a planned member and 5,000 names
PREFIX = "kueue.x-k8s.io/"


class DecodedArgs(msgspec.Struct, gc=False):
    """The body as the bare endpoint reads it: the pod's known fields, every name."""

    Pod: wire.Pod
    NodeNames: list[str]


# -- the server ------------------------------------------------------------------------------------


def serve(nodes: int, port: Connection) -> None:
    """Serves until the process is ended; tells its port first."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(nodes, port))


async def _serve(nodes: int, port: Connection) -> None:
    settings = Settings(levels=(BLOCK, RACK), percentage_of_nodes_to_score=100)
    await answer(filled_engine(settings, nodes), settings, Metrics(DIALECTS.kinds), port, bare())


async def answer(
    engine: Engine, settings: Settings, metrics: Metrics, port: Connection, more: APIRouter
) -> None:
    """Answers the verbs of an engine, and other routes, until cancelled; tells its port first."""
    limits = Limits(
        filter_body_bytes=settings.filter_body_bytes,
        preempt_body_bytes=settings.preempt_body_bytes,
        bind_body_bytes=settings.bind_body_bytes,
        full_nodes=settings.full_nodes,
    )
    seconds = settings.gang_bind_seconds
    desk = BindDesk(engine, lambda effects: None, answer_seconds=seconds, most_held=1_000)
    app = FastAPI(redirect_slashes=False, openapi_url=None, docs_url=None, redoc_url=None)
    app.include_router(
        verbs(Port(engine, engine.dialects.keeps, lambda effects: None, desk, metrics, limits))
    )
    app.include_router(more)
    bounds = Bounds(
        receive_seconds=settings.receive_seconds,
        most_body_bytes=settings.preempt_body_bytes,
        max_connections=settings.max_connections,
        most_bytes_under_way=settings.under_way_bytes,
        on_breach=lambda reason: None,
    )
    listener = listen("benchmark", Address("127.0.0.1", 0))
    server = server_of(
        app, bounds, keep_alive_seconds=settings.keep_alive_seconds, finish_seconds=1.0
    )
    port.send(listener.getsockname()[1])
    await server.serve(sockets=[listener])


def filled_engine(settings: Settings, nodes: int) -> Engine:
    """An engine that has heard of the cluster and has made its plan."""
    engine = Engine(engine_settings(settings))
    members = [*gang("planned", MEMBERS), *gang("waiting", 8)[:-1]]
    records = [decode_pod(_json(each), DIALECTS.keeps) for each in members]
    now = time.monotonic()
    for kind in DIALECTS.kinds:
        if kind not in ("Node", "Pod"):
            engine.apply(Listed(kind, ()), now)
    engine.apply(Listed("Node", tuple(decode_node(_json(each)) for each in racks(nodes))), now)
    engine.apply(Listed("Pod", tuple(records)), now)
    engine.tick(now)
    return engine


def bare() -> APIRouter:
    """/decode: the least an extender does with a request. /cpu: seconds this process has used."""
    router = APIRouter()
    decoder = msgspec.json.Decoder(DecodedArgs)

    @router.route("/decode", methods=["POST"])
    async def decode(request: Request) -> Response:
        names = decoder.decode(await request.body()).NodeNames
        return Response(b'{"NodeNames":["%b"]}' % names[0].encode(), media_type="application/json")

    @router.route("/cpu", methods=["POST"])
    async def cpu(request: Request) -> Response:
        return Response(repr(time.process_time()).encode())

    return router


# -- the cluster -----------------------------------------------------------------------------------


def racks(nodes: int) -> Iterator[Object]:
    """That many equal nodes, named as long as nodes of a cloud are."""
    for number in range(nodes):
        rack = number // NODES_PER_RACK
        labels = {BLOCK: f"b{rack // RACKS_PER_BLOCK}", RACK: f"r{rack}"}
        yield node(node_name(number), labels=labels, gpus=8)


def node_name(number: int) -> str:
    """27 characters."""
    return f"gpu-pool-a-{number // NODES_PER_RACK:05}-{number:05}-4f2c"


def gang(name: str, members: int) -> list[Object]:
    """Pods of a group anywhere in the cluster, each as large as a node."""
    annotations = {
        PREFIX + "pod-group-name": name,
        PREFIX + "pod-group-total-count": str(members),
    }
    return [stored(f"{name}-{member}", GPU, 8, annotations) for member in range(members)]


def stored(name: str, resource: str, amount: int, annotations: dict[str, str]) -> Object:
    """A pod of 3 kB as the API server has it."""
    variables = [{"name": f"VARIABLE_{n:02}", "value": f"value-of-{n:02}"} for n in range(40)]
    thing = pod(name, requests={"cpu": "1", resource: amount}, annotations=annotations)
    thing["metadata"] |= {"uid": f"uid-of-{name}", "creationTimestamp": "2026-01-01T00:00:00Z"}
    thing["spec"]["containers"][0]["env"] = variables
    return thing | {"status": {"phase": "Pending", "qosClass": "Burstable"}}


# -- the client ------------------------------------------------------------------------------------


@dataclass(slots=True)
class Taken:
    """What one endpoint took: server CPU per request and latency, seconds."""

    cpu: list[float] = field(default_factory=list)
    latency: list[float] = field(default_factory=list)


class Client:
    """One keep-alive connection to the server."""

    def __init__(self, port: int, tls: ssl.SSLContext | None = None) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=MOST_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            self._socket = tls.wrap_socket(self._socket, server_hostname="127.0.0.1")

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def post(self, path: str, body: bytes) -> bytes:
        """The answer's body. Raises: ConnectionError."""
        head = f"POST {path} HTTP/1.1\r\nHost: corral\r\nContent-Length: {len(body)}\r\n\r\n"
        self._socket.sendall(head.encode() + body)
        received, length = b"", -1
        while length < 0 or len(received) < length:
            chunk = self._socket.recv(1 << 18)
            if not chunk:
                raise ConnectionError(f"{path}: closed after {received[:200]!r}")
            received += chunk
            head_bytes, end, _ = received.partition(b"\r\n\r\n")
            if length < 0 and end:
                stated = head_bytes.lower().split(b"content-length:")[1].split(b"\r\n")[0]
                length = len(head_bytes) + len(end) + int(stated)
        return received.partition(b"\r\n\r\n")[2]

    def block(self, path: str, body: bytes, taken: Taken) -> None:
        """Sends one block of requests and adds what they took."""
        before = float(self.post("/cpu", b""))
        for _ in range(REQUESTS_PER_BLOCK):
            began = time.perf_counter()
            self.post(path, body)
            taken.latency.append(time.perf_counter() - began)
        taken.cpu.append((float(self.post("/cpu", b"")) - before) / REQUESTS_PER_BLOCK)


def bodies(nodes: int) -> list[tuple[str, str, bytes, int]]:
    """Case, path, body, and how many nodes the answer must hold."""
    names = [node_name(number) for number in range(nodes)]
    small = stored("small", "memory", 2**30, {})
    large = stored("large", GPU, 8, {})
    cases = [
        ("/filter, planned member", "/filter", gang("planned", MEMBERS)[0], 1),
        ("/filter, waiting member rejected", "/filter", gang("waiting", 8)[0], 0),
        (f"/filter, ordinary pod, fits beside {MEMBERS} held", "/filter", small, nodes),
        (f"/filter, ordinary pod, loses {MEMBERS} held", "/filter", large, nodes - MEMBERS),
        # Nodes in racks that nothing is held in score 0, and are left out.
        ("/prioritize, ordinary pod", "/prioritize", small, MEMBERS),
    ]
    return [
        (case, path, _json({"Pod": sent, "Nodes": None, "NodeNames": names}), answered)
        for case, path, sent, answered in cases
    ]


@contextmanager
def served(
    serve: Callable[..., None], *arguments: object, tls: ssl.SSLContext | None = None
) -> Iterator[Client]:
    """A client of a server process of its own, which `serve` is; it is told where to say its port.

    `tls`: whom the client trusts. Raises: TimeoutError.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=serve, args=(*arguments, theirs), daemon=True)
    server.start()
    try:
        if not ours.poll(MOST_SECONDS):
            raise TimeoutError("the server did not start")
        with closing(Client(ours.recv(), tls)) as client:
            yield client
    finally:
        server.terminate()
        server.join(MOST_SECONDS)


def measure(nodes: int) -> list[Row]:
    """All cases at one size, on a server of their own."""
    with served(serve, nodes) as client:
        return [row for case in bodies(nodes) for row in _case(client, nodes, *case)]


def _case(client: Client, nodes: int, case: str, path: str, body: bytes, must: int) -> list[Row]:
    answer = json.loads(client.post(path, body))
    answered = answer if isinstance(answer, list) else answer["NodeNames"]
    if len(answered) != must:
        raise AssertionError(f"{case}: {len(answered)} nodes instead of {must}")
    verb, bare_endpoint = in_turns(client, (path, "/decode"), body, SECONDS_PER_CASE)
    target = TARGET if case == "/filter, planned member" else ""
    return [
        _row(f"{case}: server CPU", nodes, verb.cpu, bare_endpoint.cpu, target),
        _row(f"{case}: latency", nodes, verb.latency, bare_endpoint.latency, ""),
    ]


def in_turns(
    client: Client, paths: tuple[str, str], body: bytes, seconds: float
) -> tuple[Taken, Taken]:
    """What two endpoints take for the same body, asked block by block in turns."""
    both = Taken(), Taken()
    for path in paths:
        client.block(path, body, Taken())  # warm, not counted
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        for path, taken in zip(paths, both, strict=True):
            client.block(path, body, taken)
    return both


def _row(case: str, nodes: int, took: list[float], barest: list[float], target: str) -> Row:
    value, baseline = statistics.median(took) * 1e6, statistics.median(barest) * 1e6
    return Row("filter", case, nodes, value, "us", baseline, value / baseline, target)


def _json(thing: object) -> bytes:
    return json.dumps(thing, separators=(",", ":")).encode()


def main() -> None:
    """Measures every size asked for and prints one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    parser.add_argument("--nodes", default="1000,5000,15000", help="sizes, with commas")
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.nodes.split(",")]
    show([row for nodes in sizes for row in measure(nodes)], as_json=arguments.json)


if __name__ == "__main__":
    main()
