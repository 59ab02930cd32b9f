"""ResourceQuota objects: which of their lines bound what pods request."""

from __future__ import annotations

import json

import pytest

from app.dialects.quota.dialect import MOST_READ, decode_quota
from app.dialects.registry import DIALECTS
from app.dialects.spec import Allowance
from app.errors import DecodeError
from tests.records import GPU, job


def quota(hard, used=(), **spec):
    document = {
        "metadata": {"namespace": "team", "name": "q", "uid": "uid-q", "resourceVersion": "7"},
        "spec": {"hard": hard, **spec},
        "status": {"hard": hard, "used": dict(used)},
    }
    return decode_quota(json.dumps(document).encode())


def test_a_quota_says_what_its_namespace_may_request_and_what_it_has():
    record = quota(
        {"requests.nvidia.com/gpu": "16", "cpu": "2500m", "requests.memory": "1Gi"},
        {"requests.nvidia.com/gpu": "4", "cpu": "1"},
    )
    assert DIALECTS.allowance(record) == Allowance(
        "team",
        "ResourceQuota team/q",
        ((GPU, 16, 4), ("cpu", 2500, 1000), ("memory", 2**30, 0)),
    )


def test_of_two_lines_for_one_resource_the_smaller_one_counts():
    record = quota({"cpu": "4", "requests.cpu": "3", "pods": "9", "count/pods": "10"})
    assert record.lines == (("cpu", 3000, 0), ("pods", 9, 0))


@pytest.mark.parametrize(
    "hard",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"limits.cpu": "1"}, id="limits"),
        pytest.param({"count/jobs.batch": "1", "services": "2"}, id="other_objects"),
        pytest.param({"nvidia.com/gpu": "1"}, id="no_form_that_quotas_know"),
        pytest.param({"cpu": "many", "pods": None}, id="no_quantity"),
    ],
)
def test_other_lines_bound_no_request(hard):
    assert DIALECTS.allowance(quota(hard)) is None


@pytest.mark.parametrize(
    "spec",
    [
        {"scopes": ["NotTerminating"]},
        {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass"}]}},
    ],
)
def test_a_quota_with_scopes_is_not_read(spec):
    assert DIALECTS.allowance(quota({"cpu": "1"}, **spec)) is None


def test_a_quota_that_has_no_status_yet_bounds_nothing():
    record = decode_quota(b'{"metadata": {"name": "q"}, "spec": {"hard": {"cpu": "1"}}}')
    assert DIALECTS.allowance(record) is None


def test_only_so_many_lines_are_read():
    hard = {f"requests.example.com/r{index}": "1" for index in range(MOST_READ + 1)}
    assert len(quota(hard).lines) == MOST_READ


def test_what_is_no_quota_is_told_by_name():
    with pytest.raises(DecodeError, match="ResourceQuota team/q"):
        decode_quota(b'{"metadata": {"namespace": "team", "name": "q"}, "status": {"hard": 1}}')


def test_other_objects_allow_nothing():
    assert DIALECTS.allowance(job("train", 2)) is None
