"""A pod that is stored where it belongs: what the webhook answers instead of the gate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.admission.mutating.mutate import mutate
from app.dialects import corral
from app.dialects.registry import DIALECTS
from app.kube.core.objects import PodRecord
from app.kube.decoding.decode import decode_pod
from tests.app.admission.port import SCOPE, patch_of, patched, review, running_port
from tests.certificates import pair
from tests.cluster import RACK, Object, pod
from tests.workloads import REQUIRED, asking, gates_of, member

NODES = ("n1", "n2")
PREFERRED = [
    {"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}
]
BORN = "corral_pods_born_total"


def placed(asked: list[tuple[PodRecord, str]], nodes: tuple[str, ...] | None = NODES) -> Any:
    """What places every pod there, and remembers what it was asked."""

    def place(one: PodRecord, namespace: str) -> tuple[str, ...] | None:
        asked.append((one, namespace))
        return nodes

    return place


def operations(thing: Object) -> list[Any]:
    """What changes of a pod that is sent once more."""
    found = mutate(json.dumps(thing).encode(), "team", SCOPE, DIALECTS).operations
    made: list[Any] = json.loads(msgspec.json.encode(found))
    return made


async def stored(folder: Path, thing: Object, nodes: tuple[str, ...] | None = NODES) -> Object:
    """The pod as it is stored where such nodes are planned for it."""
    async with running_port(folder, place=placed([], nodes)) as running:
        async with running.client(pair("first")) as client:
            answer = await client.post("/mutate", json=review(thing))
        response = answer.json()["response"]
        assert response["allowed"] is True
        changed: Object = patched(thing, patch_of(response))
        assert running.value(BORN) == (nodes is not None)
        assert running.value("corral_pods_gated_total") == (nodes is None)
    return changed


@pytest.mark.parametrize(
    "affinity",
    [
        pytest.param(None, id="without_affinity"),
        pytest.param({}, id="empty"),
        pytest.param({"podAntiAffinity": {}}, id="of_other_pods"),
        pytest.param({"nodeAffinity": {}}, id="of_nodes_and_empty"),
        pytest.param(
            {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": PREFERRED}},
            id="preferred",
        ),
    ],
)
async def test_a_pod_is_narrowed_to_its_nodes_and_keeps_what_affinity_it_has(
    tmp_path: Path, affinity: Object | None
):
    more = {} if affinity is None else {"affinity": affinity}
    thing = member("g", 0, 2, **more)
    changed = await stored(tmp_path, thing)
    assert gates_of(changed) == []
    read = decode_pod(json.dumps(changed).encode(), lambda _key: True)
    own, allowed = corral.own_shape(read)
    assert allowed == set(NODES)
    assert own.terms == ()
    kept = changed["spec"]["affinity"]
    assert "podAntiAffinity" in kept or not affinity or "podAntiAffinity" not in affinity
    if affinity and affinity.get("nodeAffinity"):
        assert len(own.preferred) == 1


async def test_without_annotations_of_its_own_it_gets_the_one_that_says_so(tmp_path: Path):
    thing = pod("p", labels={"kueue.x-k8s.io/queue-name": "team"})
    thing["metadata"].pop("annotations", None)
    changed = await stored(tmp_path, thing)
    assert changed["metadata"]["annotations"] == {corral.BORN: corral.NODES}


async def test_a_pod_that_an_earlier_call_has_narrowed_stays_as_it_is(tmp_path: Path):
    once = await stored(tmp_path, member("g", 0, 2))
    again = await stored(tmp_path, once, ())
    assert again == once


async def test_a_pod_that_a_later_call_gives_the_gate_is_as_free_as_all_others(tmp_path: Path):
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": PREFERRED}
    thing = member("g", 0, 2, affinity={"nodeAffinity": preferred})
    again = await stored(tmp_path, await stored(tmp_path, thing), None)
    assert gates_of(again) == [corral.GATE]
    assert corral.BORN not in again["metadata"]["annotations"]
    assert again["spec"]["affinity"] == {"nodeAffinity": preferred}


async def test_a_pod_whose_own_affinity_names_more_than_nodes_keeps_it_behind_the_gate(
    tmp_path: Path,
):
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
    own = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    said = asking(required=RACK) | {corral.BORN: corral.NODES}
    thing = member("g", 0, 2, annotations=said, affinity={"nodeAffinity": own})
    changed = await stored(tmp_path, thing, None)
    assert changed["spec"]["affinity"] == {"nodeAffinity": own}


@pytest.mark.parametrize("affinity", [None, {}, {"podAntiAffinity": {}}, {"nodeAffinity": {}}])
async def test_a_pod_that_says_it_is_narrowed_and_is_not_gets_the_gate(
    tmp_path: Path, affinity: Object | None
):
    more = {} if affinity is None else {"affinity": affinity}
    thing = member("g", 0, 2, annotations={corral.BORN: corral.NODES}, **more)
    changed = await stored(tmp_path, thing, None)
    assert gates_of(changed) == [corral.GATE]
    assert changed["spec"].get("affinity") == affinity


@pytest.mark.parametrize("preferred", [[], PREFERRED], ids=["no_other_affinity", "preferred"])
async def test_a_pod_that_kueue_takes_in_after_it_was_narrowed_is_given_back(
    tmp_path: Path, preferred: list[Object]
):
    own = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    thing = member("g", 0, 2, affinity=own)
    taken = await stored(tmp_path, thing)
    taken["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
    back = patched(taken, operations(taken))
    assert back["spec"] == {**thing["spec"], "schedulingGates": taken["spec"]["schedulingGates"]}
    assert corral.BORN not in back["metadata"]["annotations"]
    assert corral.MANAGED not in back["metadata"]["labels"]
    assert operations(back) == []


async def test_what_a_user_says_of_a_pod_of_kueues_stays(tmp_path: Path):
    thing = await stored(tmp_path, member("g", 0, 2))
    del thing["metadata"]["labels"][corral.MANAGED]
    thing["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
    assert operations(thing) == []


async def test_where_none_is_planned_it_gets_the_gate(tmp_path: Path):
    assert gates_of(await stored(tmp_path, member("g", 0, 2), None)) == [corral.GATE]


@pytest.mark.parametrize(
    "thing",
    [
        pytest.param(pod("p"), id="ordinary"),
        pytest.param(member("g", 0, 2, annotations={REQUIRED: "my rack"}), id="mistaken"),
        pytest.param(
            pod("p", annotations=asking(required=RACK), scheduler="other"), id="of_others"
        ),
        pytest.param(
            pod("p", annotations=asking(required=RACK), labels={corral.MANAGED: "false"}),
            id="opted_out",
        ),
    ],
)
async def test_no_place_is_asked_for_a_pod_that_would_get_no_gate(tmp_path: Path, thing: Object):
    asked: list[tuple[PodRecord, str]] = []
    async with running_port(tmp_path, place=placed(asked)) as running:
        async with running.client(pair("first")) as client:
            await client.post("/mutate", json=review(thing))
        assert running.value(BORN) == 0
    assert asked == []


async def test_a_dry_run_gets_the_gate_and_no_place_is_asked_for(tmp_path: Path):
    asked: list[tuple[PodRecord, str]] = []
    async with running_port(tmp_path, place=placed(asked)) as running:
        async with running.client(pair("first")) as client:
            answer = await client.post("/mutate", json=review(member("g", 0, 2), dryRun=True))
        assert corral.GATE in str(patch_of(answer.json()["response"]))
        assert (running.value(BORN), running.value("corral_pods_gated_total")) == (0, 0)
    assert asked == []
