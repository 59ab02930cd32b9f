"""What a record of a pod says of it, and when one says the same as another."""

from __future__ import annotations

import msgspec
import pytest

from app.kube.core.objects import Owner
from tests.records import job, pod

BOUND = pod("p", on="n1")


def changed(**fields):
    return msgspec.structs.replace(BOUND, **fields)


@pytest.mark.parametrize(
    ("before", "after", "repeats"),
    [
        pytest.param(BOUND, changed(version="9"), True, id="another_version"),
        pytest.param(
            changed(phase="Pending"), changed(phase="Running"), True, id="its_containers_run"
        ),
        pytest.param(BOUND, changed(phase="Succeeded"), False, id="it_has_ended"),
        pytest.param(changed(phase="Failed"), changed(phase="Running"), False, id="it_had_ended"),
        pytest.param(
            changed(phase="Failed"), changed(phase="Failed"), True, id="it_has_ended_before"
        ),
        pytest.param(BOUND, changed(is_terminating=True), False, id="its_deletion"),
        pytest.param(BOUND, changed(labels={"a": "b"}), False, id="a_label_that_is_kept"),
        pytest.param(BOUND, changed(node="n2"), False, id="its_node"),
        pytest.param(BOUND, changed(nominated_node="n2"), False, id="its_nomination"),
        pytest.param(BOUND, changed(gates=("a/b",)), False, id="its_gates"),
        pytest.param(BOUND, changed(is_preempted=True), False, id="its_preemption"),
    ],
)
def test_a_record_repeats_one_that_differs_in_nothing_that_is_kept(before, after, repeats):
    assert after.repeats(before) is repeats


@pytest.mark.parametrize(
    ("phase", "is_finished"),
    [
        ("Pending", False),
        ("Running", False),
        ("Unknown", False),
        ("", False),
        ("Succeeded", True),
        ("Failed", True),
    ],
)
def test_a_pod_is_finished_once_none_of_its_containers_can_run_again(phase, is_finished):
    assert changed(phase=phase).is_finished is is_finished


@pytest.mark.parametrize(
    ("owner", "lasts"),
    [
        (None, False),
        (Owner("batch/v1", "Job", "o", "u"), False),
        (Owner("apps/v1", "ReplicaSet", "o", "u"), True),
        (Owner("apps/v1", "StatefulSet", "o", "u"), True),
        (Owner("v1", "Node", "o", "u"), True),
    ],
    ids=lambda value: value.kind if isinstance(value, Owner) else None,
)
def test_a_pod_lasts_if_its_owner_lets_it_run_without_end(owner, lasts):
    assert changed(owner=owner).lasts is lasts


def test_the_key_of_a_record_is_its_namespace_and_name():
    assert BOUND.key == "default/p"
    assert job("j", 1).key == "default/j"
