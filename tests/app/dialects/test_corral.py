"""What Corral writes on pods, and reads back after a restart."""

from __future__ import annotations

import pytest

from app.dialects.corral import MOST_POD_SETS_TEXT, pod_sets_from_text, pod_sets_text


def test_the_pods_of_each_pod_set_are_read_back_as_they_were_written():
    pods = {"workers": 999_999_999, "driver": 1, "a=b": 0}
    assert dict(pod_sets_from_text(pod_sets_text(pods))) == pods


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("workers", id="no_number"),
        pytest.param("=1", id="no_name"),
        pytest.param("workers=1,driver=one", id="a_word"),
        pytest.param("workers=-1", id="a_sign"),
        pytest.param("workers=٤", id="a_digit_of_another_script"),
        pytest.param("workers=1234567890", id="ten_digits"),
        pytest.param("w" * MOST_POD_SETS_TEXT + "=1", id="too_long"),
    ],
)
def test_a_text_that_is_not_ours_names_no_pod_sets(text):
    assert pod_sets_from_text(text) == ()
