"""The HTTP surface: one route, the path decides.

    request ─▶ token ─▶ address + verb ─▶ faults ─▶ registry / listing / watching ─▶ answer

Every refusal is a Status body. A fault may delay a request, refuse it, or carry it out and drop
the connection instead of answering.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from typing import Any

import orjson
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.sandbox.apiserver.http.addresses import Address, Addresses, verb_of
from app.sandbox.apiserver.http.discovery import VERSION, Discovery
from app.sandbox.apiserver.http.event_versions import EVENTS_V1, core_from_v1, v1_from_core
from app.sandbox.apiserver.http.faults import Faults
from app.sandbox.apiserver.http.listing import ListRequest, list_body, page_of
from app.sandbox.apiserver.http.watching import LONGEST, Watch, WatchRequest
from app.sandbox.apiserver.http.writing import Writer
from app.sandbox.apiserver.rules import custom_resources
from app.sandbox.apiserver.rules.pod_actions import bind, evict
from app.sandbox.apiserver.rules.registry import Registry, Write
from app.sandbox.apiserver.storage import failures
from app.sandbox.apiserver.storage.failures import Refused
from app.sandbox.apiserver.storage.kinds import DEFINITION, EVENT, POD, Object
from app.sandbox.apiserver.storage.selectors import Predicate, predicate
from app.sandbox.apiserver.storage.store import Change, Stored

_PUBLIC = frozenset({"/version", "/readyz", "/livez", "/healthz"})
_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
_OPTIONS = {
    "create": "CreateOptions",
    "update": "UpdateOptions",
    "patch": "PatchOptions",
    "delete": "DeleteOptions",
    "deletecollection": "DeleteOptions",
}
_SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
Abort = Callable[[Any], None]  # closes the connection of this client address


class Api:
    """Serves one registry. `app` is the ASGI application; with an empty token none is needed."""

    def __init__(
        self, registry: Registry, writer: Writer, faults: Faults, *, token: str, abort: Abort
    ) -> None:
        self._registry = registry
        self._writer = writer
        self._faults = faults
        self._token = token
        self._abort = abort
        self._addresses = Addresses(registry.kinds)
        self._discovery = Discovery(registry.kinds)
        registry.store.subscribe(DEFINITION, self._on_definition)
        self.app = FastAPI(openapi_url=None, redirect_slashes=False)
        self.app.add_route("/{path:path}", self._serve, methods=_METHODS)

    def _on_definition(self, change: Change) -> None:
        """Serve the kinds there are now, and end the watches of a kind that is gone."""
        self._addresses = Addresses(self._registry.kinds)
        self._discovery = Discovery(self._registry.kinds)
        if change.type == "DELETED":
            homes = {kind.home for kind in custom_resources.kinds_of(change.now.body)}
            self._faults.cut_watches_of(homes)

    async def _serve(self, request: Request) -> Response:
        try:
            path = request.url.path
            if path in _PUBLIC:
                return _json(VERSION) if path == "/version" else Response("ok")
            sent = request.headers.get("authorization")
            if self._token and sent != f"Bearer {self._token}":
                raise Refused(failures.UNAUTHORIZED, "Unauthorized", "Unauthorized")
            if (document := self._discovery.find(path)) is not None:
                return _json(document)
            return await self._serve_address(request, self._addresses.find(path))
        except Refused as refusal:
            return _refusal(refusal)

    async def _serve_address(self, request: Request, address: Address) -> Response:
        is_watch = request.query_params.get("watch") in ("1", "true")
        verb = verb_of(request.method, address, is_watch=is_watch)
        if not verb:
            text = "the server does not allow this method on the requested resource"
            raise Refused(405, "MethodNotAllowed", text)
        verdict = self._faults.judge(verb, address.resource)
        if verdict.seconds:
            await asyncio.sleep(verdict.seconds)
        if verdict.refusal is not None:
            if verdict.drops_answer:
                return _Dropped(self._abort)
            if verb == "watch" and verdict.refusal.code == failures.GONE:
                return self._watch(request, address, refusal=verdict.refusal)
            raise verdict.refusal
        if verb == "watch":
            return self._watch(request, address)
        if verb == "list":
            return self._list(request, address)
        answer = await self._write_or_get(verb, address, request, await _body_of(request))
        return _Dropped(self._abort) if verdict.drops_answer else answer

    async def _write_or_get(
        self, verb: str, address: Address, request: Request, body: Any
    ) -> Response:
        if verb == "get":
            return _one(address, self._registry.read(address.kind, address.key))
        is_dry_run = _is_dry_run(verb, request, address)
        if verb == "delete":
            return self._delete(address, _delete_options(request, body), is_dry_run=is_dry_run)
        if verb == "deletecollection":
            return self._delete_all(request, address, _delete_options(request, body))
        if verb == "patch":
            content_type = request.headers.get("content-type", "").partition(";")[0].strip()
            plan = partial(self._registry.patching, change=body, content_type=content_type)
            return await self._update(address, plan, is_dry_run=is_dry_run)
        if not isinstance(body, dict):
            raise failures.bad_request("the body of the request is not a JSON object")
        if address.is_events_v1:
            body = core_from_v1(body) | {"apiVersion": EVENT.api_version}
        if verb == "create" and address.name:
            return self._subresource(address, body)
        kind, key = address.kind, address.key
        creates = kind.may_create_by_put and self._registry.store.get(kind, key) is None
        if verb == "create" or creates:
            created = self._writer.create(kind, address.namespace, body, is_dry_run=is_dry_run)
            return _one(address, await created, code=201)
        plan = partial(self._registry.replacement, body=body)
        return await self._update(address, plan, is_dry_run=is_dry_run)

    async def _update(
        self, address: Address, plan: Callable[..., Write], *, is_dry_run: bool
    ) -> Response:
        of_this = partial(plan, address.kind, address.key, subresource=address.subresource)
        return _one(address, await self._writer.update(of_this, is_dry_run=is_dry_run))

    def _subresource(self, address: Address, body: Object) -> Response:
        if address.subresource == "binding":
            bind(self._registry, address.namespace, address.name, body)
        else:
            evict(self._registry, address.key, body)
        return _json(_SUCCESS | {"code": 201}, code=201)

    def _delete(self, address: Address, options: Object, *, is_dry_run: bool) -> Response:
        last = self._registry.delete(
            address.kind,
            address.key,
            options.get("preconditions"),
            grace=options.get("gracePeriodSeconds"),
            is_dry_run=is_dry_run,
        )
        if address.kind in (POD, DEFINITION) or last.body["metadata"].get("deletionTimestamp"):
            return _one(address, last)
        details = {
            "name": address.name,
            "group": address.kind.group,
            "kind": address.kind.plural,
            "uid": last.body["metadata"]["uid"],
        }
        return _json(_SUCCESS | {"details": details})

    def _delete_all(self, request: Request, address: Address, options: Object) -> Response:
        page = page_of(self._registry.store, self._list_request(request, address))
        for stored in page.items:
            metadata = stored.body["metadata"]
            key = metadata.get("namespace", ""), metadata["name"]
            self._registry.delete(address.kind, key, grace=options.get("gracePeriodSeconds"))
        return Response(list_body(address.kind, page), media_type="application/json")

    def _list(self, request: Request, address: Address) -> Response:
        page = page_of(self._registry.store, self._list_request(request, address))
        if address.is_events_v1:
            items = [Stored(v1_from_core(stored.body), stored.version) for stored in page.items]
            page = type(page)(items, page.version, page.token, page.remaining)
            return Response(list_body(EVENTS_V1, page), media_type="application/json")
        return Response(list_body(address.kind, page), media_type="application/json")

    def _list_request(self, request: Request, address: Address) -> ListRequest:
        query = request.query_params
        limit = query.get("limit") or "0"
        if not limit.isdigit():
            raise failures.bad_request(f"invalid limit: {limit!r}")
        return ListRequest(
            kind=address.kind,
            namespace=address.namespace,
            matches=_matches(request, address),
            limit=int(limit),
            token=query.get("continue", ""),
            version=query.get("resourceVersion", ""),
            version_match=query.get("resourceVersionMatch", ""),
        )

    def _watch(
        self, request: Request, address: Address, *, refusal: Refused | None = None
    ) -> Response:
        query = request.query_params
        version = query.get("resourceVersion", "")
        if version and not version.isdigit():
            raise failures.bad_request(f"invalid resourceVersion: {version!r}")
        wants_initial = query.get("sendInitialEvents") == "true"
        seconds = query.get("timeoutSeconds", "")
        from_now = wants_initial or version in ("", "0")
        watch_request = WatchRequest(
            kind=address.kind,
            namespace=address.namespace,
            matches=_matches(request, address),
            version=None if from_now else int(version),
            wants_bookmarks=query.get("allowWatchBookmarks") in ("1", "true"),
            wants_initial_end=wants_initial,
            seconds=float(seconds) if seconds.isdigit() and seconds != "0" else LONGEST,
        )
        watch = Watch(self._registry.store, watch_request, refusal=refusal)
        return _WatchResponse(watch, self._faults)


class _WatchResponse(Response):
    """The chunked answer of a watch; ends with the watch or with the client."""

    def __init__(self, watch: Watch, faults: Faults) -> None:
        super().__init__(media_type="application/json")
        self._watch = watch
        self._faults = faults

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-cache")]
        leaving = asyncio.create_task(self._cut_when_the_client_leaves(receive))
        self._faults.opened(self._watch)
        try:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b"", "more_body": True})
            async with aclosing(self._watch.lines()) as lines:
                async for chunk in lines:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
            if not self._watch.is_torn:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._faults.closed(self._watch)
            leaving.cancel()

    async def _cut_when_the_client_leaves(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._watch.cut()


class _Dropped(Response):
    """No answer: the connection is closed once the request is carried out."""

    def __init__(self, abort: Abort) -> None:
        super().__init__()
        self._abort = abort

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._abort(scope["client"])
        while (await receive())["type"] != "http.disconnect":
            pass


def _is_dry_run(verb: str, request: Request, address: Address) -> bool:
    """Whether the request must store nothing.

    Raises: Refused: 422 for another word than All; 400 for bindings, evictions and collections.
    """
    asked = request.query_params.getlist("dryRun")
    if any(each != "All" for each in asked):
        why = f'Unsupported value: {orjson.dumps(asked).decode()}: supported values: "All"'
        raise failures.invalid_options(_OPTIONS[verb], "dryRun", why)
    if asked and (verb == "deletecollection" or address.subresource in address.kind.actions):
        raise failures.bad_request("the sandbox has no dry run of this")
    return bool(asked)


def _delete_options(request: Request, body: Any) -> Object:
    """The options in the body of a deletion, else those in its query. Raises: Refused (400)."""
    if isinstance(body, dict):
        return body
    seconds = request.query_params.get("gracePeriodSeconds")
    if seconds is None:
        return {}
    if not seconds.removeprefix("-").isdigit():
        raise failures.bad_request(f"invalid gracePeriodSeconds: {seconds!r}")
    return {"gracePeriodSeconds": int(seconds)}


async def _body_of(request: Request) -> Any:
    raw = await request.body()
    if not raw:
        return None
    if "protobuf" in request.headers.get("content-type", ""):
        raise Refused(415, "UnsupportedMediaType", "the sandbox reads JSON only")
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise failures.bad_request(f"couldn't decode the body: {error}") from error


def _matches(request: Request, address: Address) -> Predicate | None:
    """What the selectors of a list or a watch ask for."""
    query = request.query_params
    return predicate(address.kind, query.get("labelSelector", ""), query.get("fieldSelector", ""))


def _json(body: Object, *, code: int = 200) -> Response:
    return Response(orjson.dumps(body), status_code=code, media_type="application/json")


def _one(address: Address, stored: Stored, *, code: int = 200) -> Response:
    if address.is_events_v1:
        raw = Stored(v1_from_core(stored.body), stored.version).raw_typed(EVENTS_V1)
    else:
        raw = stored.raw_typed(address.kind)
    return Response(raw, status_code=code, media_type="application/json")


def _refusal(refusal: Refused) -> Response:
    if not refusal.reason and refusal.code == failures.NOT_FOUND:
        return Response(refusal.message, status_code=404, media_type="text/plain")
    headers = {"Retry-After": str(refusal.retry_after)} if refusal.retry_after else None
    return Response(
        orjson.dumps(refusal.status()),
        status_code=refusal.code,
        media_type="application/json",
        headers=headers,
    )
