"""What is understood of one pod, by every dialect there is."""

from __future__ import annotations

from app.dialects.registry import DIALECTS
from app.dialects.spec import Claim
from app.kube.core.objects import PodRecord


def claim_of(record: PodRecord) -> Claim:
    """What a pod says that can be meant."""
    claim = DIALECTS.claim(record)
    assert claim is not None
    assert claim.flaw == ""
    return claim


def flaw_of(record: PodRecord) -> str:
    """What is told of a pod that belongs to a gang and cannot join it."""
    claim = DIALECTS.claim(record)
    assert claim is not None
    assert claim.flaw != ""
    return claim.flaw
