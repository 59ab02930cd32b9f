"""Which variables of the environment are told to be no settings."""

from __future__ import annotations

import pytest

from app.cli.common.misspelt import misspelt


@pytest.mark.parametrize(
    ("variable", "alike"),
    [
        pytest.param("CORRAL_LEVLES", "CORRAL_LEVELS", id="misspelt"),
        pytest.param("CORRAL_SCHEDULER_NAMES", "CORRAL_SCHEDULER_NAME", id="more_than_one"),
        pytest.param("CORRAL_XYZZY", "", id="like_none"),
    ],
)
def test_a_variable_that_no_setting_has_is_told_with_the_one_that_may_be_meant(variable, alike):
    assert list(misspelt({variable: "x", "PATH": "/bin"})) == [(variable, alike)]


@pytest.mark.parametrize(
    "variable",
    [
        "CORRAL_LEVELS",
        "CORRAL_SETTINGS",
        "CORRAL_SERVER",
        "CORRAL_AT",
        "XCORRAL_LEVLES",
        "CORRAL_SERVICE_HOST",
        "CORRAL_SERVICE_PORT_HTTPS",
        "CORRAL_PORT",
        "CORRAL_PORT_443_TCP_ADDR",
        "CORRAL_WEBHOOK_SERVICE_PORT",
        "CORRAL_WEBHOOK_PORT_443_TCP",
    ],
)
def test_settings_and_what_kubelet_says_of_services_are_not_told(variable):
    assert list(misspelt({variable: "x"})) == []
