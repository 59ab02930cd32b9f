"""What the rules of every vocabulary are made of."""

from __future__ import annotations

import pytest

from app.dialects.rules import is_label_key


@pytest.mark.parametrize(
    ("text", "is_key"),
    [
        ("cloud.provider.com/topology-rack", True),
        ("rack", True),
        ("kubernetes.io/hostname", True),
        ("a/b/c", False),
        ("/rack", False),
        ("rack/", False),
        ("UPPER.com/rack", False),
        ("-rack", False),
        ("r" * 64, False),
        ("räck", False),
    ],
)
def test_label_keys_are_those_of_the_api_server(text, is_key):
    assert is_label_key(text) is is_key
