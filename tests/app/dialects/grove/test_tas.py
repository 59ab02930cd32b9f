"""Grove's own list of end-to-end tests on topologies, TAS1 to TAS23, on a sandbox of its 28 nodes.

Each goes the whole way: Corral's webhook reads the PodCliqueSet, `stage.py` writes what Grove's
operator makes of it, and the pods are bound. Where Corral cannot do what one says, it is the
operator that writes it, and the test is of what Corral does then:

    TAS1, TAS19   a Topology of KAI's is made of the binding: Corral reads the binding itself
    TAS18         the condition SchedulerTopologyDrift on the binding: the operator compares it
    TAS20         the condition TopologyLevelsUnavailable on the PodCliqueSet is the operator's
    TAS21         bindings are checked by the operator's webhook: Corral's checks PodCliqueSets
    TAS22         packDomain alone is refused by newer schemas: v0.1.0-alpha.8 has no other field

TAS2 to TAS16 are run with the real operator too (tests/controlplane/test_grove_operator.py), TAS17
and TAS23 with PodGangs as written by hand (tests/controlplane/test_grove.py).
Source: grove operator/e2e/tests/topology_test.go (main, 2026-08-19); the objects are made anew.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.app.dialects.grove.stage import (
    BINDINGS,
    POD_CLIQUE_SETS,
    Stage,
    binding,
    is_quiet,
    stage_of,
)
from tests.app.sandbox.http import PODS, until
from tests.cluster import MERGE, Object, node
from tests.controlplane.grove import clique, pod_clique_set, scaling_group
from tests.controlplane.grove_cases import CASES, KEYS, NODES, nodes
from tests.workloads import gates_of

pytestmark = pytest.mark.slow

TOPOLOGY = "grove-topology"
LEVELS = tuple(KEYS)


@asynccontextmanager
async def stage(folder: Path, *levels: str) -> AsyncIterator[Stage]:
    """Grove's 28 nodes; `levels`: of its binding, (): all four."""
    async with stage_of(folder, nodes(), KEYS) as found:
        await found.bind(TOPOLOGY, *(levels or LEVELS))
        yield found


def workers(name: str, pods: int, *, gpus: int = 8, **more: Any) -> Object:
    return pod_clique_set(name, clique("worker", pods, gpus=gpus), **more)


def named(made: Object, topology: str) -> Object:
    """The PodCliqueSet with this topology named beside the level of the whole."""
    template = made["spec"]["template"]
    pack = {"required": template["topologyConstraint"]["packDomain"]}
    said = {"topologyName": topology, "pack": pack}
    return {**made, "spec": {"template": {**template, "topologyConstraint": said}, "replicas": 1}}


async def test_tas1_the_levels_of_a_binding_are_those_of_the_nodes(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        assert on.levels_of(TOPOLOGY) == tuple(KEYS[each] for each in LEVELS)
        books = on.corral.engine.books.topologies[f"grove.io/{TOPOLOGY}"]
        await until(lambda: len(books.tree.nodes) == NODES)
        # The third rack is in two blocks: it is two racks.
        assert [len(starts) for starts in books.tree.starts] == [1, 2, 5, NODES]


@pytest.mark.parametrize("name", CASES)
async def test_a_case_of_groves_own(tmp_path: Path, name: str) -> None:
    """TAS2 to TAS16."""
    case, called = CASES[name], name.partition("-")[0]
    made = {**case.made, "metadata": {**case.made["metadata"], "name": called}}
    async with stage(tmp_path) as on:
        await on.deploy(made)
        if not case.pods:
            assert "7 of 10 pods fit" in await on.why(f"{called}-0")
            assert await is_quiet(lambda: on.placed() == [])
            return
        pods = await on.all_bound(case.pods)
        assert [found for each in case.together if (found := each.apart(pods, on.nodes))] == []
        assert all(gates_of(each) == [] for each in pods)


async def test_tas17_each_of_two_topologies_places_on_the_nodes_that_are_its_own(
    tmp_path: Path,
) -> None:
    """The level "block" is another label in each."""
    own = "example.com/nvl-block"
    keys = {**KEYS, "nvl": own}
    gb200 = [
        node(f"g{at:02}", gpus=8, labels={own: f"nvl-{at // 7}", KEYS["zone"]: "zone-0"})
        for at in range(14)
    ]
    async with stage_of(tmp_path, [*nodes()[:14], *gb200], keys) as on:
        await on.bind("h100", "rack", "host")
        await on.bind("gb200", "nvl", "host")
        for topology, level, first in (("h100", "rack", "n"), ("gb200", "nvl", "g")):
            await on.deploy(named(workers(topology, 7, pack=level), topology))
            placed = [
                each
                for each in await on.all_bound(7 if topology == "h100" else 14)
                if each["metadata"]["name"].startswith(topology)
            ]
            names = [each["spec"]["nodeName"] for each in placed]
            assert {each[0] for each in names} == {first}
            labels = [on.nodes[each]["metadata"]["labels"][keys[level]] for each in names]
            assert len(set(labels)) == 1


async def test_tas18_a_binding_that_names_a_topology_that_is_not_there_has_its_levels_all_the_same(
    tmp_path: Path,
) -> None:
    reference = {"schedulerName": "kai-scheduler", "topologyReference": "non-existent-kai-topo"}
    async with stage(tmp_path) as on:
        await on.bind("drift", "zone", "rack", "host", schedulerTopologyBindings=[reference])
        await on.deploy(named(workers("tas18", 7, pack="rack"), "drift"))
        await on.all_bound(7)
        assert len(on.domains("rack")) == 1
        body = (await on.client.get(f"{BINDINGS}/drift")).body
        assert body.get("status", {}) == {}, "what is written on it is the operator's"
        assert body["spec"]["schedulerTopologyBindings"] == [reference]


async def test_tas19_a_level_that_is_added_to_a_binding_is_one_from_then_on(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, "zone", "host") as on:
        refused = await on.asked(workers("tas19", 7, pack="rack"))
        assert 'supported values: "zone", "host"' in refused.message
        # A PodGang that is there already waits for the level …
        await on.put_pod_gang(gang_in_rack())
        await put_members(on, 7)
        assert f"has no level {KEYS['rack']}" in await on.why("early-0")
        assert await is_quiet(lambda: on.placed() == [])
        await on.bind(TOPOLOGY, "zone", "rack", "host")
        assert on.levels_of(TOPOLOGY) == (KEYS["zone"], KEYS["rack"], KEYS["host"])
        # … and starts, and so do those that come.
        await on.all_bound(7)
        assert len(on.domains("rack")) == 1
        assert (await on.asked(workers("tas19", 7, pack="rack"))).status == 201


def gang_in_rack() -> Object:
    """As the operator has written it while the binding had the level."""
    pack = {"packConstraint": {"required": KEYS["rack"]}}
    group = {"name": "early-0-worker", "minReplicas": 7, "podReferences": []}
    return {
        "apiVersion": "scheduler.grove.io/v1alpha1",
        "kind": "PodGang",
        "metadata": {
            "name": "early-0",
            "namespace": "default",
            "annotations": {"grove.io/topology-name": TOPOLOGY},
        },
        "spec": {"podgroups": [group], "topologyConstraint": pack},
    }


async def put_members(on: Stage, pods: int) -> None:
    """The pods of that PodGang, without the gate."""
    for at in range(pods):
        labels = {"grove.io/podgang": "early-0", "grove.io/podclique": "early-0-worker"}
        spec = {**clique("worker", 1)["spec"]["podSpec"], "schedulerName": "default-scheduler"}
        made = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"early-{at}", "namespace": "default", "labels": labels},
            "spec": spec,
        }
        assert (await on.client.create(PODS, made)).status == 201


async def test_tas20_while_its_binding_is_gone_new_pods_are_packed_nowhere_and_afterwards_again(
    tmp_path: Path,
) -> None:
    made = named(workers("tas20", 10, pack="rack"), "tas20-topology")
    async with stage(tmp_path) as on:
        assert "there is no ClusterTopology of this name" in (await on.asked(made)).message
        await on.bind("tas20-topology", *LEVELS)
        assert (await on.asked(made)).status == 201
        await on.unbind("tas20-topology")
        # The operator takes the constraints off, and the annotation.
        await on.deploy(made, is_translated=False)
        await on.all_bound(10)
        assert len(on.domains("rack")) > 1  # of seven nodes each
        path = f"{POD_CLIQUE_SETS}/tas20"
        changed = {"metadata": {"labels": {"a": "b"}}}
        assert (await on.client.patch(path, changed, MERGE)).status == 200
        body = (await on.client.get(path)).body
        assert body.get("status", {}) == {}, "what is written on it is the operator's"
        await on.clear()
        assert (await on.asked(made)).status != 201
        await on.bind("tas20-topology", *LEVELS)
        await on.deploy(made)
        assert "7 of 10 pods fit" in await on.why("tas20-0")
        assert await is_quiet(lambda: on.placed() == [])


async def test_tas20_a_pod_gang_whose_binding_goes_waits_and_starts_once_it_is_back(
    tmp_path: Path,
) -> None:
    """Until the operator has taken its constraints off."""
    async with stage(tmp_path) as on:
        await on.unbind(TOPOLOGY)
        await on.put_pod_gang(gang_in_rack())
        await put_members(on, 7)
        assert f"Topology grove.io/{TOPOLOGY} does not exist" in await on.why("early-0")
        assert await is_quiet(lambda: on.placed() == [])
        await on.bind(TOPOLOGY, *LEVELS)
        await on.all_bound(7)
        assert len(on.domains("rack")) == 1


ZONE, RACK = ({"domain": each, "key": KEYS[each]} for each in ("zone", "rack"))
KAI = "kai-scheduler"


@pytest.mark.parametrize(
    ("spec", "level", "is_let_in"),
    [
        pytest.param(
            {"levels": [ZONE, {**RACK, "domain": "zone"}]},
            "zone",
            False,
            id="a_domain_twice_means_no_level",
        ),
        pytest.param(
            {"levels": [ZONE, {**ZONE, "domain": "rack"}]},
            "rack",
            False,
            id="a_key_twice_makes_no_topology",
        ),
        pytest.param(
            {
                "levels": [ZONE, RACK],
                "schedulerTopologyBindings": [
                    {"schedulerName": KAI, "topologyReference": each} for each in ("a", "b")
                ],
            },
            "rack",
            True,
            id="a_scheduler_twice_is_not_read",
        ),
        *(
            pytest.param(
                {
                    "levels": [ZONE, RACK],
                    "schedulerTopologyBindings": [
                        {"schedulerName": each, "topologyReference": "a"}
                    ],
                },
                "rack",
                True,
                id=f"{each}_is_not_read",
            )
            for each in ("unknown-scheduler", "default-scheduler")
        ),
    ],
)
async def test_tas21_what_a_binding_means_that_groves_webhook_would_refuse(
    tmp_path: Path, spec: dict[str, Any], level: str, is_let_in: bool
) -> None:
    async with stage(tmp_path) as on:
        assert (await on.client.create(BINDINGS, binding("tas21", **spec))).status == 201
        await on.bind("seen", *LEVELS)  # what was written before it has been seen, too
        answer = await on.asked(named(workers("tas21", 7, pack=level), "tas21"))
        assert (answer.status == 201) == is_let_in
        if not is_let_in:
            assert "template.topologyConstraint" in answer.message


async def test_tas21_a_part_without_a_topology_name_has_that_of_the_whole(tmp_path: Path) -> None:
    whole = {"topologyName": TOPOLOGY, "pack": {"required": "zone"}}
    of_clique = {"pack": {"required": "host"}}
    made = workers("tas21", 2, gpus=4)
    template = made["spec"]["template"]
    template["topologyConstraint"] = whole
    template["cliques"][0]["topologyConstraint"] = of_clique
    async with stage(tmp_path) as on:
        assert (await on.asked(made)).status == 201
        await on.deploy(made)
        await on.all_bound(2)
        assert len(on.domains("host")) == 1


def shaped(
    whole: Object | None, of_clique: Object | None = None, of_group: Object | None = None
) -> Object:
    """A PodCliqueSet with these constraints as they are."""
    groups = (scaling_group("workers", "worker", replicas=1),) if of_group else ()
    made = pod_clique_set("tas22", clique("worker", 1), groups=groups)
    template = made["spec"]["template"]
    for said, part in (
        (whole, template),
        (of_clique, template["cliques"][0]),
        (of_group, template.get("podCliqueScalingGroups", [{}])[0]),
    ):
        if said is not None:
            part["topologyConstraint"] = said
    return made


IN_RACK = {"topologyName": TOPOLOGY, "pack": {"required": "rack"}}


@pytest.mark.parametrize(
    ("made", "told"),
    [
        pytest.param(
            shaped({"topologyName": TOPOLOGY}),
            "names no domain: set pack.required or pack.preferred",
            id="without_pack",
        ),
        pytest.param(
            shaped({"topologyName": TOPOLOGY, "pack": {}}),
            "names no domain: set pack.required or pack.preferred",
            id="an_empty_pack",
        ),
        pytest.param(
            shaped({"topologyName": TOPOLOGY, "packDomain": "host", "pack": {"required": "host"}}),
            "may not be set together with pack.required",
            id="both_fields",
        ),
        pytest.param(
            shaped(IN_RACK, {"topologyName": TOPOLOGY}),
            "cliques[0].topologyConstraint",
            id="a_clique_without_pack",
        ),
        pytest.param(
            shaped(IN_RACK, None, {"topologyName": TOPOLOGY}),
            "podCliqueScalingGroups[0].topologyConstraint",
            id="a_scaling_group_without_pack",
        ),
        pytest.param(shaped({"topologyName": TOPOLOGY, "packDomain": "host"}), "", id="older"),
        pytest.param(shaped(IN_RACK, {"packDomain": "host"}), "", id="older_of_a_clique"),
        pytest.param(shaped(IN_RACK, None, {"packDomain": "host"}), "", id="older_of_a_group"),
        pytest.param(
            shaped({"topologyName": TOPOLOGY, "pack": {"preferred": "host"}}),
            "",
            id="preferred_alone",
        ),
    ],
)
async def test_tas22_the_shape_of_a_constraint(tmp_path: Path, made: Object, told: str) -> None:
    async with stage(tmp_path) as on:
        answer = await on.asked(made)
        assert answer.status == (422 if told else 201)
        assert not told or told in answer.message


async def test_tas23_a_preferred_level_is_kept_where_it_has_room_and_widened_where_not(
    tmp_path: Path,
) -> None:
    prefers = {"topologyName": TOPOLOGY, "pack": {"required": "block", "preferred": "rack"}}
    async with stage(tmp_path) as on:
        for pods, racks in ((7, 1), (8, 2)):
            made = workers("tas23", pods)
            made["spec"]["template"]["topologyConstraint"] = prefers
            await on.deploy(made)
            await on.all_bound(pods)
            assert (len(on.domains("rack")), len(on.domains("block"))) == (racks, 1)
            await on.clear()
