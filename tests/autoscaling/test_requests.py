"""ProvisioningRequests go by the rules of cluster-autoscaler.

Source: kubernetes/autoscaler cluster-autoscaler/provisioningrequest (1.36.1).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tests.autoscaling.cluster_autoscaler.loop import ClusterAutoscaler, Settings
from tests.autoscaling.machines.actions import EmitEvent, PatchRequest
from tests.autoscaling.machines.groups import NodeGroup
from tests.autoscaling.objects import (
    CHECK_CAPACITY,
    CONSUME,
    pod_template,
    provisioning_request,
)
from tests.autoscaling.small import Small
from tests.cluster import GPU, RACK, Object, node

MACHINE = {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: "8"}
WHOLE = {GPU: 8}
QUICK = Settings(unneeded=60.0, delay_after_add=0.0)
ACCEPTED = {"Accepted": "True/Accepted"}
FOUND = {**ACCEPTED, "Provisioned": "True/CapacityIsFound"}
ORDERED = {**ACCEPTED, "Provisioned": "True/CapacityIsProvisioned"}
NOT_FOUND = {**ACCEPTED, "Provisioned": "False/CapacityIsNotFound"}
EXPIRED = {**ORDERED, "BookingExpired": "True/CapacityReservationTimeExpired"}


def small(*groups: NodeGroup, settings: Settings | None = None) -> Small:
    world = Small(ClusterAutoscaler(groups, settings))
    world.add("templates", pod_template("shape", requests=WHOLE))
    return world


def rack(name: str = "r0", most: int = 8, **fields: Any) -> NodeGroup:
    return NodeGroup(name, most, MACHINE, labels={RACK: name}, **fields)


def ask(world: Small, name: str, pods: int = 8, **fields: Any) -> Object:
    return world.add("requests", provisioning_request(name, {"shape": pods}, **fields))


def free(world: Small, *names: str) -> None:
    for name in names:
        world.add("nodes", node(name, labels={RACK: name}, gpus=8))


def test_what_does_not_fit_is_ordered_of_one_group_and_said_before_a_node_is_there() -> None:
    world = small(rack())
    ask(world, "r")
    world.run(5.0)
    assert (world.said("r"), world.names()) == (ORDERED, [])
    world.run(60.0)
    assert len(world.names()) == 8


def test_all_of_it_is_one_groups_or_nothing_is_ordered() -> None:
    world = small(rack("r0", 5), rack("r1", 7))
    ask(world, "r")
    world.run(30.0)
    assert world.said("r") == NOT_FOUND
    assert world.autoscaler.cloud.machines == {}


def test_the_atomic_launch_is_only_a_simulation() -> None:
    """Fact 8: the resize is plain, and six of eight may come."""
    world = small(rack(stock=6))
    ask(world, "r")
    world.run(120.0)
    assert (world.said("r"), len(world.names())) == (ORDERED, 6)


def test_what_fits_is_taken_off_first_with_no_regard_to_racks() -> None:
    world = small(rack("r9"))
    free(world, "b0", "b1", "b2")
    ask(world, "all", 3)
    world.run(5.0)
    assert (world.said("all"), world.autoscaler.cloud.machines) == (FOUND, {})
    ask(world, "some", 5)
    world.run(60.0)
    assert world.said("some") == ORDERED
    # The three free nodes are booked for the first request.
    assert len(world.autoscaler.cloud.machines) == 5


def test_part_of_it_fits_and_the_rest_is_ordered() -> None:
    world = small(rack("r9"))
    free(world, "b0", "b1", "b2")
    ask(world, "r", 8)
    world.run(60.0)
    assert (world.said("r"), len(world.autoscaler.cloud.machines)) == (ORDERED, 5)


def test_excluded_nodes_are_not_counted() -> None:
    """The exclusion of 4b: matchFields NotIn, several in one term."""
    world = small(rack("r9"))
    free(world, "b0", "b1", "b2")
    fields = [
        {"key": "metadata.name", "operator": "NotIn", "values": [name]} for name in ("b0", "b1")
    ]
    term = {"matchFields": fields}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    affinity = {"nodeAffinity": required}
    world.add("templates", pod_template("shape", requests=WHOLE, affinity=affinity))
    ask(world, "r", 8)
    world.run(60.0)
    assert len(world.autoscaler.cloud.machines) == 7


def test_gates_in_a_template_do_not_count() -> None:
    world = small(rack())
    gates = [{"name": "corral.dev/gang"}]
    world.add("templates", pod_template("shape", requests=WHOLE, schedulingGates=gates))
    ask(world, "r", 2)
    world.run(60.0)
    assert len(world.names()) == 2


def test_a_missing_template_is_failure() -> None:
    world = small(rack())
    world.templates.clear()
    ask(world, "r")
    world.run(60.0)
    assert world.said("r") == {"Failed": "True/FailedToCreatePods"}
    assert world.autoscaler.cloud.machines == {}


def test_a_class_of_somebody_else_is_never_accepted() -> None:
    world = small(rack())
    ask(world, "r", class_name="queued-provisioning.gke.io")
    world.run(300.0)
    assert world.said("r") == {}


def test_requests_are_not_read_unless_that_is_on() -> None:
    world = small(rack(), settings=Settings(provisioning_requests=False))
    ask(world, "r")
    world.run(300.0)
    assert (world.said("r"), world.names()) == ({}, [])


def test_one_request_is_served_per_loop_and_the_next_loop_starts_at_once() -> None:
    world = small(rack(most=3))
    for name in ("a", "b", "c"):
        ask(world, name, 1)
    done = world.autoscaler.step(world.seen(), 0.0)
    assert {each.name for each in done if isinstance(each, PatchRequest)} == {"a"}
    assert world.autoscaler.next_at == 0.0
    world = small(rack(most=3))
    for name in ("a", "b", "c"):
        ask(world, name, 1)
    world.run(0.5)
    assert [world.said(name) for name in ("a", "b", "c")] == [ORDERED] * 3


def test_loops_alternate_between_requests_and_pods() -> None:
    world = small(rack("r0"), rack("r1"))
    world.add("templates", pod_template("shape", requests=WHOLE, nodeSelector={RACK: "r0"}))
    for name in ("a", "b", "c"):
        ask(world, name, 1)
    world.wait("p", requests=WHOLE, nodeSelector={RACK: "r1"})
    world.run(60.0)
    done = [each for _, each in world.done if isinstance(each, EmitEvent | PatchRequest)]
    names = [each.name if isinstance(each, PatchRequest) else "p" for each in done]
    assert list(dict.fromkeys(names)) == ["a", "p", "b", "c"]


def test_pending_pods_are_packed_before_bookings() -> None:
    """Fact 9: booked is not reserved."""
    world = small(rack(most=1))
    ask(world, "r", 1)
    world.run(60.0)
    assert world.names() == ["r0-0"]
    world.wait("p", requests=WHOLE)
    world.run(60.0)
    # The pod is put where the booking was, so no node is made, and none is missed.
    assert world.events("NotTriggerScaleUp") == []


def test_a_booking_keeps_other_requests_off_for_ten_minutes() -> None:
    world = small(rack(most=1))
    ask(world, "r", 1)
    world.run(60.0)
    ask(world, "second", 1)
    world.run(530.0)
    assert (world.said("r"), world.said("second")) == (ORDERED, NOT_FOUND)
    world.run(30.0)
    assert world.said("r") == EXPIRED
    world.run(600.0)
    assert world.said("second") == FOUND


def test_a_booking_keeps_empty_nodes_and_then_they_go() -> None:
    world = small(rack(), settings=QUICK)
    ask(world, "r", 2)
    world.run(590.0)
    assert len(world.names()) == 2
    world.run(120.0)
    assert (world.said("r"), world.names()) == (EXPIRED, [])


def test_deleting_the_request_ends_its_booking() -> None:
    world = small(rack(), settings=QUICK)
    ask(world, "r", 2)
    world.run(100.0)
    del world.requests["r"]
    world.run(100.0)
    assert world.names() == []


def test_running_pods_are_booked_twice_but_in_newest_code() -> None:
    for ends_consumed, expected in ((False, NOT_FOUND), (True, ORDERED)):
        settings = Settings(ends_consumed=ends_consumed)
        world = small(rack(most=2), settings=settings)
        ask(world, "r", 1)
        world.run(60.0)
        world.wait("p", requests=WHOLE, annotations={CONSUME: "r"})
        world.bind("p", "r0-0")
        free(world, "b0")
        ask(world, "second", 2)
        world.run(60.0)
        # One node is free and one may be ordered: enough, unless the first is booked again.
        assert world.said("second") == expected
        if ends_consumed:
            assert world.said("r")["BookingExpired"] == "True/CapacityBookingConsumed"


def test_what_is_not_found_is_tried_again_ever_less_often() -> None:
    world = small(rack(most=0))
    ask(world, "r", 1)
    world.run(3000.0)
    times = sorted({*world.times(PatchRequest)})
    waits = [later - earlier for earlier, later in pairwise(times)]
    assert waits[:6] == [60.0, 120.0, 240.0, 480.0, 600.0, 600.0]
    free(world, "b0")
    world.run(600.0)
    assert world.said("r") == FOUND


def test_check_capacity_never_makes_a_node() -> None:
    world = small(rack())
    ask(world, "r", 1, class_name=CHECK_CAPACITY)
    world.run(30.0)
    assert (world.said("r"), world.names()) == (NOT_FOUND, [])
    free(world, "b0")
    world.run(60.0)
    assert (world.said("r"), world.names()) == (FOUND, ["b0"])


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"noRetry": "true"}, {**ACCEPTED, "Failed": "True/CapacityIsNotFound"}),
        ({"noRetry": "false"}, NOT_FOUND),
    ],
)
def test_a_check_that_is_not_to_be_retried_fails(parameters: dict[str, str], said: Object) -> None:
    world = small(rack())
    ask(world, "r", 1, class_name=CHECK_CAPACITY, parameters=parameters)
    world.run(30.0)
    assert world.said("r") == said


def test_a_request_that_is_never_provisioned_fails_after_a_week() -> None:
    world = small(rack(most=0))
    ask(world, "r", 1)
    world.run(100.0)
    week = 7 * 86400.0
    world.now += week
    world.autoscaler.step(world.seen(), world.now)
    world.run(30.0)
    assert world.said("r")["Failed"] == "True/Expired"


def test_a_pod_that_consumes_a_request_makes_no_node_of_its_own() -> None:
    world = small(rack())
    ask(world, "r", 1)
    world.wait("p", requests=WHOLE, annotations={CONSUME: "r"})
    world.wait("q", requests=WHOLE, annotations={CONSUME: "no-such-request"})
    world.run(60.0)
    assert world.names() == ["r0-0"]


def test_a_request_is_accepted_before_anything_is_tried() -> None:
    world = small(rack())
    ask(world, "r", 1)
    first, second = (
        {each["type"]: each["reason"] for each in action.conditions}
        for action in world.autoscaler.step(world.seen(), 0.0)
        if isinstance(action, PatchRequest)
    )
    assert first == {"Accepted": "Accepted"}
    assert second == {"Accepted": "Accepted", "Provisioned": "CapacityIsProvisioned"}


def test_what_is_said_again_gets_a_new_time_and_the_rest_keeps_its_own() -> None:
    world = small(rack(most=0))
    made = ask(world, "r", 1)
    other = {"type": "CapacityRevoked", "status": "False", "reason": "Theirs"}
    world.run(5.0)
    conditions = made["status"]["conditions"]
    made["status"]["conditions"] = [
        {**each, "lastTransitionTime": "then"} for each in (*conditions, other)
    ]
    world.run(30.0)
    assert {each["lastTransitionTime"] for each in made["status"]["conditions"]} == {"then"}
    world.run(60.0)  # it has been tried again
    kept = [each["type"] for each in made["status"]["conditions"] if "lastTransitionTime" in each]
    assert kept == ["CapacityRevoked"]
