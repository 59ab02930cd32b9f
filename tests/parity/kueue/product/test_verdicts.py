"""Two sentences say the same if the numbers they share are the same."""

from __future__ import annotations

import pytest

from tests.parity.kueue.product.verdicts import difference

TOPOLOGY = 'topology "default" '
GANG = "gang ns/gang cannot be placed: "


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        pytest.param(
            '3 of 4 pods fit in one l/k; excluded nodes: taint "t=v:NoExecute" 2, '
            "insufficient cpu 1",
            "allows to fit only 3 out of 4 pod(s). Total nodes: 9; excluded: "
            'resource "cpu": 1, taint "t=v:NoExecute": 2',
            id="reasons_in_any_order",
        ),
        pytest.param(
            "0 of 2 slices fit in one l/k, 1 of 4 slices in kubernetes.io/hostname",
            "doesn't allow to fit; 0/2 slice(s) fit on level l/k; "
            "1/4 slice(s) fit on level kubernetes.io/hostname",
            id="layers",
        ),
        pytest.param(
            "2 of 4 pods fit, but not with leader 0",
            "doesn't allow to fit any of 4 pod(s)",
            id="no_worker_counts_before_the_leader_has_a_place",
        ),
        pytest.param(
            "4 of 4 pods fit in one l/k, but not with leader set-0",
            "allows to fit only 7 out of 4 pod(s)",
            id="no_more_fit_than_are_needed",
        ),
        pytest.param(
            "1 of 2 pods fit; excluded nodes: nodeSelector 3, affinity 2, insufficient cpu 1, "
            "insufficient memory 1",
            "allows to fit only 1 out of 2 pod(s). Total nodes: 9; excluded: affinity: 2, "
            'nodeSelector: 3, resource "cpu": 1, resource "gpu": 1, resource "memory": 1',
            id="four_reasons_at_most",
        ),
    ],
)
def test_the_same_numbers_are_no_difference(sentence: str, reason: str) -> None:
    assert difference(GANG + sentence, TOPOLOGY + reason) == ""


@pytest.mark.parametrize(
    ("sentence", "reason", "wrong"),
    [
        ("3 of 4 pods fit", "allows to fit only 2 out of 4 pod(s)", "fitting"),
        ("3 of 4 pods fit", "allows to fit only 3 out of 5 pod(s)", "needed"),
        ("3 of 4 pods fit", "allows to fit only 3 out of 4 slice(s)", "unit"),
        (
            "0 of 2 slices fit in one l/k, 1 of 4 slices in l/h",
            "doesn't allow to fit; 0/2 slice(s) fit on level l/k; 2/4 slice(s) fit on level l/h",
            "layers",
        ),
        (
            "3 of 4 pods fit; excluded nodes: insufficient cpu 1",
            "allows to fit only 3 out of 4 pod(s)",
            "excluded",
        ),
    ],
)
def test_another_number_is_a_difference(sentence: str, reason: str, wrong: str) -> None:
    assert difference(GANG + sentence, TOPOLOGY + reason).startswith(f"{wrong}: ")


def test_a_level_that_does_not_exist_has_the_same_name_in_both() -> None:
    sentence = "gang ns/gang is invalid: topology level not known: l/x; known levels: l/k"
    assert difference(sentence, "no requested topology level: l/x") == ""
    assert difference(sentence, "no requested topology level: l/y") != ""
