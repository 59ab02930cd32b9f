"""A pod of a gang as it would have been stored: the one check that goes the way of users' pods."""

from __future__ import annotations

from collections.abc import Iterator

from app.cli.doctor.configuration import SchedulerConfig
from app.cli.doctor.findings import Check, Found, NotChecked, Problem, error
from app.cli.doctor.seen import Canary, Object, OwnSettings
from app.dialects import corral

_WHAT = "a pod of a gang"


def gated(
    canary: Canary,
    settings: OwnSettings,
    gating: tuple[Object, ...],
) -> Iterator[Found]:
    """Whether the webhook, or a policy, took it in."""
    what = f"{_WHAT} in namespace {canary.namespace}"
    if canary.pod is None:
        yield error(what, f"the API server refused it: {canary.refusal}")
        return
    gates = [each["name"] for each in canary.pod["spec"].get("schedulingGates") or []]
    if settings.values.admission_listen is None and not gating:
        if corral.GATE in gates:
            yield error(
                what,
                "it got Corral's gate, and these settings open no port for the webhook: another"
                " Corral answers it",
                "kubectl get mutatingwebhookconfigurations",
                field="spec.schedulingGates",
                value=", ".join(gates),
            )
        else:
            yield NotChecked(f"{what} is created without a gate: there is no webhook")
    elif corral.GATE not in gates:
        yield error(
            what,
            f"it did not get the gate {corral.GATE}: the namespace is not selected, or the"
            f" {'policy' if gating else 'webhook does not answer and'} fails open",
            "kubectl logs of kube-apiserver have why: grep 'failed calling webhook'"
            if not gating
            else "kubectl get mutatingadmissionpolicies gate.corral.dev -o yaml",
            field="spec.schedulingGates",
            value=", ".join(gates) or None,
        )


def profile(canary: Canary, config: SchedulerConfig) -> Iterator[Problem]:
    """Whether a profile with Corral takes it."""
    if canary.pod is None:
        return
    name = canary.pod["spec"].get("schedulerName")
    names = [each.scheduler_name for each in config.content.profiles]
    if name not in names:
        yield error(
            f"{_WHAT} in namespace {canary.namespace}",
            f"no profile of {config.where} has this name, but {', '.join(names)}",
            "profiles: [{schedulerName: " + str(name) + "}]",
            field="spec.schedulerName",
            value=name,
        )


CHECKS = (
    Check(
        "canary",
        "a pod of a gang waits behind the gate",
        ("canary", "settings", "gating_policies"),
        gated,
    ),
    Check("canary-profile", "a profile takes that pod", ("canary", "config"), profile),
)
