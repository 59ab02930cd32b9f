"""The stock kube-scheduler chooses as the table says by which the sandbox's is judged."""

from __future__ import annotations

import pytest

from tests.cluster import Cluster
from tests.contract.preemption.choices import CHOICES, Choice, play
from tests.controlplane.plane import ControlPlane

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.mark.parametrize("choice", CHOICES, ids=lambda each: each.id)
def test_the_stock_scheduler_chooses_so(
    plane: ControlPlane, cluster: Cluster, choice: Choice
) -> None:
    plane.start_scheduler()
    play(choice, cluster)
