"""Asks the API server who a user is, and what he may do: nothing of it is kept here.

    token ──TokenReview──▶ User | None ──SubjectAccessReview──▶ may he: yes or no

The token is sent to the API server and nowhere else. It stands in no error: what the API server
says of one that it does not know is left out.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

import msgspec

from app.errors import DecodeError

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
LONGEST_ANSWER = 2**18  # bytes; a user in a thousand groups has 50 KB


class Requests(Protocol):
    """The part of `transport.Transport` used here."""

    async def request(
        self, method: str, path: str, *, body: object = None, most_bytes: int = ...
    ) -> bytes: ...


class User(msgspec.Struct, frozen=True):
    """A user, as the API server has told; it is told the same when it is asked about him."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] | None = None
    extra: dict[str, list[str]] | None = None


class _TokenStatus(msgspec.Struct):
    authenticated: bool | None = None
    user: User | None = None


class _TokenReview(msgspec.Struct):
    status: _TokenStatus | None = None


class _AccessStatus(msgspec.Struct):
    allowed: bool | None = None
    denied: bool | None = None


class _AccessReview(msgspec.Struct):
    status: _AccessStatus | None = None


_TOKEN = msgspec.json.Decoder(_TokenReview)
_ACCESS = msgspec.json.Decoder(_AccessReview)


class Reviews:
    """Questions to one API server; each is one request."""

    def __init__(self, transport: Requests) -> None:
        self._transport = transport

    async def user_of(self, token: str) -> User | None:
        """Whose token it is, for the API server's own audiences; None: it is not valid.

        Raises: ApiError; DecodeError.
        """
        review = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token},
        }
        status = _decoded(_TOKEN, await self._asked(TOKEN_REVIEWS, review)).status
        if status is None or not status.authenticated or status.user is None:
            return None
        return status.user if status.user.username else None

    async def may(self, user: User, verb: str, resource: str, namespace: str) -> bool:
        """Whether he may, of the core API; namespace "": in every namespace.

        Raises: ApiError; DecodeError.
        """
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": user.username,
                "uid": user.uid,
                "groups": list(user.groups or ()),
                "extra": user.extra or {},
                "resourceAttributes": {
                    "verb": verb,
                    "version": "v1",
                    "resource": resource,
                    "namespace": namespace,
                },
            },
        }
        status = _decoded(_ACCESS, await self._asked(ACCESS_REVIEWS, review)).status
        return status is not None and bool(status.allowed) and not status.denied

    async def _asked(self, path: str, review: object) -> bytes:
        return await self._transport.request("POST", path, body=review, most_bytes=LONGEST_ANSWER)


_Review = TypeVar("_Review")


def _decoded(decoder: msgspec.json.Decoder[_Review], answer: bytes) -> _Review:
    try:
        return decoder.decode(answer)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"review: {error}") from error
