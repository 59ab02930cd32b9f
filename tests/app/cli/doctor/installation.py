"""A right installation as `corral doctor` would read it: what deploy/ and scheduler-config/ ship.

edited(CONFIG, ("extenders", 0, "ignorable"), True)   the document with one value changed
found(replace(right(), config=…))                     what is wrong with it, by check
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from app.cli.doctor import checks, installed, shipped
from app.cli.doctor.configuration import config_in
from app.cli.doctor.findings import Finding, worst
from app.cli.doctor.reading import files
from app.cli.doctor.seen import (
    Canary,
    Handshake,
    Members,
    OwnSettings,
    Policies,
    Readiness,
    Seen,
    Topology,
    TopologyObject,
    Webhooks,
    WebhookService,
)
from app.kube.decoding.decode import decode_node, decode_pod
from tests.app.dialects.volcano.from_labels.labelled import LEVELS, nodes_of

ROOT = Path(__file__).resolve().parents[4]
ABSENT = object()
PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
BUNDLE = base64.b64encode(PEM.encode()).decode()


def documents(file: str) -> list[Any]:
    return list(yaml.safe_load_all((ROOT / file).read_text(encoding="utf-8")))


def one(file: str, kind: str) -> Any:
    (found_one,) = [each for each in documents(file) if each["kind"] == kind]
    return found_one


(CONFIG,) = documents("scheduler-config/1.36.yaml")
(BESIDE,) = documents("scheduler-config/1.36-mtls.yaml")
(MEMBERS_ALONE,) = documents("scheduler-config/1.36-marker.yaml")
(MEMBERS_BESIDE,) = documents("scheduler-config/1.36-mtls-marker.yaml")
DEPLOYMENT = one("deploy/corral.yaml", "Deployment")
MUTATING = one("deploy/webhook.yaml", "MutatingWebhookConfiguration")
VALIDATING = one("deploy/webhook.yaml", "ValidatingWebhookConfiguration")
POLICY = one("deploy/policies.yaml", "MutatingAdmissionPolicy")
CHECKING = one("deploy/policies.yaml", "ValidatingAdmissionPolicy")
GUARDS = tuple(
    each for each in documents("deploy/policy.yaml") if each["kind"] == "ValidatingAdmissionPolicy"
)
GUARDED = frozenset((each["kind"], each["metadata"]["name"]) for each in GUARDS)
WEBHOOK_SETTINGS = one("deploy/webhook.yaml", "ConfigMap")["data"]
SERVICE = "corral-system/corral-webhook"
POD = {
    "metadata": {"name": "corral-1", "namespace": "corral-system"},
    "spec": {"containers": [{"name": "kube-scheduler"}, {"name": "corral"}]},
    "status": {
        "containerStatuses": [
            {"name": "kube-scheduler", "ready": True},
            {"name": "corral", "ready": True},
        ]
    },
}


def edited(document: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """The document with another value at a path, or without it."""
    changed = copy.deepcopy(document)
    inner = changed
    for step in path[:-1]:
        inner = inner[step]
    if value is ABSENT:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return changed


def config_from(document: Any) -> Any:
    """As it is read."""
    return config_in(yaml.safe_dump(document), "the configuration")


def settings(*, with_webhook: bool = True, **changed: Any) -> OwnSettings:
    """Those of the shipped container, beside webhook.yaml, and others."""
    container = installed.corral_container(DEPLOYMENT)
    assert container is not None
    maps = {"corral-webhook": WEBHOOK_SETTINGS} if with_webhook else {}
    given = installed.given(container, maps) | {"levels": ",".join(LEVELS)}
    return files.settings_from({**given, **changed}, "the settings")


def topology(nodes: str = "n1 b1/r1\nn2 b1/r2", *objects: TopologyObject) -> Topology:
    """Nodes by their labels, one a line: NAME BLOCK/RACK."""
    made = (
        decode_node(yaml_json({"metadata": {"name": name, "labels": labels}}))
        for name, labels in nodes_of(nodes).items()
    )
    return Topology({each.name: each for each in made}, objects)


def pods(*written: Mapping[str, Any]) -> Members:
    return Members(tuple(decode_pod(yaml_json(each), lambda _: True) for each in written))


def yaml_json(document: Any) -> bytes:
    import json

    return json.dumps(document).encode()


def with_bundle(configuration: Any, pem: str = PEM) -> Any:
    """As the API server has it once the lines of webhook.yaml have been run."""
    changed = copy.deepcopy(configuration)
    for each in changed["webhooks"]:
        each["clientConfig"]["caBundle"] = base64.b64encode(pem.encode()).decode()
    return changed


def webhooks(
    mutating: Any = None,
    validating: Any = None,
    service: WebhookService | None = None,
    *others: Any,
) -> Webhooks:
    behind = service or WebhookService(True, 2, (443,))
    ours = with_bundle(MUTATING) if mutating is None else mutating
    return Webhooks(
        (*(() if ours is ABSENT else (ours,)), *others),
        (validating or with_bundle(VALIDATING),),
        {SERVICE: behind},
    )


def policies(
    policy: Any = None, *, binding: str = "gate.corral.dev", validating: Any = None
) -> Policies:
    """What policies.yaml brings, or another policy that gates."""
    gating = POLICY if policy is None else policy
    checking = CHECKING if validating is None else validating
    bound = {(gating["kind"], binding), (checking["kind"], "pods.corral.dev")}
    return Policies((gating,), (checking, *GUARDS), frozenset(bound) | GUARDED)


def canary(gates: tuple[str, ...] = ("corral.dev/gang",), scheduler: str = "corral") -> Canary:
    spec = {"schedulerName": scheduler, "schedulingGates": [{"name": each} for each in gates]}
    return Canary("default", {"spec": spec})


def right() -> Seen:
    """Everything as it is shipped, the webhook included."""
    return Seen(
        config=config_from(CONFIG),
        settings=settings(),
        deployment=DEPLOYMENT,
        pods=(POD,),
        denied=(),
        topology=topology(),
        members=pods(),
        webhooks=webhooks(),
        policies=Policies((), GUARDS, GUARDED),
        handshakes={(SERVICE, BUNDLE): Handshake("10.0.0.7:9443", "")},
        skew=0.4,
        version="v1.36.3",
        readiness=(Readiness("corral-1", "ready", "ok"),),
        canary=canary(),
        shipped=shipped.minors(),
    )


def findings(seen: Seen) -> list[Finding]:
    """Those that are not ok, and were made."""
    return [each for each in checks.run(seen) if each.level in ("note", "warning", "error")]


def found(seen: Seen) -> dict[str, str]:
    """Check -> the most serious level of what it has found."""
    levels: dict[str, list[Finding]] = {}
    for each in findings(seen):
        levels.setdefault(each.check, []).append(each)
    return {check: worst(each) for check, each in levels.items()}
