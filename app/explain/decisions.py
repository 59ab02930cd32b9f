"""The last decisions in words: what became of gangs, and why others wait."""

from __future__ import annotations

from app.explain.view import View
from app.state.engine import Engine
from app.state.report.decisions import Decision


class DecisionView(View):
    """One decision about a gang."""

    number: int
    """Grows with each; a Corral that is started again begins anew."""
    at: float
    """When, in seconds since 1970."""
    namespace: str
    name: str
    source: str
    what: str
    """gathering, complete, placed, binding, running, repairing, done: what the gang has become;
    no-place: a search found none; plan-lost; evicted: its pods are."""
    message: str = ""
    """The same in one sentence."""


class DecisionPage(View):
    """The last decisions, newest first."""

    decisions: tuple[DecisionView, ...]


_SENTENCES = {
    "gathering": "waits for its pods",
    "complete": "is complete: all its pods are there",
    "binding": "starts: its pods are being bound",
    "running": "runs",
    "repairing": "has lost pods or nodes, and is being repaired",
    "done": "has ended",
}


def last(engine: Engine, namespace: str, most: int, wall_offset: float) -> DecisionPage:
    """The newest of a namespace; "": of all. `wall_offset`: what turns `now` into Unix time."""
    found = engine.reports.decisions.last(namespace, most)
    return DecisionPage(
        decisions=tuple(
            DecisionView(
                number=each.number,
                at=round(each.at + wall_offset, 1),
                namespace=each.gang.namespace,
                name=each.gang.name,
                source=each.gang.source,
                what=each.what,
                message=_sentence(each),
            )
            for each in found
        )
    )


def _sentence(decision: Decision) -> str:
    if decision.sentence:
        return decision.sentence
    if decision.what != "placed":
        return f"gang {decision.gang} {_SENTENCES[decision.what]}"
    nodes = "1 node" if decision.nodes == 1 else f"{decision.nodes} nodes"
    within = f" of {', '.join(decision.domains)}" if decision.domains else ""
    return f"gang {decision.gang} has a place: {nodes}{within}"
