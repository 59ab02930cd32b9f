"""The desk: every /bind is answered exactly once, with the truth."""

from __future__ import annotations

import asyncio

import pytest

from app.state.effects import Bind, BindFailed, Bound, Effect, RejectBind
from app.verbs.bind import CROWDED, DONE, BindDesk


class Holding:
    """An engine that holds whatever arrives, or does what it was told to."""

    def __init__(self, *effects: Effect, error: Exception | None = None) -> None:
        self.effects, self.error = list(effects), error
        self.arrived: list[tuple[str, str]] = []

    def bind_arrived(
        self, namespace: str, name: str, uid: str, node: str, now: float
    ) -> list[Effect]:
        self.arrived.append((uid, node))
        if self.error:
            raise self.error
        return self.effects


def desk_of(engine: Holding, seconds: float = 5.0, most: int = 1_000) -> BindDesk:
    """A desk that takes refusals itself, as the dispatcher would."""
    desk: BindDesk

    def feed(effects: list[Effect]) -> None:
        for effect in effects:
            assert isinstance(effect, RejectBind)
            desk.refuse(effect)

    desk = BindDesk(engine, feed, answer_seconds=seconds, most_held=most)
    return desk


async def asked(
    desk: BindDesk, node: str = "n1", uid: str = "u", namespace: str = "ns"
) -> asyncio.Task[str]:
    """A request that has arrived at the desk."""
    request = asyncio.create_task(desk.bind(namespace, "p", uid, node))
    await asyncio.sleep(0)
    return request


def bind(node: str = "n1", uid: str = "u") -> Bind:
    return Bind("ns", "p", uid, node)


async def test_a_confirmed_binding_is_a_success():
    desk = desk_of(Holding())
    request = await asked(desk)
    assert len(desk) == 1
    desk.finished(bind(), Bound())
    assert await request == DONE
    assert len(desk) == 0


async def test_where_too_many_wait_the_oldest_makes_room_and_is_bound_all_the_same():
    desk = desk_of(Holding(), most=2)
    oldest, *others = [await asked(desk, uid=f"u{number}") for number in range(3)]
    assert await oldest == CROWDED
    assert len(desk) == 2
    for number in range(3):
        desk.finished(bind(uid=f"u{number}"), Bound())
    assert [await other for other in others] == [DONE, DONE]


async def test_where_too_many_wait_the_namespace_with_the_most_makes_room():
    desk = desk_of(Holding(), most=3)
    quiet = await asked(desk, uid="q", namespace="quiet")
    loud = [await asked(desk, uid=f"u{number}", namespace="loud") for number in range(4)]
    assert [await each for each in loud[:2]] == [CROWDED, CROWDED]
    another = await asked(desk, uid="a", namespace="another")
    last = await asked(desk, uid="z", namespace="last")  # each has one: the oldest turn ends
    assert len(desk) == 3
    for uid in ("q", "u2", "u3", "a", "z"):
        desk.finished(bind(uid=uid), Bound())
    assert [await each for each in (quiet, *loud[2:], another, last)] == [
        CROWDED,
        CROWDED,
        DONE,
        DONE,
        DONE,
    ]


async def test_a_desk_that_was_full_and_is_empty_has_room_for_all_again():
    desk = desk_of(Holding(), most=2)
    for _ in range(3):
        requests = [await asked(desk, uid=f"u{number}") for number in range(2)]
        for number in range(2):
            desk.finished(bind(uid=f"u{number}"), Bound())
        assert [await each for each in requests] == [DONE, DONE]


async def test_a_failed_binding_is_told_as_it_is():
    desk = desk_of(Holding())
    request = await asked(desk)
    desk.finished(bind(), BindFailed("the pod is gone", is_gone=True))
    assert await request == "the pod is gone"


async def test_a_refusal_at_once_is_answered_at_once():
    desk = desk_of(Holding(RejectBind("u", "another node is planned")))
    assert await desk.bind("ns", "p", "u", "n1") == "another node is planned"


async def test_the_same_question_again_joins_the_first():
    engine = Holding()
    desk = desk_of(engine)
    first, second = await asked(desk), await asked(desk)
    assert len(desk) == 1
    desk.finished(bind(), Bound())
    assert (await first, await second) == (DONE, DONE)
    assert engine.arrived == [("u", "n1")]


async def test_another_node_replaces_the_older_question():
    engine = Holding()
    desk = desk_of(engine)
    first, second = await asked(desk, "n1"), await asked(desk, "n2")
    assert "n2" in await first
    assert not second.done()
    desk.finished(bind("n2"), Bound())
    assert await second == DONE
    assert engine.arrived == [("u", "n1"), ("u", "n2")]


async def test_a_binding_elsewhere_is_no_success_for_who_asks_for_another_node():
    desk = desk_of(Holding())
    await asked(desk, "n1")
    second = await asked(desk, "n2")
    desk.finished(bind("n1"), Bound())
    assert await second == "the pod is already bound to node n1"


async def test_outcomes_of_other_pods_answer_nobody():
    desk = desk_of(Holding())
    request = await asked(desk)
    desk.finished(bind(uid="other"), Bound())
    desk.refuse(RejectBind("other", "no"))
    await asyncio.sleep(0)
    assert not request.done()
    desk.refuse_all("over")
    assert await request == "over"


async def test_a_second_outcome_changes_nothing():
    desk = desk_of(Holding())
    request = await asked(desk)
    desk.finished(bind(), Bound())
    desk.finished(bind(), BindFailed("late"))
    desk.refuse(RejectBind("u", "late"))
    assert await request == DONE


async def test_nobody_waits_longer_than_the_bound():
    desk = desk_of(Holding(), seconds=0.02)
    first = await asked(desk)
    second = await asked(desk)
    assert "in time" in await first
    assert "in time" in await second
    assert len(desk) == 0


async def test_a_request_that_is_cancelled_leaves_the_one_that_joined_it():
    desk = desk_of(Holding())
    first, second = await asked(desk), await asked(desk)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    desk.finished(bind(), Bound())
    assert await second == DONE


async def test_an_engine_that_fails_leaves_nobody_waiting():
    desk = desk_of(Holding(error=RuntimeError("bug")))
    with pytest.raises(RuntimeError, match="bug"):
        await desk.bind("ns", "p", "u", "n1")
    assert len(desk) == 0
