"""A Corral acts only while the kube-scheduler of its own pod holds the Lease."""

from __future__ import annotations

import pytest

from app.kube.client.lease import NeighbourLease
from tests.app.kube.apiserver import refusal, reply


def held_by(holder: str | None):
    return reply(200, {"kind": "Lease", "spec": {"holderIdentity": holder}})


@pytest.mark.parametrize(
    ("answer", "is_ours"),
    [
        pytest.param(held_by("corral-abc_1f2e"), True, id="our_neighbour"),
        pytest.param(held_by("corral-abcd_1f2e"), False, id="a_pod_whose_name_only_begins_so"),
        pytest.param(held_by("corral-xyz_1f2e"), False, id="the_other_replica"),
        pytest.param(held_by(""), False, id="released"),
        pytest.param(held_by(None), False, id="never_held"),
        pytest.param(refusal(404, "NotFound"), False, id="not_there_yet"),
    ],
)
async def test_the_holder_decides(server, transport, answer, is_ours):
    server.script.append(answer)
    lease = NeighbourLease(
        transport, namespace="corral-system", name="corral-scheduler", pod_name="corral-abc"
    )
    await lease.read()
    assert lease.is_ours is is_ours
    assert server.asked[0].path.endswith("/namespaces/corral-system/leases/corral-scheduler")


@pytest.mark.parametrize(
    "answer", [pytest.param(refusal(500), id="broken"), pytest.param(reply(200, "<"), id="garbage")]
)
async def test_without_an_answer_the_last_one_stands(server, transport, answer):
    server.script += [held_by("corral-abc_1"), answer]
    lease = NeighbourLease(transport, namespace="n", name="l", pod_name="corral-abc")
    await lease.read()
    await lease.read()
    assert lease.is_ours
