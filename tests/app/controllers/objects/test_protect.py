"""Changes of annotations reach their nodes: the newest of each, and none where it is forbidden."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest

from app.controllers.objects.protect import MOST_QUEUED, ProtectController
from app.errors import ApiError, Conflict, NotFound, Unreachable
from app.kube.client.queue.one_try import WORKERS
from app.state.effects import ProtectNode
from tests.app.polling import until
from tests.app.running import running

FORBIDDEN = ApiError(403, "Forbidden", "nodes")
KEY = "karpenter.sh/do-not-disrupt"


class Nodes:
    """Takes changes of nodes; `problems`: what is raised for a node, by its name."""

    def __init__(self, problems=None):
        self.problems = problems or {}
        self.written = []

    async def change(self, path, name, uid, version, patch):
        self.written.append((f"{path}/{name}", uid, version, patch))
        if name in self.problems:
            raise self.problems[name]


def protect(node, *, is_held=True):
    return ProtectNode(node, f"uid-{node}", "7", is_held, ((KEY, "true" if is_held else None),))


@asynccontextmanager
async def outcomes_of(client, *changes, **knobs):
    outcomes = []
    controller = ProtectController(client, lambda how, what: outcomes.append((how, what)), **knobs)
    for each in changes:
        controller.take(each)
    async with running(controller):
        await until(lambda: outcomes)
        yield controller, outcomes


@pytest.mark.parametrize(("is_held", "how"), [(True, "protect"), (False, "unprotect")])
async def test_a_change_is_a_patch_of_annotations_of_the_version_that_was_looked_at(is_held, how):
    client = Nodes()
    async with outcomes_of(client, protect("a", is_held=is_held)) as (_, outcomes):
        assert outcomes == [(how, "written")]
    patch = {"metadata": {"annotations": {KEY: "true" if is_held else None}}}
    assert client.written == [("/api/v1/nodes/a", "uid-a", "7", patch)]


async def test_of_two_changes_of_a_node_the_newer_is_written():
    client = Nodes()
    async with outcomes_of(client, protect("a"), protect("a", is_held=False)) as (_, outcomes):
        assert outcomes == [("unprotect", "written")]
    assert len(client.written) == 1


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (NotFound(404, "NotFound"), "gone"),
        (Conflict(409, "Conflict"), "conflict"),
        (ApiError(500, "InternalError"), "failed"),
        (Unreachable("no route"), "failed"),
        (RuntimeError("bug"), "failed"),
        (FORBIDDEN, "refused"),
    ],
)
async def test_a_change_that_fails_is_counted_and_not_tried_again(error, outcome):
    client = Nodes({"a": error})
    async with outcomes_of(client, protect("a")) as (_, outcomes):
        assert outcomes == [("protect", outcome)]
    assert len(client.written) == 1


async def test_where_it_is_forbidden_none_is_sent_for_a_while():
    client = Nodes({"a": FORBIDDEN})
    async with outcomes_of(client, protect("a"), refused_seconds=3600.0) as (controller, outcomes):
        for i in range(100):
            controller.take(protect(f"b{i}"))
        await until(lambda: len(outcomes) == 101)
        assert set(outcomes) == {("protect", "refused")}
    assert len(client.written) == 1


async def test_they_are_sent_again_after_that():
    client = Nodes({"a": FORBIDDEN})
    async with outcomes_of(client, protect("a"), refused_seconds=0.0) as (controller, outcomes):
        controller.take(protect("b"))
        await until(lambda: len(outcomes) == 2)
        assert outcomes[1] == ("protect", "written")


async def test_what_is_too_many_is_left_out():
    outcomes = []
    controller = ProtectController(Nodes(), lambda *what: outcomes.append(what))
    for i in range(MOST_QUEUED + 1):
        controller.take(protect(f"n{i}"))
    assert outcomes == [("protect", "dropped")]
    assert WORKERS < MOST_QUEUED
