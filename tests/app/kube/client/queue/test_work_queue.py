"""The queue of every write: order, bounds, tries and pace; the pace with a clock of numbers."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from app.kube.client.backoff import Backoff
from app.kube.client.queue.work_queue import TokenBucket, WorkQueue
from tests.app.polling import until
from tests.app.running import running


def test_a_burst_is_free_and_then_the_rate_holds():
    bucket = TokenBucket(per_second=10, burst=3, now=0.0)
    waits = [bucket.reserve(0.0) for _ in range(6)]
    assert waits == pytest.approx([0, 0, 0, 0.1, 0.2, 0.3])


def test_tokens_grow_with_time_up_to_the_burst():
    bucket = TokenBucket(per_second=10, burst=2, now=0.0)
    assert [bucket.reserve(0.0) for _ in range(2)] == [0, 0]
    assert [bucket.reserve(1000.0) for _ in range(3)] == pytest.approx([0, 0, 0.1])


@pytest.mark.parametrize("burst", [1, 5])
def test_over_a_long_time_never_more_than_burst_and_rate(burst):
    bucket = TokenBucket(per_second=5, burst=burst, now=0.0)
    now, granted = 0.0, 0
    while now <= 20:
        now += bucket.reserve(now)
        granted += 1
    assert granted <= burst + 5 * 20 + 1
    assert granted >= 5 * 20


class Worker:
    """Handles words: notes each try, waits while `gate` is shut, answers as its script says."""

    def __init__(self, **scripts):
        self.scripts = {word: list(script) for word, script in scripts.items()}
        self.handled = []
        self.open = self.most_open = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def handle(self, word, tries):
        self.handled.append((word, tries))
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            await self.gate.wait()
        finally:
            self.open -= 1
        script = self.scripts.get(word[0])
        said = script.pop(0) if script else None
        if isinstance(said, Exception):
            raise said
        return said

    @property
    def words(self):
        return [word for word, _ in self.handled]


def queue_of(worker, *, workers=1, most=100, namespace=lambda word: "team", **more):
    """A queue of words of one team; the first letter of a word is its key."""
    return WorkQueue(
        "words",
        worker.handle,
        namespace=namespace,
        workers=workers,
        most=most,
        key=lambda word: word[0],
        backoff=lambda: Backoff(Random(0), 0.002, 0.004),
        **more,
    )


async def idle(queue):
    await asyncio.wait_for(queue.wait_idle(), 5)


async def test_items_are_handled_in_the_order_they_came():
    worker = Worker()
    queue = queue_of(worker)
    for word in "abc":
        assert queue.put(word) is None
    async with running(queue):
        await idle(queue)
    assert worker.handled == [("a", 1), ("b", 1), ("c", 1)]


async def test_as_many_run_side_by_side_as_there_are_workers():
    worker = Worker()
    worker.gate.clear()
    queue = queue_of(worker, workers=3)
    async with running(queue):
        for word in "abcdefgh":
            queue.put(word)
        await until(lambda: worker.open == 3)
        worker.gate.set()
        await idle(queue)
    assert worker.most_open == 3
    assert worker.words == list("abcdefgh")


async def test_a_newer_item_takes_the_place_of_one_with_its_key_that_waits():
    worker = Worker()
    worker.gate.clear()
    queue = queue_of(worker)
    async with running(queue):
        for word in ("a1", "b1"):
            queue.put(word)
        await until(lambda: worker.open)
        for word in ("a2", "b2", "a3"):  # a1 has left the queue
            queue.put(word)
        worker.gate.set()
        await idle(queue)
    assert worker.words == ["a1", "b2", "a3"]


async def test_without_a_key_equal_items_are_handled_each():
    worker = Worker()
    queue = WorkQueue("words", worker.handle, namespace=lambda word: "", workers=1, most=10)
    for word in ("a", "a"):
        queue.put(word)
    async with running(queue):
        await idle(queue)
    assert worker.words == ["a", "a"]


async def test_a_full_queue_refuses_the_newest():
    queue = queue_of(Worker(), most=2)
    assert [queue.put(word) for word in ("a", "b", "c", "b2")] == [None, None, "c", None]
    assert len(queue) == 2


async def test_a_full_queue_may_drop_its_oldest_instead():
    worker = Worker()
    queue = queue_of(worker, most=2, drops="oldest")
    assert [queue.put(word) for word in "abcd"] == [None, None, "a", "b"]
    async with running(queue):
        await idle(queue)
        queue.put("e")
        await idle(queue)
    assert worker.words == ["c", "d", "e"]


def by_case(word):
    """Two teams: one writes in capitals."""
    return "loud" if word.isupper() else "quiet"


async def test_namespaces_take_turns_and_each_keeps_its_own_order():
    worker = Worker()
    queue = queue_of(worker, namespace=by_case)
    for word in "ABCDEab":
        queue.put(word)
    async with running(queue):
        await idle(queue)
    assert "".join(worker.words) == "AaBbCDE"


@pytest.mark.parametrize(
    ("drops", "left_out", "kept"),
    [("newest", ["E", "D", "c"], "AaBbC"), ("oldest", ["A", "B", "a"], "CbDcE")],
)
async def test_a_full_queue_leaves_out_what_the_namespace_with_the_most_has(drops, left_out, kept):
    worker = Worker()
    queue = queue_of(worker, most=5, namespace=by_case, drops=drops)
    for word in "ABCDE":
        assert queue.put(word) is None
    assert [queue.put(word) for word in "abc"] == left_out
    assert len(queue) == 5
    async with running(queue):
        await idle(queue)
        queue.put("d")  # each item that is left takes one permit, and no other is left over
        await idle(queue)
    assert "".join(worker.words) == kept + "d"


async def test_a_namespace_with_its_share_leaves_out_an_item_of_its_own():
    queue = queue_of(Worker(), most=4, namespace=by_case)
    assert [queue.put(word) for word in "ABabc"] == [None, None, None, None, "c"]
    assert queue.put("C") == "C"


async def test_items_that_pause_count_for_their_namespace_and_are_left_out_for_others():
    worker = Worker(**{word: [60.0] for word in "ABC"})
    queue = queue_of(worker, most=3, namespace=by_case)
    async with running(queue):
        for word in "ABC":
            queue.put(word)
        await until(lambda: len(worker.words) == 3 and len(queue) == 3)
        assert queue.put("a") == "C"
        await until(lambda: "a" in worker.words)
        queue.put("b")
        await until(lambda: "b" in worker.words)
    assert len(queue) == 0  # the pauses end with the queue
    assert "".join(worker.words) == "ABCab"


@pytest.mark.parametrize("drops", ["newest", "oldest"])
async def test_where_all_items_of_a_namespace_pause_its_newest_is_refused(drops):
    worker = Worker(a=[60.0], b=[60.0])
    queue = queue_of(worker, most=2, drops=drops)
    async with running(queue):
        for word in "ab":
            queue.put(word)
        await until(lambda: len(worker.words) == 2 and len(queue) == 2)
        assert queue.put("c") == "c"
        assert [queue.awaits(word) for word in "abc"] == [True, True, False]


async def test_of_one_namespace_what_waits_may_be_dropped_and_not_what_pauses():
    worker = Worker(a=[60.0])
    queue = queue_of(worker, most=3, drops="oldest")
    async with running(queue):
        queue.put("a")
        await until(lambda: worker.words and len(queue) == 1)
        worker.gate.clear()
        queue.put("b")
        await until(lambda: worker.open)
        assert [queue.put(word) for word in "cde"] == [None, None, "c"]
        worker.gate.set()
        await until(lambda: worker.words[-1] == "e")
    assert worker.words == ["a", "b", "d", "e"]


async def test_it_says_whether_an_item_of_the_same_key_awaits_its_turn():
    worker = Worker(a=[60.0])
    queue = queue_of(worker)
    assert not queue.awaits("a1")
    queue.put("a1")
    assert queue.awaits("a2")
    async with running(queue):
        await until(lambda: worker.words and len(queue) == 1)
        assert queue.awaits("a3")
        assert not queue.awaits("b1")


async def test_what_is_to_be_tried_again_is_and_does_not_hold_up_the_others():
    worker = Worker(a=[0.0, 0.0, None])
    queue = queue_of(worker)
    async with running(queue):
        for word in "abc":
            queue.put(word)
        await idle(queue)
    assert worker.handled == [("a", 1), ("b", 1), ("c", 1), ("a", 2), ("a", 3)]


async def test_the_next_try_comes_no_sooner_than_it_was_asked_for():
    loop = asyncio.get_running_loop()
    worker = Worker(a=[0.05, None])
    queue = queue_of(worker)
    began = loop.time()
    async with running(queue):
        queue.put("a")
        await idle(queue)
    assert loop.time() - began >= 0.05
    assert worker.handled == [("a", 1), ("a", 2)]


async def test_an_item_that_pauses_counts_and_a_newer_one_takes_its_place_and_its_tries():
    worker = Worker(a=[0.05, None])
    queue = queue_of(worker, most=1)
    async with running(queue):
        queue.put("a1")
        await until(lambda: worker.handled and len(queue) == 1)
        assert queue.put("b") == "b"
        assert queue.put("a2") is None
        await idle(queue)
    assert worker.handled == [("a1", 1), ("a2", 2)]


async def test_a_try_that_failed_gives_way_to_a_newer_item_that_came_meanwhile():
    worker = Worker(a=[0.0, None])
    worker.gate.clear()
    queue = queue_of(worker)
    async with running(queue):
        queue.put("a1")
        await until(lambda: worker.open)
        queue.put("a2")
        worker.gate.set()
        await idle(queue)
    assert worker.handled == [("a1", 1), ("a2", 1)]


async def test_two_tries_of_one_key_that_fail_together_are_followed_by_one():
    worker = Worker(a=[0.0, 0.0, None])
    worker.gate.clear()
    queue = queue_of(worker, workers=2)
    faults = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
    async with running(queue):
        queue.put("a1")
        await until(lambda: worker.open == 1)
        queue.put("a2")
        await until(lambda: worker.open == 2)
        worker.gate.set()
        await idle(queue)
        await asyncio.sleep(0.02)  # longer than a pause
    assert worker.words == ["a1", "a2", "a2"]
    assert faults == []


@pytest.mark.parametrize("is_over", [True, False])
async def test_a_try_that_failed_is_not_repeated_after_a_newer_item_that_has_begun(is_over):
    worker = Worker()
    old, new = asyncio.Event(), asyncio.Event()

    async def handle(word, tries):
        worker.handled.append((word, tries))
        await (old if word == "a1" else new).wait()
        return 0.0 if word == "a1" else None

    queue = WorkQueue("words", handle, namespace=lambda word: "team", workers=2, most=9,
        key=lambda word: word[0], backoff=lambda: Backoff(Random(0), 0.002, 0.004))  # fmt: skip
    async with running(queue):
        queue.put("a1")
        await until(lambda: worker.words == ["a1"])
        queue.put("a2")
        await until(lambda: worker.words == ["a1", "a2"])
        for event in (new, old) if is_over else (old, new):
            event.set()
            await asyncio.sleep(0.02)  # longer than a pause
        await idle(queue)
    assert worker.words == ["a1", "a2"]


async def test_an_item_that_trips_a_bug_does_not_stop_the_next():
    worker = Worker(a=[RuntimeError("bug")])
    queue = queue_of(worker)
    async with running(queue):
        for word in "ab":
            queue.put(word)
        await idle(queue)
    assert worker.words == ["a", "b"]


async def test_every_try_takes_a_token():
    loop = asyncio.get_running_loop()
    worker = Worker(a=[0.0, 0.0, None])
    queue = queue_of(worker, workers=2, bucket=TokenBucket(50.0, 1.0, loop.time()))
    began = loop.time()
    async with running(queue):
        for word in "abc":
            queue.put(word)
        await idle(queue)
    assert len(worker.handled) == 5
    assert loop.time() - began >= 4 / 50.0 * 0.9


async def test_a_queue_that_is_cancelled_leaves_nothing_running():
    worker = Worker(a=[60.0])
    queue = queue_of(worker, workers=2)
    async with running(queue):
        queue.put("a")
        await until(lambda: worker.handled and len(queue) == 1)
        worker.gate.clear()
        queue.put("b")
        await until(lambda: worker.open)
    assert worker.open == 0
    assert worker.words == ["a", "b"]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_it_is_not_idle_while_an_item_pauses():
    worker = Worker(a=[0.05, None])
    queue = queue_of(worker)
    async with running(queue):
        queue.put("a")
        await until(lambda: worker.handled and len(queue) == 1)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(queue.wait_idle(), 0.01)
        await idle(queue)
