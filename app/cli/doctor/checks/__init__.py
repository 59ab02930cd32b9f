"""Every check, in the order of the output; a new one is a line in the CHECKS of its file.

`scheduler` what kube-scheduler is told; `gating` what gates pods; `rights.py`, and `guard.py` what
narrows them; `topology.py` nodes and their levels; `workloads.py` pods that ask for a gang in vain;
`running.py` versions, clocks, readiness.
"""

from __future__ import annotations

from collections.abc import Iterator

from app.cli.doctor.checks import guard, rights, running, topology, workloads
from app.cli.doctor.checks.gating import canary, members, policies, webhook
from app.cli.doctor.checks.scheduler import agreement, extender
from app.cli.doctor.findings import Check, Finding, finding
from app.cli.doctor.seen import Seen, Unread

CHECKS: tuple[Check, ...] = (
    *extender.CHECKS,
    *agreement.CHECKS,
    *running.CHECKS,
    *rights.CHECKS,
    *guard.CHECKS,
    *topology.CHECKS,
    *webhook.CHECKS,
    *members.CHECKS,
    *policies.CHECKS,
    *workloads.CHECKS,
    *canary.CHECKS,
)


def run(seen: Seen, checks: tuple[Check, ...] = CHECKS) -> Iterator[Finding]:
    """What every check says: its findings, or that it found nothing, or why it was not made."""
    for fault in seen.faults:
        yield finding("reading", fault)
    for check in checks:
        parts = [getattr(seen, name) for name in check.needs]
        unread = next((part for part in parts if isinstance(part, Unread)), None)
        if unread is not None:
            yield Finding("not checked", check.name, unread.why)
            continue
        found = [finding(check.name, each) for each in check.find(*parts)]
        yield from found or [Finding("ok", check.name, check.absent(*parts) or check.holds)]
