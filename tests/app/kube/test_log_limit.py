"""How often one thing is logged that comes up again and again."""

from __future__ import annotations

from app.kube.log_limit import AGAIN_SECONDS, MOST_REMEMBERED, LogLimit


def test_the_first_lines_are_due_and_then_none(clock):
    due = LogLimit(2, clock)
    assert [due.times("down") for _ in range(5)] == [1, 1, 0, 0, 0]
    assert due.times("slow") == 1


def test_a_minute_after_the_first_line_it_is_due_with_what_was_left_out(clock):
    due = LogLimit(2, clock)
    for _ in range(5):
        due.times("down")
    clock.now += AGAIN_SECONDS - 0.5
    assert due.times("down") == 0
    clock.now += 0.5
    assert [due.times("down") for _ in range(3)] == [5, 1, 0]


def test_things_of_which_each_is_new_do_not_fill_the_memory(clock):
    due = LogLimit(1, clock)
    for number in range(2 * MOST_REMEMBERED):
        assert due.times(number) == 1
    assert len(due) == MOST_REMEMBERED


def test_what_comes_up_all_the_time_is_remembered_among_many_that_come_up_once(clock):
    due = LogLimit(1, clock)
    due.times("down")
    for number in range(2 * MOST_REMEMBERED):
        due.times(number)
        assert due.times("down") == 0
