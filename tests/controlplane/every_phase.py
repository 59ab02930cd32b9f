"""Gangs that stay in each phase of a gang's life until they are let go on.

    gathered    gathering   one of its pods is not there
    awaiting    waiting     the only rack that it may go to is cordoned
    held        placed      narrowed, and at /bind but for one pod: kube-scheduler sees no node for
                            that one until an anchor runs
    begun       binding     the API server refuses the binding of one of its pods
    running     running
    mended      repairing   a pod ended and its node is cordoned; another pod came for it

Each has eight pods of eight GPUs: a rack of `RACKS` is filled by one of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.cluster import BLOCK, GPU, RACK, Cluster, Object, Refused, collection, pod
from tests.controlplane.rollout import gated, pods_of
from tests.workloads import GATE, gates_of

PODS = 8
WHOLE_NODE: Mapping[str, str | int] = {GPU: 8}
CORDONED_RACK = "b0-r0"
PHASES = {
    "gathered": "gathering",
    "awaiting": "waiting",
    "held": "placed",
    "begun": "binding",
    "running": "running",
    "mended": "repairing",
}
BOUND = {"gathered": 0, "awaiting": 0, "held": 0, "begun": PODS - 1, "running": PODS, "mended": 7}
REFUSED = ("begun-7", "canary")  # whose bindings the API server refuses
SECONDS = 30.0
POLICY = "refuses-a-binding"
REASON = "not yet"
NEAR_ANCHOR = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "anchor"}}, "topologyKey": BLOCK}
        ]
    }
}


@dataclass
class EveryPhase:
    """One gang in each phase, on nodes of `grid` with eight to a rack."""

    cluster: Cluster

    def begin(self) -> None:
        """Create them; returns when what is to be bound is. Raises: TimeoutError."""
        cluster = self.cluster
        self._cordon_rack(True)
        refuse_bindings(cluster)
        cluster.create_all(gated("running", PODS, WHOLE_NODE))
        cluster.create_all(gated("mended", PODS, WHOLE_NODE))
        cluster.create_all(gated("begun", PODS, WHOLE_NODE))
        cluster.create_all(gated("gathered", PODS, WHOLE_NODE, numbers=range(PODS - 1)))
        cluster.create_all(gated("awaiting", PODS, WHOLE_NODE, nodeSelector={RACK: CORDONED_RACK}))
        cluster.create_all(gated("held", PODS, WHOLE_NODE, numbers=range(PODS - 1)))
        cluster.create_all(
            gated("held", PODS, WHOLE_NODE, numbers=[PODS - 1], affinity=NEAR_ANCHOR)
        )
        cluster.wait(lambda: self.bound() == BOUND | {"mended": PODS}, SECONDS, "their starts")
        self._lose_a_pod()

    def bound(self) -> dict[str, int]:
        """How many pods of each are bound."""
        bound = self.cluster.bound()
        return {name: len(pods_of(name) & bound.keys()) for name in PHASES}

    def narrowed(self) -> set[str]:
        """The pods of `held` that are out of their gates and may go to some nodes only."""
        pods = [each for each in self.cluster.list("Pod", "default") if _is_of("held", each)]
        return {
            each["metadata"]["name"]
            for each in pods
            if GATE not in gates_of(each) and "nodeAffinity" in each["spec"].get("affinity", {})
        }

    def release(self) -> None:
        """What kept each of them is over."""
        cluster = self.cluster
        cluster.delete("ValidatingAdmissionPolicyBinding", POLICY)
        cluster.delete("ValidatingAdmissionPolicy", POLICY)
        self._cordon_rack(False)
        cluster.patch("Node", self._lost_on, {"spec": {"unschedulable": None}})
        cluster.create(pod("anchor", scheduler="none", labels={"app": "anchor"}))
        cluster.bind("anchor", self._lost_on)
        cluster.create_all(gated("gathered", PODS, WHOLE_NODE, numbers=[PODS - 1]))

    def _cordon_rack(self, is_cordoned: bool) -> None:
        change = {"spec": {"unschedulable": is_cordoned or None}}
        for place in range(PODS):
            self.cluster.patch("Node", f"{CORDONED_RACK}-n{place}", change)

    def _lose_a_pod(self) -> None:
        self._lost_on = self.cluster.bound()["mended-0"]
        self.cluster.patch("Node", self._lost_on, {"spec": {"unschedulable": True}})
        self.cluster.delete("Pod", "mended-0")
        self.cluster.create_all(gated("mended", PODS, WHOLE_NODE, numbers=[0]))


def refuse_bindings(cluster: Cluster) -> None:
    """From now on the API server takes no binding of the pods of REFUSED."""
    kind, group = "ValidatingAdmissionPolicy", "admissionregistration.k8s.io/v1"
    bindings = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods/binding"],
    }
    refuses = {"expression": f"!(request.name in {list(REFUSED)})", "message": REASON}
    policy: Object = {"apiVersion": group, "kind": kind, "metadata": {"name": POLICY}}
    policy["spec"] = {
        "matchConstraints": {"resourceRules": [bindings]},
        "validations": [refuses],
    }
    cluster.create(policy)
    binding: Object = {"apiVersion": group, "kind": f"{kind}Binding", "metadata": {"name": POLICY}}
    binding["spec"] = {"policyName": POLICY, "validationActions": ["Deny"]}
    cluster.create(binding)
    cluster.create(pod("canary", scheduler="none"))
    cluster.wait(lambda: _is_refused(cluster, "canary"), SECONDS, "the refusal of bindings")
    cluster.delete("Pod", "canary")


def _is_refused(cluster: Cluster, name: str) -> bool:
    target = {"apiVersion": "v1", "kind": "Node", "name": "b0-r1-n0"}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    path = f"{collection('Pod', 'default')}/{name}/binding"
    try:
        cluster.request("POST", path, body=binding, params={"dryRun": "All"})
    except Refused as refused:
        return REASON in refused.message
    return False


def _is_of(gang: str, thing: Object) -> bool:
    return bool(thing["metadata"]["name"].rpartition("-")[0] == gang)
