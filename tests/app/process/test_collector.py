"""What the garbage collector is told, and that it hears the opposite at the end."""

from __future__ import annotations

import gc

from app.process.collector import PACE, Collector


def test_it_settles_once_and_is_then_as_it_was():
    before = gc.get_threshold()
    collector = Collector()
    try:
        assert collector.settle()
        assert gc.get_threshold() == PACE
        assert gc.get_freeze_count() > 0
        assert not collector.settle()
    finally:
        collector.restore()
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


def test_without_settling_there_is_nothing_to_restore():
    gc.freeze()
    try:
        Collector().restore()
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
