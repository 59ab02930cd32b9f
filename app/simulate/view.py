"""What /v1/simulate answers; the JSON has these names."""

from __future__ import annotations

import enum

from app.explain.view import Explanation, GangView, View


class Verdict(enum.StrEnum):
    """What would become of a gang, in one word."""

    FITS = "Fits"
    DOES_NOT_FIT = "DoesNotFit"
    WAITS = "Waits"  # for something else than a place: the reason says what
    INVALID = "Invalid"
    NO_GANG = "NoGang"  # its pods are placed one by one by kube-scheduler


class Error(View):
    """One thing that is wrong with an object, as the webhook says it."""

    object: str
    """Such as `Job team-a/trainer`."""
    field: str
    value: str = ""
    """As it is written; empty: it is missing, or may not be there."""
    message: str
    """What is wrong with it, in the API server's words."""


class Place(View):
    """Where a pod would run."""

    pod: str
    """Its name; of a pod to come, what it would be a part of."""
    node: str
    to_come: bool = False
    """It is created once others run: its place is reserved."""


class Domain(View):
    """Some of a gang's pods in one domain."""

    level: str
    domain: str
    """Its values from the widest level on, such as `b1/r7`."""
    pods: int


class Simulated(View):
    """One gang, or an object whose pods are none."""

    objects: tuple[str, ...]
    """What it follows from, such as `Job team-a/trainer`."""
    verdict: Verdict
    message: str
    """The sentence that its pods' condition, or the API server, would have."""
    gang: GangView | None = None
    """As /v1/gangs would show it; none: there would be no gang."""
    errors: tuple[Error, ...] = ()
    """Of Invalid: every one."""
    topology: str = ""
    places: tuple[Place, ...] = ()
    """Of Fits: a node for each pod, in the order of their ranks."""
    domains: tuple[Domain, ...] = ()
    """Of Fits: at each level the domains with most of its pods."""
    explanation: Explanation | None = None
    """Of DoesNotFit and Waits: what is short, and what would fit instead."""
    notes: tuple[str, ...] = ()
    """What is not known here."""


class Simulation(View):
    """What would become of the objects if they were created now, one after the other."""

    gangs: tuple[Simulated, ...]
    """In the order in which they would be planned; those that are not gangs are the last."""
    pods: int
    """So many were simulated."""
