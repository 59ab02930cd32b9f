"""How large a pod group is, as its own pods say: those that live before those that have ended."""

from __future__ import annotations

import json

import pytest

from app.dialects.registry import DIALECTS
from tests.app.dialects.claims import claim_of
from tests.records import GROUP, TOTAL, pod

ROLE = "kueue.x-k8s.io/pod-group-role"
SETS = "kueue.x-k8s.io/pod-group-sets"


def saying(total=None, sets=None):
    """What a pod of group g says: a driver's worker nothing; `sets`: name -> pods, of a driver."""
    counts = {} if total is None else {TOTAL: str(total)}
    if sets is not None:
        listed = [{"name": name, "count": pods} for name, pods in sets.items()]
        counts = {SETS: json.dumps(listed)}
    labels = {} if counts else {ROLE: "workers"}
    return claim_of(pod("p", labels=labels, annotations={GROUP: "g", **counts}))


@pytest.mark.parametrize(
    ("live", "ended", "pods"),
    [
        pytest.param([saying(3), saying(3)], [], 3, id="as_all_say"),
        pytest.param([saying(), saying(4)], [], 4, id="as_the_one_says_that_knows"),
        pytest.param([saying(5)], [saying(4)], 5, id="those_that_live_know_better"),
        pytest.param([saying()], [saying(4)], 4, id="as_one_said_that_has_ended"),
        pytest.param([saying()], [saying()], None, id="as_nobody_says"),
        pytest.param([], [], None, id="of_no_pods"),
    ],
)
def test_a_group_has_as_many_pods_as_the_first_of_them_says(live, ended, pods):
    spec = DIALECTS.spec(
        saying().gang, (), [each.said for each in live], [each.said for each in ended]
    )
    assert (spec and spec.pods) == pods


def test_a_driver_that_lives_starts_alone_and_after_its_end_all_its_workers_are_needed():
    driver, key = saying(sets={"driver": 1, "workers": 4}).said, saying().gang
    assert DIALECTS.spec(key, (), [driver], ()).starts_with == 0
    without = DIALECTS.spec(key, (), [saying().said], [driver])
    assert (without.pods, without.starts_with) == (5, None)
