"""What a Queue lets in, and what a PodGroup counts for in it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from app.dialects.declared import Draw, Pool
from app.dialects.volcano.pod_groups import decode_pod_group
from app.dialects.volcano.queues import decode_queue, pool_of
from app.dialects.volcano.status import draw_of
from app.errors import DecodeError
from tests.app.dialects.volcano.workloads import pod_group, queue

MIB = 2**20


def pool(state: str | None = None, **spec: Any) -> Pool:
    made = queue("team", **spec)
    if state is not None:
        made["status"] = {"state": state}
    return pool_of(decode_queue(msgspec.json.encode(made)))


def draw(phase: str | None = None, **spec: Any) -> Draw | None:
    made = pod_group("pg", 2, queue="team", phase=phase, **spec)
    made["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    return draw_of(decode_pod_group(msgspec.json.encode(made)))


def test_a_queue_lets_in_what_its_capability_says_in_the_units_of_a_pods_request() -> None:
    capability = {"cpu": "1500m", "memory": "1Mi", "nvidia.com/gpu": 8}
    most = (("cpu", 1500), ("memory", MIB), ("nvidia.com/gpu", 8))
    assert pool(capability=capability) == Pool("Queue team", most)


def test_what_only_a_quota_counts_and_what_is_no_quantity_limits_nothing() -> None:
    capability = {"requests.cpu": 1, "limits.cpu": 1, "count/pods": 1, "memory": "much", "cpu": 1}
    assert pool(capability=capability).most == (("cpu", 1000),)
    assert pool().most == ()


def test_a_capability_that_is_too_long_or_something_else_limits_nothing() -> None:
    assert pool(capability={f"example.com/{at}": 1 for at in range(1_000)}).most == ()
    assert pool(capability=["cpu"]).most == ()


@pytest.mark.parametrize(
    ("state", "is_open"),
    [(None, True), ("Open", True), ("Unknown", True), ("Closed", False), ("Closing", False)],
)
def test_a_queue_that_is_closed_or_closes_lets_nothing_in(state: str | None, is_open: bool) -> None:
    assert pool(state).is_open is is_open


@pytest.mark.parametrize(
    ("spec", "flaw"),
    [
        pytest.param(
            {"minResources": {f"example.com/{at}": 1 for at in range(65)}},
            "spec.minResources: Too many: 65: must have at most 64 items",
            id="too_many",
        ),
        pytest.param(
            {"minResources": {"x" * 16_384: 1}},
            "spec.minResources: Too long: may not be more than 16384 bytes",
            id="too_long",
        ),
        pytest.param({"minResources": ["cpu"]}, "spec.minResources: Invalid value", id="a_list"),
    ],
)
def test_a_pod_group_that_would_count_for_nothing_is_refused(
    spec: dict[str, Any], flaw: str
) -> None:
    made = decode_pod_group(msgspec.json.encode(pod_group("pg", 2, **spec)))
    assert flaw in made.flaw


def test_no_text_of_a_tenants_is_kept_that_no_queue_and_no_object_can_have() -> None:
    made = pod_group("pg", 2, queue="q" * 254)
    made["metadata"]["ownerReferences"] = [{"controller": True, "uid": "u" * 64}]
    group = decode_pod_group(msgspec.json.encode(made))
    assert (group.queue, group.made_for) == ("default", "")
    assert "spec.queue: Too long" in group.flaw


def test_a_queue_that_is_none_names_itself() -> None:
    with pytest.raises(DecodeError, match="Queue"):
        decode_queue(b'{"metadata": {"name": "team"}, "spec": []}')


@pytest.mark.parametrize(
    ("phase", "is_drawn"),
    [
        (None, False),
        ("Pending", False),
        ("Inqueue", True),
        ("Running", True),
        ("Unknown", True),
    ],
)
def test_a_pod_group_counts_with_its_min_resources_from_inqueue_on(
    phase: str | None, is_drawn: bool
) -> None:
    of_pods = {"cpu": 2, "requests.cpu": 2, "count/pods": 2, "pods": 2}
    expected = Draw("Queue team", (("cpu", 2000), ("pods", 2)), is_drawn, "2026-01-01T00:00:00Z")
    assert draw(phase, minResources=of_pods) == expected


def test_a_pod_group_that_says_nothing_or_has_completed_counts_for_nothing() -> None:
    assert draw("Inqueue") is None
    assert draw("Completed", minResources={"cpu": 2}) is None
