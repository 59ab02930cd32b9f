"""Who goes for a pod that found no node, and who is nominated: for kube-scheduler with no extender.

    choices.py ──▶ test_choices.py: the sandbox's
              └──▶ tests/controlplane/test_preemption_choices.py: the real one

Two nodes of 8 GPUs and one of 1; `a` and `b` have run since some day of January and end only when
they are let go. Nothing here knows which cluster it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tests.cluster import GPU, MERGE, Cluster, Object, collection, node, pod

SECONDS = 15.0
QUIET_SECONDS = 1.5  # in which nothing more may come of it
KUBELET = "example.com/kubelet"  # the finalizer of a pod that takes its time to end
LEFT, RIGHT, FAR = "left", "right", "far"
CLASSES = {"middle": 500, "urgent": 1000, "patient": 1000}

Asked = Callable[[Cluster], None]


@dataclass(frozen=True)
class Choice:
    """`ends`: pod -> why, as its condition says. `nominated`: pod -> node."""

    id: str
    asked: Asked
    ends: dict[str, str]
    nominated: dict[str, str]
    told: str = ""  # of hp


def play(choice: Choice, cluster: Cluster) -> None:
    """Do as it says, and compare what came of it.

    Raises: AssertionError, TimeoutError.
    """
    cluster.create_all([node(LEFT, gpus=8), node(RIGHT, gpus=8), node(FAR, gpus=1)])
    for name, value in CLASSES.items():
        cluster.create(_class(name, value))
    try:
        choice.asked(cluster)
        expected = choice.ends, choice.nominated
        seen = partial(_seen, cluster)
        cluster.wait(lambda: seen() == expected, SECONDS, f"{expected}, and not {seen()}")
        if choice.told:
            cluster.wait(lambda: choice.told in _told(cluster, "hp"), SECONDS, choice.told)
        time.sleep(QUIET_SECONDS)
        assert seen() == expected
    finally:
        for each in cluster.list("Pod", "default"):
            _let_go(cluster, each["metadata"]["name"])
        for name in CLASSES:
            cluster.delete("PriorityClass", name)


def _class(name: str, value: int) -> Object:
    policy = {"preemptionPolicy": "Never"} if name == "patient" else {}
    version = "scheduling.k8s.io/v1"
    metadata = {"metadata": {"name": name}, "value": value}
    return {"apiVersion": version, "kind": "PriorityClass", **metadata, **policy}


# -- what is to be seen ----------------------------------------------------------------------------


def _seen(cluster: Cluster) -> tuple[dict[str, str], dict[str, str]]:
    pods = {each["metadata"]["name"]: each for each in cluster.list("Pod", "default")}
    ends = {
        name: _condition(each, "DisruptionTarget").get("reason", "")
        for name, each in pods.items()
        if "deletionTimestamp" in each["metadata"]
    }
    nominated = {name: each["status"].get("nominatedNodeName") for name, each in pods.items()}
    return ends, {name: on for name, on in nominated.items() if on}


def _condition(one: Object, kind: str) -> Object:
    said = one["status"].get("conditions") or []
    found: Object = next((each for each in said if each["type"] == kind), {})
    return found


def _told(cluster: Cluster, name: str) -> str:
    one = cluster.get("Pod", name) or {"status": {}}
    return str(_condition(one, "PodScheduled").get("message", ""))


def _ends(cluster: Cluster, name: str) -> None:
    cluster.wait(lambda: name in _seen(cluster)[0], SECONDS, f"the end of {name}")


# -- what is done ----------------------------------------------------------------------------------


def _runs(cluster: Cluster, name: str, on: str, *, day: int, gpus: int = 8) -> None:
    one = pod(name, requests={GPU: gpus}, nodeName=on)
    one["metadata"]["finalizers"] = [KUBELET]
    cluster.create(one)
    _begin(cluster, name, day)


def _begin(cluster: Cluster, name: str, day: int) -> None:
    path = f"{collection('Pod', 'default')}/{name}/status"
    status = {"phase": "Running", "startTime": f"2026-01-{day:02}T00:00:00Z"}
    cluster.request("PATCH", path, body={"status": status}, content_type=MERGE)


def _let_go(cluster: Cluster, name: str) -> None:
    cluster.patch("Pod", name, {"metadata": {"finalizers": None}})


def _comes(cluster: Cluster, name: str, priority: str = "urgent", *, gpus: int = 8) -> None:
    cluster.create(pod(name, requests={GPU: gpus}, priorityClassName=priority))


def _wake(cluster: Cluster) -> None:
    """A pod ends elsewhere: those that lack GPUs are tried again."""
    cluster.create(pod("elsewhere", requests={GPU: 1}, nodeName=FAR))
    cluster.delete("Pod", "elsewhere")


def _both_run(cluster: Cluster) -> None:
    """`a` has started later."""
    _runs(cluster, "a", LEFT, day=2)
    _runs(cluster, "b", RIGHT, day=1)


def _has_preempted(cluster: Cluster) -> None:
    """`a` ends for hp; of both, `b` would be chosen now."""
    _both_run(cluster)
    _comes(cluster, "hp")
    _ends(cluster, "a")
    _begin(cluster, "b", 3)


# -- the cases -------------------------------------------------------------------------------------


def _of_equal_priority(cluster: Cluster) -> None:
    _both_run(cluster)
    _comes(cluster, "hp")
    _ends(cluster, "a")
    _comes(cluster, "second")


def _of_lower_priority(cluster: Cluster) -> None:
    """The other node is full for good."""
    cluster.create(pod("full", requests={GPU: 8}, nodeName=RIGHT, priorityClassName="urgent"))
    _runs(cluster, "a", LEFT, day=2, gpus=4)
    _runs(cluster, "b", LEFT, day=1, gpus=4)
    _comes(cluster, "lower", "middle", gpus=4)
    _ends(cluster, "a")
    _comes(cluster, "hp")


def _while_its_victim_ends(cluster: Cluster) -> None:
    _has_preempted(cluster)
    _wake(cluster)


def _while_another_pod_ends(cluster: Cluster) -> None:
    _both_run(cluster)
    cluster.delete("Pod", "a")
    _comes(cluster, "hp")
    cluster.wait(lambda: _seen(cluster)[1], SECONDS, "the nomination")
    _begin(cluster, "b", 3)
    _wake(cluster)


def _where_its_node_is_closed(cluster: Cluster) -> None:
    _has_preempted(cluster)
    cluster.patch("Node", LEFT, {"spec": {"unschedulable": True}})
    _wake(cluster)


def _where_it_may_not(cluster: Cluster) -> None:
    _both_run(cluster)
    _comes(cluster, "hp", "patient")


_OURS = "PreemptionByScheduler"
CHOICES = (
    Choice(
        "room_for_one_of_equal_priority_is_not_made_twice",
        _of_equal_priority,
        {"a": _OURS, "b": _OURS},
        {"hp": LEFT, "second": RIGHT},
    ),
    Choice(
        "room_for_one_of_lower_priority_is_taken_from_it",
        _of_lower_priority,
        {"a": _OURS, "b": _OURS},
        {"hp": LEFT},
    ),
    Choice(
        "nobody_else_goes_while_a_victim_ends",
        _while_its_victim_ends,
        {"a": _OURS},
        {"hp": LEFT},
        told="not eligible due to a terminating pod on the nominated node.",
    ),
    Choice(
        "another_goes_while_one_ends_that_was_not_preempted",
        _while_another_pod_ends,
        {"a": "", "b": _OURS},
        {"hp": RIGHT},
    ),
    Choice(
        "another_goes_where_the_nominated_node_is_closed",
        _where_its_node_is_closed,
        {"a": _OURS, "b": _OURS},
        {"hp": RIGHT},
    ),
    Choice(
        "nobody_goes_for_one_that_may_not_preempt",
        _where_it_may_not,
        {},
        {},
        told="not eligible due to preemptionPolicy=Never.",
    ),
)
