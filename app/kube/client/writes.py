"""The few writes Corral makes, and one read. No retries: the callers know what a failure means.

Every write names the uid it means, so that a pod recreated under the same name is never touched
on behalf of its predecessor: the API server answers 409 instead.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import quote
from uuid import uuid4

from app.errors import ApiError, Conflict, NotFound, NotLeading
from app.kube.core.node_terms import REQUIRED, node_terms
from app.kube.core.objects import PodRecord
from app.kube.decoding.decode import SCHEDULED, Keep, decode_pod, decode_uid

LONGEST_MESSAGE = 1024  # bytes an Event's message may have
LONGEST_REASON = 128  # characters
COMPONENT = "corral-extender"  # kube-scheduler reports as its profile, which is called corral
JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


class Requests(Protocol):
    """The part of `transport.Transport` used here."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        content_type: str = JSON,
    ) -> bytes: ...


class Subject(Protocol):
    """The object an event is about; `namespace` is empty for nodes and topologies."""

    @property
    def api_version(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def uid(self) -> str: ...


def _keep_all(_key: str) -> bool:
    return True


async def _always() -> bool:
    return True


class Client:
    """Writes to pods and events.

    `keep`: which labels and annotations `get_pod` retains; `keep_label`: which labels, if others.
    `may_write`: asked right before each write is sent; without it every method raises NotLeading.
    """

    def __init__(
        self,
        transport: Requests,
        *,
        keep: Keep = _keep_all,
        keep_label: Keep | None = None,
        may_write: Callable[[], Awaitable[bool]] = _always,
    ) -> None:
        self._transport = transport
        self._keep, self._keep_label = keep, keep_label
        self._may_write = may_write

    async def bind(
        self, namespace: str, name: str, uid: str, node: str, annotations: Mapping[str, str]
    ) -> None:
        """Bind a pod to a node; the annotations land on the pod in the same write.

        Raises: Conflict if the pod is bound already or has another uid, NotFound if it is gone,
            Unreachable if it is unknown (read back before trying again), any other ApiError.
        """
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {
                "namespace": namespace,
                "name": name,
                "uid": uid,
                "annotations": dict(annotations),
            },
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        path = f"{_pod_path(namespace, name)}/binding"
        await self._write("POST", path, binding)

    async def annotate_pod(
        self, namespace: str, name: str, uid: str, annotations: Mapping[str, str | None]
    ) -> None:
        """Set annotations on a pod, or remove those whose value is None; all others stay.

        Raises: Conflict if the pod has another uid, NotFound if it is gone, any other ApiError.
        """
        patch = {"metadata": {"uid": uid, "annotations": dict(annotations)}}
        await self._patch(namespace, name, patch, MERGE)

    async def nominate_pod(
        self,
        namespace: str,
        name: str,
        uid: str,
        node: str | None,
        annotations: Mapping[str, str | None],
    ) -> None:
        """Have kube-scheduler look at this node first for a pod; None: at no node.

        The same write changes annotations; None removes one, and all others stay.

        Raises: Conflict if the pod has another uid, NotFound if it is gone, any other ApiError.
        """
        patch = {
            "metadata": {"uid": uid, "annotations": dict(annotations)},
            "status": {"nominatedNodeName": node},
        }
        await self._send(f"{_pod_path(namespace, name)}/status", patch, MERGE)

    async def ungate_pod(
        self,
        namespace: str,
        name: str,
        uid: str,
        gate: str,
        nodes: Sequence[str] = (),
        selector: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """Take one scheduling gate off a pod and narrow it, in one write; foreign gates stay.

        `nodes` become the pod's required node affinity, one term each: only for a pod that has no
        terms of its own, since the API server replaces them as a whole. `selector` is added to the
        pod's node selector. A gate that is gone already is no error.
        Raises: Conflict if the pod has another uid, NotFound if it is gone, ApiError 422 if the
            API server does not take this change of the pod, Unreachable, any other ApiError.
        """
        spec: dict[str, Any] = {"schedulingGates": [{"$patch": "delete", "name": gate}]}
        if nodes:
            spec["affinity"] = _only_on(tuple(nodes))
        if selector:
            spec["nodeSelector"] = dict(selector)
        metadata: dict[str, Any] = {"uid": uid}
        if annotations:
            metadata["annotations"] = dict(annotations)
        await self._patch(namespace, name, {"metadata": metadata, "spec": spec}, STRATEGIC)

    async def mark_pod(
        self,
        namespace: str,
        name: str,
        uid: str,
        version: str,
        *,
        reason: str,
        message: str,
        at: datetime,
    ) -> None:
        """Say in a pod's condition why it is not scheduled; its other conditions stay.

        `version`: that the pod has to have. `at`: wall clock, with a time zone.
        Raises: Conflict if the pod has another uid or version, NotFound if it is gone, any other
            ApiError.
        """
        condition = {
            "type": SCHEDULED,
            "status": "False",
            "reason": reason,
            "message": _cut(message, LONGEST_MESSAGE),
            "lastTransitionTime": _moment(at),
        }
        metadata = {"uid": uid, "resourceVersion": version}
        patch = {"metadata": metadata, "status": {"conditions": [condition]}}
        await self._send(f"{_pod_path(namespace, name)}/status", patch, STRATEGIC)

    async def evict_pod(
        self, namespace: str, name: str, uid: str, *, is_dry_run: bool = False
    ) -> None:
        """Have the API server delete a pod if its disruption budget allows that.

        `is_dry_run`: it only says whether it would.

        Raises: TooManyRequests if it does not now, Conflict if the pod has another uid, NotFound if
            it is gone, Unreachable if it is unknown, any other ApiError.
        """
        options: dict[str, object] = {"preconditions": {"uid": uid}}
        if is_dry_run:
            options["dryRun"] = ["All"]
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"namespace": namespace, "name": name},
            "deleteOptions": options,
        }
        path = f"{_pod_path(namespace, name)}/eviction"
        await self._write("POST", path, eviction)

    async def delete_pod(self, namespace: str, name: str, uid: str) -> None:
        """Delete a pod, with the grace period of its own.

        Raises: Conflict if the pod has another uid, NotFound if it is gone, Unreachable if that is
            not known, any other ApiError.
        """
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
        await self._write("DELETE", _pod_path(namespace, name), options)

    async def patch_status(
        self, path: str, uid: str, status: Mapping[str, object], version: str = ""
    ) -> None:
        """Merge this into the status of an object; the path is that of its status, or its own.

        `version`: that the object has to have; "": any.
        Raises: Conflict if the object has another uid or version, NotFound if it is gone, any other
            ApiError.
        """
        metadata = {"uid": uid, "resourceVersion": version} if version else {"uid": uid}
        patch = {"metadata": metadata, "status": dict(status)}
        await self._send(path, patch, MERGE)

    async def get_pod(self, namespace: str, name: str) -> PodRecord | None:
        """Return a pod as it is now, None if there is none of that name.

        Raises: ApiError; DecodeError.
        """
        try:
            raw = await self._transport.request("GET", _pod_path(namespace, name))
        except NotFound:
            return None
        return decode_pod(raw, self._keep, self._keep_label)

    async def exists(self, path: str, name: str) -> bool:
        """Whether there is an object of that name. `path`: of all objects of its kind.

        Raises: ApiError.
        """
        try:
            await self._transport.request("GET", f"{path}/{quote(name, safe='')}")
        except NotFound:
            return False
        return True

    async def create(self, path: str, body: Mapping[str, object]) -> None:
        """Make an object.

        Raises: Conflict if there is one of that name, NotFound if its kind is not served, any
            other ApiError.
        """
        await self._write("POST", path, dict(body))

    async def ensure(self, path: str, name: str, body: Mapping[str, object]) -> str:
        """Make an object unless there is one of that name; the uid of the one that is there now.

        Raises: NotFound if its kind is not served, any other ApiError.
        """
        if not await self._may_write():
            raise NotLeading
        try:
            made = await self._transport.request("POST", path, body=dict(body))
        except Conflict:
            made = await self._transport.request("GET", f"{path}/{_segment(name)}")
        return decode_uid(made)

    async def read_pod(self, namespace: str, name: str) -> bytes | None:
        """Return a pod as it is now, its whole JSON; None if there is none of that name.

        Raises: ApiError.
        """
        try:
            return await self._transport.request("GET", _pod_path(namespace, name))
        except NotFound:
            return None

    async def change(
        self, path: str, name: str, uid: str, version: str, patch: Mapping[str, Any]
    ) -> None:
        """Merge this into an object. `path`: of all objects of its kind. `version` "": any.

        Raises: Conflict if the object has another uid or version, NotFound if it is gone, any other
            ApiError.
        """
        known = {"uid": uid, "resourceVersion": version} if version else {"uid": uid}
        whole = {**patch, "metadata": {**patch.get("metadata", {}), **known}}
        await self._send(f"{path}/{_segment(name)}", whole, MERGE)

    async def delete(self, path: str, name: str, uid: str, version: str) -> None:
        """Delete an object. `path`: of all objects of its kind. `version` "": any.

        Raises: Conflict if the object has another uid or version, NotFound if it is gone, any other
            ApiError.
        """
        known = {"uid": uid, "resourceVersion": version} if version else {"uid": uid}
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": known}
        await self._write("DELETE", f"{path}/{_segment(name)}", options)

    async def record_event(
        self, about: Subject, reason: str, message: str, *, is_warning: bool, at: datetime
    ) -> None:
        """Write one Event about an object. `at`: wall clock, with a time zone; shown, never read.

        Raises: ApiError.
        """
        namespace = about.namespace or "default"  # where events about nodes belong
        moment = _moment(at)
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"namespace": namespace, "name": _event_name(about.name)},
            "involvedObject": {
                "apiVersion": about.api_version,
                "kind": about.kind,
                "namespace": about.namespace,
                "name": about.name,
                "uid": about.uid,
            },
            "reason": reason[:LONGEST_REASON],
            "message": _cut(message, LONGEST_MESSAGE),
            "type": "Warning" if is_warning else "Normal",
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
        }
        path = f"/api/v1/namespaces/{_segment(namespace)}/events"
        await self._write("POST", path, event)

    async def _patch(self, namespace: str, name: str, patch: object, content_type: str) -> None:
        """PATCH a pod; the patch names the uid."""
        await self._send(_pod_path(namespace, name), patch, content_type)

    async def _send(self, path: str, patch: object, content_type: str) -> None:
        """PATCH an object; the patch names the uid."""
        try:
            await self._write("PATCH", path, patch, content_type)
        except ApiError as error:
            # A patch that names another uid is a change of an immutable field to the API server.
            if error.status == HTTPStatus.UNPROCESSABLE_ENTITY and "metadata.uid" in error.message:
                raise Conflict(error.status, error.reason, error.message) from error
            raise

    async def _write(self, method: str, path: str, body: object, content_type: str = JSON) -> None:
        if not await self._may_write():
            raise NotLeading
        await self._transport.request(method, path, body=body, content_type=content_type)


def _only_on(nodes: tuple[str, ...]) -> object:
    """`spec.affinity` that allows these nodes."""
    return {"nodeAffinity": {REQUIRED: node_terms(nodes)}}


def _pod_path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{_segment(namespace)}/pods/{_segment(name)}"


def _segment(name: str) -> str:
    # Names reach us in requests of others: "../secrets" must stay one segment of the path.
    if name in ("", ".", ".."):
        raise NotFound(404, "NotFound", f"nothing can be called {name!r}")
    return quote(name, safe="", errors="replace")


def _event_name(name: str) -> str:
    # Object names may have 253 characters, and none may end in a dot or dash before ours.
    return f"{name[:200].rstrip('.-')}.{uuid4().hex[:16]}"


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _cut(text: str, longest: int) -> str:
    return text.encode("utf-8", "replace")[:longest].decode(errors="ignore")
