"""How large a pod group is, as its own pods say: those that live before those that have ended."""

from __future__ import annotations

import json

import pytest

from app.dialects import corral
from app.dialects.registry import DIALECTS
from app.dialects.spec import ANYWHERE, GangKey, Said
from tests.app.dialects.claims import claim_of
from tests.records import BLOCK, GROUP, RACK, TOTAL, pod
from tests.workload_pods import workload
from topology.model.request import Constraint

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


def together(*pods, workloads=(), key=None):
    """The spec of a group of pods that say these things beside its size."""
    said = [Said(pods=2, where="a test", **each) for each in pods]
    return DIALECTS.spec(key or saying().gang, workloads, said, ())


@pytest.mark.parametrize(
    ("pods", "lifecycle"),
    [
        pytest.param([{}], (0, None, None), id="nothing"),
        pytest.param([{"spares": 1}, {"spares": 3}, {}], (3, None, None), id="most_spares"),
        pytest.param(
            [{"absent_seconds": 9}, {"absent_seconds": 60}, {}], (0, 60, None), id="longest_wait"
        ),
        pytest.param([{"absent_seconds": 0}, {}], (0, 0, None), id="no_wait"),
        pytest.param([{"ends_together": False}, {}], (0, None, False), id="single"),
        pytest.param(
            [{"ends_together": False}, {"ends_together": True}], (0, None, True), id="all_wins"
        ),
    ],
)
def test_what_the_pods_of_a_group_say_of_its_life_is_taken_together(pods, lifecycle):
    found = together(*pods).lifecycle
    assert (found.spares, found.absent_seconds, found.ends_together) == lifecycle
    assert (found.counts_succeeded, found.remembers_succeeded) == (True, True)


def test_one_pod_is_enough_to_reserve_places_for_all():
    assert not together({}, {}).reserves_all
    assert together({}, {"reserves_all": True}).reserves_all


def test_only_a_group_remembers_pods_that_have_succeeded():
    of_a_pod = GangKey("default", "p", "pod", "uid-p")
    assert not together({}, key=of_a_pod).lifecycle.remembers_succeeded


IN_RACK, IN_BLOCK = Constraint(required=RACK), Constraint(preferred=BLOCK)


@pytest.mark.parametrize(
    ("pods", "owners", "constraint"),
    [
        pytest.param([{}], [{}], ANYWHERE, id="by_none"),
        pytest.param([{}, {"together": IN_RACK}], [{}], IN_RACK, id="by_some_pods"),
        pytest.param([{}], [{corral.WORKLOAD_PREFERRED: BLOCK}], IN_BLOCK, id="by_the_owner"),
        pytest.param(
            [{"together": IN_BLOCK}],
            [{corral.WORKLOAD_PREFERRED: BLOCK}],
            IN_BLOCK,
            id="by_the_owner_and_its_pods",
        ),
        pytest.param(
            [{}],
            [{}, {corral.WORKLOAD_REQUIRED: RACK}],
            IN_RACK,
            id="by_one_of_two_owners",
        ),
    ],
)
def test_what_is_requested_for_all_pods_is_named_by_their_owner_or_by_them(
    pods, owners, constraint
):
    workloads = [workload("Job", str(at), {}, annotations=each) for at, each in enumerate(owners)]
    spec = together(*pods, workloads=workloads)
    assert spec.root.constraint == constraint


def test_a_gang_that_none_of_its_pods_has_described_yet_has_the_defaults():
    record = workload("Job", "j", {"": 2})
    (key,) = DIALECTS.keys_of(record)
    lifecycle = DIALECTS.spec(key, [record], (), ()).lifecycle
    assert (lifecycle.spares, lifecycle.absent_seconds, lifecycle.ends_together) == (0, None, None)
