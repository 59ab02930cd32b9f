"""An API server of a cluster of any size, in a process of its own: its objects are never stored.

    lists     pods and nodes, a page at a time, made from one template each
    watches   from `/churn` on: pods end, others are created in their stead, bound and started;
              each node reports its status every five minutes
    writes    are answered with success, and forgotten

A resourceVersion is the time in microseconds (monotonic) at which the event was due, so that who
reads it knows how late it is: a server that is late itself counts.
"""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from urllib.parse import parse_qs, urlsplit

from tests.cluster import BLOCK, GPU, RACK, Object, node, pod

NODES_PER_RACK, RACKS_PER_BLOCK = 16, 16
MEMBERS = 8  # of each gang that runs; the first pod of as many nodes next to each other
EVENTS_PER_LIFE = 5  # one pod ends, is deleted; another is created, bound, started
HEARTBEAT_SECONDS = 300.0  # between two of one node, whose status has not changed otherwise
STEP_SECONDS = 0.005  # between two looks at what is due
BOOKMARK_SECONDS = 20.0
STRIDE = 7_919  # places from one pod that ends to the next: a prime, so that each has its turn
NOT_FOUND = b'{"kind":"Status","status":"Failure","reason":"NotFound","code":404}'
PODS, NODES = "/api/v1/pods", "/api/v1/nodes"
NONE_OF = ("/apis/batch/v1/jobs", "/api/v1/resourcequotas")  # kinds that every API server has
PREFIX = "kueue.x-k8s.io/"


@dataclass(frozen=True, slots=True)
class Size:
    """How large the cluster is. Each place on a node has one pod; the first ones are members."""

    nodes: int
    pods_per_node: int

    @property
    def pods(self) -> int:
        return self.nodes * self.pods_per_node


def node_name(number: int) -> str:
    """27 characters, as long as those of a cloud."""
    return f"pool-a-{number // NODES_PER_RACK:05}-{number:06}-4f2c"


# -- objects ---------------------------------------------------------------------------------------


def _json(thing: object) -> bytes:
    return json.dumps(thing, separators=(",", ":")).encode()


def _template(thing: Object) -> bytes:
    """The object as JSON with one `%b` for each word between angle brackets, in its order."""
    text = _json(thing).replace(b"%", b"%%")
    for word in ("NAME", "UID", "VERSION", "OWNER", "NODE", "PHASE", "READY", "GROUP"):
        text = text.replace(f"<{word}>".encode(), f"%({word})b".encode())
    return text


def pod_template(*, is_member: bool) -> bytes:
    """A pod of 3 to 4 kB, as the API server has it."""
    resources: dict[str, str | int] = {"cpu": "500m", "memory": "1Gi"}
    said = {PREFIX + "pod-group-name": "<GROUP>", PREFIX + "pod-group-total-count": str(MEMBERS)}
    said[PREFIX + "podset-required-topology"] = RACK
    if is_member:
        resources[GPU] = 1
    thing = pod("<NAME>", requests=resources, annotations=said if is_member else {})
    metadata, spec = thing["metadata"], thing["spec"]
    metadata |= {"uid": "<UID>", "resourceVersion": "<VERSION>", "generateName": "work-7d4b9c-"}
    metadata |= {"creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"app": "work", "v": "1"}}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "work-7d4b9c", "uid": "<OWNER>"}
    metadata["ownerReferences"] = [owner | {"controller": True, "blockOwnerDeletion": True}]
    spec |= {"nodeName": "<NODE>", "schedulerName": "corral", "priority": 0}
    spec["containers"][0]["env"] = [{"name": f"V_{n:02}", "value": "v" * 40} for n in range(30)]
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    conditions = [{"type": each, "status": "<READY>", "lastProbeTime": None} for each in kinds]
    container = {"name": "main", "ready": True, "started": True, "restartCount": 0, "state": {}}
    container |= {"image": "example.invalid/work:1", "imageID": "sha256:" + "0" * 64}
    status = {"phase": "<PHASE>", "conditions": conditions, "containerStatuses": [container]}
    return _template(thing | {"status": status | {"qosClass": "Burstable"}})


def node_template() -> bytes:
    """A node of 5 kB: most of it are the names of images."""
    thing = node("<NAME>", labels={BLOCK: "<GROUP>", RACK: "<OWNER>"}, gpus=8, cpu="64")
    thing["metadata"] |= {"uid": "<UID>", "resourceVersion": "<VERSION>"}
    thing["metadata"]["labels"] |= {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    names = [f"registry.example.invalid/team/{n:02}@sha256:" + "0" * 64 for n in range(30)]
    thing["status"]["images"] = [{"names": [name], "sizeBytes": 10**8} for name in names]
    return _template(thing)


@dataclass(frozen=True, slots=True)
class Objects:
    """Makes the objects of a cluster from its templates."""

    size: Size
    ordinary: bytes = field(default_factory=lambda: pod_template(is_member=False))
    member: bytes = field(default_factory=lambda: pod_template(is_member=True))
    node_: bytes = field(default_factory=node_template)

    def pod(self, number: int, version: int = 1) -> bytes:
        """One that is there from the beginning."""
        on, place = divmod(number, self.size.pods_per_node)
        if place:
            return self.ordinary_pod(number, node_name(on), b"Running", version)
        return self.gang_member(f"g{on // MEMBERS}", on, node_name(on), b"Running", version)

    def ordinary_pod(self, number: int, on: str, phase: bytes, version: int) -> bytes:
        """`on`: its node; "": it has none yet."""
        return self.ordinary % _words(number, f"work-{number:08}", on, phase, version)

    def gang_member(self, gang: str, number: int, on: str, phase: bytes, version: int) -> bytes:
        """A member with one accelerator."""
        words = _words(number, f"{gang}-{number:08}", on, phase, version)
        words[b"GROUP"], words[b"UID"] = gang.encode(), b"member-" + words[b"UID"]
        return self.member % words

    def node(self, number: int, version: int = 1) -> bytes:
        """One of them, with its block and rack."""
        rack = number // NODES_PER_RACK
        words = _words(number, node_name(number), "", b"", version)
        words[b"OWNER"], words[b"GROUP"] = b"r%d" % rack, b"b%d" % (rack // RACKS_PER_BLOCK)
        return self.node_ % words

    def event(self, number: int, version: int) -> bytes:
        """A line of the watch of pods: what happens at this place in the order of all of it."""
        turn, step = divmod(number, EVENTS_PER_LIFE)
        old, on = self._ending(turn)
        new = self.size.pods + turn
        match step:
            case 0:
                return line(b"MODIFIED", self.ordinary_pod(old, on, b"Succeeded", version))
            case 1:
                return line(b"DELETED", self.ordinary_pod(old, on, b"Succeeded", version))
            case 2:
                return line(b"ADDED", self.ordinary_pod(new, "", b"Pending", version))
            case 3:
                return line(b"MODIFIED", self.ordinary_pod(new, on, b"Pending", version))
        return line(b"MODIFIED", self.ordinary_pod(new, on, b"Running", version))

    def _ending(self, turn: int) -> tuple[int, str]:
        """The ordinary pod whose turn it is, and its node."""
        per_node = self.size.pods_per_node - 1
        places = self.size.nodes * per_node
        on, which = divmod(turn * STRIDE % places, per_node)
        # From the second time on it is the one that was made the time before.
        first = on * self.size.pods_per_node + 1 + which
        return (first if turn < places else self.size.pods + turn - places), node_name(on)


def line(kind: bytes, thing: bytes) -> bytes:
    """One line of a watch."""
    return b'{"type":"%b","object":%b}\n' % (kind, thing)


def _words(number: int, name: str, on: str, phase: bytes, version: int) -> dict[bytes, bytes]:
    return {
        b"NAME": name.encode(),
        b"UID": b"8b1f1a60-0000-4000-8000-%012d" % number,
        b"VERSION": b"%d" % version,
        b"OWNER": b"8b1f1a60-0000-4000-9000-%012d" % (number // 50),
        b"NODE": on.encode(),
        b"PHASE": phase,
        b"READY": b"True" if phase == b"Running" else b"False",
        b"GROUP": b"",
    }


# -- what happens ----------------------------------------------------------------------------------


@dataclass(slots=True)
class Churn:
    """What the watches tell. Pods end in an order that goes all over the cluster."""

    objects: Objects
    started_at: float = 0.0
    events_per_second: float = 0.0
    version: int = field(default_factory=lambda: int(time.monotonic() * 1e6))
    _told: int = 0
    _heartbeats: int = 0

    def begin(self, events_per_second: float) -> None:
        """From now on so many events of pods a second; 0: none."""
        self.started_at, self.events_per_second = time.monotonic(), events_per_second
        self._told = self._heartbeats = 0

    def pods(self, now: float) -> Iterator[bytes]:
        """The lines that are due."""
        due = int((now - self.started_at) * self.events_per_second)
        while self._told < due:
            self._told += 1
            yield self._line(self.started_at + self._told / self.events_per_second)

    def nodes(self, now: float) -> Iterator[bytes]:
        """The heartbeats that are due."""
        if not self.events_per_second:
            return
        size = self.objects.size
        due = int((now - self.started_at) * size.nodes / HEARTBEAT_SECONDS)
        while self._heartbeats < due:
            self._heartbeats += 1
            at = self.started_at + self._heartbeats * HEARTBEAT_SECONDS / size.nodes
            version = self.next_version(at)
            yield line(b"MODIFIED", self.objects.node(self._heartbeats % size.nodes, version))

    def next_version(self, at: float) -> int:
        """The time as a version, later than every one before."""
        self.version = max(self.version + 1, int(at * 1e6))
        return self.version

    def gang(self, name: str, pods: int) -> Iterator[bytes]:
        """A new gang, all at once."""
        for number in range(pods):
            version = self.next_version(time.monotonic())
            written = self.objects.gang_member(name, number, "", b"Pending", version)
            total = f'"{PREFIX}pod-group-total-count":"%d"'
            written = written.replace((total % MEMBERS).encode(), (total % pods).encode())
            yield line(b"ADDED", written.replace(b'"uid":"member-', b'"uid":"%b-' % name.encode()))

    def _line(self, at: float) -> bytes:
        return self.objects.event(self._told - 1, self.next_version(at))


# -- over HTTP -------------------------------------------------------------------------------------


@dataclass(slots=True)
class Server:
    """Answers one client of each connection at a time."""

    churn: Churn
    _watches: dict[str, list[asyncio.StreamWriter]] = field(default_factory=dict)

    async def tell(self) -> None:
        """Send what is due, until cancelled."""
        bookmark_at = time.monotonic()
        while True:
            await asyncio.sleep(STEP_SECONDS)
            now = time.monotonic()
            self.send(PODS, b"".join(self.churn.pods(now)))
            self.send(NODES, b"".join(self.churn.nodes(now)))
            if now - bookmark_at > BOOKMARK_SECONDS:
                bookmark_at = now
                for path in self._watches:
                    about = {"metadata": {"resourceVersion": str(self.churn.version)}}
                    self.send(path, line(b"BOOKMARK", _json(about)))

    def send(self, path: str, text: bytes) -> None:
        """Send lines to who watches."""
        for each in self._watches.get(path, ()) if text else ():
            each.write(b"%x\r\n%b\r\n" % (len(text), text))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until it is closed."""
        try:
            async for method, target in _requests(reader):
                if not self._answer(method, target, writer):
                    return
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            writer.close()

    def _answer(self, method: str, target: str, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; False: the connection is a watch from now on."""
        url = urlsplit(target)
        asked = {key: values[0] for key, values in parse_qs(url.query).items()}
        if url.path == "/churn":
            self.churn.begin(float(asked["rate"]))
            writer.write(_whole(b"200 OK", b"{}"))
        elif url.path == "/gang":
            self.send(PODS, b"".join(self.churn.gang(asked["name"], int(asked["pods"]))))
            writer.write(_whole(b"200 OK", b"{}"))
        elif method != "GET":
            writer.write(_whole(b"201 Created", b"{}"))
        elif url.path not in (PODS, NODES, *NONE_OF):
            writer.write(_whole(b"404 Not Found", NOT_FOUND))
        elif "watch" in asked:
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            self._watches.setdefault(url.path, []).append(writer)
            return False
        else:
            after, limit = int(asked.get("continue") or 0), int(asked["limit"])
            writer.write(_whole(b"200 OK", self._page(url.path, after, limit)))
        return True

    def _page(self, path: str, after: int, limit: int) -> bytes:
        objects, size = self.churn.objects, self.churn.objects.size
        there = {PODS: size.pods, NODES: size.nodes}.get(path, 0)
        made = objects.pod if path == PODS else objects.node
        last = min(after + limit, there)
        metadata = {"resourceVersion": str(self.churn.version)}
        if last < there:
            metadata["continue"] = str(last)
        listed = b",".join(made(number) for number in range(after, last))
        return b'{"kind":"List","metadata":%b,"items":[%b]}' % (_json(metadata), listed)


def _whole(status: bytes, body: bytes) -> bytes:
    head = b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return head % (status, len(body)) + body


async def _requests(reader: asyncio.StreamReader) -> AsyncIterator[tuple[str, str]]:
    """Method and target of each request; bodies are read and forgotten."""
    while head := await reader.readuntil(b"\r\n\r\n"):
        method, target, _ = head.partition(b"\r\n")[0].decode().split(" ")
        length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        await reader.readexactly(int(length or 0))
        yield method, target


def serve(size: Size, port: Connection) -> None:
    """Serves until the process is ended; tells its port first."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(size, port))


async def _serve(size: Size, port: Connection) -> None:
    server = Server(Churn(Objects(size)))
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    taken: socket.socket = listening.sockets[0]
    port.send(taken.getsockname()[1])
    await server.tell()
