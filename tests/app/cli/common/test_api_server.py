"""Lists from the API server, as commands read them: versions, namespaces, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.cli.common.api_server import records
from app.errors import DecodeError, Forbidden, NotFound
from app.kube.core.objects import NodeRecord, ObjectRecord
from app.kube.watch.resource import Resource, nodes

HOME = "/apis/example.com/v2"
OLDER = "/apis/example.com/v1"


def things(*older: Resource, home: str = HOME) -> Resource:
    def decode(raw: Any) -> ObjectRecord:
        name = json.loads(raw)["metadata"]["name"]
        if name == "odd":
            raise DecodeError("Thing odd: spec: unreadable")
        return ObjectRecord("Thing", "", name, f"uid-{name}", "1")

    return Resource("Thing", f"{home}/things", ObjectRecord, decode, older=older)


class Api:
    """What an API server answers, by path; of any other path that there is nothing."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def request(self, method: str, path: str, **_: Any) -> bytes:
        self.asked.append(path)
        found = self.answers.get(path, NotFound(404, "NotFound", path))
        if isinstance(found, Exception):
            raise found
        return json.dumps(found).encode()


def named(*names: str) -> dict[str, Any]:
    return {"items": [{"metadata": {"name": name}} for name in names]}


REFUSED = Forbidden(403, "Forbidden", "things is forbidden")
SERVED = {"resources": [{"name": "things"}]}


async def read(api: Api, resource: Resource, namespace: str = "") -> list[str]:
    found = [each async for each in records(api, resource, namespace)]
    return [each.name if isinstance(each, ObjectRecord) else str(each) for each in found]


async def test_an_older_version_is_read_where_a_newer_one_is_not_served():
    older = things(home=OLDER)
    assert await read(Api({f"{OLDER}/things": named("a")}), things(older)) == ["a"]
    both = Api({f"{HOME}/things": named("b"), f"{OLDER}/things": named("a")})
    assert await read(both, things(older)) == ["b"]
    assert await read(Api({}), things(older)) == []


async def test_of_a_namespace_only_its_objects_are_read_and_all_of_a_kind_without_namespaces():
    inside = f"{HOME}/namespaces/team/things"
    api = Api({inside: named("a"), f"{HOME}/things": named("a", "b")})
    assert await read(api, things(), "team") == ["a"]
    assert api.asked == [inside]
    assert await read(Api({f"{HOME}/things": named("wide")}), things(), "team") == ["wide"]


async def test_one_object_that_cannot_be_read_does_not_end_the_list():
    api = Api({f"{HOME}/things": named("a", "odd", "b")})
    assert await read(api, things()) == ["a", "Thing odd: spec: unreadable", "b"]


async def test_who_may_not_list_a_kind_is_refused_where_there_is_one():
    api = Api({f"{HOME}/things": REFUSED, HOME: SERVED})
    with pytest.raises(Forbidden):
        await read(api, things())


@pytest.mark.parametrize("discovered", [None, {"resources": [{"name": "others"}]}])
async def test_and_reads_none_where_there_is_no_such_kind(discovered):
    answers: dict[str, Any] = {f"{HOME}/things": REFUSED}
    if discovered is not None:
        answers[HOME] = discovered
    assert await read(Api(answers), things()) == []


async def test_and_an_older_version_if_that_is_served():
    answers = {f"{HOME}/things": REFUSED, f"{OLDER}/things": named("a"), OLDER: SERVED}
    assert await read(Api(answers), things(things(home=OLDER))) == ["a"]


async def test_nodes_are_records():
    api = Api({"/api/v1/nodes": named("n1")})
    found = [each async for each in records(api, nodes())]
    assert isinstance(found[0], NodeRecord)
    assert found[0].name == "n1"
