"""What Prometheus sees."""

from __future__ import annotations

from app.metrics import Metrics


def test_a_phase_that_emptied_shows_0_and_does_not_vanish():
    metrics = Metrics()
    metrics.show_gangs({"waiting": 2, "running": 1})
    metrics.show_gangs({"running": 3})
    value = metrics.registry.get_sample_value
    assert value("corral_gangs", {"phase": "waiting"}) == 0
    assert value("corral_gangs", {"phase": "running"}) == 3


def test_two_of_us_may_live_in_one_process():
    one, other = Metrics(), Metrics()
    one.binds["bound"].inc()
    sample = ("corral_binds_total", {"outcome": "bound"})
    assert one.registry.get_sample_value(*sample) == 1
    assert other.registry.get_sample_value(*sample) == 0


def test_the_exposition_has_series_before_anything_has_happened():
    text = Metrics().exposition().decode()
    for name in (
        "corral_extender_request_seconds",
        "corral_filter_answers",
        "corral_held_binds",
        "corral_binds",
        "corral_wakes",
        "corral_reports",
        "corral_notes",
        "corral_statuses",
        "corral_removals",
        "corral_room_answers",
        "corral_room_seconds",
        "corral_lost_writes",
        "corral_watch_problems",
        "corral_loop_lag_seconds",
    ):
        assert f"# HELP {name}" in text


def test_kinds_that_are_watched_have_their_series_from_the_start_and_others_on_use():
    metrics = Metrics(("Pod",))
    metrics.watch_problems["Job"].inc()
    value = metrics.registry.get_sample_value
    assert value("corral_watch_problems_total", {"kind": "Pod"}) == 0
    assert value("corral_watch_problems_total", {"kind": "Job"}) == 1
    assert value("corral_admission_rejected_total", {"kind": "Pod"}) == 0
