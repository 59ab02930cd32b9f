"""Each mistake in a KubeSchedulerConfiguration is found by the check that is meant for it alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.cli.doctor.configuration import config_in, seconds
from app.cli.doctor.seen import Seen
from app.errors import DecodeError
from tests.app.cli.doctor.installation import (
    ABSENT,
    BESIDE,
    CONFIG,
    MEMBERS_ALONE,
    MEMBERS_BESIDE,
    config_from,
    edited,
    findings,
    found,
    right,
)

FILTER, BIND = ("extenders", 0), ("extenders", 1)
TLS = (*FILTER, "tlsConfig")
RESOURCE = [{"name": "nvidia.com/gpu"}]
IGNORED = [{"name": "nvidia.com/gpu", "ignoredByScheduler": True}]
ALL_NODES = [{"name": "DefaultPreemption", "args": {"minCandidateNodesPercentage": 100}}]
UNCOUNTED = [{"name": "NodeResourcesFit", "args": {"ignoredResources": ["example.com/nic"]}}]
TENTH = [{"name": "DefaultPreemption", "args": {"minCandidateNodesPercentage": 10}}]

PLANTED = [
    pytest.param(CONFIG, ("apiVersion",), "kubescheduler.config.k8s.io/v1beta3",
                 {"config-kind": "error"}, id="api_version_of_long_ago"),
    pytest.param(CONFIG, ("kind",), "Policy", {"config-kind": "error"}, id="another_kind"),
    pytest.param(CONFIG, ("extenders",), [], {"extender-verbs": "error"}, id="no_extender"),
    pytest.param(CONFIG, (*FILTER, "filterVerb"), "predicates",
                 {"extender-verbs": "error"}, id="verb_of_another_extender"),
    pytest.param(CONFIG, (*FILTER, "preemptVerb"), ABSENT,
                 {"extender-verbs": "warning"}, id="no_preempt"),
    pytest.param(CONFIG, (*BIND, "bindVerb"), ABSENT,
                 {"extender-verbs": "error"}, id="no_bind"),
    pytest.param(CONFIG, (*FILTER, "bindVerb"), "bind", {"bind-once": "error"}, id="two_binders"),
    pytest.param(CONFIG, (*FILTER, "weight"), 0, {"weight": "error"}, id="no_weight"),
    pytest.param(CONFIG, (*FILTER, "nodeCacheCapable"), False,
                 {"node-cache-capable": "error"}, id="whole_nodes"),
    pytest.param(CONFIG, (*FILTER, "nodeCacheCapable"), ABSENT,
                 {"node-cache-capable": "error"}, id="whole_nodes_by_default"),
    pytest.param(CONFIG, (*FILTER, "ignorable"), True,
                 {"ignorable": "error"}, id="filter_ignorable"),
    pytest.param(CONFIG, (*BIND, "ignorable"), True, {"ignorable": "error"}, id="bind_ignorable"),
    pytest.param(BESIDE, (*TLS, "caFile"), ABSENT, {"extender-tls": "error"}, id="no_authority"),
    pytest.param(BESIDE, TLS, {"insecure": True, "certFile": "a", "keyFile": "b"},
                 {"extender-tls": "error"}, id="insecure"),
    pytest.param(CONFIG, (*FILTER, "enableHTTPS"), True,
                 {"extender-tls": "warning"}, id="https_in_name_only"),
    pytest.param(BESIDE, (*TLS, "certFile"), ABSENT,
                 {"client-certificate": "error"}, id="no_client_certificate"),
    pytest.param(CONFIG, ("extenders",),
                 [{**each, "urlPrefix": "http://corral:8888"} for each in CONFIG["extenders"]],
                 {"client-certificate": "error"}, id="plain_text_beyond_loopback"),
    pytest.param(CONFIG, (*FILTER, "httpTimeout"), "5m",
                 {"filter-timeout": "warning"}, id="filter_waits_as_long_as_bind"),
    pytest.param(CONFIG, (*FILTER, "managedResources"), RESOURCE,
                 {"managed-resources": "warning"}, id="managed_resource"),
    pytest.param(CONFIG, (*FILTER, "managedResources"), IGNORED,
                 {"managed-resources": "error"}, id="resource_not_counted"),
    pytest.param(MEMBERS_ALONE, (*FILTER, "managedResources", 0, "ignoredByScheduler"), ABSENT,
                 {"managed-resources": "error"}, id="marker_that_is_counted"),
    pytest.param(CONFIG, ("profiles", 0, "pluginConfig"), TENTH,
                 {"preemption-sample": "warning"}, id="victims_of_a_tenth"),
    pytest.param(CONFIG, ("profiles", 0, "pluginConfig"), [*ALL_NODES, *UNCOUNTED],
                 {"ignored-resources": "warning"}, id="resources_that_are_not_counted"),
]  # fmt: skip


@pytest.mark.parametrize(("document", "path", "value", "wanted"), PLANTED)
def test_a_mistake_is_found_by_the_check_that_is_meant(document, path, value, wanted):
    seen = Seen(config=config_from(edited(document, path, value)))
    assert found(seen) == wanted
    assert all(each.mend for each in findings(seen))


@pytest.mark.parametrize(
    "document",
    [CONFIG, BESIDE, MEMBERS_ALONE, MEMBERS_BESIDE],
    ids=["sidecar", "beside", "marker", "beside-marker"],
)
def test_what_is_shipped_is_right(document):
    assert findings(Seen(config=config_from(document))) == []


def test_a_sentence_names_the_object_the_field_and_the_value():
    changed = edited(CONFIG, (*FILTER, "ignorable"), True)
    (only,) = findings(replace(right(), config=config_from(changed)))
    assert only.text.startswith("the configuration: extenders[0].ignorable is true: ")
    assert (only.field, only.value) == ("extenders[0].ignorable", True)
    assert only.mend == "ignorable: false"


def test_an_extender_of_others_is_left_alone():
    other = {"urlPrefix": "http://127.0.0.1:9999/gpu", "filterVerb": "check", "ignorable": True}
    changed = edited(CONFIG, ("extenders",), [*CONFIG["extenders"], other])
    assert findings(replace(right(), config=config_from(changed))) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("extenders: 1\nkind: KubeSchedulerConfiguration", "extenders: ", id="type"),
        pytest.param("extenders: [{weight: x}]", "extenders[0].weight: ", id="inner_type"),
        pytest.param("extenders: [", "source: ", id="no_yaml"),
        pytest.param("kind: Pod", "no KubeSchedulerConfiguration", id="another_object"),
        pytest.param("", "no KubeSchedulerConfiguration", id="empty"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_field(text, said):
    with pytest.raises(DecodeError, match=r"^source: ") as raised:
        config_in(text, "source")
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("30s", 30.0), ("1m30s", 90.0), ("300ms", 0.3), ("1.5h", 5400.0), ("", 0.0), ("30", 0.0),
     ("s", 0.0), ("1x", 0.0)],
)  # fmt: skip
def test_durations_are_those_of_go(text, wanted):
    assert seconds(text) == pytest.approx(wanted)


def test_null_is_the_default():
    config = config_in("kind: KubeSchedulerConfiguration\nextenders: null\nprofiles:\n", "source")
    assert [each.scheduler_name for each in config.content.profiles] == ["default-scheduler"]
    assert config.content.extenders == []
