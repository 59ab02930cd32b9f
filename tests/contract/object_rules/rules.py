"""Marks on pods, PodTemplates and ProvisioningRequests: what is kept, merged and refused.

Each rule makes objects of the default namespace and deletes them again. Raises: AssertionError.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tests.autoscaling.objects import pod_template, provisioning_request
from tests.cluster import GPU, MERGE, STRATEGIC, Cluster, Object, Refused, pod

Rule = Callable[[Cluster], None]

GATE = "corral.dev/gang"
THEN, LATER = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u"}


def mark(message: str = "gang default/g needs nodes", **more: Any) -> Object:
    """The condition by which a pod asks for a node."""
    named = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return {**named, "message": message, "lastTransitionTime": THEN, **more}


def patched(cluster: Cluster, *conditions: Object, **more: Any) -> Object:
    """The pod "marked" with these conditions merged into its status."""
    change = {"status": {"conditions": list(conditions)}, **more}
    return cluster.patch("Pod", "marked/status", change, content_type=STRATEGIC)


def gated(cluster: Cluster) -> Object:
    """A new pod "marked" behind a gate."""
    return cluster.create(pod("marked", gates=[GATE]))


# -- marks: a strategic merge PATCH of pods/status -----------------------------------------------


def a_mark_takes_the_place_of_the_condition_of_gates(cluster: Cluster) -> None:
    created = gated(cluster)
    (first,) = created["status"]["conditions"]
    assert (first["type"], first["reason"]) == ("PodScheduled", "SchedulingGated")
    (found,) = patched(cluster, mark())["status"]["conditions"]
    # What the patch does not name stays as it was.
    assert found == {**first, **mark()}
    after = cluster.get("Pod", "marked")
    assert after is not None
    assert after["status"]["conditions"] == [found]
    assert after["spec"]["schedulingGates"] == [{"name": GATE}]
    assert after["metadata"]["generation"] == created["metadata"]["generation"]
    assert after["metadata"]["resourceVersion"] != created["metadata"]["resourceVersion"]


def conditions_of_other_types_stay_and_new_ones_come_first(cluster: Cluster) -> None:
    gated(cluster)
    ready = {"type": "example.com/Ready", "status": "False", "reason": "Waits"}
    patched(cluster, ready)
    patched(cluster, mark())
    found = patched(cluster, {"type": "example.com/Other", "status": "True"})
    said = [(each["type"], each.get("reason")) for each in found["status"]["conditions"]]
    assert said == [
        ("example.com/Other", None),
        ("example.com/Ready", "Waits"),
        ("PodScheduled", "Unschedulable"),
    ]
    assert found["status"]["conditions"][0] == {
        "type": "example.com/Other",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": None,
    }


def the_same_mark_again_is_no_new_version(cluster: Cluster) -> None:
    gated(cluster)
    once = patched(cluster, mark())
    again = patched(cluster, mark())
    assert again["metadata"]["resourceVersion"] == once["metadata"]["resourceVersion"]
    other = patched(cluster, mark("5 of 8 pods fit"))
    assert other["metadata"]["resourceVersion"] != once["metadata"]["resourceVersion"]


def a_mark_is_taken_back_as_it_came(cluster: Cluster) -> None:
    (first,) = gated(cluster)["status"]["conditions"]
    patched(cluster, mark())
    back = {name: value for name, value in first.items() if value is not None}
    (found,) = patched(cluster, back)["status"]["conditions"]
    assert found == first


def a_condition_goes_by_the_delete_directive(cluster: Cluster) -> None:
    gated(cluster)
    patched(cluster, {"type": "example.com/Ready", "status": "False"})
    found = patched(cluster, {"$patch": "delete", "type": "PodScheduled"})
    assert [each["type"] for each in found["status"]["conditions"]] == ["example.com/Ready"]


def the_order_of_a_patch_is_followed(cluster: Cluster) -> None:
    gated(cluster)
    patched(cluster, {"type": "example.com/Ready", "status": "False"})
    types = ["example.com/Ready", "PodScheduled"]
    order = {"$setElementOrder/conditions": [{"type": each} for each in types]}
    change = {"status": {"conditions": [mark()], **order}}
    found = cluster.patch("Pod", "marked/status", change, content_type=STRATEGIC)
    assert [each["type"] for each in found["status"]["conditions"]] == types


def what_a_patch_names_comes_in_its_own_order(cluster: Cluster) -> None:
    gated(cluster)

    def types_after(*letters: str) -> str:
        named = [{"type": f"example.com/{each}", "status": "True"} for each in letters]
        said = patched(cluster, *named)["status"]["conditions"]
        return "".join(each["type"].rpartition("/")[2][0] for each in said)

    assert types_after("A", "B", "C") == "ABCP"
    assert types_after("C", "D") == "ABCDP"
    assert types_after("E", "C") == "EABCDP"
    assert types_after("B", "A") == "EBACDP"


def fractions_of_a_second_are_cut_off(cluster: Cluster) -> None:
    gated(cluster)
    given = mark(lastTransitionTime="2026-01-01T00:00:00.987654Z")
    (found,) = patched(cluster, given)["status"]["conditions"]
    assert found["lastTransitionTime"] == THEN


def a_merge_patch_replaces_all_conditions(cluster: Cluster) -> None:
    gated(cluster)
    patched(cluster, {"type": "example.com/Ready", "status": "False"})
    change = {"status": {"conditions": [mark()]}}
    found = cluster.patch("Pod", "marked/status", change, content_type=MERGE)
    assert [each["type"] for each in found["status"]["conditions"]] == ["PodScheduled"]


def a_mark_changes_no_spec_and_no_owner_but_annotations(cluster: Cluster) -> None:
    created = gated(cluster)
    metadata = {"annotations": {"a": "b"}, "ownerReferences": [OWNER]}
    spec = {"schedulingGates": [{"$patch": "delete", "name": GATE}]}
    found = patched(cluster, mark(), metadata=metadata, spec=spec)
    assert found["spec"] == created["spec"]
    assert "ownerReferences" not in found["metadata"]
    assert found["metadata"]["annotations"] == {"a": "b"}


def other_fields_of_the_status_stay_with_a_mark(cluster: Cluster) -> None:
    created = gated(cluster)
    found = patched(cluster, mark())
    assert {**found["status"], "conditions": []} == {**created["status"], "conditions": []}


def a_mark_for_another_uid_is_refused(cluster: Cluster) -> None:
    gated(cluster)
    refused = refusal(lambda: patched(cluster, mark(), metadata={"uid": "another"}))
    assert (refused.status, refused.reason) == (422, "Invalid")
    assert said_of_the_pod(cluster) == "SchedulingGated"


def a_mark_for_another_version_is_refused(cluster: Cluster) -> None:
    created = gated(cluster)
    version = created["metadata"]["resourceVersion"]
    patched(cluster, {"type": "example.com/Ready", "status": "False"})
    refused = refusal(lambda: patched(cluster, mark(), metadata={"resourceVersion": version}))
    assert (refused.status, refused.reason) == (409, "Conflict")
    assert said_of_the_pod(cluster) == "SchedulingGated"


def a_condition_without_a_type_is_refused(cluster: Cluster) -> None:
    gated(cluster)
    refused = refusal(lambda: patched(cluster, {"status": "False", "reason": "Unschedulable"}))
    assert "does not contain declared merge key: type" in refused.message


def a_mark_of_a_pod_that_has_gone_is_404(cluster: Cluster) -> None:
    assert refusal(lambda: patched(cluster, mark())).status == 404


def binding_a_marked_pod_makes_its_condition_true(cluster: Cluster) -> None:
    created = cluster.create(pod("marked"))
    patched(cluster, mark())
    cluster.bind("marked", "somewhere", uid=created["metadata"]["uid"])
    found = cluster.get("Pod", "marked")
    assert found is not None
    (condition,) = found["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
    assert "reason" not in condition
    assert "message" not in condition
    assert condition["lastTransitionTime"] > THEN


def said_of_the_pod(cluster: Cluster) -> str:
    """The reason why the pod "marked" is not scheduled."""
    found = cluster.get("Pod", "marked")
    assert found is not None
    conditions = {each["type"]: each for each in found["status"]["conditions"]}
    return str(conditions["PodScheduled"]["reason"])


# -- PodTemplates --------------------------------------------------------------------------------


def a_pod_template_is_kept_with_defaults(cluster: Cluster) -> None:
    template = pod_template("shape", requests={GPU: 8})
    template["template"]["spec"]["tolerations"] = [{"key": GPU, "operator": "Exists"}]
    created = cluster.create(template)
    assert created["metadata"]["generation"] == 1
    spec = created["template"]["spec"]
    assert spec["restartPolicy"] == "Always"
    # What admission adds to pods is not added to templates.
    assert spec["tolerations"] == template["template"]["spec"]["tolerations"]
    assert "priority" not in spec
    assert spec["containers"][0]["resources"]["requests"] == {GPU: "8"}
    assert cluster.get("PodTemplate", "shape") == created


def a_pod_templates_generation_counts_changes_of_the_template(cluster: Cluster) -> None:
    cluster.create(pod_template("shape"))
    labelled = cluster.patch("PodTemplate", "shape", {"metadata": {"labels": {"a": "b"}}})
    selector = {"template": {"spec": {"nodeSelector": {"pool": "a"}}}}
    changed = cluster.patch("PodTemplate", "shape", selector, content_type=STRATEGIC)
    assert [each["metadata"]["generation"] for each in (labelled, changed)] == [1, 2]


def a_pod_template_without_containers_is_422(cluster: Cluster) -> None:
    template = pod_template("shape")
    template["template"]["spec"]["containers"] = []
    refused = refusal(lambda: cluster.create(template))
    assert refused.status == 422
    assert "template.spec.containers: Required value" in refused.message


# -- ProvisioningRequests ------------------------------------------------------------------------


def a_request_is_kept_in_both_versions(cluster: Cluster) -> None:
    created = cluster.create(provisioning_request("r", {"shape": 8}))
    assert created["metadata"]["generation"] == 1
    assert "status" not in created
    path = "/apis/autoscaling.x-k8s.io/v1beta1/namespaces/default/provisioningrequests/r"
    older = cluster.request("GET", path).json()
    assert older["apiVersion"] == "autoscaling.x-k8s.io/v1beta1"
    assert older["spec"] == created["spec"]


def a_request_may_not_change(cluster: Cluster) -> None:
    cluster.create(provisioning_request("r", {"shape": 8}, parameters={"noRetry": "true"}))
    changes = {
        "podSets": [{"count": 9, "podTemplateRef": {"name": "shape"}}],
        "provisioningClassName": "other.example.com",
        "parameters": {"noRetry": "false"},
    }
    for field, value in changes.items():
        change = {"spec": {field: value}}
        refused = refusal(lambda change=change: cluster.patch("ProvisioningRequest", "r", change))
        assert (refused.status, refused.reason) == (422, "Invalid")
        said = f'ProvisioningRequest.autoscaling.x-k8s.io "r" is invalid: spec.{field}: '
        assert refused.message.startswith(said)
        assert refused.message.endswith("Value is immutable")
    cluster.patch("ProvisioningRequest", "r", {"metadata": {"labels": {"a": "b"}}})


def parameters_may_be_set_once(cluster: Cluster) -> None:
    """A rule about the value before says nothing where there was none."""
    cluster.create(provisioning_request("r", {"shape": 8}))
    given = {"spec": {"parameters": {"noRetry": "true"}}}
    found = cluster.patch("ProvisioningRequest", "r", given)
    assert found["metadata"]["generation"] == 2
    change = {"spec": {"parameters": {"noRetry": "false"}}}
    assert refusal(lambda: cluster.patch("ProvisioningRequest", "r", change)).status == 422


def a_requests_status_is_written_apart(cluster: Cluster) -> None:
    cluster.create(provisioning_request("r", {"shape": 8}))
    accepted = {
        "type": "Accepted",
        "status": "True",
        "reason": "Accepted",
        "message": "",
        "lastTransitionTime": THEN,
    }
    status = {"status": {"conditions": [accepted]}}
    ignored = cluster.patch("ProvisioningRequest", "r", status)
    assert "status" not in ignored
    found = cluster.patch("ProvisioningRequest", "r/status", {**status, "spec": {"podSets": []}})
    assert found["status"]["conditions"] == [accepted]
    assert found["spec"]["podSets"] == [{"count": 8, "podTemplateRef": {"name": "shape"}}]
    assert found["metadata"]["generation"] == 1


def a_request_takes_no_strategic_merge(cluster: Cluster) -> None:
    cluster.create(provisioning_request("r", {"shape": 8}))
    change = {"metadata": {"labels": {"a": "b"}}}
    strategic = partial(cluster.patch, content_type=STRATEGIC)
    refused = refusal(lambda: strategic("ProvisioningRequest", "r", change))
    assert refused.status == 415


def a_second_request_of_the_name_is_409(cluster: Cluster) -> None:
    cluster.create(provisioning_request("r", {"shape": 8}))
    refused = refusal(lambda: cluster.create(provisioning_request("r", {"shape": 8})))
    assert (refused.status, refused.reason) == (409, "AlreadyExists")


# -- how they are played -------------------------------------------------------------------------

MARKS: tuple[Rule, ...] = (
    a_mark_takes_the_place_of_the_condition_of_gates,
    conditions_of_other_types_stay_and_new_ones_come_first,
    the_same_mark_again_is_no_new_version,
    a_mark_is_taken_back_as_it_came,
    a_condition_goes_by_the_delete_directive,
    the_order_of_a_patch_is_followed,
    what_a_patch_names_comes_in_its_own_order,
    fractions_of_a_second_are_cut_off,
    a_merge_patch_replaces_all_conditions,
    a_mark_changes_no_spec_and_no_owner_but_annotations,
    other_fields_of_the_status_stay_with_a_mark,
    a_mark_for_another_uid_is_refused,
    a_mark_for_another_version_is_refused,
    a_condition_without_a_type_is_refused,
    a_mark_of_a_pod_that_has_gone_is_404,
    binding_a_marked_pod_makes_its_condition_true,
)
TEMPLATES: tuple[Rule, ...] = (
    a_pod_template_is_kept_with_defaults,
    a_pod_templates_generation_counts_changes_of_the_template,
    a_pod_template_without_containers_is_422,
)
REQUESTS: tuple[Rule, ...] = (
    a_request_is_kept_in_both_versions,
    a_request_may_not_change,
    parameters_may_be_set_once,
    a_requests_status_is_written_apart,
    a_request_takes_no_strategic_merge,
    a_second_request_of_the_name_is_409,
)
RULES = (*MARKS, *TEMPLATES, *REQUESTS)


def play(rule: Rule, cluster: Cluster) -> None:
    """Raises: AssertionError where the API server does not keep the rule."""
    try:
        rule(cluster)
    finally:
        for kind in ("Pod", "PodTemplate", "ProvisioningRequest"):
            cluster.delete_all(kind)


def refusal(tried: Callable[[], object]) -> Refused:
    """What is refused. Raises: AssertionError where it is not."""
    try:
        tried()
    except Refused as refused:
        return refused
    raise AssertionError("the API server lets that in")
