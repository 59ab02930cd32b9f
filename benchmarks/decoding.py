"""How long the largest objects a tenant can store take to be read, each in the dearest form found.

    python -m benchmarks.decoding [--json] [--only TEXT] [--repeat 5]

CPU is what all of the reading takes, `longest` its longest stretch without a turn of the event
loop (`app/kube/core/turns.py`), both in CPU time of the thread: so others on the machine do not
count. What is no larger than `aside.LARGE_BYTES` is read on the loop, where a turn is none.
HyperNodes, Topologies and ResourceQuotas are written by administrators alone.

The objects are those of `benchmarks/largest`. The baseline is msgspec skipping the same bytes. What
JSON blows up is shortened as it comes in: a chunk of it is a step of its own.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import msgspec

from app.admission.review import request_of
from app.admission.routes import MOST_CHANGED_BYTES, MOST_CHECKED_BYTES, Desk, mutated, validated
from app.admission.scope import Scope
from app.dialects import corral
from app.dialects.registry import DIALECTS
from app.errors import DecodeError
from app.extender import models
from app.kube.client.transport import READ_BYTES
from app.kube.core import aside
from app.kube.core.turns import give_way
from app.kube.decoding.decode import decode_node, decode_pod
from app.kube.decoding.large.escapes import LONG, shortened
from app.kube.decoding.large.parts import LARGE
from app.metrics import Metrics
from app.settings import EngineOptions, Settings
from app.state.gang.members.succeeded import SucceededPods
from benchmarks.largest.pods import ESCAPES, KUEUE, annotations, nodes, pods
from benchmarks.largest.workloads import workloads
from benchmarks.largest.written import STORED, as_many, written
from benchmarks.table import show

GROUP = {f"{KUEUE}pod-group-name": "g", f"{KUEUE}pod-group-total-count": "2"}
EVERY = DIALECTS.configured(EngineOptions(native_pod_groups="on", provisioning_class="a"))
DECODERS = {each.kind: each.decode for each in EVERY.resources()}
OF_ADMINISTRATORS = (
    "HyperNode",
    "ResourceQuota",
    "Topology",
    "Topology.kai.scheduler",
    "ClusterTopology",
    "ClusterTopologyBinding",
    "Queue.scheduling.volcano.sh",
    "node",
)


class _Nothing(msgspec.Struct):
    """Every field is skipped."""


_SKIP = msgspec.json.Decoder(_Nothing)


@dataclass(frozen=True, slots=True)
class Case:
    """One input of one reader. `raw` is what is sent."""

    reader: str
    name: str
    raw: bytes
    read: Callable[[bytes], object]

    def received(self) -> bytes:
        """What the reader is given of it."""
        return b"".join(shortened(chunk, before) for before, chunk in chunks(self.raw))


def chunks(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """As they come in, each after so many bytes."""
    for at in range(0, len(raw), READ_BYTES):
        yield at, raw[at : at + READ_BYTES]


def claimed(raw: bytes) -> object:
    pod = decode_pod(raw, DIALECTS.keeps)
    corral.own_shape(pod)
    corral.pod_sets_from_text(pod.annotations.get(corral.POD_SETS, ""))
    notes = SucceededPods()
    notes.learn(pod.annotations.get(corral.SUCCEEDED, ""))
    notes.settle()
    return DIALECTS.claim(pod)


def reviewed(kind: str, raw: bytes) -> bytes:
    groups = {"Job": "batch", "JobSet": "jobset.x-k8s.io", "StatefulSet": "apps"}
    name, _, group = kind.partition(".")
    of_kind = {"group": group or groups.get(name, ""), "kind": name}
    asked = {"uid": "u", "kind": of_kind, "namespace": "b"}
    request = {**asked, "operation": "CREATE", "object": msgspec.Raw(raw)}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return msgspec.json.encode(review)


def webhook(answer: Callable[[Desk, Any], bytes]) -> Callable[[bytes], object]:
    """One of the webhook's answers, from body to body."""
    desk = Desk(Scope(""), DIALECTS, Metrics(), 4 * STORED)
    return lambda body: answer(desk, request_of(body))


def preempting() -> bytes:
    victims = {f"n{at}": {"Pods": [{"UID": "u"}]} for at in range(5_000)}
    return written({"Pod": None, "NodeNameToMetaVictims": victims})


def cases() -> Iterator[Case]:
    """Every reader of what a tenant can store."""
    for name, escape in ESCAPES.items():
        one = b'{"a":"%b"}' % (escape * (READ_BYTES // len(escape)))
        yield Case("chunk", f"escaped {name}", one, partial(shortened, before=LONG))
    read_pod = partial(decode_pod, keep=DIALECTS.keeps)
    for room in (LARGE * 3 // 4, STORED):
        for name, raw in pods(room):
            yield Case("pod", name, raw, read_pod)
    for name, raw in annotations():
        yield Case("annotations", name, raw, claimed)
    for kind, name, raw in workloads():
        yield Case(kind, name, raw, DECODERS[kind])
    for name, raw in nodes():
        yield Case("node", name, raw, decode_node)
    limits = Settings.model_fields
    mutate, validate = webhook(mutated), webhook(validated)
    # What is just not too large to be looked at.
    most_checked, most_changed = MOST_CHECKED_BYTES * 3 // 4, MOST_CHANGED_BYTES * 3 // 4
    for room in (most_checked, most_changed, STORED):
        for name, raw in pods(room):
            content = json.loads(raw)
            content["metadata"].setdefault("annotations", GROUP)
            body = reviewed("Pod", written(content))
            if len(body) > limits["admission_body_bytes"].default:
                continue
            if room != most_checked:
                yield Case("/mutate", name, body, mutate)
            if room != most_changed:
                yield Case("/validate", name, body, validate)
    for kind, name, raw in workloads():
        yield Case("/validate", f"{kind}, {name}", reviewed(kind, raw), validate)
    names = written(as_many(lambda at: f"node-{at}", STORED)[:5_000])
    for name, raw in pods(STORED * 7 // 8):  # as JSON may blow up within filter_body_bytes
        body = b'{"Pod":%b,"Nodes":null,"NodeNames":%b}' % (raw, names)
        read = partial(models.pod_and_nodes, keep=DIALECTS.keeps, full_nodes=True)
        yield Case("/filter", name, body, read)
    yield Case(
        "/preempt", "5,000 nodes", preempting(), partial(models.preemption, keep=DIALECTS.keeps)
    )


@dataclass(frozen=True, slots=True)
class Reading:
    """One row: the reading of one object. Times are milliseconds of CPU, the least of several."""

    case: str
    bytes: int
    cpu: float
    longest: float
    """Without a turn of the event loop."""
    turns: int
    skipped: float
    """The decoder alone, reading nothing of the same bytes."""
    by: str
    """Who may store such an object."""


def read_once(read: Callable[[bytes], object], raw: bytes) -> tuple[float, float, int]:
    """All of the time, its longest stretch, and turns; what is refused has been read too."""
    ends = [time.thread_time()]
    token = give_way.set(lambda: ends.append(time.thread_time()))
    try:
        with suppress(DecodeError, models.BadRequest):
            read(raw)
    finally:
        give_way.reset(token)
    ends.append(time.thread_time())
    whole = ends[-1] - ends[0]
    is_beside = len(raw) > aside.LARGE_BYTES
    longest = max(end - begin for begin, end in pairwise(ends)) if is_beside else whole
    return whole * 1_000, longest * 1_000, len(ends) - 2


def measure(only: str, repeat: int) -> Iterator[Reading]:
    for case in cases():
        name = f"{case.reader}: {case.name}"
        if only in name:
            raw = case.received()
            cpu, longest, turns = zip(
                *(read_once(case.read, raw) for _ in range(repeat)), strict=True
            )
            plain = min(read_once(_SKIP.decode, raw)[0] for _ in range(repeat))
            by = "administrators" if case.reader in OF_ADMINISTRATORS else "tenants"
            yield Reading(name, len(case.raw), min(cpu), min(longest), turns[0], plain, by)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    parser.add_argument("--only", default="", help="rows with this text")
    parser.add_argument("--repeat", type=int, default=5)
    asked = parser.parse_args()
    show(list(measure(asked.only, asked.repeat)), as_json=asked.json)


if __name__ == "__main__":
    main()
