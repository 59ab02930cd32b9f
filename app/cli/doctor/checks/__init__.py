"""Every check, in the order of the output; a new one is a line in the CHECKS of its file.

`extender.py` what stands in the KubeSchedulerConfiguration; `agreement.py` whether Corral's
settings say the same; `rights.py`; `topology.py` nodes and their levels; `webhook.py`;
`members.py` whom the webhook is sent; `policies.py` gates without a webhook; `workloads.py` pods
that ask for a gang in vain; `running.py` versions, clocks, readiness; `canary.py` a pod that is
never made.
"""

from __future__ import annotations

from collections.abc import Iterator

from app.cli.doctor.checks import (
    agreement,
    canary,
    extender,
    members,
    policies,
    rights,
    running,
    topology,
    webhook,
    workloads,
)
from app.cli.doctor.findings import Check, Finding, finding
from app.cli.doctor.seen import Seen, Unread

CHECKS: tuple[Check, ...] = (
    *extender.CHECKS,
    *agreement.CHECKS,
    *running.CHECKS,
    *rights.CHECKS,
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
