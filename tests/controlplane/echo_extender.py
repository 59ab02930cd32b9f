"""The least an extender can be: it agrees, binds, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.cluster import Cluster


@dataclass
class EchoExtender:
    """`asked` holds (path, headers, body) of every request, in order of arrival."""

    cluster: Cluster
    url: str = ""
    asked: list[tuple[str, dict[str, str], dict[str, Any]]] = field(default_factory=list)

    def verbs(self) -> list[str]:
        return [path for path, _, _ in self.asked]

    def body(self, path: str) -> dict[str, Any]:
        """The body of the first request to that path."""
        return next(body for asked, _, body in self.asked if asked == path)

    def answer(self, path: str, body: dict[str, Any]) -> object:
        match path:
            case "/filter":
                return {"NodeNames": body["NodeNames"]}
            case "/prioritize":
                return [{"Host": name, "Score": 0} for name in body["NodeNames"]]
            case "/preempt":
                return {"NodeNameToMetaVictims": body["NodeNameToMetaVictims"]}
            case _:
                namespace, uid = body["PodNamespace"], body["PodUID"]
                self.cluster.bind(body["PodName"], body["Node"], uid=uid, namespace=namespace)
                return {"Error": ""}


@contextmanager
def echo_extender(cluster: Cluster) -> Iterator[EchoExtender]:
    """An extender on a free loopback port while the block lasts; binds as that cluster's user."""
    extender = EchoExtender(cluster)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 10  # seconds an idle connection may keep its thread

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            extender.asked.append((self.path, dict(self.headers), body))
            content = json.dumps(extender.answer(self.path, body)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Nothing: what was asked is in `asked`."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    extender.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield extender
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
