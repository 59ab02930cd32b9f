"""What the webhook makes of Grove's pods."""

from __future__ import annotations

import msgspec
import pytest

from app.admission.mutating.mutate import mutate
from app.admission.scope import Scope
from app.dialects.registry import DIALECTS
from app.settings import EngineOptions
from tests.cluster import Object, pod
from tests.workloads import GATE

SCOPE = Scope("corral,default-scheduler")
CONFIGURED = DIALECTS.configured(EngineOptions())


@pytest.mark.parametrize("scheduler", ["corral", "default-scheduler"])
@pytest.mark.parametrize(
    "annotations",
    [
        pytest.param({}, id="as_the_operator_makes_them"),
        pytest.param({"scheduling.k8s.io/group-name": "vc"}, id="of_volcano_as_well"),
        pytest.param({"pod-group-name": "pg"}, id="of_kai_as_well"),
    ],
)
def test_pods_whose_gates_groves_operator_lifts_are_not_gated(
    scheduler: str, annotations: dict[str, str]
) -> None:
    made = pod("p", scheduler=scheduler, annotations=annotations)
    made["metadata"]["labels"] = {"grove.io/podgang": "g", "grove.io/podclique": "w"}
    made["spec"]["schedulingGates"] = [{"name": "grove.io/podgang-pending-creation"}]
    assert changed(made) == []


def test_a_pod_with_another_label_of_groves_is_gated_as_usual() -> None:
    made = pod("p", annotations={"pod-group-name": "pg"})
    made["metadata"]["labels"] = {"grove.io/podclique": "w"}
    assert [{"name": GATE}] in changed(made)


def changed(made: Object) -> list[object]:
    operations = mutate(msgspec.json.encode(made), "default", SCOPE, CONFIGURED).operations
    return [each.value for each in operations]
