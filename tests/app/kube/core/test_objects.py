"""When one record of a pod says the same as another."""

from __future__ import annotations

import msgspec
import pytest

from tests.records import pod

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
