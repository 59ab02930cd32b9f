"""Requests reach the API server in an order that leaves nothing behind, and end so."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from app.controllers.objects.provisioning import MOST_QUEUED, WORKERS, ProvisioningController
from app.dialects.spec import GangKey
from app.errors import ApiError, Conflict, Forbidden, NotFound, Unreachable
from app.state.effects import AskedPods, AskNodes, EndAsk, ObjectRef
from tests.app.polling import until
from tests.app.running import running

GANG = GangKey("team", "train", "job", "e1")
JOB = ObjectRef("batch/v1", "Job", "team", "train", "u-job")
TEMPLATES = "/api/v1/namespaces/team/podtemplates"
REQUESTS = "/apis/autoscaling.x-k8s.io/v1/namespaces/team/provisioningrequests"


class ApiServer:
    """Takes writes; `problems`: what is raised, by the path or the name."""

    def __init__(self, problems: dict[str, Exception] | None = None) -> None:
        self.problems = problems or {}
        self.calls: list[tuple[str, str, str]] = []
        self.bodies: dict[str, object] = {}
        self.uids = {"train-0": "u0", "train-1": "u1"}

    def _call(self, verb: str, path: str, name: str) -> None:
        self.calls.append((verb, path, name))
        for known in (path, name):
            if known in self.problems:
                raise self.problems[known]

    async def read_pod(self, namespace, name):  # type: ignore[no-untyped-def]
        self._call("read", namespace, name)
        uid = self.uids.get(name)
        body = {"metadata": {"name": name, "namespace": namespace, "uid": uid}, "spec": {}}
        return None if uid is None else json.dumps(body).encode()

    async def ensure(self, path, name, body):  # type: ignore[no-untyped-def]
        self._call("ensure", path, name)
        self.bodies[name] = body
        return f"uid-{name}"

    async def change(self, path, name, uid, version, patch):  # type: ignore[no-untyped-def]
        self._call("change", path, name)
        self.bodies[f"patch of {name}"] = uid, version, patch

    async def delete(self, path, name, uid, version):  # type: ignore[no-untyped-def]
        self._call("delete", path, name)


def ask(name: str = "corral-1f-1", *pods: AskedPods, gang: GangKey = GANG) -> AskNodes:
    pods = pods or (AskedPods("train-0", "u0", 1), AskedPods("train-1", "u1", 7, ("n1",)))
    return AskNodes(gang, name, "1f", "a.example", (JOB,), pods)


END = EndAsk("team", "corral-1f-1", "u9", (("corral-1f-1-0", "u10"), ("corral-1f-1-1", "u11")))


@asynccontextmanager
async def outcomes_of(client, *effects, **knobs):
    outcomes = []
    controller = ProvisioningController(
        client, lambda how, what: outcomes.append((how, what)), **knobs
    )
    for each in effects:
        controller.take(each)
    async with running(controller):
        await until(lambda: len(outcomes) >= len(effects))
        yield controller, outcomes


async def test_templates_come_first_then_the_request_and_then_the_templates_are_its_own():
    client = ApiServer()
    async with outcomes_of(client, ask()) as (_, outcomes):
        assert outcomes == [("request", "written")]
    assert client.calls == [
        ("read", "team", "train-0"),
        ("read", "team", "train-1"),
        ("ensure", TEMPLATES, "corral-1f-1-0"),
        ("ensure", TEMPLATES, "corral-1f-1-1"),
        ("ensure", REQUESTS, "corral-1f-1"),
        ("change", TEMPLATES, "corral-1f-1-0"),
        ("change", TEMPLATES, "corral-1f-1-1"),
    ]
    spec = client.bodies["corral-1f-1"]["spec"]
    assert [(each["count"], each["podTemplateRef"]["name"]) for each in spec["podSets"]] == [
        (1, "corral-1f-1-0"),
        (7, "corral-1f-1-1"),
    ]
    for name in ("corral-1f-1", "corral-1f-1-0"):
        (owner,) = client.bodies[name]["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], "controller" in owner) == ("Job", "u-job", False)
    uid, version, patch = client.bodies["patch of corral-1f-1-1"]
    (owner,) = patch["metadata"]["ownerReferences"]
    assert (uid, version) == ("uid-corral-1f-1-1", "")
    assert (owner["kind"], owner["uid"]) == ("ProvisioningRequest", "uid-corral-1f-1")


@pytest.mark.parametrize("name", ["train-1", "train-9"])
async def test_nothing_is_written_where_a_pod_is_not_the_one_that_is_meant(name):
    client = ApiServer()
    client.uids["train-1"] = "another"
    asked = ask("corral-1f-1", AskedPods(name, "u1", 8))
    async with outcomes_of(client, asked) as (_, outcomes):
        assert outcomes == [("request", "gone")]
    assert {verb for verb, *_ in client.calls} == {"read"}


async def test_the_request_goes_first_and_its_templates_follow():
    client = ApiServer()
    async with outcomes_of(client, END) as (_, outcomes):
        assert outcomes == [("withdraw", "written")]
    assert client.calls == [
        ("delete", REQUESTS, "corral-1f-1"),
        ("delete", TEMPLATES, "corral-1f-1-0"),
        ("delete", TEMPLATES, "corral-1f-1-1"),
    ]


@pytest.mark.parametrize("error", [NotFound(404, "NotFound"), Conflict(409, "Conflict")])
async def test_what_is_gone_or_another_one_does_not_keep_the_rest(error):
    client = ApiServer({"corral-1f-1": error})
    async with outcomes_of(client, END) as (_, outcomes):
        assert outcomes == [("withdraw", "written")]
    assert len(client.calls) == 3


async def test_templates_without_a_request_go_alone():
    client = ApiServer()
    async with outcomes_of(client, EndAsk("team", "", "", (("t", "u"),))) as (_, outcomes):
        assert outcomes == [("withdraw", "written")]
    assert client.calls == [("delete", TEMPLATES, "t")]


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (NotFound(404, "NotFound"), "absent"),
        (Forbidden(403, "Forbidden"), "refused"),
        (ApiError(422, "Invalid"), "failed"),
        (ApiError(500, "InternalError"), "failed"),
        (Unreachable("no route"), "failed"),
        (RuntimeError("bug"), "failed"),
    ],
)
async def test_what_fails_is_counted_and_left_to_the_engine(error, outcome):
    client = ApiServer({REQUESTS: error})
    async with outcomes_of(client, ask()) as (_, outcomes):
        assert outcomes == [("request", outcome)]
    assert sum(path == REQUESTS for _, path, _ in client.calls) == 1


async def test_where_they_are_forbidden_nothing_is_sent_for_a_while():
    client = ApiServer({TEMPLATES: Forbidden(403, "Forbidden")})
    async with outcomes_of(client, ask()) as (controller, outcomes):
        sent = len(client.calls)
        controller.take(ask())
        await until(lambda: len(outcomes) == 2)
        assert outcomes == [("request", "refused")] * 2
        assert len(client.calls) == sent


async def test_what_is_forbidden_in_one_namespace_holds_up_no_other():
    """A quota of one tenant, or the end of his namespace, is answered by 403 as well."""
    client = ApiServer({TEMPLATES: Forbidden(403, "Forbidden", "exceeded quota")})
    other = ask("corral-2f-1", AskedPods("train-0", "u0", 1), gang=replace(GANG, namespace="other"))
    async with outcomes_of(client, ask(), other) as (_, outcomes):
        assert sorted(outcomes) == [("request", "refused"), ("request", "written")]


async def test_a_queue_that_is_full_gives_up_those_of_the_namespace_with_most():
    outcomes = []
    controller = ProvisioningController(ApiServer(), lambda how, what: outcomes.append(what))
    for number in range(MOST_QUEUED + 3):
        controller.take(ask(f"corral-1f-{number}"))
    assert outcomes == ["dropped"] * 3
    assert WORKERS < MOST_QUEUED
