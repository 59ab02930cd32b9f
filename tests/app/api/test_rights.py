"""Who may simulate where, and see what of nodes: by what the API server lets him list."""

from __future__ import annotations

import json
from typing import Any

import httpx
import msgspec
import pytest
from fastapi import FastAPI

from app.admission.scope import Scope
from app.api.routes import people
from app.api.standing import Standing
from app.kube.core.objects import Owner
from app.kube.watch.events import Applied
from app.simulate.simulating import Rules
from app.state.engine import Engine
from tests.app.api.access.test_callers import AFAR, RIGHTS, Reviewer, callers_of
from tests.app.api.test_simulating import job
from tests.app.simulate.clusters import engine_of
from tests.records import GPU, RACK, group, node, pod


def crowded() -> Engine:
    """Two nodes with pods of lower priority: one of namespace `default`, one of `secret`."""
    owner = Owner("apps/v1", "ReplicaSet", "web", "uid-web")
    own, hidden = (
        pod(f"on-{name}", on=name, phase="Running", priority=-5, owner=owner) for name in "ab"
    )
    hidden = msgspec.structs.replace(hidden, namespace="secret", name="hidden")
    return engine_of([node("b0/r0/a"), node("b0/r0/b")], [own, hidden])


async def asked(
    engine: Engine, user: str, path: str, things: Any = None, *, method: str = "POST"
) -> httpx.Response:
    callers, rules = callers_of(Reviewer(RIGHTS)), Rules(Scope("corral"))
    app = FastAPI()
    app.include_router(people(engine, Standing(lambda: "", callers=callers, rules=rules)))
    transport = httpx.ASGITransport(app=app, client=AFAR)
    headers = {"Authorization": f"Bearer token-of-{user}"} if user else {}
    url = "https://corral.corral-system.svc/v1"
    async with httpx.AsyncClient(transport=transport, base_url=url, headers=headers) as client:
        content = None if things is None else json.dumps(things).encode()
        return await client.request(method, path, content=content)


def of(namespace: str, name: str = "t", pods: int = 1) -> dict[str, Any]:
    thing = job(name, pods)
    thing["metadata"]["namespace"] = namespace
    return thing


@pytest.mark.parametrize(
    ("user", "path", "things", "status"),
    [
        ("", "/simulate", [of("default")], 401),
        ("stranger", "/simulate", [of("default")], 403),
        ("stranger", "/simulate", b"no objects", 403),
        ("tenant", "/simulate", [of("default")], 200),
        ("tenant", "/simulate", [of("default"), of("secret")], 403),
        ("tenant", "/simulate?namespace=secret", [of("default")], 403),
        ("admin", "/simulate", [of("default"), of("secret", "u")], 200),
    ],
)
async def test_objects_are_simulated_in_namespaces_that_he_sees(
    user: str, path: str, things: Any, status: int
) -> None:
    things = things.decode() if isinstance(things, bytes) else things
    answer = await asked(crowded(), user, path, things)
    assert answer.status_code == status, answer.text
    if status == 403 and user == "tenant":
        assert "secret" in answer.text


async def test_pods_of_other_namespaces_have_no_names_for_who_does_not_see_them() -> None:
    mine = [of("default", pods=2)]
    admin = (await asked(crowded(), "admin", "/simulate", mine)).text
    tenant = (await asked(crowded(), "tenant", "/simulate", mine)).text
    assert "secret/hidden" in admin
    assert "default/on-a" in admin
    assert "hidden" not in tenant
    assert "secret" not in tenant
    assert "default/on-a" in tenant
    assert "other namespaces" in tenant


@pytest.mark.parametrize(
    ("user", "query", "status"),
    [
        ("", "", 401),
        ("stranger", "", 403),
        ("tenant", "", 403),
        ("admin", "", 200),
        ("admin", f"?free_for={GPU}=1", 200),
        ("admin", "?free_for=secret/g", 200),
    ],
)
async def test_a_topology_is_shown_to_who_sees_nodes(user: str, query: str, status: int) -> None:
    engine = crowded()
    member = pod("g0", annotations=group("g", 2, RACK))
    engine.apply(Applied(msgspec.structs.replace(member, namespace="secret")), 1.0)
    answer = await asked(engine, user, f"/topology{query}", method="GET")
    assert answer.status_code == status, answer.text
