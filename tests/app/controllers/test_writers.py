"""The controllers together: who is told what, what is counted, and what only the leader's does."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from app.controllers.pods.evict import EvictController
from app.controllers.report import MOST_QUEUED
from app.controllers.writers import Receivers, Writers
from app.dialects.spec import GangKey
from app.errors import ApiError, Forbidden, NotFound, NotLeading
from app.metrics import Metrics
from app.settings import Settings
from app.state.effects import (
    DELETE,
    Annotate,
    Bind,
    Bound,
    Delete,
    EmitEvent,
    Evict,
    ObjectRef,
    PlaceAnswer,
    ProtectNode,
    RejectBind,
    Requeue,
    SeekPlace,
    TryEviction,
    Ungate,
    Ungated,
    UngateFailed,
)
from tests.app.polling import until

GANG = GangKey("team", "train", "job")
POD = ObjectRef("v1", "Pod", "team", "a", "u1")
UNGATE = Ungate("team", "a", "u1", "corral.dev/gang", nodes=("n1",))
BIND = Bind("team", "a", "u1", "n1")
REFUSE = RejectBind("u1", "no")
EVICT = Evict("team", "a", "u1", "it gives way")
TRY = TryEviction("team", "a", "u1")
FOR_THE_LEADER = [
    Requeue("team", "a", "u1"),
    Annotate("team", "c", "u3", (("corral.dev/succeeded", "w=1"),)),
    ProtectNode("n1", "u4", "7", True, (("karpenter.sh/do-not-disrupt", "true"),)),
    Evict("team", "a", "u1", "its node is gone"),
    Delete(GANG, "team", "b", "u2", "one too many"),
    EmitEvent(GANG, POD, "PodNotInGang", "one too many", is_warning=True),
    EmitEvent(GANG, POD, "GangPlaced", "in one rack", is_warning=False),
]


class Calls:
    """The client: remembers which of its methods were called; `errors` are raised by name."""

    def __init__(self, **errors):
        self.errors = errors
        self.made = []

    def __getattr__(self, name):
        async def call(*_args, **_kwargs):
            self.made.append(name)
            if name in self.errors:
                raise self.errors[name]

        return call


class World:
    """Running writers, and what they say to those who are told; gangs ask `question` for places."""

    def __init__(self, client, *, is_leading, question=None, is_excess=True):
        self.told = []
        self.metrics = Metrics()
        receivers = Receivers(
            lambda *told: self.told.append(told),
            lambda *told: self.told.append(told),
            lambda *told: self.told.append(told),
            lambda *told: self.told.append(told),
            lambda refuse: self.told.append((refuse,)),
            lambda again: self.told.append((again,)),
            lambda gang: None,
            lambda *told: self.told.append(told),
            lambda gang: question,
            lambda *told: self.told.append(told),
            lambda *told: self.told.append(told),
            lambda evict: True,
            lambda delete: is_excess,
        )
        self.writers = Writers(
            client, Settings(), self.metrics, receivers, is_leading=lambda: is_leading
        )

    def sample(self, name, **labels):
        return self.metrics.registry.get_sample_value(name, labels)


@asynccontextmanager
async def running(client, *, is_leading=True, **said):
    world = World(client, is_leading=is_leading, **said)
    tasks = [asyncio.create_task(work, name=name) for name, work in world.writers.works()]
    try:
        yield world
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_gate_and_a_binding_come_back_as_outcomes_and_their_distance_is_measured():
    async with running(Calls()) as world:
        world.writers.feed([UNGATE])
        await until(lambda: world.told)
        world.writers.feed([BIND, REFUSE])
        await until(lambda: len(world.told) == 3)
    assert world.told == [(UNGATE, Ungated()), (REFUSE,), (BIND, Bound())]
    assert world.sample("corral_pods_ungated_total", outcome="ungated") == 1
    assert world.sample("corral_gate_to_bound_seconds_count") == 1


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (NotFound(404, "NotFound"), "gone"),
        (ApiError(422, "Invalid"), "forbidden"),
        (ApiError(500, "InternalError"), "failed"),
    ],
)
async def test_a_gate_that_stays_is_counted_by_its_reason(error, outcome):
    async with running(Calls(ungate_pod=error)) as world:
        world.writers.feed([UNGATE])
        await until(lambda: world.told)
    assert world.sample("corral_pods_ungated_total", outcome=outcome) == 1
    assert isinstance(world.told[0][1], UngateFailed)


async def test_the_leaders_own_corral_writes_it_all():
    client = Calls()
    async with running(client) as world:
        world.writers.feed(FOR_THE_LEADER)
        await until(lambda: len(client.made) == len(FOR_THE_LEADER))
        await until(lambda: world.sample("corral_removals_total", how="delete", outcome="done"))
    written = [
        "annotate_pod",
        "annotate_pod",
        "change",
        "delete_pod",
        "evict_pod",
        "record_event",
        "record_event",
    ]
    assert sorted(client.made) == written
    assert world.sample("corral_removals_total", how="evict", outcome="done") == 1
    assert world.sample("corral_pods_rejected_total") == 1


async def test_what_was_dropped_or_not_answered_is_given_back_but_not_what_was_refused():
    """The engine says it again; a full queue is shown by more gangs than it has room for."""
    events = [
        EmitEvent(GANG, replace(POD, uid=f"u{number}"), "GangIncomplete", "1 of 2", is_warning=True)
        for number in range(MOST_QUEUED + 2)
    ]
    async with running(Calls(record_event=ApiError(422, "Invalid"))) as world:
        world.writers.feed(events)
        assert world.told == []  # never from inside `feed`
        await until(lambda: len(world.told) == 2)
        await until(lambda: world.sample("corral_reports_total", outcome="failed"))
    assert world.told == [(GANG, "GangIncomplete", event.about.uid) for event in events[-2:]]
    assert world.sample("corral_reports_total", outcome="dropped") == 2


async def test_the_others_write_nothing_but_bindings_and_hear_that_the_gate_is_still_there():
    client = Calls()
    async with running(client, is_leading=False) as world:
        world.writers.feed([*FOR_THE_LEADER, UNGATE])
        assert world.told == []  # never from inside `feed`
        world.writers.feed([BIND])
        await until(lambda: len(world.told) == 2)
    assert client.made == ["bind"]
    (ungate, outcome), (bind, _) = world.told
    assert (ungate, bind) == (UNGATE, BIND)
    assert isinstance(outcome, UngateFailed)
    assert not outcome.is_gone
    assert not outcome.is_forbidden


async def test_who_comes_to_lead_hears_which_reports_were_left_to_the_one_before():
    """The engine says those again that are still true."""
    client = Calls()
    async with running(client, is_leading=False) as world:
        world.writers.feed(FOR_THE_LEADER)
        await asyncio.sleep(0.05)
        assert world.told == []
        world.writers.lead()
        await until(lambda: len(world.told) == 2)
        world.writers.lead()
        await asyncio.sleep(0.05)
    assert world.told == [(GANG, "PodNotInGang", "u1"), (GANG, "GangPlaced", "u1")]
    assert client.made == []


class Place:
    """A question for a place."""

    says = PlaceAnswer("t", (("0", 1, (("n1", 2),)),))

    def answer(self):
        return self.says


@pytest.mark.parametrize("is_leading", [True, False])
async def test_a_question_for_a_place_is_answered_whoever_leads(is_leading):
    """It is no write, and the others have plans when they come to lead."""
    client = Calls()
    async with running(client, is_leading=is_leading, question=Place()) as world:
        world.writers.feed([SeekPlace(GANG)])
        await until(lambda: world.told)
    assert [told[:2] for told in world.told] == [(GANG, Place.says)]
    assert client.made == []
    assert world.sample("corral_place_answers_total", outcome="place") == 1
    assert world.sample("corral_place_seconds_count") == 1


@pytest.mark.parametrize("effect", [EVICT, TRY], ids=["evicted", "tried"])
@pytest.mark.parametrize(
    ("error", "outcome"), [(None, "done"), (NotFound(404, "NotFound"), "gone")]
)
async def test_what_becomes_of_an_eviction_comes_back_and_only_real_ones_are_counted(
    effect, error, outcome
):
    async with running(Calls(evict_pod=error) if error else Calls()) as world:
        world.writers.feed([effect])
        await until(lambda: world.told)
    assert world.told == [(effect, outcome)]
    counted = world.sample("corral_removals_total", how="evict", outcome=outcome)
    assert counted == (effect is EVICT)


@pytest.mark.parametrize(
    ("error", "is_given_back"), [(NotLeading(), True), (Forbidden(403, "Forbidden"), False)]
)
async def test_a_deletion_that_may_pass_is_given_back_and_one_that_is_refused_is_not(
    monkeypatch, error, is_given_back
):
    monkeypatch.setitem(EvictController.__init__.__kwdefaults__, "most_tries", 1)
    delete = Delete(GANG, "team", "b", "uid-b", "one too many")
    async with running(Calls(delete_pod=error)) as world:
        world.writers.feed([delete])
        await until(
            lambda: any(
                world.sample("corral_removals_total", how="delete", outcome=outcome)
                for outcome in ("failed", "refused")
            )
        )
        await asyncio.sleep(0)
    assert world.told == ([(GANG, DELETE, "uid-b")] if is_given_back else [])


async def test_a_deletion_that_is_wanted_no_more_is_not_sent_and_given_back():
    client = Calls()
    async with running(client, is_excess=False) as world:
        world.writers.feed([Delete(GANG, "team", "b", "uid-b", "one too many")])
        await until(lambda: world.told)
    assert client.made == []
    assert world.told == [(GANG, DELETE, "uid-b")]  # it is sent again if it is one too many by then
