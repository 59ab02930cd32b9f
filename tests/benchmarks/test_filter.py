"""The engine that benchmarks/filter.py asks has read its cluster, and has its plan."""

from __future__ import annotations

from app.settings import Settings
from benchmarks.filter import MEMBERS, filled_engine
from tests.cluster import BLOCK, RACK


def test_the_planned_gang_is_held_and_the_waiting_one_is_not():
    engine = filled_engine(Settings(levels=(BLOCK, RACK)), MEMBERS)
    assert engine.is_synced
    assert len(engine.books.held) == MEMBERS
