"""What is simulated is what happens once the same objects are created, and changes nothing.

Some of the random cases here; `python -m tests.app.simulate` has all of them.
"""

from __future__ import annotations

from random import Random

import pytest

from app.admission.scope import Scope
from app.explain.gangs import view
from app.simulate.body import objects_in
from app.simulate.copying import Copy
from app.simulate.given import all_given
from app.simulate.simulating import Rules, simulate
from app.simulate.view import Simulated, Verdict
from app.state.engine import Engine
from app.state.gang.gang import Gang, Phase
from tests.app.simulate import bodies, clusters, controllers
from tests.app.simulate.clusters import NOW, digest

RULES = Rules(Scope("corral"))
AT = NOW + 1.0
FAST = 240

Fate = tuple[str, str, str, tuple[str, ...]]
"""Verdict, reason, sentence, nodes in the order of ranks."""


def simulated(
    engine: Engine, things: list[bodies.Object]
) -> tuple[dict[str, Fate], controllers.Refusals]:
    """By gang; and by object what is wrong with those that are not valid."""
    given = all_given(objects_in(bodies.text(things)), "default")
    found = simulate(given, Copy.of(engine, AT), RULES).gangs
    fates = {
        f"{each.gang.source}/{each.gang.name}": _fate(each)
        for each in found
        if each.gang is not None
    }
    invalid = {
        each.objects[0]: [(error.field, error.message) for error in each.errors]
        for each in found
        if each.verdict is Verdict.INVALID and each.gang is None
    }
    return fates, invalid


def _fate(each: Simulated) -> Fate:
    assert each.gang is not None
    nodes = tuple(place.node for place in each.places)
    sentence = "" if each.verdict is Verdict.FITS else each.message
    return each.verdict.value, each.gang.reason.value, sentence, nodes


def created(
    engine: Engine, things: list[bodies.Object]
) -> tuple[dict[str, Fate], controllers.Refusals]:
    """The same of what happens: the objects are created while a pass is due, then time passes."""
    known = set(engine.gangs.by_key)
    engine.queue.want_pass()
    now, refused = controllers.create(engine, things, AT)
    for _ in range(4):
        engine.tick(now)
    gangs = [gang for key, gang in engine.gangs.by_key.items() if key not in known]
    found = {f"{each.key.source}/{each.key.name}": _happened(engine, each, now) for each in gangs}
    engine.tick(now + engine.settings.gather_seconds + 1.0)
    for each in gangs:
        if each.phase is Phase.GATHERING:  # what is missing is said after a while
            found[f"{each.key.source}/{each.key.name}"] = _happened(engine, each, now)
    return found, refused


def _happened(engine: Engine, gang: Gang, now: float) -> Fate:
    shown = view(gang, now, engine.books)
    if gang.phase is Phase.PLACED:
        nodes = tuple(
            gang.plan.nodes[each.pod.uid]
            for each in sorted(gang.planned(), key=lambda each: each.seniority)
        )
        return "Fits", shown.reason.value, "", nodes
    verdict = {"DoesNotFit": "DoesNotFit", "Invalid": "Invalid"}.get(shown.reason.value, "Waits")
    return verdict, shown.reason.value, shown.message, ()


def check(seed: int) -> dict[str, Fate]:
    """One case; returns what was simulated."""
    rng = Random(seed)
    engine = clusters.drawn(rng)
    things = [
        each for at in range(rng.choice((1, 1, 2, 3))) for each in bodies.drawn(rng, f"g{at}")
    ]
    before = digest(engine)
    first = simulated(engine, things)
    assert digest(engine) == before, f"seed {seed}: simulating has changed the engine"
    happened = created(engine, things)
    assert first == happened, f"seed {seed}: {things}"
    return first[0]


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_what_is_simulated_is_what_happens(part: int) -> None:
    fates = [each for seed in range(part, FAST, 4) for each in check(seed).values()]
    assert {fate[0] for fate in fates} >= {"Fits", "DoesNotFit"}  # else nothing is shown


def test_the_digest_sees_a_change_of_any_counter() -> None:
    engine = clusters.drawn(Random(1))
    before = digest(engine)
    engine.node_table.visits.total += 1
    assert digest(engine) != before
    engine.node_table.visits.total -= 1
    assert digest(engine) == before
    engine.nominations.above(0)
    assert digest(engine) != before
