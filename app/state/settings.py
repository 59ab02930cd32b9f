"""The engine's own knobs, as plain values; `app/settings.py` says what each is for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Units: seconds, unless the name says otherwise."""

    levels: tuple[str, ...] = ()
    scheduler_name: str = "corral"  # "" plans for any scheduler's pods
    hold_seconds: float = 60.0
    gang_bind_seconds: float = 20.0
    refusal_seconds: float = 30.0
    rewake_seconds: float = 10.0
    retry_seconds: float = 1.0  # after a lost plan, doubled each time in a row
    retry_seconds_most: float = 60.0
    percentage_of_nodes_to_score: int = 0


SENTENCE_SECONDS = 60.0  # how long a verdict's numbers stand before they are updated
