"""topograph's labels as levels."""

from __future__ import annotations

from app.dialects.topograph import levels_on

TIER = "fabric.topograph.run/tier-"
DOMAIN = "accelerator.topograph.run/domain"
SUB_DOMAIN = "accelerator.topograph.run/sub-domain"
EARLIER = "network.topology.nvidia.com/"


def fabric(*switches: str) -> dict[str, str]:
    """The closest switch first."""
    return {f"{TIER}{tier}": switch for tier, switch in enumerate(switches)}


def test_tiers_are_levels_with_the_farthest_switch_as_the_widest() -> None:
    nodes = [fabric(*(f"sw{tier}" for tier in range(11)))]
    assert levels_on(nodes) == (tuple(f"{TIER}{tier}" for tier in range(10, -1, -1)), [])


def test_accelerators_that_nest_are_the_narrowest_levels() -> None:
    nodes = [
        fabric("s1", "s9") | {DOMAIN: "d1", SUB_DOMAIN: "a"},
        fabric("s1", "s9") | {DOMAIN: "d2", SUB_DOMAIN: "b"},
        fabric("s2", "s9"),
    ]
    assert levels_on(nodes) == ((f"{TIER}1", f"{TIER}0", DOMAIN, SUB_DOMAIN), [])


def test_accelerators_that_span_switches_are_left_out_and_said() -> None:
    nodes = [fabric("s1") | {DOMAIN: "d1"}, fabric("s2") | {DOMAIN: "d1"}]
    levels, notes = levels_on(nodes)
    assert levels == (f"{TIER}0",)
    assert [f"{DOMAIN}=d1" in note for note in notes] == [True]


def test_accelerators_alone_are_a_topology() -> None:
    assert levels_on([{DOMAIN: "d1"}, {}]) == ((DOMAIN,), [])


def test_the_earlier_labels_are_read_where_there_are_no_newer_ones() -> None:
    earlier = {EARLIER + each: each for each in ("accelerator", "leaf", "spine", "core")}
    widest_first = tuple(EARLIER + each for each in ("core", "spine", "leaf", "accelerator"))
    assert levels_on([earlier]) == (widest_first, [])
    levels, notes = levels_on([earlier | fabric("s1")])
    assert levels == (f"{TIER}0",)
    assert len(notes) == 1


def test_nodes_without_labels_have_no_levels() -> None:
    assert levels_on([{"kubernetes.io/hostname": "n1"}]) == ((), [])
