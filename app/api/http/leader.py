"""Which Corral to ask: several run, and the one that leads knows what becomes of gangs.

Every answer of another one names its pod in a header; `corral gangs` then asks there.
"""

from __future__ import annotations

import re

LEADER = "Corral-Leader"
POD_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


def leader_header(pod: str) -> dict[str, str]:
    """The header that names the pod; nothing for what is no pod's name."""
    return {LEADER: pod} if POD_NAME.fullmatch(pod) else {}
