"""Level presets: known clouds by name."""

from __future__ import annotations

import pytest

from app.dialects.presets import PRESETS, label_levels, level_keys
from topology.model.levels import NODE_LEVEL, levels_of


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


def test_levels_are_label_keys_above_the_node():
    assert label_levels(("a.b/block", "a.b/rack", NODE_LEVEL)) == ("a.b/block", "a.b/rack")
    assert label_levels(("gke",)) == PRESETS["gke"]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        pytest.param(("gkee",), "did you mean 'gke'", id="misspelt_preset"),
        pytest.param(("rack", "rack"), "^rack is named twice", id="twice"),
        pytest.param(("a b/c",), "'a b/c' is no label key", id="no_key"),
        pytest.param((NODE_LEVEL,), "no level above the node", id="node_level"),
    ],
)
def test_what_is_no_level_is_named(names, said):
    with pytest.raises(ValueError, match=said):
        label_levels(names)
