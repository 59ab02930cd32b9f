"""Ordinary pods that wait for capacity to be freed: bounded and woken fairly between namespaces."""

from __future__ import annotations

import msgspec
import pytest

from app.state.effects import Requeue
from app.state.pods.rejected_pods import MOST_WOKEN_PER_TICK, RejectedPods
from tests.app.state.world import World, four_racks, members
from tests.records import pod


def rejected(*names, most=2_000):
    """Pods named namespace/name, rejected in this order, and a node on which each of them fits."""
    books = World(four_racks()).engine.books
    pods = RejectedPods(books, most)
    for name in names:
        add(pods, name)
    return pods


def add(pods, name, gpus=1):
    namespace, _, short = name.partition("/")
    record = pod(short, gpus=gpus, uid=name)
    record = msgspec.structs.replace(record, namespace=namespace)
    pods.add(record, record.request)


def woken(pods, nodes=("n00",), now=0.0):
    return [each.uid for each in pods.woken(nodes, now)]


def test_namespaces_take_turns_in_being_woken():
    pods = rejected(*[f"loud/{number}" for number in range(100)], "quiet/a")
    assert woken(pods)[:3] == ["loud/0", "quiet/a", "loud/1"]
    assert len(woken(pods, nodes=())) == MOST_WOKEN_PER_TICK


def test_a_pod_that_was_woken_forgotten_or_does_not_fit_is_not_woken():
    pods = rejected("team/a", "team/b")
    add(pods, "team/large", gpus=9)
    pods.forget("team/a")
    pods.forget("team/unknown")
    assert woken(pods) == ["team/b"]
    assert woken(pods) == []


def test_a_pod_that_is_due_and_is_forgotten_is_not_woken():
    pods = rejected(*[f"team/{number:02}" for number in range(MOST_WOKEN_PER_TICK + 2)])
    woken(pods)
    pods.forget(f"team/{MOST_WOKEN_PER_TICK}")
    assert woken(pods, nodes=()) == [f"team/{MOST_WOKEN_PER_TICK + 1}"]


def test_the_namespace_with_the_most_gives_up_its_oldest_for_another():
    pods = rejected("loud/0", "loud/1", "loud/2", "loud/3", most=4)
    for name in ("quiet/a", "quiet/b", "quiet/c"):
        add(pods, name)
    assert sorted(woken(pods)) == ["loud/2", "loud/3", "quiet/b", "quiet/c"]


def test_a_pod_that_is_rejected_again_is_remembered_once():
    pods = rejected("team/a", "team/a", "team/b", most=2)
    assert woken(pods) == ["team/a", "team/b"]


def test_where_every_namespace_has_one_a_further_one_is_left_to_kube_scheduler():
    pods = rejected("a/1", "b/1", "c/1", most=2)
    assert woken(pods) == ["a/1", "b/1"]


@pytest.mark.parametrize(("said", "true", "wakes"), [(9, 8, 1), (1, 9, 0)])
def test_a_pod_is_remembered_with_what_the_watch_shows_not_with_what_the_request_says(
    said, true, wakes
):
    """A gang of one node's GPUs ends, and the node is free for pods of eight GPUs at most."""
    node = four_racks()[:1]
    gang, plain = members("g", 1, gpus=8), pod("plain", gpus=true)
    world = World(node, [*gang, plain])
    world.filter(pod("plain", gpus=said))
    world.delete(*gang)
    world.tick()
    told = [effect for effect in world.told(Requeue) if effect.name == "plain"]
    assert len(told) == wakes
