"""What a PodTemplate keeps of the pod it is made of."""

from __future__ import annotations

import copy
import json

from app.dialects.provisioning import keys, making

JOB = making.owner_reference("batch/v1", "Job", "train", "u-job")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
POD = {
    "metadata": {
        "name": "train-0",
        "namespace": "team",
        "labels": {"app": "train"},
        "annotations": {"note": "mine"},
    },
    "spec": {
        "schedulerName": "corral",
        "schedulingGates": [{"name": "corral.dev/gang"}],
        "nodeName": "",
        "hostname": "train-0",
        "subdomain": "train",
        "priority": 7,
        "priorityClassName": "high",
        "nodeSelector": {"disk": "fast"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
            {"name": "kube-api-access", "projected": {"sources": []}},
        ],
        "initContainers": [{"name": "get", "image": "i", "restartPolicy": "Always"}],
        "containers": [
            {
                "name": "work",
                "image": "i",
                "command": ["run"],
                "env": [{"name": "TOKEN", "value": "secret"}],
                "volumeMounts": [{"name": "scratch", "mountPath": "/s"}],
                "ports": [{"containerPort": 1, "hostPort": 1}],
                "resources": {
                    "limits": {"cpu": "4", "nvidia.com/gpu": "8"},
                    "requests": {"cpu": 2},
                },
            }
        ],
    },
}


def template(pod=POD, **off):
    made = making.pod_template("corral-1f-1-0", "1f", pod, [JOB], **off)
    return made, made["template"]["spec"]


def with_terms(*terms):
    pod = copy.deepcopy(POD)
    affinity = {REQUIRED: {"nodeSelectorTerms": list(terms)}, "preferred": ["kept"]}
    pod["spec"]["affinity"] = {"nodeAffinity": affinity, "podAffinity": {"kept": True}}
    return pod


def terms_of(spec):
    return spec["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]


def test_a_template_has_what_schedulers_look_at():
    made, spec = template()
    assert made["metadata"] == {
        "name": "corral-1f-1-0",
        "namespace": "team",
        "labels": {"corral.dev/gang-uid": "1f"},
        "ownerReferences": [JOB],
    }
    assert made["template"]["metadata"] == {"labels": {"app": "train"}}
    assert spec["nodeSelector"] == {"disk": "fast"}
    assert (spec["priority"], spec["priorityClassName"]) == (7, "high")
    assert spec["tolerations"] == POD["spec"]["tolerations"]
    assert [each["name"] for each in spec["volumes"]] == ["data"]
    assert spec["initContainers"] == [{"name": "get", "image": "i", "restartPolicy": "Always"}]


def test_gates_host_names_and_what_only_a_kubelet_needs_are_left_out():
    _, spec = template()
    assert not spec.keys() & {"schedulingGates", "nodeName", "hostname", "subdomain"}
    (work,) = spec["containers"]
    assert work.keys() == {"name", "image", "ports", "resources"}
    assert "secret" not in json.dumps(spec)


def test_requests_that_are_missing_are_the_limits():
    (work,) = template()[1]["containers"]
    assert work["resources"]["requests"] == {"cpu": 2, "nvidia.com/gpu": "8"}


def test_markers_are_left_out_since_no_node_offers_them():
    pod = copy.deepcopy(POD)
    resources = pod["spec"]["containers"][0]["resources"]
    for part in ("limits", "requests"):
        resources[part] |= {"corral.dev/member": "1", "corral.dev/member-bind": "1"}
    assert template(pod) == template()


def test_the_pod_itself_is_not_changed():
    before = copy.deepcopy(POD)
    template(off_nodes=("n1",))
    assert before == POD


def test_nodes_are_excluded_one_requirement_each_for_the_api_takes_one_value():
    _, spec = template(off_nodes=("n1", "n2"))
    assert terms_of(spec) == [
        {
            "matchFields": [
                {"key": "metadata.name", "operator": "NotIn", "values": ["n1"]},
                {"key": "metadata.name", "operator": "NotIn", "values": ["n2"]},
            ]
        }
    ]


def test_domains_are_excluded_by_their_label_in_one_requirement():
    _, spec = template(off_level="rack", off_domains=("r0", "r1"))
    line = {"key": "rack", "operator": "NotIn", "values": ["r0", "r1"]}
    assert terms_of(spec) == [{"matchExpressions": [line]}]


def test_every_term_of_the_pods_own_affinity_is_narrowed_and_one_that_is_empty_stays_none():
    own = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
    _, spec = template(with_terms(own, {}), off_nodes=("n1",))
    first, second = terms_of(spec)
    assert first["matchExpressions"] == own["matchExpressions"]
    assert [each["values"] for each in first["matchFields"]] == [["n1"]]
    assert second == {}
    assert spec["affinity"]["nodeAffinity"]["preferred"] == ["kept"]
    assert spec["affinity"]["podAffinity"] == {"kept": True}


def test_what_we_narrowed_a_pod_to_is_taken_away():
    pod = with_terms({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]})
    pod["metadata"]["annotations"]["corral.dev/narrowed"] = "nodes"
    assert REQUIRED not in template(pod)[1]["affinity"]["nodeAffinity"]
    pod = copy.deepcopy(POD)
    pod["spec"]["nodeSelector"]["rack"] = "r1"
    pod["metadata"]["annotations"]["corral.dev/narrowed"] = "rack"
    assert template(pod)[1]["nodeSelector"] == {"disk": "fast"}


def test_a_request_counts_the_pods_of_each_template():
    made = making.request("corral-1f-1", "1f", "team", "a.example", [("t0", 1), ("t1", 7)], [JOB])
    assert (made["apiVersion"], made["kind"]) == ("autoscaling.x-k8s.io/v1", keys.KIND)
    assert made["spec"] == {
        "provisioningClassName": "a.example",
        "podSets": [
            {"count": 1, "podTemplateRef": {"name": "t0"}},
            {"count": 7, "podTemplateRef": {"name": "t1"}},
        ],
    }
