"""The subresources of a pod that are posted to: binding and eviction.

An eviction is a deletion that the pod's disruption budget must allow. There is no disruption
controller here: a budget's status stays as it was written, but for evictions, which count it down.
Texts and the order of the checks are those of kube-apiserver.
Source: kubernetes 1.36 registry/core/pod/storage/{storage,eviction}.go.
"""

from __future__ import annotations

from app.sandbox.apiserver.rules.pod_rules import with_condition
from app.sandbox.apiserver.rules.registry import Registry
from app.sandbox.apiserver.storage import failures
from app.sandbox.apiserver.storage.failures import Refused
from app.sandbox.apiserver.storage.kinds import DISRUPTION_BUDGET, POD, Key, Object
from app.sandbox.apiserver.storage.patch import MERGE
from app.sandbox.apiserver.storage.selectors import matches_labels
from app.sandbox.apiserver.storage.store import Stored

_UNGUARDED = (
    "Pending",
    "Succeeded",
    "Failed",
)  # phases in which a pod does not count for its budget


def bind(registry: Registry, namespace: str, name: str, binding: Object) -> Stored:
    """Assign a pod to a node, once. The node need not exist, as upstream.

    Raises: Refused: 400, 404, 409 (other uid, going, already assigned, gated).
    """
    metadata = binding.get("metadata") or {}
    if metadata.get("name", name) != name:
        raise failures.bad_request("name in URL does not match name in Binding object")
    target = binding.get("target") or {}
    if not target.get("name") or target.get("kind", "Node") not in ("", "Node"):
        raise Refused(500, "", "target.name: Required value")
    before = registry.read(POD, (namespace, name))
    pod, own = before.body, before.body["metadata"]
    if metadata.get("uid") and metadata["uid"] != own["uid"]:
        raise failures.wrong_uid(POD, namespace, name, metadata["uid"], own["uid"])
    if why := _why_not_bindable(name, pod):
        raise failures.conflict(POD, name, why, subresource="binding")
    labels = (own.get("labels") or {}) | (metadata.get("labels") or {})
    annotations = (own.get("annotations") or {}) | (metadata.get("annotations") or {})
    status = {k: v for k, v in pod["status"].items() if k != "nominatedNodeName"}
    status = with_condition(status, {"type": "PodScheduled", "status": "True"}, now=registry.now())
    bound = pod | {
        "metadata": own | {"labels": labels, "annotations": annotations},
        "spec": pod["spec"] | {"nodeName": target["name"]},
        "status": status,
    }
    return registry.store.put(POD, (namespace, name), bound)


def _why_not_bindable(name: str, pod: Object) -> str:
    if pod["metadata"].get("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if node := pod["spec"].get("nodeName"):
        return f'pod {name} is already assigned to node "{node}"'
    if pod["spec"].get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def evict(registry: Registry, key: Key, eviction: Object) -> None:
    """Delete a pod, counting it against its budget; with `dryRun` in its options only say whether.

    Raises: Refused: 400, 404, 409 (another uid), 429 (not allowed by the budget), 500.
    """
    metadata = eviction.get("metadata") or {}
    if metadata.get("name", key[1]) != key[1]:
        raise failures.bad_request("name in URL does not match name in Eviction object")
    pod = registry.read(POD, key).body
    options = eviction.get("deleteOptions") or {}
    preconditions, is_dry_run = options.get("preconditions") or {}, bool(options.get("dryRun"))
    if not _is_unguarded(pod):
        _count(registry, key, pod, is_dry_run=is_dry_run)
    uid, own = preconditions.get("uid"), pod["metadata"]["uid"]
    if uid and uid != own:
        raise failures.other_uid_to_delete(POD, key[1], uid, own)
    if is_dry_run:
        return
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    status = with_condition(pod["status"], condition, now=registry.now())
    registry.patch(POD, key, {"status": {"conditions": status["conditions"]}}, MERGE, "status")
    registry.delete(POD, key, preconditions, grace=options.get("gracePeriodSeconds"))


def _is_unguarded(pod: Object) -> bool:
    is_going = bool(pod["metadata"].get("deletionTimestamp"))
    return is_going or pod["status"].get("phase") in _UNGUARDED


def _count(registry: Registry, key: Key, pod: Object, *, is_dry_run: bool) -> None:
    """Count one disruption of the pod's budget, if the pod has one and the budget counts it.

    `is_dry_run`: refuse what is not allowed, and count nothing.
    """
    labels = pod["metadata"].get("labels") or {}
    budgets = [
        stored.body
        for stored in registry.store.values(DISRUPTION_BUDGET)
        if stored.body["metadata"]["namespace"] == key[0]
        and matches_labels(stored.body["spec"].get("selector"), labels)
    ]
    if len(budgets) > 1:
        text = "This pod has more than one PodDisruptionBudget, which the eviction subresource"
        raise Refused(500, "", f"{text} does not support.")
    if not budgets or _may_go_unready(pod, budgets[0]):
        return
    budget = budgets[0]
    name, status = budget["metadata"]["name"], budget.get("status") or {}
    allowed = status.get("disruptionsAllowed", 0)
    if status.get("observedGeneration", 0) < budget["metadata"]["generation"]:
        why = f"The disruption budget {name} is still being processed by the server."
        raise failures.would_violate_budget(why, retry_after=10)
    if not allowed:
        raise failures.would_violate_budget(_why_none(name, status))
    if is_dry_run:
        return
    change = {"disruptionsAllowed": allowed - 1, "disruptedPods": {key[1]: registry.now()}}
    budget_key = (key[0], name)
    registry.patch(DISRUPTION_BUDGET, budget_key, {"status": change}, MERGE, "status")


def _may_go_unready(pod: Object, budget: Object) -> bool:
    """Whether the budget lets an unready pod go without counting it."""
    conditions = pod["status"].get("conditions") or []
    if any(each["type"] == "Ready" and each["status"] == "True" for each in conditions):
        return False
    status = budget.get("status") or {}
    healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    is_fine: bool = healthy >= desired > 0
    return is_fine or budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow"


def _why_none(name: str, status: Object) -> str:
    healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    if healthy <= desired:
        return (
            f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
        )
    return f"The disruption budget {name} does not allow evicting pods currently"
