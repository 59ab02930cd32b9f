"""The port kube-scheduler talks to. HTTP 200 for every answer: on any other code it does not read
the body, and people could not see why.

    body ──limit──▶ models ──▶ verbs ──▶ encode ──▶ bytes with Content-Length

The only place besides the controllers that reads a clock and that catches broadly: a bug of ours
must reach kube-scheduler as an error answer, not as a closed connection.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial

import structlog
from fastapi import APIRouter, Request, Response
from starlette.requests import ClientDisconnect

from app.errors import DecodeError
from app.extender import encode, models
from app.extender.models import BadRequest
from app.kube.core import aside
from app.kube.core.objects import PodRecord
from app.kube.decoding.decode import Keep
from app.kube.decoding.large.escapes import shortened
from app.metrics import Metrics
from app.state.answers import hypothetical
from app.state.answers.hypothetical import Hypothetical, Question
from app.state.effects import Effect
from app.state.filter_result import (
    Failed,
    FilterAnswer,
    Passed,
    Pinned,
    Possible,
    Rejected,
)
from app.state.inputs import Inputs
from app.verbs.bind import BindDesk
from app.verbs.filter import filter_nodes
from app.verbs.preempt import choose_victims
from app.verbs.prioritize import score_nodes

log = structlog.get_logger(__name__)

OUR_BUG = "Corral failed to answer; its log says why"
NOT_LEADING = "this Corral does not lead: {}"
CLOSING = {"Connection": "close"}
_TOO_LARGE_HINT = "; set nodeCacheCapable: true if whole nodes are sent"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a body may weigh, in bytes, and whether whole nodes are read."""

    filter_body_bytes: int
    preempt_body_bytes: int
    bind_body_bytes: int
    full_nodes: bool


@dataclass(frozen=True, slots=True)
class Port:
    """What the routes need of the rest."""

    inputs: Inputs
    keep: Keep  # which labels and annotations of a pod are read
    feed: Callable[[Iterable[Effect]], None]
    desk: BindDesk
    metrics: Metrics
    limits: Limits
    keep_label: Keep | None = None  # which labels, if not the same keys
    hypothetical: Hypothetical | None = None  # None: every request is kube-scheduler's
    whose: Callable[[], str] | None = None  # who leads, "" for ourselves; None: the caller knows
    asked: Callable[[], None] = lambda: None  # told of each request that only who leads gets


def verbs(port: Port) -> APIRouter:
    """/filter, /prioritize, /preempt and /bind.

    Plain routes: a request and a response need no injected parameters, and without them an
    endpoint costs a quarter less.
    """
    router, limits = APIRouter(), port.limits

    @router.route("/filter", methods=["POST"])
    async def filter_(request: Request) -> Response:
        most, elsewhere = limits.filter_body_bytes, partial(_filtered_elsewhere, port)
        answer = partial(_filtered, port)
        return await _answered(
            port, "filter", request, most, answer, encode.filter_error, elsewhere
        )

    @router.route("/prioritize", methods=["POST"])
    async def prioritize(request: Request) -> Response:
        most, answer = limits.filter_body_bytes, partial(_prioritized, port)
        return await _answered(port, "prioritize", request, most, answer, encode.priorities_error)

    @router.route("/preempt", methods=["POST"])
    async def preempt(request: Request) -> Response:
        most, answer = limits.preempt_body_bytes, partial(_preempted, port)
        return await _answered(port, "preempt", request, most, answer, encode.preemption_error)

    @router.route("/bind", methods=["POST"])
    async def bind(request: Request) -> Response:
        most, answer = limits.bind_body_bytes, partial(_bound, port)
        return await _answered(port, "bind", request, most, answer, encode.binding_result)

    return router


async def _filtered(port: Port, body: bytes) -> bytes:
    pod, nodes = await _pod_and_nodes(port, body)
    port.asked()
    given = await _supposed(port, pod, nodes)
    if given is None:
        given = filter_nodes(port.inputs, port.feed, pod, nodes, time.monotonic())
    port.metrics.answers[_kind(given)].inc()
    return encode.filter_result(given, nodes)


async def _filtered_elsewhere(port: Port, body: bytes, sentence: str) -> bytes:
    pod, nodes = await _pod_and_nodes(port, body)
    return encode.filter_result(_undecided(pod, sentence), nodes)


async def _prioritized(port: Port, body: bytes) -> bytes:
    pod, nodes = await _pod_and_nodes(port, body)
    simulators = port.hypothetical
    scores = None if simulators is None else simulators.scores(pod, nodes)
    if scores is None:
        scores = score_nodes(port.inputs, pod, nodes, time.monotonic())
    return encode.priorities(nodes, scores)


async def _preempted(port: Port, body: bytes) -> bytes:
    read = partial(models.preemption, keep=port.keep, keep_label=port.keep_label)
    pod, offered = await aside.read(read, body)
    victims = choose_victims(port.inputs, port.feed, pod, offered, time.monotonic())
    return encode.preemption_result(victims)


async def _bound(port: Port, body: bytes) -> bytes:
    args = models.binding(body)
    return encode.binding_result(
        await port.desk.bind(args.PodNamespace, args.PodName, args.PodUID, args.Node)
    )


async def _pod_and_nodes(port: Port, body: bytes) -> tuple[PodRecord, models.Nodes]:
    read = partial(
        models.pod_and_nodes,
        keep=port.keep,
        keep_label=port.keep_label,
        full_nodes=port.limits.full_nodes,
    )
    return await aside.read(read, body, models.bytes_at_once(body))


def _undecided(pod: PodRecord, sentence: str) -> Failed | Rejected:
    """What is answered where another Corral decides.

    An error would take away the node that others have been evicted from.
    """
    return Rejected(sentence) if pod.nominated_node else Failed(sentence)


async def _supposed(port: Port, pod: PodRecord, nodes: models.Nodes) -> FilterAnswer | None:
    """What a simulator is answered; None: kube-scheduler asks."""
    simulators = port.hypothetical
    found = None if simulators is None else simulators.asked(pod, nodes)
    if isinstance(found, Question):
        return await aside.read(hypothetical.judged, found, hypothetical.AT_ONCE)
    return found


async def _answered(
    port: Port,
    verb: str,
    request: Request,
    most_bytes: int,
    answer: Callable[[bytes], Awaitable[bytes]],
    as_error: Callable[[str], bytes],
    elsewhere: Callable[[bytes, str], Awaitable[bytes]] | None = None,
) -> Response:
    """One verb's answer, or its form of an error; never anything but 200.

    `elsewhere`: the answer to a body where another Corral leads, if it is no error.
    """
    began = time.perf_counter()
    try:
        body = await _body(request, most_bytes)
        began = time.perf_counter()
        if port.whose is not None and (leader := port.whose()):
            # The next connection may lead to the one that does.
            why = NOT_LEADING.format(leader)
            content = as_error(why) if elsewhere is None else await elsewhere(body, why)
            return Response(content, headers=CLOSING, media_type="application/json")
        content = await answer(body)
    except (BadRequest, DecodeError) as error:
        port.metrics.broken_requests["malformed"].inc()
        content = as_error(f"/{verb}: {error}")
    except ClientDisconnect:
        return Response()
    except Exception:
        log.exception("verb", verb=verb)
        content = as_error(OUR_BUG)
    port.metrics.request_seconds[verb].observe(time.perf_counter() - began)
    return Response(content, media_type="application/json")


async def _body(request: Request, most_bytes: int) -> bytes:
    """The whole body, shortened.

    Raises: BadRequest for one that is compressed or larger than `most_bytes`, before it is read.
    """
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise BadRequest("a body with Content-Encoding is not accepted")
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > most_bytes:
        raise BadRequest(f"the body is over {most_bytes} bytes{_TOO_LARGE_HINT}")
    chunks: list[bytes] = []
    received = 0
    async for chunk in request.stream():
        chunks.append(shortened(chunk, received))
        received += len(chunk)
        if received > most_bytes:
            raise BadRequest(f"the body is over {most_bytes} bytes{_TOO_LARGE_HINT}")
    return b"".join(chunks)


def _kind(answer: FilterAnswer) -> str:
    if isinstance(answer, Passed):
        return "passed"
    if isinstance(answer, Pinned):
        return "pinned"
    if isinstance(answer, Possible):
        return "hypothetical"
    return "failed" if isinstance(answer, Failed) else "rejected"
