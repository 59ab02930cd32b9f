"""kube-apiserver keeps the rules of the objects by which nodes are asked for."""

from __future__ import annotations

import pytest

from tests.cluster import Cluster
from tests.contract.object_rules.rules import RULES, Rule, play

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_kube_apiserver_keeps_the_rule(rule: Rule, cluster: Cluster) -> None:
    play(rule, cluster)
