"""What is kept of requests and templates, and how ours are told from those of others."""

from __future__ import annotations

import msgspec
import pytest

from app.dialects.provisioning import DIALECT, keys
from app.dialects.provisioning.records import decode_request, decode_template
from app.dialects.registry import DIALECTS
from app.dialects.spec import GangKey
from app.errors import DecodeError
from app.settings import EngineOptions
from app.state.autoscaling.requests import MOST_ATTEMPTS
from tests.records import pod

UID = keys.gang_uid(GangKey("team", "train", "job", "e1"))
NAME = keys.request_name(UID, 2)
ON = EngineOptions(provisioning_class="a.example")


def request(name=NAME, uid=UID, conditions=(), **spec):
    """A request as the API server has it."""
    labels = {keys.GANG_UID: uid} if uid else {}
    metadata = {"name": name, "namespace": "team", "uid": "u1", "labels": labels}
    sets = [{"count": 4, "podTemplateRef": {"name": f"{name}-0"}}]
    spec = {"provisioningClassName": "a.example", "podSets": sets, **spec}
    body = {"metadata": metadata, "spec": spec, "status": {"conditions": list(conditions)}}
    return decode_request(msgspec.json.encode(body))


def said(type_, status="True", reason="Why", message=""):
    return {"type": type_, "status": status, "reason": reason, "message": message}


def test_a_request_of_ours_says_which_attempt_of_which_gang_it_is():
    record = request()
    assert (record.gang_uid, record.attempt, record.class_name) == (UID, 2, "a.example")
    assert (record.templates, record.pods) == ((f"{NAME}-0",), 4)
    assert (record.is_accepted, record.is_over, record.shown) == (False, False, "")


@pytest.mark.parametrize(
    ("name", "uid"),
    [
        pytest.param("theirs", "", id="no_label"),
        pytest.param("theirs", UID, id="another_name"),
        pytest.param(keys.request_name("other", 1), UID, id="another_gangs_name"),
        pytest.param(f"{NAME}x", UID, id="no_attempt"),
        pytest.param(f"corral-{UID}--1", UID, id="a_negative_attempt"),
        pytest.param(f"corral-{UID}-" + 30 * "9", UID, id="an_endless_attempt"),
        pytest.param(f"corral-{UID}-10", UID, id="a_later_attempt_than_any"),
        pytest.param(f"corral-{UID}-01", UID, id="an_attempt_by_another_name"),
    ],
)
def test_what_is_not_ours_is_kept_by_its_name_alone(name, uid):
    record = request(name, uid, conditions=[said("Failed")])
    assert (record.name, record.gang_uid, record.attempt, record.said) == (name, "", 0, ())


def test_equal_gangs_have_equal_names_and_each_epoch_its_own():
    epochs = [GangKey("team", "train", "job", epoch) for epoch in ("e1", "e1", "e2")]
    first, again, next_ = map(keys.gang_uid, epochs)
    assert first == again != next_
    assert len(keys.template_name(keys.request_name(first, 9), 31)) <= 63


def test_conditions_are_facts_and_those_that_are_not_known_are_left_out():
    conditions = [said("Accepted"), said("Sparkling"), said("Provisioned", "False", "NotFound")]
    record = request(conditions=conditions)
    assert [type_ for type_, _ in record.said] == ["Accepted", "Provisioned"]
    assert (record.is_accepted, record.is_answered, record.is_over) == (True, True, False)
    assert record.shown == "Provisioned=False, NotFound"


@pytest.mark.parametrize("type_", ["Failed", "BookingExpired"])
def test_what_is_over_is_shown_before_what_came_earlier(type_):
    record = request(conditions=[said("Provisioned"), said(type_, message="no luck")])
    assert record.is_over
    assert record.shown == f"{type_}=True, Why: no luck"


def test_a_long_message_is_cut():
    record = request(conditions=[said("Failed", message="x" * 10_000)])
    assert len(str(record.condition("Failed"))) < 300


def test_a_request_that_cannot_be_read_is_named():
    with pytest.raises(DecodeError, match="ProvisioningRequest team/corral-"):
        request(podSets="four")


def test_a_template_of_ours_says_which_request_owns_it():
    metadata = {"name": f"{NAME}-0", "namespace": "team", "labels": {keys.GANG_UID: UID}}
    owners = [{"kind": "Job", "uid": "u2"}, {"kind": keys.KIND, "uid": "u3"}]
    body = {"metadata": {**metadata, "ownerReferences": owners}, "template": {"spec": {}}}
    record = decode_template(msgspec.json.encode(body))
    assert (record.gang_uid, record.requests) == (UID, ("u3",))
    del body["metadata"]["labels"]
    assert decode_template(msgspec.json.encode(body)).gang_uid == ""


def test_requests_are_watched_only_where_a_class_is_set_and_need_not_be_there():
    assert keys.KIND not in DIALECTS.kinds
    assert not DIALECTS.keeps(keys.CLASS)
    configured = DIALECTS.configured(ON)
    watched = {each.kind: each for each in configured.resources()}
    assert all(watched[kind].is_optional for kind in (keys.KIND, keys.TEMPLATE_KIND))
    assert configured.keeps(keys.CLASS)


@pytest.mark.parametrize(
    ("value", "is_valid"),
    [
        ("best-effort-atomic-scale-up.autoscaling.x-k8s.io", True),
        ("", True),
        ("Upper", False),
        ("a..b", False),
        ("-a", False),
        ("a" * 254, False),
        ("*", False),
    ],
)
def test_a_class_that_can_be_none_is_refused_by_name(value, is_valid):
    flaws = list(DIALECT.configured(ON).rules(pod("p", annotations={keys.CLASS: value}), None))
    assert bool(flaws) is not is_valid
    for flaw in flaws:
        assert str(flaw).startswith(f"metadata.annotations[{keys.CLASS}]: Invalid value: ")


def test_no_gang_has_more_requests_and_templates_than_are_looked_at_with_ease():
    """What anybody may make in his namespace is ours by its name and label alone."""
    numbers = [*map(str, range(1_000)), "01", "-1", "1.0", "+1", "\u0661", ""]
    made = [f"corral-{UID}-{number}" for number in numbers]
    requests = [name for name in made if request(name).attempt]
    assert set(requests) >= {keys.request_name(UID, each) for each in range(1, MOST_ATTEMPTS + 1)}
    templates = [f"{name}-{number}" for name in requests for number in numbers]
    ours = [name for name in templates if keys.is_template(name, UID)]
    assert {keys.template_name(requests[0], index) for index in range(32)} < set(ours)
    assert len(requests) + len(ours) <= 300
