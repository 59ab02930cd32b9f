"""Whether the service accounts may do what they have to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from app.cli.doctor.findings import Check, Problem, error, named
from app.cli.doctor.reading.rights import LEADER, OPTIONAL
from app.cli.doctor.seen import Right


def rights(denied: tuple[Right, ...]) -> Iterator[Problem]:
    """One problem for each role that is missing in part."""
    by_role = defaultdict[tuple[str, str], list[Right]](list)
    for right in denied:
        by_role[right.account, right.role].append(right)
    for (account, role), rights in by_role.items():
        file = "deploy/beside.yaml" if role == LEADER else "deploy/rbac.yaml"
        mend = f"kubectl apply -f {file}"
        if role in OPTIONAL:
            subject = account.replace("/", ":")
            mend = (
                f"kubectl create clusterrolebinding {role} --clusterrole={role}"
                f" --serviceaccount={subject}"
            )
        yield error(
            f"ServiceAccount {account}",
            f"it may not {named([words(each) for each in rights])}, as role {role} of"
            f" {file} allows",
            mend,
        )


def words(right: Right) -> str:
    """A right as `kubectl auth can-i` writes it."""
    resource, slash, sub = right.resource.partition("/")
    resource += f".{right.group}" if right.group else ""
    within = f" in {right.namespace}" if right.namespace else ""
    return f"{right.verb} {resource}{slash}{sub}{f' {right.name}' if right.name else ''}{within}"


CHECKS = (Check("rights", "Corral and kube-scheduler may do what they do", ("denied",), rights),)
