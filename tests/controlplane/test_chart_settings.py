"""What has to be said twice: values and settings say it once, and the chart everywhere else."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from app.labels import selector_from_text
from tests.controlplane.built import skip_unless_built
from tests.controlplane.chart_values import (
    BY_LABEL,
    EVERYTHING,
    OPTIONS,
    config,
    settings,
)
from tests.controlplane.packaged import HOME, NotRendered, chart, manifests, one
from tests.controlplane.plane import ELSEWHERE

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture(autouse=True)
def built() -> None:
    skip_unless_built("helm")


def test_another_namespace_is_named_everywhere() -> None:
    objects = chart({**EVERYTHING, "webhook": {"enabled": True}}, ELSEWHERE)
    assert HOME not in yaml.safe_dump_all(objects)
    told = settings(objects)
    (selected,) = told.admission_namespace_selector.requirements
    assert selected.values == {"kube-system", ELSEWHERE}
    lock = config(objects)["leaderElection"]
    assert told.neighbour_lease == f"{lock['resourceNamespace']}/{lock['resourceName']}"
    assert lock["resourceNamespace"] == ELSEWHERE


def test_schedulers_are_named_once_and_told_to_all_that_have_to_know() -> None:
    names = ["gangs", "kai-scheduler"]
    objects = chart({**EVERYTHING, "settings": {"scheduler_name": ",".join(names)}})
    assert settings(objects).scheduler_name == "gangs,kai-scheduler"
    profiles = config(objects)["profiles"]
    assert [each.pop("schedulerName") for each in profiles] == names
    (shipped,) = config(chart())["profiles"]
    del shipped["schedulerName"]
    shipped["percentageOfNodesToScore"] = 0  # as pods are gated
    assert profiles == [shipped, shipped]
    told = json.dumps(objects)
    conditions = json.dumps(manifests("policy.yaml", "webhook.yaml", "policies.yaml"))
    condition = "schedulerName.orValue('')"
    ours = f"{condition} == 'corral'"
    assert ours not in told
    assert told.count(f"{condition} in ['gangs', 'kai-scheduler']") == conditions.count(ours)


@pytest.mark.parametrize(
    ("values", "share"),
    [
        pytest.param({}, 100, id="members_come_as_they_are"),
        pytest.param(OPTIONS["webhook.yaml"], 0, id="gated_by_the_webhook"),
        pytest.param(OPTIONS["policies.yaml"], 0, id="gated_by_policies"),
        pytest.param(
            {**OPTIONS["webhook.yaml"], "settings": {"percentage_of_nodes_to_score": 100}},
            100,
            id="as_values_say",
        ),
    ],
)
def test_kube_scheduler_samples_the_nodes_where_members_are_narrowed_to_theirs(
    values: dict[str, Any], share: int
) -> None:
    objects = chart(values)
    (profile,) = config(objects)["profiles"]
    assert profile.get("percentageOfNodesToScore", 0) == share
    assert settings(objects).percentage_of_nodes_to_score == share


def test_sampling_and_time_limits_are_said_once() -> None:
    said = {"percentage_of_nodes_to_score": 50, "gang_bind_seconds": 600, "bind_seconds": 20.5}
    objects = chart({"settings": said})
    told = settings(objects)
    (profile,) = config(objects)["profiles"]
    assert profile["percentageOfNodesToScore"] == told.percentage_of_nodes_to_score == 50
    asked, binding = config(objects)["extenders"]
    assert asked["httpTimeout"] == config(chart())["extenders"][0]["httpTimeout"]
    limit = float(binding["httpTimeout"].removesuffix("s"))
    assert told.gang_bind_seconds + told.bind_seconds < limit < 630


def test_values_of_every_kind_are_what_corral_reads() -> None:
    told = settings(
        chart(
            {
                "settings": {
                    "levels": ["a/b", "c/d"],
                    "absent_pods_in": {"team-a": 512, "team-b": 0},
                    "scheduler_vocabularies": {"a": ["grove", "kai"], "b": "kueue"},
                    "under_way_bytes": 134217728,
                    "earmarked_share": 0.25,
                    "protect_running": False,
                    "metric_shapes": {"node": "nvidia.com/gpu=8", "half": "nvidia.com/gpu=4,cpu=8"},
                    "preempt": False,
                }
            }
        )
    )
    assert told.levels == ("a/b", "c/d")
    assert told.absent_pods_in == (("team-a", 512), ("team-b", 0))
    assert told.scheduler_vocabularies == (("a", "grove"), ("a", "kai"), ("b", "kueue"))
    assert told.under_way_bytes == 134217728
    assert told.earmarked_share == 0.25
    assert told.protect_running is False
    assert set(told.metric_shapes) == {
        ("node", "nvidia.com/gpu=8"),
        ("half", "nvidia.com/gpu=4,cpu=8"),
    }
    assert told.preempt == "off"


def test_a_changed_configuration_starts_new_pods() -> None:
    def annotations(values: dict[str, Any]) -> Any:
        metadata = one(chart(values), "Deployment", "corral")["spec"]["template"]["metadata"]
        return metadata.get("annotations", {})

    assert annotations({}) == {}
    seen = [
        annotations(values)
        for values in (
            {"settings": {"percentage_of_nodes_to_score": 50}},
            {"settings": {"percentage_of_nodes_to_score": 60}},
            {"webhook": {"enabled": True}},
            {"webhook": {"enabled": True}, "admission": {"podSelector": BY_LABEL}},
            {"api": {"enabled": True}},
        )
    ]
    assert len({str(each) for each in seen}) == len(seen)


def test_policies_repeat_what_the_settings_say() -> None:
    def expressions(values: dict[str, Any]) -> dict[str, str]:
        objects = chart({**OPTIONS["policies.yaml"], **values})
        every = [each["spec"] for each in objects if each["kind"].endswith("AdmissionPolicy")]
        return {
            each["name"]: each["expression"]
            for spec in every
            for each in [*spec.get("variables", []), *spec.get("matchConditions", [])]
        }

    usual = expressions({})
    kueue = expressions({"settings": {"kueue_manages": True}})
    native = expressions({"settings": {"native_pod_groups": "on"}})
    assert {name for name in usual if usual[name] != kueue[name]} == {"isKueues", "not-kueues"}
    for name in ("isKueues", "not-kueues"):
        assert "'kueue.x-k8s.io/queue-name' in " in kueue[name]
        assert "'kueue.x-k8s.io/queue-name' in " not in usual[name]
    assert {name for name in usual if usual[name] != native[name]} == {"isKubeSchedulers"}
    assert native["isKubeSchedulers"] == "false"
    with pytest.raises(NotRendered, match="in-a-gang"):
        chart({**OPTIONS["policies.yaml"], "settings": {"scheduler_vocabularies": {"a": "grove"}}})


def test_selectors_are_said_once() -> None:
    objects = chart(
        {**EVERYTHING, "admission": {"namespaceSelector": BY_LABEL, "podSelector": BY_LABEL}}
    )
    told = settings(objects)
    elsewhere = f"kubernetes.io/metadata.name notin (kube-system,{HOME})"
    assert told.admission_namespace_selector == selector_from_text(f"team=a,{elsewhere},x")
    assert told.admission_pod_selector == selector_from_text("team=a,x")
    hooks = [hook for each in objects for hook in each.get("webhooks", [])]
    (everywhere,) = manifests("webhook.yaml")[2]["webhooks"]
    selected = {
        "matchLabels": BY_LABEL["matchLabels"],
        "matchExpressions": [
            *everywhere["namespaceSelector"]["matchExpressions"],
            *BY_LABEL["matchExpressions"],
        ],
    }
    assert hooks
    assert all(hook["namespaceSelector"] == selected for hook in hooks)
    gate = one(objects, "MutatingAdmissionPolicy", "gate.corral.dev")["spec"]["matchConstraints"]
    assert gate["namespaceSelector"] == selected
    assert gate["objectSelector"]["matchLabels"] == BY_LABEL["matchLabels"]
    shipped = one(manifests("policies.yaml"), "MutatingAdmissionPolicy", "gate.corral.dev")["spec"][
        "matchConstraints"
    ]["objectSelector"]["matchExpressions"]
    assert gate["objectSelector"]["matchExpressions"] == [*shipped, *BY_LABEL["matchExpressions"]]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        pytest.param({"settings": {"lvels": ["a"]}}, "lvels", id="no_setting"),
        pytest.param({"settings": {"neighbour_lease": "a/b"}}, "neighbour_lease", id="the_charts"),
        pytest.param({"settings": {"narrow_nodes": 2000}}, "1,024", id="beyond_its_bound"),
        pytest.param({"settings": {"scheduler_name": ""}}, "scheduler_name", id="no_profile"),
        pytest.param({"settings": {"scheduler_name": "a,,b"}}, "scheduler_name", id="no_name"),
        pytest.param({"settings": {"scheduler_name": "a, a"}}, "scheduler_name", id="a_name_twice"),
        pytest.param(
            {"settings": {"scheduler_name": "corral,default-scheduler"}},
            "beside",
            id="the_clusters",
        ),
        pytest.param({"settings": {"scheduler_name": "it's"}}, "scheduler_name", id="ends_a_text"),
        pytest.param(
            {"settings": {"born_seconds": 10}}, "set webhook.enabled", id="nothing_has_pods_born"
        ),
        pytest.param(
            {**EVERYTHING, "settings": {"born_seconds": 0.5}}, "leave policies", id="gated_before"
        ),
        pytest.param({"scheduler": {"image": {"tag": "v1.2.3"}}}, "minor", id="no_configuration"),
        pytest.param(
            {"scheduler": {"minor": "1.36", "image": {"tag": ""}}}, "digest", id="no_scheduler"
        ),
        pytest.param({"webhook": {"certificate": "any"}}, "certificate", id="no_certificate"),
    ],
)
def test_values_that_cannot_be_are_refused_before_anything_is_installed(
    values: dict[str, Any], said: str
) -> None:
    with pytest.raises(NotRendered, match=said):
        chart(values)


def test_what_an_older_cluster_has_not_is_refused() -> None:
    older = {"kubernetes": "v1.34.9-gke.100"}
    tag = {"scheduler": {"image": {"tag": "v1.34.9"}}}
    with pytest.raises(NotRendered, match="newer than the cluster"):
        chart(**older)
    assert config(chart(tag, **older)) == config(chart())
    with pytest.raises(NotRendered, match="take webhook"):
        chart({**tag, **OPTIONS["policies.yaml"]}, **older)
    with pytest.raises(NotRendered, match="kubeVersion"):
        chart(kubernetes="v1.33.0")
