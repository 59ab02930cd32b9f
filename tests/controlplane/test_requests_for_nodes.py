"""kube-apiserver keeps the rules of the objects by which nodes are asked for, with the real CRD."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster import Cluster
from tests.contract.object_rules.rules import RULES, Rule, play
from tests.controlplane import kinds
from tests.controlplane.plane import ControlPlane

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture(scope="module")
def requests(plane: ControlPlane) -> Iterator[None]:
    """ProvisioningRequests are served."""
    with kinds.served(plane.cluster(), ("ProvisioningRequest",)):
        yield


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_kube_apiserver_keeps_the_rule(rule: Rule, cluster: Cluster, requests: None) -> None:
    play(rule, cluster)
