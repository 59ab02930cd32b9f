"""Makes the ProvisioningRequests by which gangs ask for nodes, and deletes them.

    AskNodes ─▶ GET a pod of each kind ─▶ POST PodTemplates ─▶ POST the request ─▶ PATCH their owner
    EndAsk ───▶ DELETE the request ─▶ DELETE its PodTemplates

What Corral remembers of a pod is slim, so a template is made of the pod as it is now. Until the
request is theirs, the templates end with what makes the pods. What is there already is left as it
is, so doing any of this twice does nothing more. One that fails is not tried again here: the engine
says it again for as long as the watch does not show it. Where the API server forbids one (the
ClusterRole is not bound, or the namespace has a quota for them), none is sent in that namespace for
a while.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

import msgspec
import structlog

from app.dialects.provisioning import keys, making
from app.errors import ApiError, Conflict, Forbidden, NotFound
from app.kube.client.deadline import answered_within
from app.kube.client.queue.refusals import Refusals
from app.kube.client.queue.work_queue import WorkQueue
from app.state.effects import AskedPods, AskNodes, EndAsk

log = structlog.get_logger(__name__)

MOST_QUEUED = 1_024  # requests; the engine asks again for those that are left out
WORKERS = 2  # under way at once
ASK_SECONDS = 20.0  # all writes of one: two for each of 32 kinds of pods
REFUSED_SECONDS = 60.0  # at most without requests in a namespace once one was forbidden there

How = Literal["request", "withdraw"]


class ProvisioningClient(Protocol):
    """What this controller needs of `app.kube.client.writes.Client`."""

    async def read_pod(self, namespace: str, name: str) -> bytes | None: ...

    async def ensure(self, path: str, name: str, body: Mapping[str, object]) -> str: ...

    async def change(
        self, path: str, name: str, uid: str, version: str, patch: Mapping[str, Any]
    ) -> None: ...

    async def delete(self, path: str, name: str, uid: str, version: str) -> None: ...


class ProvisioningController:
    """Serves asks and their ends, namespaces taking turns.

    `on_outcome` gets "request" or "withdraw", and once for each: "written"; "gone", if a pod that a
    template is made of is not there; "absent", if the API server has no such kind; "refused",
    "failed" or "dropped".
    """

    def __init__(
        self,
        client: ProvisioningClient,
        on_outcome: Callable[[How, str], None],
        *,
        ask_seconds: float = ASK_SECONDS,
        refused_seconds: float = REFUSED_SECONDS,
    ) -> None:
        self._client = client
        self._on_outcome = on_outcome
        self._ask_seconds = ask_seconds
        self._refusals = Refusals(refused_seconds)
        self._queue = WorkQueue(
            "provisioning",
            self._serve,
            namespace=_namespace,
            key=lambda effect: (_how(effect), effect.name, _uid(effect)),
            workers=WORKERS,
            most=MOST_QUEUED,
        )

    def take(self, effect: AskNodes | EndAsk) -> None:
        """Queue one."""
        left_out = self._queue.put(effect)
        if left_out is not None:
            self._on_outcome(_how(left_out), "dropped")

    async def run(self) -> None:
        """Serve the queue until cancelled."""
        await self._queue.run()

    async def _serve(self, effect: AskNodes | EndAsk, _tries: int) -> None:
        is_refused = self._refusals.holds(_namespace(effect))
        self._on_outcome(_how(effect), "refused" if is_refused else await self.carried_out(effect))

    async def carried_out(self, effect: AskNodes | EndAsk) -> str:
        """Carry out one now; its outcome."""
        said = {"namespace": _namespace(effect), "request": effect.name}
        try:
            async with answered_within(self._ask_seconds):
                if isinstance(effect, AskNodes):
                    return "written" if await self._ask(effect) else "gone"
                await self._end(effect)
        except Forbidden as error:
            log.warning(_how(effect), problem=repr(error), **said)
            self._refusals.note(_namespace(effect))
            return "refused"
        except NotFound as error:
            log.warning(_how(effect), problem=repr(error), **said)
            return "absent"
        except ApiError as error:
            log.warning(_how(effect), problem=repr(error), **said)
            return "failed"
        except Exception:
            log.exception(_how(effect), **said)
            return "failed"
        return "written"

    async def _ask(self, ask: AskNodes) -> bool:
        """Make it, its templates first; False if a pod they are made of is gone."""
        namespace = ask.gang.namespace
        owners = [
            making.owner_reference(each.api_version, each.kind, each.name, each.uid)
            for each in ask.owners
        ]
        pods = [await self._pod(namespace, each) for each in ask.pod_sets]
        there = [pod for pod in pods if pod is not None]
        if len(there) < len(pods):
            return False
        templates: list[tuple[str, str]] = []
        for index, (asked, pod) in enumerate(zip(ask.pod_sets, there, strict=True)):
            name = keys.template_name(ask.name, index)
            body = making.pod_template(
                name,
                ask.gang_uid,
                pod,
                owners,
                off_nodes=asked.off_nodes,
                off_level=asked.off_level,
                off_domains=asked.off_domains,
            )
            path = _path(keys.TEMPLATE_PATH, namespace)
            templates.append((name, await self._client.ensure(path, name, body)))
        pod_sets = [
            (name, asked.pods) for (name, _), asked in zip(templates, ask.pod_sets, strict=True)
        ]
        body = making.request(ask.name, ask.gang_uid, namespace, ask.class_name, pod_sets, owners)
        uid = await self._client.ensure(_path(keys.PATH, namespace), ask.name, body)
        await self._hand_over(namespace, templates, making.owned_by_request(ask.name, uid))
        return True

    async def _hand_over(
        self, namespace: str, templates: list[tuple[str, str]], change: Mapping[str, Any]
    ) -> None:
        """Have templates end with their request."""
        path = _path(keys.TEMPLATE_PATH, namespace)
        for name, uid in templates:
            await self._client.change(path, name, uid, "", change)

    async def _pod(self, namespace: str, asked: AskedPods) -> dict[str, Any] | None:
        raw = await self._client.read_pod(namespace, asked.name)
        pod: Any = None if raw is None else msgspec.json.decode(raw)
        if not isinstance(pod, dict) or (pod.get("metadata") or {}).get("uid") != asked.uid:
            return None
        return pod

    async def _end(self, end: EndAsk) -> None:
        """Delete it, then its templates; what is gone already, or is another one, is no concern."""
        named = [(keys.PATH, end.name, end.uid)] if end.uid else []
        named += [(keys.TEMPLATE_PATH, name, uid) for name, uid in end.templates]
        for path, name, uid in named:
            try:
                await self._client.delete(_path(path, end.namespace), name, uid, "")
            except (NotFound, Conflict):
                continue


def _how(effect: AskNodes | EndAsk) -> How:
    return "request" if isinstance(effect, AskNodes) else "withdraw"


def _namespace(effect: AskNodes | EndAsk) -> str:
    return effect.gang.namespace if isinstance(effect, AskNodes) else effect.namespace


def _uid(effect: AskNodes | EndAsk) -> object:
    return effect.gang_uid if isinstance(effect, AskNodes) else (effect.uid, effect.templates)


def _path(every: str, namespace: str) -> str:
    """Of all objects of a kind in a namespace."""
    api, _, plural = every.rpartition("/")
    return f"{api}/namespaces/{namespace}/{plural}"
