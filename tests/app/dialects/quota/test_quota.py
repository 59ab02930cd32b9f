"""ResourceQuota objects: which of their lines bound what pods request."""

from __future__ import annotations

import json

import pytest

from app.dialects.declared import Allowance
from app.dialects.quota.dialect import MOST_READ, decode_quota
from app.dialects.registry import DIALECTS
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
    assert quota({"pods": "9", "count/pods": "8"}).lines == (("pods", 8, 0),)


def test_pods_are_counted_under_either_name():
    assert quota({"count/pods": "8"}, {"count/pods": "3"}).lines == (("pods", 8, 3),)
    assert quota({"pods": "8"}, {"pods": "3"}).lines == (("pods", 8, 3),)


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


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"scopes": []}, id="no_scopes"),
        pytest.param({"scopes": None, "scopeSelector": None}, id="null"),
        pytest.param({"scopeSelector": {}}, id="an_empty_selector"),
    ],
)
def test_a_quota_whose_scopes_are_empty_is_read(spec):
    assert DIALECTS.allowance(quota({"cpu": "1"}, **spec)).namespace == "team"


def test_the_record_says_which_quota_it_is_of():
    found = quota({})
    assert (found.namespace, found.name, found.uid, found.version) == ("team", "q", "uid-q", "7")
    bare = decode_quota(b'{"status": {"hard": {"pods": "2"}}}')
    assert (bare.namespace, bare.name, bare.uid, bare.version) == ("", "", "", "")
    assert bare.lines == (("pods", 2, 0),)


def test_what_a_namespace_may_have_is_rounded_down():
    assert quota({"cpu": "1500u", "requests.memory": "1.9"}).lines == (
        ("cpu", 1, 0),
        ("memory", 1, 0),
    )


def test_a_line_that_is_no_quantity_hides_no_other():
    assert quota({"cpu": "many", "pods": "3"}, {"cpu": "1", "pods": "2"}).lines == (("pods", 3, 2),)


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
