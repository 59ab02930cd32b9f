"""Who goes for a pod that found no node, in which calls, and who waits for the room meanwhile.

What kube-scheduler does in the same cases: tests/controlplane/test_preemption_choices.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from app.sandbox import Sandbox
from app.sandbox.apiserver.storage.kinds import NODE, POD, PRIORITY_CLASS
from app.sandbox.apiserver.storage.store import Change
from app.sandbox.scheduler.scheduler import Scheduler
from tests.app.sandbox.http import MERGE, until
from tests.app.sandbox.objects import (
    add_pod,
    condition_of,
    event_texts,
    fill,
    node_of,
    pod,
    pod_of,
)

SLOW = {"metadata": {"finalizers": ["example.com/kubelet"]}}  # of a pod that takes time to end
CLASSES = {"middle": 5, "high": 9}


async def started(sandbox: Sandbox, nodes: int, cpu: str = "2") -> Scheduler:
    """A cluster of so many nodes, with its scheduler and priority classes."""
    fill(sandbox, nodes, cpu=cpu)
    for name, value in CLASSES.items():
        sandbox.registry.create(PRIORITY_CLASS, "", {"metadata": {"name": name}, "value": value})
    return await sandbox.schedule_with()


async def run(sandbox: Sandbox, name: str, *, day: int, is_slow: bool = False, **spec: Any) -> None:
    """Have a pod run since a day of January."""
    body = pod(name, **spec)
    if is_slow:
        body["metadata"] |= SLOW["metadata"]
    add_pod(sandbox, body)
    await until(partial(node_of, sandbox, name))
    begin(sandbox, name, day)


def begin(sandbox: Sandbox, name: str, day: int) -> None:
    status = {"startTime": f"2026-01-{day:02}T00:00:00Z", "phase": "Running"}
    sandbox.registry.patch(POD, ("default", name), {"status": status}, MERGE, "status")


def high(name: str, priority: str = "high", **spec: Any) -> dict[str, Any]:
    return pod(name, priorityClassName=priority, **spec)


def is_ending(sandbox: Sandbox, name: str) -> bool:
    return "deletionTimestamp" in pod_of(sandbox, name)["metadata"]


def is_there(sandbox: Sandbox, name: str) -> bool:
    return sandbox.store.get(POD, ("default", name)) is not None


def end(sandbox: Sandbox, name: str) -> None:
    change = {"metadata": {"finalizers": None}}
    sandbox.registry.patch(POD, ("default", name), change, MERGE)


def nominated(sandbox: Sandbox, name: str) -> str:
    return str(pod_of(sandbox, name)["status"].get("nominatedNodeName", ""))


def wake(sandbox: Sandbox) -> None:
    """Some pod ends elsewhere: whoever lacks a resource is tried again."""
    add_pod(sandbox, pod("elsewhere", nodeName="far"))
    sandbox.registry.delete(POD, ("default", "elsewhere"))


async def settled(scheduler: Scheduler, uid: str) -> None:
    """Until the pod has been tried, and rests."""
    await until(lambda: scheduler.queue.place_of(uid) == "unschedulable")


def uid_of(sandbox: Sandbox, name: str) -> str:
    return str(pod_of(sandbox, name)["metadata"]["uid"])


def noted(sandbox: Sandbox, seen: Callable[[Change], str]) -> list[str]:
    """What a watcher of pods makes of each change from now on, where it is something."""
    found: list[str] = []

    def on_pod(change: Change) -> None:
        if said := seen(change):
            found.append(said)

    sandbox.store.subscribe(POD, on_pod)
    return found


# -- the calls ------------------------------------------------------------------------------------


async def test_a_victim_is_told_why_before_it_is_deleted(sandbox: Sandbox) -> None:
    await started(sandbox, 1)
    await run(sandbox, "low", cpu="2", day=1, is_slow=True)
    add_pod(sandbox, high("hp", cpu="2"))
    await until(lambda: is_ending(sandbox, "low"))
    (said,) = [
        each
        for each in pod_of(sandbox, "low")["status"]["conditions"]
        if each["type"] == "DisruptionTarget"
    ]
    assert (said["status"], said["reason"]) == ("True", "PreemptionByScheduler")
    assert said["message"] == "default-scheduler: preempting to accommodate a higher priority pod"
    await until(lambda: event_texts(sandbox, "low", "Preempted"))
    (text,) = event_texts(sandbox, "low", "Preempted")
    assert text == f"Preempted by pod {uid_of(sandbox, 'hp')} on node n0"


async def test_a_pod_is_nominated_before_its_victims_are_deleted(sandbox: Sandbox) -> None:
    """And others may be tried meanwhile: the calls are made beside the loop."""
    await started(sandbox, 1)
    await run(sandbox, "low", cpu="2", day=1)

    def seen(change: Change) -> str:
        name, status = change.key[1], change.now.body["status"]
        if change.type == "DELETED":
            return f"{name} is gone"
        return f"{name} is nominated" if status.get("nominatedNodeName") else ""

    changes = noted(sandbox, seen)
    add_pod(sandbox, high("hp", cpu="2"))
    await until(lambda: node_of(sandbox, "hp"))
    assert list(dict.fromkeys(changes)) == ["hp is nominated", "low is gone"]


async def test_a_pod_is_not_tried_before_all_its_victims_are_deleted(sandbox: Sandbox) -> None:
    scheduler = await started(sandbox, 1, cpu="3")
    for place in range(3):
        await run(sandbox, f"low{place}", day=1 + place, is_slow=True)
    held: list[tuple[int, bool]] = []

    def on_pod(change: Change) -> None:
        if change.key[1].startswith("low"):
            ending = sum(is_ending(sandbox, f"low{place}") for place in range(3))
            wake(sandbox)  # has it tried, where it may be
            held.append((ending, scheduler.queue.place_of(uid) == "unschedulable"))

    add_pod(sandbox, high("hp", cpu="3"))
    uid = uid_of(sandbox, "hp")
    stop = sandbox.store.subscribe(POD, on_pod)
    await until(lambda: all(is_ending(sandbox, f"low{place}") for place in range(3)))
    stop()
    assert {is_held for ending, is_held in held if ending < 3} == {True}
    for place in range(3):
        end(sandbox, f"low{place}")
    await until(lambda: node_of(sandbox, "hp") == "n0")


async def test_where_a_victim_has_another_uid_now_the_last_is_spared_and_the_pod_tried_again(
    sandbox: Sandbox,
) -> None:
    await started(sandbox, 1)
    await run(sandbox, "a", day=1)
    await run(sandbox, "b", day=2)

    def on_pod(change: Change) -> None:
        """Another pod has the name of a victim, between the two calls about it."""
        conditions = change.now.body["status"].get("conditions") or []
        is_target = any(each["type"] == "DisruptionTarget" for each in conditions)
        if change.type == "MODIFIED" and change.key[1] == "a" and is_target and not again:
            again.append("a")
            sandbox.registry.delete(POD, ("default", "a"))
            add_pod(sandbox, high("a", nodeName="n0"))

    again: list[str] = []
    sandbox.store.subscribe(POD, on_pod)
    add_pod(sandbox, high("hp", cpu="2"))
    await until(lambda: again and condition_of(sandbox, "hp"))
    await asyncio.sleep(0.1)
    assert is_there(sandbox, "b"), "the room of a is another's: it would be in vain"
    assert not is_ending(sandbox, "b")
    message = condition_of(sandbox, "hp")["message"]
    assert "No preemption victims" in message or "Insufficient cpu" in message


# -- nominated pods -------------------------------------------------------------------------------


async def test_room_that_a_pod_of_equal_priority_is_nominated_for_is_not_made_twice(
    sandbox: Sandbox,
) -> None:
    await started(sandbox, 2)
    await run(sandbox, "a", cpu="2", day=2, is_slow=True)
    await run(sandbox, "b", cpu="2", day=1, is_slow=True)
    add_pod(sandbox, high("first", cpu="2"))
    await until(lambda: is_ending(sandbox, "a"))
    add_pod(sandbox, high("second", cpu="2"))
    await until(lambda: nominated(sandbox, "second"))
    assert nominated(sandbox, "second") == node_of(sandbox, "b")
    await until(lambda: is_ending(sandbox, "b"))


async def test_room_that_a_pod_of_lower_priority_is_nominated_for_goes_to_a_higher_one(
    sandbox: Sandbox,
) -> None:
    await started(sandbox, 1)
    await run(sandbox, "a", day=2, is_slow=True)
    await run(sandbox, "b", day=1, is_slow=True)
    add_pod(sandbox, high("middle", "middle"))
    await until(lambda: is_ending(sandbox, "a"))
    assert nominated(sandbox, "middle") == "n0"
    add_pod(sandbox, high("hp", cpu="2"))
    await until(lambda: is_ending(sandbox, "b"))
    assert nominated(sandbox, "hp") == "n0"
    assert nominated(sandbox, "middle") == ""


@pytest.mark.parametrize("how", ["deleted", "cleared"])
async def test_what_a_nominated_pod_keeps_is_free_once_it_is_none(
    sandbox: Sandbox, how: str
) -> None:
    """No other event wakes the pod that waits for the room."""
    scheduler = await started(sandbox, 1)
    body = high("nominated", cpu="2", scheduler="default-scheduler", gates=("g",))
    add_pod(sandbox, body)
    change: dict[str, Any] = {"status": {"nominatedNodeName": "n0"}}
    sandbox.registry.patch(POD, ("default", "nominated"), change, MERGE, "status")
    add_pod(sandbox, pod("low", cpu="2"))
    await settled(scheduler, uid_of(sandbox, "low"))
    assert node_of(sandbox, "low") == ""
    if how == "deleted":
        sandbox.registry.delete(POD, ("default", "nominated"))
    else:
        change = {"status": {"nominatedNodeName": None}}
        sandbox.registry.patch(POD, ("default", "nominated"), change, MERGE, "status")
    await until(lambda: node_of(sandbox, "low") == "n0")


# -- who may preempt again ------------------------------------------------------------------------


async def test_nobody_else_goes_for_a_pod_while_its_victim_ends(sandbox: Sandbox) -> None:
    scheduler = await started(sandbox, 2)
    await run(sandbox, "a", cpu="2", day=2, is_slow=True)
    await run(sandbox, "b", cpu="2", day=1)
    add_pod(sandbox, high("hp", cpu="2"))
    await until(lambda: is_ending(sandbox, "a"))
    begin(sandbox, "b", day=3)  # now it is the one to be chosen
    wake(sandbox)
    said = "preemption: not eligible due to a terminating pod on the nominated node."
    await until(lambda: said in condition_of(sandbox, "hp")["message"])
    await settled(scheduler, uid_of(sandbox, "hp"))
    assert is_there(sandbox, "b")
    assert nominated(sandbox, "hp") == node_of(sandbox, "a")
    end(sandbox, "a")
    await until(lambda: node_of(sandbox, "hp"))
    assert is_there(sandbox, "b")


async def test_while_a_pod_ends_that_is_evicted_another_one_may_go(sandbox: Sandbox) -> None:
    """Only what kube-scheduler preempts is waited for."""
    scheduler = await started(sandbox, 2)
    await run(sandbox, "a", cpu="2", day=2, is_slow=True)
    await run(sandbox, "b", cpu="2", day=1)
    sandbox.registry.delete(POD, ("default", "a"))
    add_pod(sandbox, high("hp", cpu="2"))
    await until(lambda: nominated(sandbox, "hp"))
    await settled(scheduler, uid_of(sandbox, "hp"))
    assert nominated(sandbox, "hp") == node_of(sandbox, "a")
    begin(sandbox, "b", day=3)
    wake(sandbox)
    await until(lambda: not is_there(sandbox, "b"))


async def test_where_the_nominated_node_is_of_no_use_another_pod_goes(sandbox: Sandbox) -> None:
    await started(sandbox, 2)
    await run(sandbox, "a", cpu="2", day=2, is_slow=True)
    await run(sandbox, "b", cpu="2", day=1)
    add_pod(sandbox, high("hp", cpu="2"))
    await until(lambda: is_ending(sandbox, "a"))
    closed = {"spec": {"unschedulable": True}}
    sandbox.registry.patch(NODE, ("", node_of(sandbox, "a")), closed, MERGE)
    wake(sandbox)
    await until(lambda: not is_there(sandbox, "b"))


async def test_a_pod_that_may_not_preempt_waits(sandbox: Sandbox) -> None:
    scheduler = await started(sandbox, 1)
    await run(sandbox, "low", cpu="2", day=1)
    add_pod(sandbox, high("hp", cpu="2", preemptionPolicy="Never"))
    await settled(scheduler, uid_of(sandbox, "hp"))
    said = "preemption: not eligible due to preemptionPolicy=Never."
    assert said in condition_of(sandbox, "hp")["message"]
    assert is_there(sandbox, "low")
