"""What Prometheus sees."""

from __future__ import annotations

from dataclasses import asdict

from app.metrics import (
    ADMISSION_OUTCOMES,
    ADMISSION_ROUTES,
    ANSWERS,
    BIND_OUTCOMES,
    BROKEN_REQUESTS,
    CERTIFICATE_OUTCOMES,
    MOST_RESOURCES,
    PLACE_OUTCOMES,
    REMOVAL_OUTCOMES,
    REMOVALS,
    REPORT_OUTCOMES,
    ROOM_OUTCOMES,
    STATUS_OUTCOMES,
    TLS_PORTS,
    UNGATE_OUTCOMES,
    VERBS,
    WAKE_OUTCOMES,
    Metrics,
)
from app.version import this_build


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
        "corral_place_answers",
        "corral_place_seconds",
        "corral_room_answers",
        "corral_room_seconds",
        "corral_room_drain_seconds",
        "corral_lost_writes",
        "corral_watch_problems",
        "corral_loop_lag_seconds",
    ):
        assert f"# HELP {name}" in text


def test_every_outcome_has_its_series_before_it_has_happened():
    value = Metrics().registry.get_sample_value
    for how in REMOVALS:
        for outcome in REMOVAL_OUTCOMES:
            assert value("corral_removals_total", {"how": how, "outcome": outcome}) == 0
    for port in TLS_PORTS:
        for outcome in CERTIFICATE_OUTCOMES:
            assert value("corral_certificates_total", {"port": port, "outcome": outcome}) == 0
    for verb in VERBS:
        assert value("corral_extender_request_seconds_count", {"verb": verb}) == 0
    for route in ADMISSION_ROUTES:
        assert value("corral_admission_seconds_count", {"route": route}) == 0
    for name, label, values in (
        ("corral_filter_answers", "answer", ANSWERS),
        ("corral_binds", "outcome", BIND_OUTCOMES),
        ("corral_broken_requests", "reason", BROKEN_REQUESTS),
        ("corral_pods_ungated", "outcome", UNGATE_OUTCOMES),
        ("corral_wakes", "outcome", WAKE_OUTCOMES),
        ("corral_reports", "outcome", REPORT_OUTCOMES),
        ("corral_notes", "outcome", STATUS_OUTCOMES),
        ("corral_statuses", "outcome", STATUS_OUTCOMES),
        ("corral_place_answers", "outcome", PLACE_OUTCOMES),
        ("corral_room_answers", "outcome", ROOM_OUTCOMES),
        ("corral_admissions", "outcome", ADMISSION_OUTCOMES),
    ):
        for each in values:
            assert value(f"{name}_total", {label: each}) == 0


def test_kinds_that_are_watched_have_their_series_from_the_start_and_others_on_use():
    metrics = Metrics(("Pod",))
    metrics.watch_problems["Job"].inc()
    value = metrics.registry.get_sample_value
    assert value("corral_watch_problems_total", {"kind": "Pod"}) == 0
    assert value("corral_watch_problems_total", {"kind": "Job"}) == 1
    assert value("corral_admission_rejected_total", {"kind": "Pod"}) == 0


def test_what_nodes_offer_is_shown_however_many_names_tenants_make_up():
    metrics = Metrics()
    made_up = {f"tenant.example/r{at}": 1 for at in range(2 * MOST_RESOURCES)}
    wanted = {**made_up, "nvidia.com/gpu": 8}
    for _ in range(2):
        metrics.show_needs({"never": 1}, 1, wanted, 0.0, offered={"nvidia.com/gpu"})
    series = metrics.exposition().decode().count("corral_needs_nodes_resource{")
    value = metrics.registry.get_sample_value
    assert value("corral_needs_nodes_resource", {"resource": "nvidia.com/gpu"}) == 8
    assert series == MOST_RESOURCES + 1


def test_which_corral_it_is_is_a_series_for_joins():
    metrics, labels = Metrics(), asdict(this_build())
    assert metrics.registry.get_sample_value("corral_build_info", labels) == 1
