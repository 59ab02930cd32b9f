"""Questions for room are answered in a thread, one at a time, whatever becomes of one of them."""

from __future__ import annotations

import asyncio
import threading
import time

from app.controllers.questions import MOST_QUEUED, rooms
from app.dialects.spec import GangKey
from app.state.effects import RoomAnswer, SeekRoom
from tests.app.polling import until
from tests.app.running import running

FOUND, NONE = RoomAnswer(True, pods=4), RoomAnswer(False, pods=4)


def key(name):
    return GangKey("team", name, "job")


class Question:
    """Answers once it may; notes in which thread."""

    def __init__(self, log, *, says=FOUND, fails=False):
        self.log, self.says, self.fails, self.may_end = log, says, fails, threading.Event()
        self.may_end.set()

    def answer(self):
        self.log.append(threading.current_thread() is threading.main_thread())
        self.may_end.wait(10.0)
        if self.fails:
            raise ValueError("a bug of ours")
        return self.says


async def answered(questions, *names):
    """(gang, answer, outcome) of each, in order."""
    told, outcomes, done = [], [], asyncio.Event()

    def on_answer(gang, answer, _):
        told.append((gang.name, answer, outcomes[-1]))
        if len(told) == len(names):
            done.set()

    controller = rooms(
        lambda gang: [None, questions.get(gang.name)],
        on_answer,
        lambda each, _: outcomes.append(each),
    )
    running = asyncio.create_task(controller.run())
    for name in names:
        controller.take(SeekRoom(key(name)))
    await asyncio.wait_for(done.wait(), 10.0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return told


async def test_answers_come_in_order_and_from_another_thread():
    log = []
    questions = {"a": Question(log), "b": Question(log, says=NONE)}
    assert await answered(questions, "a", "b") == [("a", FOUND, "room"), ("b", NONE, "none")]
    assert log == [False, False]


async def test_a_question_that_fails_or_is_gone_does_not_stop_the_others():
    questions = {"a": Question([], fails=True), "c": Question([])}
    assert await answered(questions, "a", "b", "c") == [
        ("a", None, "failed"),
        ("b", None, "dropped"),
        ("c", FOUND, "room"),
    ]


async def test_it_is_told_how_long_each_search_took():
    slow, seconds = Question([]), []
    slow.may_end.clear()
    controller = rooms(
        lambda _gang: [slow],
        lambda _gang, _answer, took: seconds.append(took),
        lambda _outcome, took: seconds.append(took),
    )
    began = time.monotonic()
    async with running(controller):
        controller.take(SeekRoom(key("a")))
        await until(lambda: slow.log)
        await asyncio.sleep(0.02)
        slow.may_end.set()
        await until(lambda: len(seconds) == 2)
    assert 0.02 <= seconds[0] == seconds[1] <= time.monotonic() - began


async def test_the_loop_goes_on_while_a_search_runs():
    slow = Question([])
    slow.may_end.clear()
    waiting = asyncio.create_task(answered({"a": slow}, "a"))
    for _ in range(100):
        await asyncio.sleep(0.001)
    assert not waiting.done()
    slow.may_end.set()
    assert await waiting == [("a", FOUND, "room")]


async def test_the_loop_goes_on_between_two_steps_of_a_copy():
    turns, seen = [], []

    def copied(_gang):
        for _ in range(3):
            seen.append(len(turns))
            yield None
        yield Question([])

    class Others:
        async def run(self):
            while True:
                turns.append(None)
                await asyncio.sleep(0)

    done = asyncio.Event()
    controller = rooms(copied, lambda *_: done.set(), lambda *_: None)
    async with running(Others()), running(controller):
        controller.take(SeekRoom(key("a")))
        await asyncio.wait_for(done.wait(), 10.0)
    assert seen[0] < seen[1] < seen[2]


async def test_no_more_wait_than_there_is_room_for():
    asked = []
    controller = rooms(
        lambda gang: iter(asked.append(gang) or ()), lambda *_: None, lambda *_: None
    )
    for number in range(2 * MOST_QUEUED):
        controller.take(SeekRoom(key(str(number))))
    running = asyncio.create_task(controller.run())
    await asyncio.sleep(0.05)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert len(asked) == MOST_QUEUED
