"""What an API server answers of tokens and rights, and what it was asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from app.api.access.callers import Callers
from app.api.access.permissions import Permissions
from app.errors import CorralError
from app.kube.client.reviews import ACCESS_REVIEWS, TOKEN_REVIEWS, Reviews

Right = tuple[str, str]  # resource, namespace ("": all)


class Reviewer:
    """Knows some users by their tokens, and what each of them may list.

    As `transport.Transport` for `Reviews`: what is asked and answered is JSON.
    """

    def __init__(self, rights: Mapping[str, set[Right]]) -> None:
        self.rights = {user: set(may) for user, may in rights.items()}
        self.asked: list[tuple[str, Any]] = []
        self.failure: CorralError | None = None
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.under_way = self.most_under_way = 0

    async def request(
        self, method: str, path: str, *, body: Any = None, most_bytes: int = 0
    ) -> bytes:
        assert method == "POST"
        body = json.loads(json.dumps(body))
        self.asked.append((path, body["spec"]))
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await self.may_answer.wait()
        finally:
            self.under_way -= 1
        if self.failure is not None:
            raise self.failure
        answer = {TOKEN_REVIEWS: self._user, ACCESS_REVIEWS: self._allowed}[path](body["spec"])
        return json.dumps({**body, "status": answer}).encode()

    def reviews(self, path: str) -> list[Any]:
        """What was asked there."""
        return [spec for its, spec in self.asked if its == path]

    def _user(self, spec: Any) -> Any:
        user = spec["token"].removeprefix("token-of-")
        if user not in self.rights:
            return {"authenticated": False, "error": f"invalid: {spec['token']}"}
        groups = ["system:authenticated"]
        return {"authenticated": True, "user": {"username": user, "uid": "7", "groups": groups}}

    def _allowed(self, spec: Any) -> Any:
        asked = spec["resourceAttributes"]
        assert (asked["verb"], asked.get("group", "")) == ("list", "")
        may = self.rights[spec["user"]]
        return {"allowed": bool({(asked["resource"], asked["namespace"]),
                                 (asked["resource"], "")} & may)}  # fmt: skip


async def _at_once(_seconds: float) -> None:
    await asyncio.sleep(0)


def callers_of(
    reviewer: Reviewer,
    clock: Callable[[], float] = lambda: 0.0,
    counted: Callable[[str], None] = lambda _outcome: None,
) -> Callers:
    """Whoever this API server knows."""
    asks = Reviews(reviewer)
    return Callers(Permissions(asks, on_review=counted, clock=clock, sleep=_at_once))
