"""The widest tier that a job, or a part of it, may span, as every object of Volcano's says it."""

from __future__ import annotations

from collections.abc import Iterator

from app.dialects.flaw import Flaw
from app.dialects.rules import forbidden, required, too_small, unsupported
from app.dialects.spec import Within
from app.kube.decoding import wire

HARD, SOFT = "hard", "soft"


class NetworkTopology(wire.Wire):
    mode: wire.Text = None
    highest_tier_allowed: int | None = None
    highest_tier_name: wire.Text = None


def within_of(topology: NetworkTopology | None) -> Within | None:
    """What it says, if none of its flaws is fatal; None: nothing."""
    if topology is None:
        return None
    if topology.mode == SOFT:
        return Within(is_soft=True)
    return Within(topology.highest_tier_allowed, topology.highest_tier_name or "")


def flaws_of(topology: NetworkTopology | None, where: str) -> Iterator[Flaw]:
    """Every rule that it breaks, in soft mode none that is fatal: no tier counts there."""
    if topology is None:
        return
    tier, name = topology.highest_tier_allowed, topology.highest_tier_name or ""
    mode = topology.mode or HARD
    is_hard = mode == HARD
    if mode not in (HARD, SOFT):
        yield unsupported(f"{where}.mode", mode, (HARD, SOFT))
    if tier is not None and name:
        text = "may not be set together with highestTierAllowed"
        yield forbidden(f"{where}.highestTierName", text, is_fatal=is_hard)
    if is_hard and tier is None and not name:
        yield required(where, "hard mode needs highestTierAllowed or highestTierName")
    if tier is not None and tier < 0:
        yield too_small(f"{where}.highestTierAllowed", tier, 0, is_fatal=is_hard)
