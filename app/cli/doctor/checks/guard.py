"""Whether the policies of deploy/policy.yaml are in effect, over the account that Corral has here.

RBAC alone lets Corral change any pod in the cluster, and lets no one keep its words from others:
without these policies everything works, and nothing is guarded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from app.cli.doctor import installed
from app.cli.doctor.checks.gating.webhook import schedulers_named
from app.cli.doctor.findings import Check, Problem, warning
from app.cli.doctor.reading.rights import OPTIONAL
from app.cli.doctor.seen import VALIDATING, Object, OwnSettings, Policies

FILE = "deploy/policy.yaml"
MEND = f"kubectl apply -f {FILE}"
WRITES, MARKS = "what-corral-writes.corral.dev", "what-corral-marks.corral.dev"
SUSPENDS = "what-corral-suspends.corral.dev"
# Each -> what anybody may do without it.
COSTS = {
    WRITES: "Corral may change any pod, as far as RBAC goes, and every user who may change pods may"
    " take off its gate and write its annotations",
    MARKS: "Corral may change any node and any PodGroup of Volcano's, as far as RBAC goes",
    SUSPENDS: "Corral may change any Job and JobSet, as far as RBAC goes, and has one go on that"
    " says it was suspended by Corral, also if another user wrote that",
}
_USERS = re.compile(r"userInfo\.username in \[([^]]*)\]")


def guarded(policies: Policies, settings: OwnSettings, deployment: Object) -> Iterator[Problem]:
    """Whether each that is needed is there, refuses, and means this installation."""
    suspends = OPTIONAL["corral-suspend"](settings.values)
    user = "system:serviceaccount:" + installed.account(deployment).replace("/", ":")
    for name in (WRITES, MARKS, SUSPENDS) if suspends else (WRITES, MARKS):
        there = [each for each in policies.validating if each["metadata"]["name"] == name]
        if not there:
            yield warning(f"{VALIDATING} {name}", f"it is not there: {COSTS[name]}", MEND)
        for each in there:
            yield from _in_effect(policies, each, user)
    for each in policies.validating:
        if each["metadata"]["name"] == WRITES and settings.values.nominate_planned:
            yield from _nominates(each, settings)


def _in_effect(policies: Policies, policy: Object, user: str) -> Iterator[Problem]:
    name, spec = policy["metadata"]["name"], policy["spec"]
    thing = f"{VALIDATING} {name}"
    if not policies.is_bound(policy):
        yield warning(thing, f"no binding has it deny anything: {COSTS[name]}", MEND)
    if spec.get("failurePolicy", "Fail") != "Fail":
        yield warning(
            thing,
            "what an expression fails on is let in",
            "failurePolicy: Fail",
            field="spec.failurePolicy",
            value=spec["failurePolicy"],
        )
    for field in ("matchConditions", "variables"):
        text = " ".join(str(each["expression"]) for each in spec.get(field) or [])
        named = [re.findall(r"'([^']+)'", each) for each in _USERS.findall(text)]
        # It is said once of whom it is evaluated, and once more of whom it restricts.
        if any(user not in each for each in named) or not (named or field == "variables"):
            yield warning(
                thing,
                f"Corral is {user} here, whom it does not restrict",
                f"request.userInfo.username in ['{user}']",
                field=f"spec.{field}",
                value=", ".join(name for each in named for name in each) or None,
            )


def _nominates(policy: Object, settings: OwnSettings) -> Iterator[Problem]:
    """Whether Corral may nominate the pods that it plans for, as `nominate_planned` has it."""
    taken = schedulers_named(policy["spec"].get("validations") or [])
    missing = [name for name in settings.schedulers if name not in taken]
    if taken and (missing or not settings.schedulers):
        names = ", ".join(f"'{name}'" for name in settings.schedulers)
        yield warning(
            f"{VALIDATING} {WRITES}",
            f"it lets Corral nominate no pods of {', '.join(missing) or 'other schedulers'}, for"
            f" which {settings.where} has Corral plan: these start later",
            "schedulerName.orValue('') " + (f"in [{names}]" if names else "!= ''"),
            field="spec.validations",
            value=", ".join(sorted(taken)),
        )


CHECKS = (
    Check(
        "guard",
        "policies say what Corral may change, and keep its words from others",
        ("policies", "settings", "deployment"),
        guarded,
    ),
)
