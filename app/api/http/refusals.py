"""What a Corral answers that cannot say anything yet, or is not the one to ask."""

from __future__ import annotations

from fastapi import HTTPException

from app.explain.advice import ADVICE
from app.state.gang.reasons import Reason


def not_ready(why: str) -> HTTPException:
    """The cluster has not been read, or Corral is stopping; `why` says which."""
    return _refusal(Reason.NOT_READY, f"Corral is not ready: {why}")


def not_leading(whose: str) -> HTTPException:
    """Another pod plans; `whose` names it."""
    return _refusal(Reason.NOT_LEADING, f"this Corral plans nothing: {whose}")


def _refusal(reason: Reason, message: str) -> HTTPException:
    """A refusal of everything, with what an explanation has."""
    detail = {"reason": reason, "message": message, "advice": ADVICE[reason].to_do}
    return HTTPException(503, detail)
