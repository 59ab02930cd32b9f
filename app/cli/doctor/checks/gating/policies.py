"""Whether the policies of deploy/policies.yaml, where they are, gate the pods they are meant to."""

from __future__ import annotations

from collections.abc import Iterator

from app.admission.namespaces import METADATA_NAME
from app.cli.doctor.checks.gating.webhook import SYSTEM, schedulers_in, selector_of
from app.cli.doctor.findings import Check, Problem, error, warning
from app.cli.doctor.seen import Object, OwnSettings, Policies
from app.dialects.kueue.in_charge import QUEUE_NAME
from app.dialects.native.gangs import FIELD

FILE = "deploy/policies.yaml"


def bound(policies: Policies) -> Iterator[Problem]:
    """Whether each that gates has a binding: without one it does nothing."""
    for each in policies.mutating:
        if not policies.is_bound(each):
            yield warning(
                _named(each),
                "no binding names it, and pods of gangs are created without the gate",
                f"kubectl apply -f {FILE}",
            )


def open_when_it_fails(policies: Policies) -> Iterator[Problem]:
    """Whether pods are created while an expression fails."""
    for each in policies.gating:
        written = each["spec"].get("failurePolicy", "Fail")
        if written != "Ignore":
            yield warning(
                _named(each),
                "a pod for which an expression fails, or costs too much, is not created",
                "failurePolicy: Ignore",
                field="spec.failurePolicy",
                value=written,
            )


def namespaces(policies: Policies) -> Iterator[Problem]:
    """Whether what the cluster itself starts is left alone."""
    for each in policies.gating:
        written = (each["spec"].get("matchConstraints") or {}).get("namespaceSelector") or {}
        selector = selector_of(written)
        if selector is not None and selector.matches({METADATA_NAME: SYSTEM}):
            yield error(
                _named(each),
                f"{SYSTEM} is taken in as well, and what the cluster itself starts waits for"
                " Corral",
                f"- {{key: {METADATA_NAME}, operator: NotIn, values: [{SYSTEM}, corral-system]}}",
                field="spec.matchConstraints.namespaceSelector",
                value=written or None,
            )


def agreed(policies: Policies, settings: OwnSettings) -> Iterator[Problem]:
    """Whether they take in the pods that Corral plans for: a gate it knows nothing of stays."""
    for each in policies.gating:
        yield from _of_schedulers(each, settings)
        yield from _of_controllers(each, settings)
    if policies.gating and settings.values.born_seconds:
        yield warning(
            _named(policies.gating[0]),
            f"no pod is born in place, as born_seconds of {settings.where} asks: policies come"
            " before webhooks, and a pod that is gated already stays so",
            f"kubectl delete -f {FILE}",
        )


def _of_schedulers(policy: Object, settings: OwnSettings) -> Iterator[Problem]:
    taken = schedulers_in(policy["spec"])
    missing = [name for name in settings.schedulers if name not in taken]
    strange = sorted(taken.difference(settings.schedulers)) if settings.schedulers else []
    names = ", ".join(f"'{name}'" for name in settings.schedulers)
    mend = f"object.spec.?schedulerName.orValue('') in [{names}]"
    where = {"field": "spec.matchConditions", "value": ", ".join(sorted(taken))}
    if taken and missing:
        why = f"pods of {', '.join(missing)} have no gate"
        yield warning(_named(policy), why, mend, **where)
    if strange:
        why = f"{settings.where} does not name {', '.join(strange)}: their pods wait for ever"
        yield error(_named(policy), why, mend, **where)


def _of_controllers(policy: Object, settings: OwnSettings) -> Iterator[Problem]:
    """Whether pods are left to the controllers that the settings leave them to."""
    variables = " ".join(
        str(each.get("expression", "")) for each in policy["spec"].get("variables") or []
    )
    values, why = settings.values, "pods that are left to {} get the gate and wait for ever"
    for word, is_left, whom, setting in (
        (QUEUE_NAME, values.kueue_manages, "Kueue", "kueue_manages"),
        (
            FIELD.rpartition(".")[2],
            values.native_pod_groups != "on",
            "kube-scheduler",
            "native_pod_groups",
        ),
    ):
        is_said = word in variables
        if is_left and not is_said:
            yield error(
                _named(policy),
                why.format(whom),
                f"the line of {FILE} that names CORRAL_{setting.upper()}",
                field="spec.variables",
            )
        elif is_said and not is_left:
            yield warning(
                _named(policy),
                f"pods that {whom} does not have, as {setting} of {settings.where} says, get no"
                " gate",
                f"the line of {FILE} that names CORRAL_{setting.upper()}",
                field="spec.variables",
            )


def none(policies: Policies, *_: object) -> str:
    """Says that there is no policy of Corral's that gates; "" if there is one."""
    return "" if policies.mutating else f"no policy of {FILE} is there"


def _named(policy: Object) -> str:
    return f"{policy['kind']} {policy['metadata']['name']}"


_POLICIES = ("policies",)
CHECKS = (
    Check("policies-bound", "each policy that gates has a binding", _POLICIES, bound, none),
    Check(
        "policies-fail",
        "pods are created while a policy fails",
        _POLICIES,
        open_when_it_fails,
        none,
    ),
    Check(
        "policies-namespaces", "the cluster's own pods are left alone", _POLICIES, namespaces, none
    ),
    Check(
        "policies-settings",
        "pods that Corral plans for are gated",
        ("policies", "settings"),
        agreed,
        none,
    ),
)
