"""What is served at /v1, and by whom: given to each of its routes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from app.api.access.callers import Callers
from app.api.dump import Written
from app.api.following.stream import Stream
from app.api.others import Others
from app.simulate.simulating import Rules


@dataclass(frozen=True, slots=True)
class Standing:
    """What this Corral is to those who ask it."""

    unready: Callable[[], str]
    """Why what it knows is not to be relied on now, or ""."""
    whose: Callable[[], str] = lambda: ""
    """Who leads, in words, if another pod does; "": this one."""
    others: Others | None = None
    """Where pods are that no gang here has; none: nowhere."""
    callers: Callers = field(default_factory=Callers)
    """Who is answered; clients on loopback are, if nothing else is said."""
    stream: Stream | None = None
    """What they may follow; none: nothing."""
    leader: Callable[[], str] = lambda: ""
    """The pod of the Corral that leads, if it is known and another one."""
    rules: Rules | None = None
    """By which what they have simulated is admitted; none: nothing is."""
    journal: Written | None = None
    """What they may read of every input; none: none is written."""
