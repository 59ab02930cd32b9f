"""A journal with HyperNodes: pods of a gang are in one of the tier that it may span, or it is said.

s2 tier 2 ─┬─ s0 tier 1 ── n0 n1
           └─ s1 tier 1 ── n2 n3          n4 is in none of them
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from app.dialects.declared import DomainSpec
from app.dialects.spec import Within
from app.kube.watch.events import Listed
from app.state.journal.checking.check import check
from app.state.journal.checking.findings import Checked
from app.state.journal.checking.tiers import TieredDomains
from tests.app.dialects.volcano.objects import exact, record
from tests.app.state.histories.test_pod_groups import KINDS, TREE, group, pods
from tests.app.state.journal.checking.test_check import Lines, Recorded, lines_of
from tests.records import node

TORN = ("in its domains", "gang default/pg")


def history(**asked: Any) -> Recorded:
    """A gang of two runs in one HyperNode of tier 1."""
    world = Recorded([node(f"n{at}", gpus=1) for at in range(5)], kinds=KINDS, levels=())
    world.apply(Listed("HyperNode", TREE))
    world.apply(Listed("Job.batch.volcano.sh", ()))
    world.apply(Listed("PodGroup.scheduling.volcano.sh", (group(2, **(asked or {"tier": 1})),)))
    its = pods(2)
    world.put(*its)
    world.tick()
    assert len(world.schedule(*its)) == 2
    return world


def told(world: Recorded, **moved: str) -> Checked:
    """What is found where the pods were asked for, bound and shown on these nodes instead."""
    lines: Lines = lines_of(world)
    for line in lines:
        for name, there in moved.items():
            if line.get("call") == "bind_arrived" and line["args"][2] == f"uid-{name}":
                line["args"][3] = there
            for each in _shown(line):
                if each.get("uid") == f"uid-{name}" and each["node"]:
                    each["node"] = there
    return check([msgspec.json.encode(line) + b"\n" for line in lines])


def _shown(line: dict[str, Any]) -> list[dict[str, Any]]:
    if line.get("call") != "apply":
        return []
    event = line["args"][0][2]
    return event if isinstance(event, list) else [event]


def broken(found: Checked) -> list[tuple[str, str]]:
    return [(each.promise, each.about) for each in found.broken]


def test_a_gang_in_one_hyper_node_of_its_tier_is_found_well() -> None:
    found = told(history())
    assert (broken(found), found.unjudged) == ([], {})
    assert found.domains > 0


@pytest.mark.parametrize(
    ("first", "second", "is_torn"),
    [("n2", "n3", False), ("n0", "n2", True), ("n0", "n4", True), ("n3", "n1", True)],
)
def test_a_gang_in_two_hyper_nodes_of_its_tier_is_torn(
    first: str, second: str, is_torn: bool
) -> None:
    found = told(history(), p0=first, p1=second)
    assert broken(found) == ([TORN] if is_torn else [])
    if is_torn:
        text = found.broken[0].text
        where = ", ".join(sorted((first, second)))
        assert text.endswith(f"one domain of at most tier 1 is required, and none has {where}")


@pytest.mark.parametrize(
    ("tier", "second", "is_torn"),
    [(2, "n2", False), (2, "n4", True), (3, "n4", False), (99, "n4", False)],
)
def test_the_whole_cluster_is_one_tier_above_the_widest(
    tier: int, second: str, is_torn: bool
) -> None:
    assert broken(told(history(tier=tier), p0="n0", p1=second)) == ([TORN] if is_torn else [])


def test_a_gang_without_a_tier_may_be_anywhere() -> None:
    assert broken(told(history(conditions=()), p0="n0", p1="n4")) == []


def test_a_hyper_node_that_changes_after_its_gang_has_started_tears_no_gang() -> None:
    world = history()
    world.put(record("s0", 1, exact("Node", "n0"), version="2"))
    world.put(record("s1", 1, exact("Node", "n1", "n2", "n3"), version="2"))
    world.apply(Listed("Pod", tuple(world.pods.values())))
    assert broken(told(world)) == []


def test_a_gang_of_which_a_node_has_moved_meanwhile_is_not_judged() -> None:
    world = history()
    lines = lines_of(world)
    at = next(
        at for at, line in enumerate(lines)
        if line.get("call") == "bind_finished" and "uid-p1" in str(line["args"])
    )  # fmt: skip
    changed = history()
    changed.put(record("s0", 1, exact("Node", "n3"), version="2"))
    edit = [line for line in lines_of(changed) if "HyperNode" in str(line)][-1]
    edited = [*lines[:at], edit, *lines[at:]]
    found = check([msgspec.json.encode(line) + b"\n" for line in edited])
    assert broken(found) == []
    assert found.unjudged == {"gangs of which a node has moved to another domain": 1}


def test_a_node_that_two_hyper_nodes_name_counts_for_both() -> None:
    world = Recorded([node(f"n{at}", gpus=1) for at in range(5)], kinds=KINDS, levels=())
    both = (*TREE, record("x", 1, exact("Node", "n0", "n2")))
    world.apply(Listed("HyperNode", both))
    world.apply(Listed("Job.batch.volcano.sh", ()))
    world.apply(Listed("PodGroup.scheduling.volcano.sh", (group(2, tier=1),)))
    its = pods(2)
    world.put(*its)
    world.tick()
    world.schedule(*its)
    assert broken(told(world, p0="n0", p1="n2")) == []
    assert broken(told(world, p0="n0", p1="n3")) == [TORN]


def test_hyper_nodes_that_are_members_of_each_other_are_looked_through_once() -> None:
    world = history()
    world.put(record("s0", 1, [*exact("Node", "n0", "n1"), *exact("HyperNode", "s2")], version="2"))
    assert broken(told(world)) == []


def test_of_two_tiers_with_one_name_the_narrower_counts() -> None:
    domains = TieredDomains()
    for at, (tier, name) in enumerate(((1, "rack"), (2, "row"), (3, "row"))):
        said = DomainSpec(f"d{at}", tier, f"tier-{tier}", name)
        domains.put(record(f"d{at}", tier, []), [said])
    assert (domains.widest(Within(name="row")), domains.widest(Within(tier=3))) == (2, 3)
    assert domains.widest(Within(tier=4)) is None
    with pytest.raises(KeyError):
        domains.widest(Within(name="hall"))
    domains.keep("HyperNode", {"uid-d0", record("d2", 3, []).uid})
    assert domains.widest(Within(name="row")) == 3
