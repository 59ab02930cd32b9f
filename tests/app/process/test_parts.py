"""Why kube-scheduler should not rely on a Corral; how parts run is in tests/app/test_main.py."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from app.process.parts import SHUTTING_DOWN, SILENT_SECONDS, unready
from app.settings import Settings

BOOKMARK_SECONDS = 62.5  # between two of the API server's: a minute, and what its ticker adds


def watch(kind: str, silent_for: float) -> SimpleNamespace:
    return SimpleNamespace(kind=kind, seconds_since_last_byte=silent_for)


@pytest.mark.parametrize(
    ("is_draining", "is_synced", "silent_for", "why"),
    [
        pytest.param(False, True, 0.0, "", id="nothing"),
        pytest.param(False, True, SILENT_SECONDS, "", id="as_silent_as_a_watch_may_be"),
        pytest.param(
            False, True, SILENT_SECONDS + 0.1, "the watch of Pod objects is silent", id="silent"
        ),
        pytest.param(False, False, 0.0, "the cluster has not been read yet", id="not_synced"),
        pytest.param(True, True, 0.0, SHUTTING_DOWN, id="shutting_down"),
        pytest.param(True, False, SILENT_SECONDS + 1, SHUTTING_DOWN, id="that_first_of_all"),
    ],
)
def test_the_first_reason_is_told(is_draining, is_synced, silent_for, why):
    engine = SimpleNamespace(is_draining=is_draining, is_synced=is_synced)
    assert unready(engine, [watch("Node", 1.0), watch("Pod", silent_for)]) == why


def test_a_dead_connection_is_replaced_before_it_makes_a_corral_unready():
    given_up = Settings.model_fields["watch_silence_seconds"].default
    assert given_up > BOOKMARK_SECONDS
    assert given_up + BOOKMARK_SECONDS < SILENT_SECONDS
