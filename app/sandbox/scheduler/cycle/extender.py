"""Calls to an extender, byte for byte as kube-scheduler makes them.

POST {urlPrefix}/{verb}, application/json, Go's field order, the unused node field a literal null.
Only 200 is success; on any other code the body is not read. One timeout covers the exchange.
Source: pkg/scheduler/extender.go, kube-scheduler extender/v1/types.go.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson

from app.sandbox.apiserver.storage.store import Stored
from app.sandbox.scheduler.facts.pod_facts import PodFacts
from app.sandbox.scheduler.facts.scheduler_config import ExtenderConfig

_IDLE_SECONDS = 90.0  # Go keeps an idle connection this long


class ExtenderError(Exception):
    """The exchange failed, or the extender said so in its Error field."""


@dataclass(frozen=True, slots=True)
class FilterResult:
    """nodes: None if neither NodeNames nor Nodes was there, which leaves no node."""

    nodes: list[str]
    failed: Mapping[str, str]
    unresolvable: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class NodeVictims:
    """Who would be evicted from one node, the most important first."""

    pods: tuple[PodFacts, ...]
    pdb_violations: int


class Extender:
    """One configured extender; open until `close`."""

    def __init__(self, config: ExtenderConfig) -> None:
        self.config = config
        self._tls = config.tls_context()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_SECONDS),
            timeout=aiohttp.ClientTimeout(total=config.http_timeout),
        )

    async def close(self) -> None:
        await self._session.close()

    def is_interested(self, facts: PodFacts) -> bool:
        """Whether the pod requests a managed resource; without managed resources, every pod."""
        managed = self.config.managed_resources
        if not managed:
            return True
        spec = facts.body["spec"]
        containers = [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]
        resources = [container.get("resources") or {} for container in containers]
        return any(
            name in managed
            for each in resources
            for part in ("requests", "limits")
            for name in each.get(part) or {}
        )

    async def filter(self, facts: PodFacts, nodes: Sequence[Stored]) -> FilterResult:
        """Raises: ExtenderError; also for a name that was not sent."""
        known = [node.body["metadata"]["name"] for node in nodes]
        if not self.config.filter_verb:
            return FilterResult(known, {}, {})
        answer = await self._send(self.config.filter_verb, self._args(facts, nodes, known))
        answer = _object(answer)
        if error := _text(answer, "Error"):
            raise ExtenderError(error)
        names = _field(answer, "NodeNames")
        listed = _field(answer, "Nodes")
        if self.config.node_cache_capable and names is not None:
            sent = frozenset(known)
            for name in _list(names, "NodeNames"):
                if name not in sent:
                    raise ExtenderError(
                        f'extender "{self.config.url}" claims a filtered node "{name}" which is'
                        " not found in the input node list"
                    )
        elif listed is not None:
            items = _list(_field(_object(listed), "items") or [], "Nodes.items")
            names = [_text(_object(_object(item).get("metadata")), "name") for item in items]
        return FilterResult(
            list(names or []),
            _reasons(answer, "FailedNodes"),
            _reasons(answer, "FailedAndUnresolvableNodes"),
        )

    async def prioritize(self, facts: PodFacts, nodes: Sequence[Stored]) -> dict[str, int]:
        """Host -> score * weight * 10; hosts named twice add up. Raises: ExtenderError."""
        if not self.config.prioritize_verb:
            return {}
        known = [node.body["metadata"]["name"] for node in nodes]
        answer = await self._send(self.config.prioritize_verb, self._args(facts, nodes, known))
        scores: dict[str, int] = {}
        for each in _list(answer or [], "HostPriorityList"):
            entry = _object(each)
            score = _field(entry, "Score") or 0
            if not isinstance(score, int) or isinstance(score, bool):
                raise ExtenderError(f"json: cannot unmarshal {score!r} into a score of type int64")
            host = _text(entry, "Host")
            scores[host] = scores.get(host, 0) + score * self.config.weight * 10
        return scores

    async def bind(self, facts: PodFacts, node: str) -> None:
        """Raises: ExtenderError."""
        namespace, name = facts.key
        body = orjson.dumps(
            {"PodName": name, "PodNamespace": namespace, "PodUID": facts.uid, "Node": node}
        )
        answer = _object(await self._send(self.config.bind_verb, body))
        if error := _text(answer, "Error"):
            raise ExtenderError(error)

    async def preempt(
        self, facts: PodFacts, victims: Mapping[str, NodeVictims]
    ) -> dict[str, tuple[list[str], int]]:
        """Node -> uids of the victims the extender settles for, and budgets violated as it says.

        Raises: ExtenderError.
        """
        full: object = None
        meta: object = None
        if self.config.node_cache_capable:
            meta = {
                node: {
                    "Pods": [{"UID": pod.uid} for pod in each.pods],
                    "NumPDBViolations": each.pdb_violations,
                }
                for node, each in victims.items()
            }
        else:
            full = {
                node: {
                    "Pods": [pod.body for pod in each.pods],
                    "NumPDBViolations": each.pdb_violations,
                }
                for node, each in victims.items()
            }
        body = b'{"Pod":%b,"NodeNameToVictims":%b,"NodeNameToMetaVictims":%b}' % (
            facts.stored.raw,
            orjson.dumps(full),
            orjson.dumps(meta),
        )
        answer = _object(await self._send(self.config.preempt_verb, body))
        chosen = _object(_field(answer, "NodeNameToMetaVictims") or {})
        return {
            node: (
                [_text(_object(pod), "UID") for pod in _field(_object(each), "Pods") or []],
                _number(_field(_object(each), "NumPDBViolations") or 0),
            )
            for node, each in chosen.items()
        }

    def _args(self, facts: PodFacts, nodes: Sequence[Stored], names: list[str]) -> bytes:
        """ExtenderArgs. The pod carries neither kind nor managedFields, as from an informer."""
        if self.config.node_cache_capable:
            return b'{"Pod":%b,"Nodes":null,"NodeNames":%b}' % (
                facts.stored.raw,
                orjson.dumps(names),
            )
        items = b",".join(node.raw for node in nodes)
        return b'{"Pod":%b,"Nodes":{"metadata":{},"items":[%b]},"NodeNames":null}' % (
            facts.stored.raw,
            items,
        )

    async def _send(self, verb: str, body: bytes) -> Any:
        url = f"{self.config.url.rstrip('/')}/{verb}"
        options: dict[str, Any] = {}
        if self._tls is not None:
            options = {"ssl": self._tls, "server_hostname": self.config.tls.get("serverName")}
        headers = {"Content-Type": "application/json", "User-Agent": "Go-http-client/1.1"}
        try:
            async with self._session.post(url, data=body, headers=headers, **options) as answer:
                if answer.status != 200:
                    raise ExtenderError(
                        f"failed {verb} with extender at URL {url}, code {answer.status}"
                    )
                raw = await answer.read()
        except TimeoutError as error:
            why = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
            raise ExtenderError(f'Post "{url}": {why}') from error
        except aiohttp.ClientError as error:
            raise ExtenderError(f'Post "{url}": {error}') from error
        return _first_value(raw)


def _first_value(raw: bytes) -> Any:
    """The first JSON value of a body; what follows it is not read."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        text = raw.decode("utf-8", "replace").lstrip()
    if not text:
        raise ExtenderError("EOF")
    try:
        return json.JSONDecoder().raw_decode(text)[0]
    except json.JSONDecodeError as error:
        raise ExtenderError(f"invalid JSON in the answer: {error}") from error


def _field(body: Mapping[str, Any], name: str) -> Any:
    """The field as Go's decoder finds it: by exact name, else ignoring case."""
    if name in body:
        return body[name]
    return next((value for key, value in body.items() if key.lower() == name.lower()), None)


def _object(value: Any) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ExtenderError(f"json: cannot unmarshal {type(value).__name__} into an object")
    return value


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise ExtenderError(f"json: cannot unmarshal {type(value).__name__} into {name}")
    return value


def _text(body: Mapping[str, Any], name: str) -> str:
    value = _field(body, name)
    if value is not None and not isinstance(value, str):
        raise ExtenderError(f"json: cannot unmarshal {type(value).__name__} into {name}: string")
    return value or ""


def _number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ExtenderError(f"json: cannot unmarshal {type(value).__name__} into an integer")
    return value


def _reasons(answer: Mapping[str, Any], name: str) -> Mapping[str, str]:
    return {node: str(reason) for node, reason in _object(_field(answer, name)).items()}
