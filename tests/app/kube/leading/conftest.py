"""What the tests of Leases share."""

from __future__ import annotations

import pytest


class Clock:
    """A clock that is set."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()
