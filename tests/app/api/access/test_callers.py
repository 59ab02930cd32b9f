"""Beyond loopback /v1 answers who has a token, and shows what the API server lets him list."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Sequence
from typing import Any

import httpx
import msgspec
import pytest
import structlog
from fastapi import APIRouter, Depends, FastAPI

from app.admission.scope import Scope
from app.api.access import permissions
from app.api.access.callers import (
    LONGEST_TOKEN,
    SeesCluster,
    SeesEverything,
    on_loopback,
)
from app.api.following.stream import Stream
from app.api.routes import people
from app.api.standing import Standing
from app.errors import ApiError, Forbidden, TooManyRequests, Unreachable
from app.explain.changes import Changes
from app.kube.client.reviews import ACCESS_REVIEWS, TOKEN_REVIEWS
from app.kube.core.objects import Owner
from app.simulate.simulating import Rules
from tests.app.api.reviewer import Reviewer, callers_of
from tests.app.api.test_routes import world_of_three
from tests.app.state.world import World
from tests.records import RACK, group, node, pod

AFAR = ("10.0.0.7", 4711)
PODS, NODES = "pods", "nodes"
RIGHTS = {
    "admin": {(PODS, ""), (NODES, "")},
    "auditor": {(PODS, "")},
    "tenant": {(PODS, "default")},
    "stranger": set[tuple[str, str]](),
    "machinist": {(NODES, "")},
}
EXPLANATION = "/gangs/default/large/explanation"


class Asked:
    """A Corral that others reach over TLS, and the API server it asks."""

    def __init__(self, world: World | None = None, **more: Any) -> None:
        self.api = Reviewer(RIGHTS)
        app = FastAPI()
        world = world or world_of_three()
        stream = Stream(Changes(world.engine), seconds=1.0)
        rules = Rules(Scope("corral"))
        callers = callers_of(self.api, **more)
        standing = Standing(lambda: "", callers=callers, stream=stream, rules=rules)
        router = people(world.engine, standing)

        more_routes = APIRouter()  # as those of other files are joined

        @more_routes.get("/whole", dependencies=[SeesCluster])
        async def whole() -> str:
            return "nodes"

        @more_routes.get("/local", dependencies=[Depends(on_loopback)])
        async def local() -> str:
            return "as on this machine"

        @more_routes.get("/everything", dependencies=[SeesEverything])
        async def everything() -> str:
            return "all of it"

        router.include_router(more_routes)

        app.include_router(router)
        self.app = app

    async def get(
        self,
        path: str,
        user: str = "",
        *,
        headers: Sequence[tuple[str, str]] = (),
        method: str = "GET",
        at: tuple[str, int] = AFAR,
        url: str = "https://corral.corral-system.svc",
    ) -> httpx.Response:
        transport = httpx.ASGITransport(app=self.app, client=at)
        shown = [("Authorization", f"Bearer token-of-{user}")] if user else []
        async with httpx.AsyncClient(transport=transport, base_url=f"{url}/v1") as client:
            return await client.request(method, path, headers=[*shown, *headers])


@pytest.mark.parametrize(
    ("user", "path", "status"),
    [
        ("admin", "/gangs", 200),
        ("auditor", "/gangs", 200),
        ("tenant", "/gangs", 403),
        ("tenant", "/gangs?namespace=default", 200),
        ("tenant", "/gangs?namespace=other", 403),
        ("tenant", "/gangs/default/large", 200),
        ("tenant", EXPLANATION, 200),
        ("tenant", "/gangs/other/large", 403),
        ("tenant", "/gangs/other/large/explanation", 403),
        ("tenant", "/gangs/other/none?namespace=default", 403),
        ("stranger", "/gangs", 403),
        ("stranger", "/gangs?namespace=default", 403),
        ("stranger", "/gangs/default/large", 403),
        ("machinist", "/gangs?namespace=default", 403),
        ("admin", "/whole", 200),
        ("machinist", "/whole", 200),
        ("auditor", "/whole", 403),
        ("tenant", "/whole", 403),
        ("admin", "/everything", 200),
        ("machinist", "/everything", 403),
        ("admin", "/local", 403),
        ("auditor", "/everything", 403),
    ],
)
async def test_a_user_reads_what_he_may_list(user: str, path: str, status: int) -> None:
    answer = await Asked().get(path, user)
    assert answer.status_code == status, answer.text
    if status == 403:
        assert user in answer.json()["detail"] or path == "/local"
        assert "large" not in answer.json()["detail"]


async def test_a_refusal_names_the_way_to_what_he_may_read() -> None:
    asked = Asked()
    assert "namespace=" in (await asked.get("/gangs", "tenant")).json()["detail"]
    assert "other" in (await asked.get("/gangs?namespace=other", "tenant")).json()["detail"]


@pytest.mark.parametrize(
    ("user", "path", "tokens", "rights"),
    [
        ("admin", "/gangs", 1, [(PODS, "")]),
        ("admin", "/gangs?namespace=default", 1, [(PODS, "")]),
        ("tenant", "/gangs", 1, [(PODS, "")]),
        ("tenant", EXPLANATION, 1, [(PODS, ""), (PODS, "default")]),
        ("admin", "/everything", 1, [(NODES, ""), (PODS, "")]),
        ("nobody", "/gangs", 1, []),
        ("", "/gangs", 0, []),
    ],
)
async def test_a_request_takes_so_many_reviews_and_the_next_one_none(
    user: str, path: str, tokens: int, rights: list[tuple[str, str]]
) -> None:
    asked = Asked()
    for _ in range(3):
        await asked.get(path, user)
        assert len(asked.api.reviews(TOKEN_REVIEWS)) == tokens
        found = [each["resourceAttributes"] for each in asked.api.reviews(ACCESS_REVIEWS)]
        assert [(each["resource"], each["namespace"]) for each in found] == rights


async def test_the_api_server_is_told_all_that_it_has_said_of_a_user() -> None:
    asked = Asked()
    await asked.get("/gangs", "tenant")
    (token,) = asked.api.reviews(TOKEN_REVIEWS)
    assert token == {"token": "token-of-tenant"}  # of the API server's own audiences
    (right,) = asked.api.reviews(ACCESS_REVIEWS)
    assert (right["user"], right["uid"]) == ("tenant", "7")
    assert right["groups"] == ["system:authenticated"]


async def test_an_answer_is_believed_for_some_seconds_and_then_asked_again() -> None:
    now = [0.0]
    asked = Asked(clock=lambda: now[0])
    assert (await asked.get("/gangs", "auditor")).status_code == 200
    asked.api.rights["auditor"].clear()
    now[0] = permissions.ANSWER_SECONDS - 0.1
    assert (await asked.get("/gangs", "auditor")).status_code == 200
    now[0] = permissions.ANSWER_SECONDS + 0.1
    assert (await asked.get("/gangs", "auditor")).status_code == 403
    del asked.api.rights["auditor"]  # as with the ServiceAccount, its tokens end
    now[0] += permissions.ANSWER_SECONDS + 0.1
    assert (await asked.get("/gangs", "auditor")).status_code == 401


async def test_two_users_do_not_share_an_answer() -> None:
    asked = Asked()
    assert (await asked.get("/gangs", "admin")).status_code == 200
    assert (await asked.get("/gangs", "tenant")).status_code == 403
    assert (await asked.get("/gangs", "admin")).status_code == 200


# -- who is not answered ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "status", "named"),
    [
        pytest.param([], 401, "Bearer", id="none"),
        pytest.param([("Authorization", "Basic YTpi")], 401, "Bearer", id="another_scheme"),
        pytest.param([("Authorization", "Bearer nobody")], 401, "token", id="an_unknown_token"),
        pytest.param([("Authorization", "Bearer ")], 400, "token", id="an_empty_token"),
        pytest.param([("Authorization", "Bearer a b")], 400, "characters", id="two_words"),
        pytest.param(
            [("Authorization", "Bearer token-of-admin, Bearer x")], 400, "characters", id="a_list"
        ),
        pytest.param(
            [("Authorization", "Bearer token-of-admin"), ("Authorization", "Bearer x")],
            400, "one", id="a_second_header",
        ),
        pytest.param(
            [("Authorization", "Bearer " + "a" * (LONGEST_TOKEN + 1))], 400, str(LONGEST_TOKEN),
            id="an_over_long_token",
        ),
    ],
)  # fmt: skip
async def test_what_is_no_token_is_refused_by_name(
    headers: list[tuple[str, str]], status: int, named: str
) -> None:
    asked = Asked()
    answer = await asked.get("/gangs", headers=headers)
    assert answer.status_code == status
    assert named in answer.json()["detail"]
    assert (answer.headers.get("www-authenticate") == "Bearer") == (status == 401)
    assert asked.api.reviews(ACCESS_REVIEWS) == []
    if status == 400:
        assert asked.api.asked == []


async def test_the_longest_token_is_asked_about() -> None:
    asked = Asked()
    bearer = "Bearer " + "a" * LONGEST_TOKEN
    assert (await asked.get("/gangs", headers=[("Authorization", bearer)])).status_code == 401
    assert len(asked.api.reviews(TOKEN_REVIEWS)) == 1


@pytest.mark.parametrize("user", ["", "admin"])
async def test_over_plain_http_beyond_loopback_nobody_is_answered_and_no_token_used(
    user: str,
) -> None:
    asked = Asked()
    answer = await asked.get("/gangs", user, url="http://corral.corral-system.svc")
    assert (answer.status_code, "TLS" in answer.json()["detail"]) == (403, True)
    assert asked.api.asked == []


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8888", "[::1]"])
async def test_a_forged_host_makes_nobody_a_client_on_loopback(host: str) -> None:
    answer = await Asked().get("/gangs", headers=[("Host", host)])
    assert answer.status_code == 401
    for scheme, status in (("https", 401), ("http", 403)):
        answer = await Asked().get("/gangs", url=f"{scheme}://{host}")
        assert answer.status_code == status


async def test_two_host_headers_are_refused() -> None:
    for at in (AFAR, ("127.0.0.1", 1)):
        answer = await Asked().get(
            "/gangs", "admin", headers=[("Host", "localhost"), ("Host", "evil")], at=at
        )
        assert answer.status_code == 400


@pytest.mark.parametrize(
    "header", ["Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"]
)
async def test_who_comes_through_a_proxy_beside_corral_is_not_on_loopback(header: str) -> None:
    near = ("127.0.0.6", 1)
    for url, status in (("http://localhost", 403), ("https://localhost", 401)):
        answer = await Asked().get("/gangs", headers=[(header, "for=x")], at=near, url=url)
        assert answer.status_code == status
    assert (await Asked().get("/gangs", at=near, url="http://localhost")).status_code == 200


async def test_on_loopback_nobody_is_asked_for_a_token() -> None:
    asked = Asked()
    near = ("127.0.0.1", 1)
    for path in ("/gangs", EXPLANATION, "/whole", "/everything", "/local"):
        for user in ("", "nobody"):
            answer = await asked.get(path, user, at=near, url="http://localhost")
            assert answer.status_code == 200
    assert asked.api.asked == []


# -- the API server does not answer ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("failure", "named"),
    [
        (Unreachable("connection refused"), "connection refused"),
        (TooManyRequests(429, "TooManyRequests", "slow down"), "slow down"),
        (ApiError(500, "InternalError", "etcd"), "etcd"),
        (Forbidden(403, "Forbidden", "tokenreviews"), "corral-readers"),
    ],
)
async def test_without_the_api_server_nobody_is_answered(failure: ApiError, named: str) -> None:
    now = [0.0]
    asked = Asked(clock=lambda: now[0])
    assert (await asked.get("/gangs", "admin")).status_code == 200
    now[0] += permissions.ANSWER_SECONDS
    asked.api.failure = failure
    for _ in range(2):  # what is not known is not remembered
        answer = await asked.get("/gangs", "admin")
        assert answer.status_code == 503
        assert named in answer.json()["detail"]
        assert "retry-after" in answer.headers
    asked.api.failure = None
    assert (await asked.get("/gangs", "admin")).status_code == 200


async def test_an_api_server_that_is_silent_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(permissions, "REVIEW_SECONDS", 0.05)
    asked = Asked()
    asked.api.may_answer.clear()
    answer = await asked.get("/gangs", "admin")
    assert (answer.status_code, "0.05 s" in answer.json()["detail"]) == (503, True)


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b'{"status": {"authenticated": true}}',
                                  b'{"status": {"authenticated": "yes"}}'])  # fmt: skip
async def test_an_answer_that_says_nothing_opens_nothing(body: bytes) -> None:
    asked = Asked()

    async def answer(*_call: Any, **_more: Any) -> bytes:
        return body

    asked.api.request = answer  # type: ignore[method-assign]
    assert (await asked.get("/gangs", "admin")).status_code in (401, 503)


# -- bounds ----------------------------------------------------------------------------------------


async def test_strangers_do_not_flood_the_api_server() -> None:
    """One address has a few reviews that wait, all of them together so many."""
    counted = list[str]()
    asked = Asked(counted=counted.append)
    asked.api.may_answer.clear()
    addresses = [f"10.0.0.{at}" for at in range(20)]
    tasks = [
        asyncio.create_task(asked.get("/gangs", f"nobody{at}-{number}", at=(address, 1)))
        for at, address in enumerate(addresses)
        for number in range(permissions.MOST_OF_ADDRESS + 2)
    ]
    for _ in range(50):
        await asyncio.sleep(0)
    assert asked.api.under_way == permissions.AT_ONCE
    asked.api.may_answer.set()
    found = [each.status_code for each in await asyncio.gather(*tasks)]
    assert asked.api.most_under_way == permissions.AT_ONCE
    assert found.count(401) == permissions.MOST_WAITING
    assert found.count(503) == len(tasks) - permissions.MOST_WAITING
    assert counted.count("busy") == found.count(503)
    assert (await asked.get("/gangs", "admin")).status_code == 200  # and it is over


async def test_one_address_leaves_turns_to_others() -> None:
    asked = Asked()
    asked.api.may_answer.clear()
    flood = [asyncio.create_task(asked.get("/gangs", f"nobody{at}")) for at in range(100)]
    for _ in range(50):
        await asyncio.sleep(0)
    other = asyncio.create_task(asked.get("/gangs", "admin", at=("10.0.0.8", 1)))
    for _ in range(20):
        await asyncio.sleep(0)
    asked.api.may_answer.set()
    assert (await other).status_code == 200
    await asyncio.gather(*flood)


def test_what_is_remembered_is_bounded() -> None:
    kept = permissions.Remembered[int, bool](3, 10.0)
    for at in range(5):
        kept.put(at, True, 0.0)
        kept.get(2, 0.0)
    assert len(kept) == 3
    assert [at for at in range(5) if kept.get(at, 0.0)] == [2, 3, 4]
    assert kept.get(4, 10.0) is None


async def test_a_token_is_in_no_log_and_in_no_memory(caplog: pytest.LogCaptureFixture) -> None:
    """Of a valid one, of an unknown one, and of one when the API server fails."""
    caplog.set_level(logging.DEBUG)
    asked = Asked()
    with structlog.testing.capture_logs() as logged:
        for user in ("admin", "nobody"):
            answer = await asked.get("/gangs", user)
            assert "token-of" not in answer.text
        asked.api.failure = Unreachable("down")
        answer = await asked.get("/gangs", "late")
    assert "token-of" not in answer.text + caplog.text + str(logged)
    gc.collect()
    kept = [each for each in gc.get_objects() if isinstance(each, permissions.Remembered)]
    assert any("tenant" in repr(each._answers) or "admin" in repr(each._answers) for each in kept)
    assert not any("token-of" in repr(each._answers) for each in kept)


# -- every route says who may read it --------------------------------------------------------------


async def test_no_route_is_open_to_a_user_without_rights() -> None:
    """Those of others as well that are joined in `routes.py`; each needs one of the three."""
    asked = Asked()
    paths = FastAPI.openapi(asked.app)["paths"]
    assert {"/v1/gangs", "/v1/gangs/{namespace}/{name}/explanation", "/v1/events"} <= paths.keys()
    assert {"/v1/simulate", "/v1/topology"} <= paths.keys()
    for path, methods in paths.items():
        for method in methods:
            there = path.removeprefix("/v1").replace("{namespace}", "default")
            there = there.replace("{name}", "large")
            assert "{" not in there, f"{path}: say here what stands for it"
            for user, status in (("", 401), ("stranger", 403)):
                answer = await asked.get(there, user, method=method.upper())
                assert answer.status_code == status, (method, path, user, answer.text)


# -- names of other namespaces ---------------------------------------------------------------------


def crowded() -> World:
    """A gang of namespace `default` waits, for pods of `secret` and for one of its own."""
    world = World([node(f"b0/r0/{name}") for name in "abcd"])
    owner = Owner("apps/v1", "ReplicaSet", "web", "uid-web")
    for name in "abc":
        its = pod(f"on-{name}", on=name, phase="Running", priority=-5, owner=owner)
        world.put(its if name == "a" else msgspec.structs.replace(its, namespace="secret"))
    world.put(*[pod(f"g{at}", annotations=group("g", 4, RACK)) for at in range(4)])
    world.tick()
    return world


async def test_names_of_other_namespaces_reach_only_who_may_list_all_pods() -> None:
    asked = Asked(crowded())
    found = {}
    for user in ("auditor", "tenant"):
        answer = await asked.get("/gangs/default/g/explanation", user)
        assert answer.status_code == 200
        blockers = {each["who"]: each["pods"] for each in answer.json()["blockers"]}
        (gone,) = [each for each in answer.json()["relaxations"] if each["kind"] == "PodsGone"]
        found[user] = answer.text, blockers, gone["text"]
    text, blockers, gone = found["auditor"]
    assert blockers == {"pod default/on-a": 1, "pod secret/on-b": 1, "pod secret/on-c": 1}
    assert all(f"on-{name} (priority -5)" in gone for name in "abc")
    text, blockers, gone = found["tenant"]
    assert "secret" not in text
    assert "on-b" not in text
    assert "on-c" not in text
    assert blockers == {"pod default/on-a": 1, "other namespaces": 2}
    assert gone.endswith(": pod default/on-a (priority -5) and 2 more")


async def test_where_nobody_may_be_named_how_many_would_have_to_go_is_told() -> None:
    world = World([node("b0/r0/a"), node("b0/r0/b")])
    its = pod("on-a", on="a", phase="Running", priority=-5)
    owner = Owner("apps/v1", "ReplicaSet", "web", "uid-web")
    world.put(msgspec.structs.replace(its, namespace="secret", owner=owner))
    world.put(*[pod(f"g{at}", annotations=group("g", 2, RACK)) for at in range(2)])
    world.tick()
    answer = await Asked(world).get("/gangs/default/g/explanation", "tenant")
    (gone,) = [each for each in answer.json()["relaxations"] if each["kind"] == "PodsGone"]
    assert gone["text"].endswith("without 1 pod of lower priority")
    assert "secret" not in answer.text
