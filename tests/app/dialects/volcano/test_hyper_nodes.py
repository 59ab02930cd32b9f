"""HyperNodes are read as domains, and what is wrong with them is written on them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from app.dialects.declared import DomainView, NodesNamed, TopologySpec
from app.dialects.registry import DIALECTS
from app.dialects.volcano import DIALECT
from app.dialects.volcano.hyper_nodes import MOST_SHOWN, SOURCE, decode_hyper_node
from app.dialects.written import AT_WRITE
from app.errors import DecodeError
from app.labels import LabelSelector, Requirement
from tests.app.dialects.volcano.objects import (
    by_labels,
    by_pattern,
    exact,
    hyper_node,
    record,
)
from topology.model.explicit_tree import DomainFlaw

WHERE = "/apis/topology.volcano.sh/v1alpha1/hypernodes"
FIRST = "spec.members[0].selector"
FINE = ("True", "AllMembersResolved", "every member counts")


def test_a_hyper_node_is_a_domain_of_the_level_of_its_tier() -> None:
    (spec,) = DIALECTS.topologies(record("s4", 2, exact("HyperNode", "s0", "s1")))
    assert isinstance(spec, TopologySpec)
    assert (spec.name, spec.levels) == ("HyperNodes", ())
    assert spec.domain is not None
    assert (spec.domain.name, spec.domain.tier) == ("s4", 2)
    assert spec.domain.level == "topology.volcano.sh/tier-2"
    assert spec.domain.inner == ("s0", "s1")
    assert spec.domain.nodes == ()


@pytest.mark.parametrize(
    ("labels", "kept"),
    [
        pytest.param({SOURCE: "corral", "a": "b", "c": None}, {"a": "b", "c": ""}, id="ours"),
        pytest.param({SOURCE: "label", "a": "b"}, {}, id="of_volcano"),
        pytest.param({"a": "b"}, {}, id="of_nobody"),
        pytest.param(None, {}, id="none"),
    ],
)
def test_labels_are_kept_of_those_that_corral_has_made(labels: Any, kept: dict[str, str]) -> None:
    found = record("s0", 1, [], metadata={"name": "s0", "labels": labels}).labels
    assert {key: value for key, value in found.items() if key != SOURCE} == kept
    assert found.get(SOURCE, "") == ("corral" if kept else "")


def test_nodes_are_named_by_name_by_pattern_and_by_labels() -> None:
    expression = {"key": "zone", "operator": "NotIn", "values": ["b", "a"]}
    members = [*exact("Node", "n0"), *by_pattern("^n[1-3]$"), *by_labels(expression, rack="r1")]
    selector = LabelSelector(
        (
            Requirement("rack", "In", frozenset({"r1"})),
            Requirement("zone", "NotIn", frozenset({"a", "b"})),
        )
    )
    domain = record("s0", 1, members).domain
    assert domain.nodes == (
        NodesNamed(name="n0"),
        NodesNamed(pattern="^n[1-3]$"),
        NodesNamed(labels=selector),
    )
    assert domain.flaws == ()


@pytest.mark.parametrize(
    ("members", "reason", "text"),
    [
        pytest.param(
            by_pattern("s.*", "HyperNode"),
            "UnsupportedSelector",
            f"{FIRST}.regexMatch: Forbidden: HyperNodes are named by exactMatch only",
            id="hyper_nodes_by_pattern",
        ),
        pytest.param(
            by_pattern("("),
            "InvalidSelector",
            f'{FIRST}.regexMatch.pattern: Invalid value: "(": missing ): (',
            id="not_a_pattern",
        ),
        pytest.param(
            by_labels(),
            "InvalidSelector",
            f"{FIRST}.labelMatch: Required value: it is empty, and selects no node",
            id="no_label",
        ),
        pytest.param(
            by_labels({"key": "zone", "operator": "In"}),
            "InvalidSelector",
            f"{FIRST}.labelMatch.matchExpressions[0].values: Required value: must be"
            " specified when operator is In",
            id="no_value",
        ),
        pytest.param(
            by_labels({"key": "zone", "operator": "Near", "values": ["a"]}),
            "InvalidSelector",
            f'{FIRST}.labelMatch.matchExpressions[0].operator: Unsupported value: "Near":'
            ' supported values: "In", "NotIn", "Exists", "DoesNotExist"',
            id="no_such_operator",
        ),
        pytest.param(
            [{"type": "Node", "selector": {}}],
            "InvalidSelector",
            f"{FIRST}: Required value: one of exactMatch, regexMatch and labelMatch must be set",
            id="no_selector",
        ),
        pytest.param(
            exact("Node", "n0", "n0"),
            "DuplicateMember",
            'spec.members[1].selector.exactMatch.name: Duplicate value: "n0": must be unique',
            id="named_twice",
        ),
    ],
)
def test_a_member_that_cannot_be_read_is_left_out_and_said(
    members: list[dict[str, Any]], reason: str, text: str
) -> None:
    domain = record("s0", 1, [*members, *exact("Node", "n9")]).domain
    assert domain.flaws == (DomainFlaw(reason, text),)
    assert domain.nodes[-1] == NodesNamed(name="n9")


@pytest.mark.parametrize("raw", [{"spec": {"tier": "1"}}, {"spec": {"members": [7]}}])
def test_what_is_no_hyper_node_is_refused_by_name(raw: dict[str, Any]) -> None:
    whole = {**hyper_node("s0", 1, []), **raw}
    with pytest.raises(DecodeError, match=r"HyperNode .*s0"):
        decode_hyper_node(msgspec.json.encode(whole))


@pytest.mark.parametrize("tier", [-1, 2**31, 2**60])
def test_a_tier_is_any_number_that_the_api_server_takes(tier: int) -> None:
    assert record("s0", tier, exact("Node", "n0")).domain.tier == tier


@pytest.mark.parametrize(
    "status",
    [{"nodeCount": "3"}, {"nodeCount": 2.5}, {"conditions": {}}, {"conditions": [[]]}, "fine", 7],
)
def test_a_status_that_is_none_keeps_nobody_from_reading_the_rest(status: object) -> None:
    found = record("s0", 1, exact("Node", "n0"), status=status)
    assert found.domain.nodes == (NodesNamed(name="n0"),)
    assert (found.node_count, found.other_conditions) == (0, ())


def test_nulls_everywhere_are_nothing() -> None:
    found = decode_hyper_node(b'{"metadata":{"name":"s0"},"spec":{"members":[null]},"status":null}')
    assert found.domain.tier == 0
    assert [flaw.reason for flaw in found.domain.flaws] == ["InvalidSelector"]


# Status


def shown(view: DomainView, **status: Any) -> dict[str, Any] | None:
    patch = DIALECT.domain_status(record("s0", 1, exact("Node", "n0"), status=status), view)
    if patch is None:
        return None
    assert (patch.path, patch.uid) == (f"{WHERE}/s0/status", "uid-s0")
    return dict(patch.status)


def condition(status: str, reason: str, message: str, since: str) -> dict[str, str]:
    return {
        "type": "MembersResolved",
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": since,
    }


def test_the_count_and_the_condition_are_written_once() -> None:
    view = DomainView(3, ())
    written = shown(view)
    assert written == {"nodeCount": 3, "conditions": [condition(*FINE, AT_WRITE)]}
    there = condition(*FINE, "2026-11-25T09:00:00Z")
    assert shown(view, nodeCount=3, conditions=[there]) is None
    again = shown(view, nodeCount=2, conditions=[there])
    assert again == {"nodeCount": 3, "conditions": [there]}  # it has not turned


def test_flaws_are_the_reason_and_the_message() -> None:
    flaws = tuple(DomainFlaw("MemberNotFound", f"there is no s{at}") for at in range(MOST_SHOWN))
    there = condition(*FINE, "2026-11-25T09:00:00Z")
    written = shown(DomainView(0, flaws), nodeCount=0, conditions=[there])
    assert written is not None
    (said,) = written["conditions"]
    assert (said["status"], said["reason"]) == ("False", "MemberNotFound")
    assert said["message"].split("; ") == [flaw.text for flaw in flaws]
    assert said["lastTransitionTime"] == AT_WRITE
    more = shown(DomainView(0, (*flaws, DomainFlaw("NodeNotFound", "x"), flaws[0])))
    assert more is not None
    assert more["conditions"][0]["message"].endswith("; and 2 more")


def test_the_conditions_of_others_stay() -> None:
    other = {"type": "Healthy", "status": "True", "weight": 3}
    written = shown(DomainView(1, ()), nodeCount=1, conditions=[other, None])
    assert written is not None
    assert written["conditions"] == [other, condition(*FINE, AT_WRITE)]
    status = {"nodeCount": 1, "conditions": [other]}
    patch = DIALECT.domain_status(record("s0", 1, [], status=status), DomainView(1, ()))
    assert patch is not None
    assert patch.version == "7"  # so nothing that is newer is written over
