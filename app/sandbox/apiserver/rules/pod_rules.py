"""What the API server does to a pod before storing it, and which changes it refuses later.

Only what a scheduler or an extender can notice: defaults, priority, the gated condition, the
validation of requests, gates and node affinity. Texts are the API server's own.
Source: kubernetes 1.36 registry/core/pod/strategy.go, apis/core/validation/validation.go.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from app.sandbox.apiserver.rules.metadata import Causes, label_causes
from app.sandbox.apiserver.rules.quantity import parse
from app.sandbox.apiserver.storage.failures import bad_request, invalid
from app.sandbox.apiserver.storage.kinds import POD, POD_TEMPLATE, Object

_UPDATABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_NOT_EVICTED_AT_ONCE = 300  # seconds; the default of the DefaultTolerationSeconds admission


def with_defaults(pod: Object) -> Object:
    """The pod with all defaults filled in, those of built-in admission among them."""
    spec = {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "enableServiceLinks": True,
    } | (pod.get("spec") or {})
    for field in ("containers", "initContainers"):
        if field in spec:
            spec[field] = [_container(container) for container in spec[field]]
    return with_default_tolerations(pod | {"spec": spec})


def template_with_defaults(body: Object) -> Object:
    """The PodTemplate with the defaults of its pods, but for those that admission fills in."""
    template = body.get("template") or {}
    spec = with_defaults(template)["spec"]
    if tolerations := (template.get("spec") or {}).get("tolerations"):
        spec = spec | {"tolerations": tolerations}
    else:
        del spec["tolerations"]
    metadata = {"metadata": {"creationTimestamp": None} | (template.get("metadata") or {})}
    return body | {"template": metadata | {"spec": spec}}


def check_template(body: Object) -> None:
    """Raises: Refused (422) naming every invalid field of a PodTemplate."""
    spec = body["template"]["spec"]
    found = [*_container_causes(spec), *_affinity_causes(spec)]
    if causes := [(f"template.{field}", type_, why) for field, type_, why in found]:
        raise invalid(POD_TEMPLATE, body["metadata"]["name"], causes)


def with_default_tolerations(pod: Object) -> Object:
    """The default tolerations of lost nodes; admission adds them on create and on update."""
    spec = pod["spec"]
    return pod | {"spec": spec | {"tolerations": _tolerations(spec.get("tolerations") or [])}}


def _container(container: Object) -> Object:
    resources = container.get("resources") or {}
    if limits := resources.get("limits"):
        resources = resources | {"requests": limits | (resources.get("requests") or {})}
    resources = {part: amounts for part, amounts in resources.items() if amounts}
    defaults = {
        "imagePullPolicy": "Always",
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }
    return defaults | container | {"resources": resources}


def _tolerations(present: list[Object]) -> list[Object]:
    tolerated = {item.get("key") for item in present if item.get("effect") in (None, "NoExecute")}
    missing = [
        key
        for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
        if key not in tolerated and None not in tolerated
    ]
    return present + [
        {
            "key": key,
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": _NOT_EVICTED_AT_ONCE,
        }
        for key in missing
    ]


def first_status(spec: Object, *, now: str) -> Object:
    """The status of a new pod: pending, and gated if it has gates."""
    status: Object = {"phase": "Pending", "qosClass": _qos_class(spec)}
    if spec.get("schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "lastProbeTime": None,
                "lastTransitionTime": now,
            }
        ]
    return status


def _qos_class(spec: Object) -> str:
    containers = [*spec.get("containers", []), *spec.get("initContainers", [])]
    resources = [container.get("resources") or {} for container in containers]
    if not any(each.get("requests") or each.get("limits") for each in resources):
        return "BestEffort"
    guaranteed = all(
        each.get("limits", {}).get(name) is not None
        and parse(str(each["limits"][name])) == parse(str(each.get("requests", {}).get(name, -1)))
        for each in resources
        for name in ("cpu", "memory")
    )
    return "Guaranteed" if guaranteed else "Burstable"


def with_new_status(pod: Object, before: Object) -> Object:
    """The pod after a write of its status: its owners stay, and conditions have all their times.

    Raises: Refused (400) for a time that is not one.
    """
    own, old = pod["metadata"], before["metadata"]
    metadata = {name: value for name, value in own.items() if name != "ownerReferences"}
    if "ownerReferences" in old:
        metadata["ownerReferences"] = old["ownerReferences"]
    was = before.get("status") or {}
    kept = {"qosClass": was["qosClass"]} if "qosClass" in was else {}
    status = kept | (pod.get("status") or {})
    if conditions := status.get("conditions"):
        status["conditions"] = [_with_times(each) for each in conditions]
    return pod | {"metadata": metadata, "status": status}


def _with_times(condition: Object) -> Object:
    times = {name: _time(condition.get(name)) for name in ("lastProbeTime", "lastTransitionTime")}
    return condition | times


def _time(given: str | None) -> str | None:
    """As the API server writes it: whole seconds, in UTC."""
    if given is None:
        return None
    try:
        return _text(_moment(given))
    except ValueError as error:
        raise bad_request(f'parsing time "{given}": it is not RFC 3339') from error


def ending(pod: Object, grace: int | None, *, now: str) -> Object | None:
    """The metadata of a pod that is to be deleted; None if its deletion only goes on.

    It may take as long as the request says, else as long as its own grace period says: none at
    all while it has no node, and once it has ended. A second request may only shorten that.
    grace: of the request, seconds.
    Source: apiserver registry/rest/delete.go BeforeDelete; podStrategy.CheckGracefulDelete.
    """
    own: Object = pod["metadata"]
    asked = None if grace is None else _seconds(grace)
    if "deletionTimestamp" in own:
        before = own.get("deletionGracePeriodSeconds") or 0
        if not before:
            return own
        if asked is None or asked >= before:
            return None
        moment = _moment(own["deletionTimestamp"]) + timedelta(seconds=asked - before)
        if moment < _moment(now):
            moment, asked = _moment(now), min(asked, 1)
        return own | {"deletionTimestamp": _text(moment), "deletionGracePeriodSeconds": asked}
    spec: Object = pod["spec"]
    if has_ended(pod) or not spec.get("nodeName"):
        period = 0
    elif asked is not None:
        period = asked
    else:
        period = _seconds(spec.get("terminationGracePeriodSeconds", 0))
    return own | {
        "deletionTimestamp": _text(_moment(now) + timedelta(seconds=period)),
        "deletionGracePeriodSeconds": period,
        "generation": own.get("generation", 1) + 1,
    }


def has_ended(pod: Object) -> bool:
    """Whether its containers have ended for good."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _seconds(grace: int) -> int:
    """A grace period as upstream reads it: a negative one is the shortest that is one."""
    return grace if grace >= 0 else 1


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _text(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def check_new(pod: Object) -> None:
    """Raises: Refused (422) naming every invalid field."""
    spec = pod["spec"]
    causes = _container_causes(spec)
    if spec.get("nodeName") and spec.get("schedulingGates"):
        text = "cannot be set until all schedulingGates have been cleared"
        causes.append(("spec.nodeName", "FieldValueForbidden", f"Forbidden: {text}"))
    names = [gate.get("name", "") for gate in spec.get("schedulingGates") or []]
    for index, name in enumerate(names):
        if name in names[:index]:
            field = f"spec.schedulingGates[{index}]"
            causes.append((field, "FieldValueDuplicate", f'Duplicate value: "{name}"'))
        elif not name:
            field = f"spec.schedulingGates[{index}]"
            causes.append((field, "FieldValueInvalid", 'Invalid value: "": name part must be'))
    causes += _affinity_causes(spec)
    if causes:
        raise invalid(POD, pod["metadata"]["name"], causes)


def _container_causes(spec: Object) -> Causes:
    if not spec.get("containers"):
        return [("spec.containers", "FieldValueRequired", "Required value")]
    causes: Causes = []
    for list_name in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(list_name) or []):
            field = f"spec.{list_name}[{index}]"
            if not container.get("name"):
                causes.append((f"{field}.name", "FieldValueRequired", "Required value"))
            causes += _resource_causes(container.get("resources") or {}, f"{field}.resources")
    return causes


def _resource_causes(resources: Object, field: str) -> Causes:
    causes: Causes = []
    limits = resources.get("limits") or {}
    for part in ("limits", "requests"):
        for name, text in (resources.get(part) or {}).items():
            where = f"{field}.{part}[{name}]"
            try:
                value = parse(str(text))
            except ValueError:
                causes.append((where, "FieldValueInvalid", f'Invalid value: "{text}"'))
                continue
            if value < 0:
                why = f'Invalid value: "{text}": must be greater than or equal to 0'
                causes.append((where, "FieldValueInvalid", why))
            elif part == "requests" and "/" in name and name not in limits:
                why = "Limit must be set for non overcommitable resources"
                causes.append((f"{field}.limits", "FieldValueRequired", f"Required value: {why}"))
            elif part == "requests" and name in limits and value > parse(str(limits[name])):
                why = f'Invalid value: "{text}": must be less than or equal to {name} limit'
                why = f"{why} of {limits[name]}"
                causes.append((f"{field}.requests", "FieldValueInvalid", why))
    return causes


def _affinity_causes(spec: Object) -> Causes:
    selector = label_causes("spec.nodeSelector", spec.get("nodeSelector") or {})
    required = _required_affinity(spec)
    return selector if required is None else selector + _term_causes(required)


def _term_causes(required: Object) -> Causes:
    base = (
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
        ".nodeSelectorTerms"
    )
    terms = required.get("nodeSelectorTerms") or []
    if not terms:
        why = "Required value: must have at least one node selector term"
        return [(base, "FieldValueRequired", why)]
    causes: Causes = []
    for index, term in enumerate(terms):
        for place, wanted in enumerate(term.get("matchExpressions") or []):
            causes += _expression_causes(f"{base}[{index}].matchExpressions[{place}]", wanted)
        for place, wanted in enumerate(term.get("matchFields") or []):
            field = f"{base}[{index}].matchFields[{place}]"
            values = wanted.get("values") or []
            if wanted.get("operator") not in ("In", "NotIn"):
                why = f'Invalid value: "{wanted.get("operator")}": not a valid selector operator'
                causes.append((f"{field}.operator", "FieldValueInvalid", why))
            elif len(values) != 1:
                why = "must be only one value when `operator` is 'In' or 'NotIn' for node field"
                causes.append(
                    (f"{field}.values", "FieldValueRequired", f"Required value: {why} selector")
                )
            if wanted.get("key") != "metadata.name":
                why = f'Invalid value: "{wanted.get("key")}": not a valid field selector key'
                causes.append((f"{field}.key", "FieldValueInvalid", why))
    return causes


def _expression_causes(field: str, wanted: Object) -> Causes:
    """What is wrong with one requirement of a node's labels. Source: ValidateNodeSelectorTerm."""
    causes = label_causes(f"{field}.key", {wanted.get("key", ""): ""})
    operator, values = wanted.get("operator"), wanted.get("values") or []
    field = f"{field}.values"
    if operator in ("In", "NotIn"):
        if not values:
            why = "Required value: must be specified when `operator` is 'In' or 'NotIn'"
            causes.append((field, "FieldValueRequired", why))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            causes.append((field, "FieldValueForbidden", f"Forbidden: {why}"))
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            why = "Required value: must be specified single value when `operator` is 'Lt' or 'Gt'"
            causes.append((field, "FieldValueRequired", why))
    else:
        why = f'Invalid value: "{operator}": not a valid selector operator'
        causes.append((field.replace(".values", ".operator"), "FieldValueInvalid", why))
    return causes


def _required_affinity(spec: Object) -> Object | None:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required: Object | None = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required


def check_update(pod: Object, before: Object) -> None:
    """Refuse what may not change in a stored pod's spec.

    Gates may only go; tolerations may only come; a pod that was gated may gain node selector
    entries and a narrower node affinity; images and the deadline may change; nothing else.
    Raises: Refused (422).
    """
    spec, old = pod["spec"], before["spec"]
    causes = _affinity_causes(spec)
    old_gates = [gate["name"] for gate in old.get("schedulingGates") or []]
    for index, gate in enumerate(spec.get("schedulingGates") or []):
        if (name := gate.get("name")) not in old_gates:
            field = f"spec.schedulingGates[{index}].name"
            why = f"Forbidden: only deletion is allowed, but found new scheduling gate '{name}'"
            causes.append((field, "FieldValueForbidden", why))
    if any(item not in (spec.get("tolerations") or []) for item in old.get("tolerations") or []):
        why = "Forbidden: existing toleration can not be modified except its tolerationSeconds"
        causes.append(("spec.tolerations", "FieldValueForbidden", why))
    if old_gates:
        causes += _gated_causes(spec, old)
    if _fixed_part(spec, was_gated=bool(old_gates)) != _fixed_part(old, was_gated=bool(old_gates)):
        why = f"Forbidden: pod updates may not change fields other than {_UPDATABLE}"
        causes.append(("spec", "FieldValueForbidden", why))
    if causes:
        raise invalid(POD, pod["metadata"]["name"], causes)


def _gated_causes(spec: Object, old: Object) -> Causes:
    causes: Causes = []
    old_selector, selector = old.get("nodeSelector") or {}, spec.get("nodeSelector") or {}
    if any(selector.get(key) != value for key, value in old_selector.items()):
        why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        causes.append(("spec.nodeSelector", "FieldValueInvalid", f"Invalid value: {why}"))
    old_terms = (_required_affinity(old) or {}).get("nodeSelectorTerms") or []
    terms = (_required_affinity(spec) or {}).get("nodeSelectorTerms") or []
    field = (
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
        ".nodeSelectorTerms"
    )
    if old_terms and len(terms) != len(old_terms):
        why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [*causes, (field, "FieldValueInvalid", f"Invalid value: {why}")]
    for index, (term, old_term) in enumerate(zip(terms, old_terms, strict=False)):
        if not _only_adds(term, old_term):
            why = "only additions are allowed (no mutations or deletions)"
            causes.append((f"{field}[{index}]", "FieldValueInvalid", f"Invalid value: {why}"))
    return causes


def _only_adds(term: Object, old: Object) -> bool:
    lists = ("matchExpressions", "matchFields")
    if not any(old.get(name) for name in lists):
        return not any(term.get(name) for name in lists)
    return all(
        (term.get(name) or [])[: len(old.get(name) or [])] == (old.get(name) or [])
        for name in lists
    )


def _fixed_part(spec: Object, *, was_gated: bool) -> Object:
    """The spec without what the other checks judge."""
    free = {"schedulingGates", "tolerations", "activeDeadlineSeconds"}
    fixed = {name: value for name, value in spec.items() if name not in free}
    for field in ("containers", "initContainers"):
        fixed[field] = [each | {"image": ""} for each in spec.get(field) or []]
    if was_gated:
        affinity = {
            name: value
            for name, value in (spec.get("affinity") or {}).items()
            if name != "nodeAffinity" and value
        }
        fixed |= {"nodeSelector": None, "affinity": affinity}
    return {name: value for name, value in fixed.items() if value not in (None, {}, [])}


def with_condition(status: Object, condition: Object, *, now: str) -> Object:
    """The status with this condition set; the same status if it has it already.

    The transition time moves only when the condition's status does (podutil.UpdatePodCondition).
    """
    present = status.get("conditions") or []
    old: Object = next((each for each in present if each["type"] == condition["type"]), {})
    stamps = ("lastTransitionTime", "lastProbeTime")
    if {name: value for name, value in old.items() if name not in stamps} == condition:
        return status
    is_same = old.get("status") == condition["status"]
    stamped = condition | {
        "lastProbeTime": None,
        "lastTransitionTime": old.get("lastTransitionTime") if is_same else now,
    }
    conditions = [stamped if each is old else each for each in present]
    return status | {"conditions": conditions if old else [*conditions, stamped]}
