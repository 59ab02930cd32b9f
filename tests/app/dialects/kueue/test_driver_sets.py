"""What a driver declares of its pod sets, and how much of it is read."""

from __future__ import annotations

import json

import pytest

from app.dialects.kueue.driver_sets import SETS, pod_sets
from app.dialects.rules import BadValue
from app.kube.core.node_requirements import MOST_OF_GANG, MOST_OF_POD
from tests.records import pod


def declaring(*selectors: dict[str, str]):
    sets = [
        {"name": f"s{at}", "count": 1, "template": {"spec": {"nodeSelector": selector}}}
        for at, selector in enumerate(selectors)
    ]
    return pod("driver", annotations={SETS: json.dumps(sets)})


def selector(entries: int, salt: object = "") -> dict[str, str]:
    return {f"k{salt}-{at}": "v" for at in range(entries)}


def test_sets_with_the_same_template_share_what_their_pods_will_be_like():
    _, one, other = pod_sets(declaring(selector(2), selector(2)))
    assert one.like.pod is other.like.pod


def test_templates_that_require_too_much_of_nodes_are_refused_by_set_and_number():
    assert len(pod_sets(declaring(selector(MOST_OF_POD)))) == 2
    with pytest.raises(BadValue, match=rf"set s1: spec.nodeSelector has {MOST_OF_POD + 1} req"):
        pod_sets(declaring(selector(1), selector(MOST_OF_POD + 1)))


def test_all_templates_together_require_no_more_than_a_gang_may():
    each = MOST_OF_GANG // 8
    assert len(pod_sets(declaring(*(selector(each, at) for at in range(8))))) == 9
    with pytest.raises(BadValue, match=f"have {MOST_OF_GANG + 1} requirements"):
        pod_sets(declaring(*(selector(each, at) for at in range(8)), selector(1, "more")))
