"""A list answer, whole or page by page, always one consistent state."""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import islice

import orjson

from app.sandbox.apiserver.storage.failures import Refused, bad_request, expired, future_version
from app.sandbox.apiserver.storage.kinds import Key, Kind
from app.sandbox.apiserver.storage.selectors import Predicate
from app.sandbox.apiserver.storage.store import Store, Stored

_CONTINUE_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can"
    " start a new list without the continue parameter."
)


@dataclass(frozen=True, slots=True)
class ListRequest:
    kind: Kind
    namespace: str
    matches: Predicate | None
    limit: int = 0  # 0: everything at once
    token: str = ""  # where the previous page ended
    version: str = ""
    version_match: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    items: list[Stored]
    version: int
    token: str
    remaining: int | None  # known only where no selector thins the rest


def page_of(store: Store, request: ListRequest) -> Page:
    """The next page. Every page of one list shows the state of the first page's version.

    Raises: Refused: 400 bad token, 410 the state is compacted, 504 a version of the future.
    """
    version, after = _start(store, request)
    try:
        state = store.state_at(request.kind, version)
    except Refused as refusal:
        if request.token:
            raise expired(_CONTINUE_EXPIRED) from refusal
        raise
    begin, end = _range(state, request.namespace)
    if after is not None:
        begin = max(begin, bisect_right(state, after, key=_key))
    found: list[tuple[Key, Stored]] = []
    for key, stored in islice(state, begin, end):
        if request.matches is None or request.matches(stored.body):
            found.append((key, stored))
            if request.limit and len(found) > request.limit:
                break
    if not request.limit or len(found) <= request.limit:
        return Page([stored for _, stored in found], version, "", None)
    taken = found[: request.limit]
    left = end - begin - len(taken) if request.matches is None else None
    return Page([stored for _, stored in taken], version, _token(version, taken[-1][0]), left)


def _range(state: list[tuple[Key, Stored]], namespace: str) -> tuple[int, int]:
    """The places of one namespace in a state sorted by namespace and name; "" is all of it."""
    if not namespace:
        return 0, len(state)
    behind = (namespace + "\0", "")
    return bisect_left(state, (namespace, ""), key=_key), bisect_left(state, behind, key=_key)


def _key(entry: tuple[Key, Stored]) -> Key:
    return entry[0]


def _start(store: Store, request: ListRequest) -> tuple[int, Key | None]:
    """The version to show, and the key behind which to go on."""
    if request.token:
        if request.version not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        try:
            version, namespace, name = orjson.loads(base64.urlsafe_b64decode(request.token))
        except (binascii.Error, orjson.JSONDecodeError, ValueError) as error:
            raise bad_request("continue key is not valid") from error
        return int(version), (namespace, name)
    if not request.version or request.version == "0":
        return store.version, None
    if not request.version.isdigit():
        raise bad_request(f"invalid resourceVersion: {request.version!r}")
    asked = int(request.version)
    if asked > store.version:
        raise future_version(asked, store.version)
    return (asked if request.version_match == "Exact" else store.version), None


def _token(version: int, key: Key) -> str:
    return base64.urlsafe_b64encode(orjson.dumps([version, *key])).decode()


def list_body(kind: Kind, page: Page) -> bytes:
    """The JSON of a list; items of built-in kinds come without kind and apiVersion."""
    metadata: dict[str, object] = {"resourceVersion": str(page.version)}
    if page.token:
        metadata["continue"] = page.token
        if page.remaining is not None:
            metadata["remainingItemCount"] = page.remaining
    items = b",".join(
        stored.raw_typed(kind) if kind.is_custom else stored.raw for stored in page.items
    )
    return b'{"kind":"%b","apiVersion":"%b","metadata":%b,"items":[%b]}' % (
        (kind.list_name or f"{kind.name}List").encode(),
        kind.api_version.encode(),
        orjson.dumps(metadata),
        items,
    )
