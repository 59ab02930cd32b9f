"""What Corral and the kube-scheduler beside it need to be allowed, by deploy/rbac.yaml.

rules of its Roles ──needed──▶ Right … ──SubjectAccessReview──▶ those that are denied

A Corral with a Lease of its own needs a Role of deploy/beside.yaml as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product

import msgspec
import yaml

from app.admission.namespaces import METADATA_NAME
from app.cli.doctor import shipped
from app.cli.doctor.seen import Object, Right
from app.kube.client.transport import Transport
from app.settings import Settings

REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
AT_ONCE = 8
CORRAL, SCHEDULER = "corral", "corral-scheduler"  # what deploy/rbac.yaml calls the two accounts
HOME = "corral-system"
LEASES = "leases"
LEADER = "corral-leader"  # the Role of deploy/beside.yaml
_LEADER = ("Role", LEADER)


def _gives_back(it: Settings) -> bool:
    return it.narrowed_pods_given_back or bool(it.born_seconds and it.born_pods_given_back)


# A ClusterRole that only settings need -> whether these do.
OPTIONAL: Mapping[str, Callable[[Settings], bool]] = {
    "corral-evict": lambda it: (
        (it.fail_fast or it.disruption == "all" or it.preempt == "on") or _gives_back(it)
    ),
    "corral-suspend": _gives_back,
    "corral-delete-excess": lambda it: it.delete_excess_pods,
    "corral-namespaces": lambda it: bool(it.admission_namespace_selector.keys - {METADATA_NAME}),
    "corral-hypernodes": lambda it: bool(it.hyper_nodes_from),
    "corral-protect-nodes": lambda it: it.protect_held_nodes,
    "corral-native-pod-groups": lambda it: it.native_pod_groups == "on",
    "corral-provisioning": lambda it: bool(it.provisioning_class),
    "corral-readers": lambda it: it.api_cert is not None,
}


def documents() -> list[Object]:
    """deploy/rbac.yaml, as it is shipped."""
    return list(yaml.safe_load_all(shipped.read("deploy/rbac.yaml")))


def needed(
    manifests: Iterable[Object], settings: Settings, accounts: Mapping[str, str], namespace: str
) -> tuple[Right, ...]:
    """What the accounts have to be allowed.

    `accounts`: what deploy/rbac.yaml calls them -> NAMESPACE/NAME; `namespace`: where Corral is,
    instead of corral-system.
    """
    manifests = list(manifests)
    roles = {_key(each): each["rules"] for each in manifests if each.get("rules")}
    bound = [each for each in manifests if each["kind"] in ("ClusterRoleBinding", "RoleBinding")]
    found: dict[Right, None] = {}
    for binding in bound:
        within = binding["metadata"].get("namespace", "")
        rules = roles.get((binding["roleRef"]["kind"], within, binding["roleRef"]["name"]), [])
        account = accounts.get(binding["subjects"][0]["name"])
        if account is not None:
            within = namespace if within == HOME else within
            found |= dict.fromkeys(_rights(rules, account, within, binding["roleRef"]["name"]))
    for role, is_needed in OPTIONAL.items():
        if is_needed(settings) and CORRAL in accounts:
            rules = roles["ClusterRole", "", role]
            found |= dict.fromkeys(_rights(rules, accounts[CORRAL], "", role))
    return tuple(found)


def leading(settings: Settings, account: str) -> tuple[Right, ...]:
    """What takes a Lease of Corral's own, and makes its holder the endpoint of a Service."""
    namespace, _, lease = settings.own_lease.partition("/")
    if not lease:
        return ()
    manifests = yaml.safe_load_all(shipped.read("deploy/beside.yaml"))
    (role,) = [one for one in manifests if (one["kind"], one["metadata"]["name"]) == _LEADER]
    named = {LEASES: lease, "endpointslices": settings.leader_service}
    return tuple(
        replace(right, name=right.name and named[right.resource])
        for right in _rights(role["rules"], account, namespace, LEADER)
        if named[right.resource]
    )


def of_lease(right: Right, lease: str) -> Right:
    """The same right over the Lease NAMESPACE/NAME, if it is one over a Lease."""
    if right.resource != LEASES:
        return right
    namespace, _, name = lease.partition("/")
    return replace(right, namespace=namespace, name=right.name and name)


async def denied(transport: Transport, rights: Iterable[Right]) -> tuple[Right, ...]:
    """Those of the rights that are not granted. Raises: ApiError."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def asked(right: Right) -> bool:
        async with gate:
            body = await transport.request("POST", REVIEWS, body=review(right))
        status = msgspec.json.decode(body).get("status") or {}
        return bool(status.get("allowed"))

    every = tuple(rights)
    granted = await asyncio.gather(*map(asked, every))
    return tuple(right for right, allowed in zip(every, granted, strict=True) if not allowed)


def review(right: Right) -> Object:
    """The question whether a service account has a right."""
    namespace, _, name = right.account.partition("/")
    resource, _, subresource = right.resource.partition("/")
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{namespace}:{name}",
            "groups": [
                "system:serviceaccounts",
                f"system:serviceaccounts:{namespace}",
                "system:authenticated",
            ],
            "resourceAttributes": {
                "verb": right.verb,
                "group": right.group,
                "resource": resource,
                "subresource": subresource,
                "name": right.name,
                "namespace": right.namespace,
            },
        },
    }


def _rights(rules: Iterable[Object], account: str, namespace: str, role: str) -> Iterator[Right]:
    for rule in rules:
        names = rule.get("resourceNames") or [""]
        for group, resource, verb, name in product(
            rule["apiGroups"], rule["resources"], rule["verbs"], names
        ):
            yield Right(account, verb, group, resource, name, namespace, role)


def _key(document: Object) -> tuple[str, str, str]:
    metadata = document["metadata"]
    return document["kind"], metadata.get("namespace", ""), metadata["name"]
