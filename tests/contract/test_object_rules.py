"""The sandbox keeps the rules of the objects by which nodes are asked for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.autoscaling.objects import definition
from tests.cluster import RACK, Cluster
from tests.contract.object_rules.rules import RULES, Rule, play
from tests.contract.worlds import sandbox


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A sandbox that serves ProvisioningRequests and has no nodes."""
    with sandbox(tmp_path_factory.mktemp("sandbox"), (RACK,)) as cluster:
        cluster.create(definition())
        yield cluster


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_sandbox_keeps_the_rule(rule: Rule, cluster: Cluster) -> None:
    play(rule, cluster)
