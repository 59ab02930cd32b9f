"""Level presets: known clouds by name."""

from __future__ import annotations

import pytest

from app.dialects.presets import PRESETS, level_keys
from topology.model.levels import levels_of


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_preset_is_a_hierarchy_the_core_accepts(name):
    assert levels_of(PRESETS[name])
    assert level_keys((name,)) == PRESETS[name]


def test_keys_pass_as_they_are():
    assert level_keys(("a.b/block", "a.b/rack")) == ("a.b/block", "a.b/rack")
    assert level_keys(("rack",)) == ("rack",)
    assert level_keys(("block", "gke")) == ("block", "gke")
    assert level_keys(()) == ()


@pytest.mark.parametrize(("typo", "meant"), [("gk", "gke"), ("generc", "generic")])
def test_a_misspelt_preset_is_not_taken_for_a_label(typo, meant):
    with pytest.raises(ValueError, match=f"'{typo}'; did you mean '{meant}'"):
        level_keys((typo,))
