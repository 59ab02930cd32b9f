"""What `corral audit` cannot tell is said, with the reason; and what is no violation."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from app.cli import main
from app.sandbox import Sandbox
from tests.app.cli.audit.on_sandbox import audit, put, serve_all_kinds, verdicts
from tests.app.cli.audit.planted import (
    NODES,
    SLICES,
    TOGETHER,
    TOPOLOGIES,
    A,
    B,
    C,
    Planted,
    cases,
    labelled,
    owned,
    placed,
)
from tests.app.cli.test_topology import kubeconfig_of
from tests.cluster import BLOCK, RACK, Object, node
from tests.workloads import PREFERRED, REQUIRED, asking, members

ROOT = Path(__file__).resolve().parents[4]
PAIR = members("pair", 2, annotations=asking(required=RACK))
BY_NAME = {each.name: each for each in cases()}


def on(pods: Sequence[Object], *nodes: str) -> list[Object]:
    return [placed(one, name) for one, name in zip(pods, nodes, strict=True)]


async def said(tmp_path, *objects: Object, options: Sequence[str] = ()) -> list[dict[str, Any]]:
    """What is said of a cluster that has these objects beside the nodes."""
    async with Sandbox() as cluster:
        serve_all_kinds(cluster)
        put(cluster, [*NODES, *TOPOLOGIES, *objects])
        return await verdicts(cluster, tmp_path, *options)


def of(found: Sequence[dict[str, Any]], constraint: str) -> dict[str, Any]:
    (one,) = [each for each in found if each["constraint"] == constraint]
    return one


async def test_a_node_that_is_gone(tmp_path):
    found = of(await said(tmp_path, *on(PAIR, A, "gone")), "pod set")
    assert found["verdict"] == "UNOBSERVABLE"
    assert found["text"] == "pod pair-1 on node gone: node gone is not there"
    assert (found["pod"], found["node"], found["level"]) == ("pair-1", "gone", RACK)


async def test_a_node_that_lacks_the_label_or_one_above_it(tmp_path):
    bare, half = node("bare", labels={}), node("half", labels={RACK: "b0-r0"})
    found = of(await said(tmp_path, bare, *on(PAIR, A, "bare")), "pod set")
    assert found["verdict"] == "UNOBSERVABLE"
    assert found["text"].endswith(f"node bare has no label {BLOCK}")
    alone = of(await said(tmp_path, half, *on(PAIR, A, "half")), "pod set")
    assert alone["text"].endswith(f"node half has no label {BLOCK}")


async def test_pods_that_contradict_each_other_are_a_violation_whatever_another_one_lacks(tmp_path):
    three = members("trio", 3, annotations=asking(required=RACK))
    found = of(await said(tmp_path, *on(three, A, C, "gone")), "pod set")
    assert found["verdict"] == "VIOLATION"


async def test_an_object_that_is_not_there(tmp_path):
    case = BY_NAME["volcano_pod_group"]
    (found,) = await said(tmp_path, *case.placed(case.right))
    assert (found["constraint"], found["verdict"]) == ("words", "UNOBSERVABLE")
    assert "PodGroup vgroup is there" in found["text"]


async def test_a_topology_that_is_not_there(tmp_path):
    case = BY_NAME["kai_pod_group"]
    async with Sandbox() as cluster:
        serve_all_kinds(cluster)
        put(cluster, [*NODES, *case.objects, *case.placed(case.wrong)])
        found = of(await verdicts(cluster, tmp_path), "gang")
    assert found["verdict"] == "UNOBSERVABLE"
    assert "its topology" in found["text"]
    assert "is not there" in found["text"]


async def test_a_pod_of_an_owner_that_is_not_read(tmp_path):
    stray = owned(labelled("stray", {}, annotations={REQUIRED: RACK}), "x/v1", "Strange", "s")
    (found,) = await said(tmp_path, placed(stray, A))
    assert (found["constraint"], found["verdict"]) == ("words", "UNOBSERVABLE")
    assert found["pod"] == "stray"
    assert "Strange s, whose size Corral does not read" in found["text"]


@pytest.mark.parametrize(
    ("plural", "kind", "case"),
    [
        pytest.param("podgangs", "PodGang", "grove_pod_gang", id="pod_gangs"),
        pytest.param("hypernodes", "HyperNode", "volcano_pod_group", id="hyper_nodes"),
        pytest.param("clustertopologies", "ClusterTopology", "grove_pod_gang", id="topologies"),
        pytest.param("nodes", "Node", "pod_group", id="nodes"),
        pytest.param("jobs", "Job", "job", id="jobs"),
    ],
)
async def test_what_may_not_be_read_is_named_with_the_api_servers_words(
    tmp_path, plural, kind, case
):
    planted: Planted = BY_NAME[case]
    why = f'{plural} is forbidden: User "ann" cannot list resource "{plural}"'
    async with Sandbox() as cluster:
        serve_all_kinds(cluster)
        put(cluster, [*NODES, *TOPOLOGIES, *planted.objects, *planted.placed(planted.wrong)])
        refused = {"verb": "list", "resource": plural, "status": 403, "reason": "Forbidden"}
        cluster.faults.fail_next(1_000, **refused, message=why)
        ran = await audit(cluster, tmp_path, "-A")
        strict = await audit(cluster, tmp_path, "-A", "--strict")
    lines = [line for line in ran.stdout.splitlines() if "UNOBSERVABLE" in line]
    assert any(why in line for line in lines), ran.stdout
    assert f"{kind} objects could not be read: 403 Forbidden: {why}" in ran.stderr
    has_violation = "VIOLATION" in ran.stdout  # pods say themselves where a Job's pods have to be
    assert has_violation == (kind == "Job")
    assert ran.exit_code == (1 if has_violation else 0)
    assert strict.exit_code == (1 if has_violation else 3)


async def test_of_a_gang_that_is_read_one_pod_that_is_not_makes_its_size_unknown(tmp_path):
    whole = {**asking(unconstrained=True), TOGETHER: RACK}
    one = members("pair", 2, numbers=[0], annotations=whole)
    odd = members("pair", 2, numbers=[1], annotations={REQUIRED: RACK, PREFERRED: RACK})
    found = await said(tmp_path, placed(one[0], A), placed(odd[0], C))
    assert of(found, "words")["pod"] == "pair-1"
    assert of(found, "whole")["verdict"] == "UNOBSERVABLE"
    assert "which part of it 1 pod of these are is not known" in of(found, "whole")["text"]
    assert of(found, "gang")["verdict"] == "MATCH"  # of the pod that is read


# -- no violations ---------------------------------------------------------------------------------


async def test_a_preferred_level_that_is_not_met_is_a_note_beside_match(tmp_path):
    pods = members("loose", 2, annotations=asking(preferred=RACK))
    found = of(await said(tmp_path, *on(pods, A, C)), "pod set")
    assert found["verdict"] == "MATCH"
    assert f"preferred {RACK} is not met: 2 pods are in 2 domains" in found["text"]


async def test_a_required_level_beside_a_preferred_one_is_judged_and_the_other_noted(tmp_path):
    case = BY_NAME["grove_pod_gang"]
    (gang,) = case.objects
    on_both = {"packConstraint": {"required": BLOCK, "preferred": RACK}}
    gang = {**gang, "spec": {**gang["spec"], "topologyConstraint": on_both}}
    found = of(await said(tmp_path, gang, *case.placed((A, C))), "gang")
    assert found["verdict"] == "MATCH"
    assert f"preferred {RACK} is not met" in found["text"]


async def test_pods_that_have_ended_or_terminate_are_not_judged(tmp_path):
    four = members("worn", 4, annotations=asking(required=RACK))
    ending = placed(four[3], C)
    ending["metadata"] = {**ending["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    done = placed(four[2], C, "Succeeded")
    found = await said(tmp_path, *on(four[:2], A, B), done, ending)
    assert of(found, "pod set")["verdict"] == "MATCH"
    whole = of(found, "whole")
    assert whole["text"].startswith("only 2 of 4 pods run, and 1 have succeeded")
    assert whole["text"].endswith("1 pod more terminating")


async def test_a_gang_that_has_ended_or_waits_is_counted_and_not_judged(tmp_path):
    over = [placed(one, A, "Succeeded") for one in members("over", 2)]
    async with Sandbox() as cluster:
        put(cluster, [*NODES, *over, *members("waits", 2)])
        ran = await audit(cluster, tmp_path)
    assert (ran.exit_code, ran.stdout) == (0, "")
    assert "0 gangs run; 2 have no running pod" in ran.stderr


async def test_slices_of_which_pods_are_missing_may_be_whole_again(tmp_path):
    pods = members("cut", 4, annotations={**asking(preferred=BLOCK), **SLICES})
    found = of(await said(tmp_path, *on(pods[:2], A, C)), "slices of 2 of pod set")
    assert found["verdict"] == "MATCH"


async def test_pods_missing_of_a_group_may_have_succeeded(tmp_path):
    found = of(await said(tmp_path, *on(PAIR[:1], A)), "whole")
    assert found["verdict"] == "UNOBSERVABLE"
    assert "have succeeded and were deleted is not known" in found["text"]


# -- domains ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["object", "option"])
async def test_racks_of_one_name_in_two_blocks_are_two(tmp_path, by):
    nodes = [node(f"{block}-n", labels={BLOCK: block, RACK: "r1"}) for block in ("b1", "b2")]
    levels = {"levels": [{"nodeLabel": BLOCK}, {"nodeLabel": RACK}]}
    declared = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Topology",
        "metadata": {"name": "racks"},
        "spec": levels,
    }
    async with Sandbox() as cluster:
        serve_all_kinds(cluster)
        put(cluster, [*nodes, *on(PAIR, "b1-n", "b2-n")])
        alone = await audit(cluster, tmp_path)
        if by == "object":
            put(cluster, [declared])
        options = ("--levels", f"{BLOCK},{RACK}") if by == "option" else ()
        found = of(await verdicts(cluster, tmp_path, *options), "pod set")
    assert found["verdict"] == "VIOLATION"
    assert found["values"] == ["b2/r1", "b1/r1"]
    assert "VIOLATION" not in alone.stdout
    assert f"no topology has the level {RACK}" in alone.stderr  # and what helps is said
    assert "--levels" in alone.stderr


async def test_of_several_topologies_one_in_which_all_holds_is_enough(tmp_path):
    zone = "topology.kubernetes.io/zone"
    nodes = [
        node("n1", labels={BLOCK: "b1", zone: "z1", RACK: "r1"}),
        node("n2", labels={BLOCK: "b2", zone: "z1", RACK: "r1"}),
    ]
    made = [
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Topology",
            "metadata": {"name": name},
            "spec": {"levels": [{"nodeLabel": above}, {"nodeLabel": RACK}]},
        }
        for name, above in (("a", BLOCK), ("z", zone))
    ]
    async with Sandbox() as cluster:
        serve_all_kinds(cluster)
        put(cluster, [*nodes, *made[:1], *on(PAIR, "n1", "n2")])
        one = of(await verdicts(cluster, tmp_path), "pod set")
        put(cluster, made[1:])
        both = of(await verdicts(cluster, tmp_path), "pod set")
    assert (one["verdict"], both["verdict"]) == ("VIOLATION", "MATCH")


# -- the command -----------------------------------------------------------------------------------


async def test_namespaces_names_and_exit_codes(tmp_path):
    other = members("far", 2, annotations=asking(required=RACK))
    other = [{**one, "metadata": {**one["metadata"], "namespace": "team"}} for one in other]
    async with Sandbox() as cluster:
        serve_all_kinds(cluster)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
        put(cluster, [namespace, *NODES, *TOPOLOGIES, *on(PAIR, A, B), *on(other, A, C)])
        right = await audit(cluster, tmp_path, "-o", "name")
        wrong = await audit(cluster, tmp_path, "-n", "team", "-o", "name")
        every = await audit(cluster, tmp_path, "-A", "-o", "name")
        in_team = await audit(cluster, tmp_path, "-o", "name", namespace="team")
        cluster.faults.fail_next(1, verb="list", resource="pods", status=403, reason="Forbidden")
        refused = await audit(cluster, tmp_path)
    assert (right.exit_code, right.stdout) == (0, "")
    assert (wrong.exit_code, wrong.stdout) == (1, "team/far\n")
    assert (every.exit_code, every.stdout) == (1, "team/far\n")
    assert (in_team.exit_code, in_team.stdout) == (1, "team/far\n")
    assert refused.exit_code == 2
    assert "403 Forbidden" in refused.stderr


async def test_a_bound_pod_of_another_scheduler_counts_and_with_settings_only_ours(tmp_path):
    strange = [{**one, "spec": {**one["spec"], "schedulerName": "theirs"}} for one in PAIR]
    settings = tmp_path / "settings.yaml"
    settings.write_text(f"scheduler_name: corral\nlevels: {BLOCK},{RACK}\n")
    every = await said(tmp_path, *on(strange, A, C))
    ours = await said(tmp_path, *on(strange, A, C), options=["--settings", str(settings)])
    assert of(every, "pod set")["verdict"] == "VIOLATION"
    assert ours == []


async def test_what_a_tenant_writes_does_not_act_on_the_terminal(tmp_path):
    stray = owned(labelled("stray", {}, annotations={REQUIRED: RACK}), "x/v1", "\x07S", "s")
    async with Sandbox() as cluster:
        loud = members("\x07loud", 2, annotations=asking(required=RACK))
        for at, one in enumerate(loud):
            one["metadata"]["name"] = f"loud-{at}"
        put(cluster, [*NODES, placed(stray, A), *on(loud, A, C)])
        ran = await audit(cluster, tmp_path)
        names = await audit(cluster, tmp_path, "-o", "name")
        data = await audit(cluster, tmp_path, "-o", "json")
    assert "UNOBSERVABLE" in ran.stdout
    assert names.stdout
    assert not [each for each in (ran, names, data) if "\x07" in each.output]


async def test_progress_is_told_on_stderr_while_much_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("app.cli.audit.reading.PROGRESS_SECONDS", 0.0)
    async with Sandbox() as cluster:
        put(cluster, [*NODES, *on(PAIR, A, B)])
        ran = await audit(cluster, tmp_path, "-o", "name")
    assert "corral: 2 pods read" in ran.stderr
    assert ran.stdout == ""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param(["--kubeconfig", "/no/file"], "/no/file", id="no_kubeconfig"),
        pytest.param(["--levels", ","], "--levels", id="no_level"),
        pytest.param(["--settings", "/no/file"], "/no/file", id="no_settings"),
        pytest.param(["-o", "xml"], "xml", id="no_such_output"),
    ],
)
def test_options_that_cannot_be_are_said_with_exit_code_2(options, said):
    ran = CliRunner().invoke(main, ["audit", *options])
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert said in ran.stderr


def test_an_api_server_that_does_not_answer_is_exit_code_2(tmp_path):
    kubeconfig = kubeconfig_of(tmp_path, "http://127.0.0.1:9")
    ran = CliRunner().invoke(main, ["audit", "--kubeconfig", str(kubeconfig)])
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert "GET /api/v1/nodes" in ran.stderr


async def test_a_pod_that_cannot_be_read_is_named(tmp_path):
    (odd,) = on(members("odd", 1), A)
    odd["spec"]["nodeName"] = 5
    async with Sandbox() as cluster:
        put(cluster, [*NODES, odd])
        ran = await audit(cluster, tmp_path, "-A")
    assert "Pod default/odd-0" in ran.output
    assert "nodeName" in ran.output


@pytest.mark.parametrize(
    ("output", "code", "said"),
    [
        pytest.param(">/dev/full", 2, "corral: [Errno 28] No space left on device\n", id="full"),
        pytest.param(">&-", 0, "corral: 0 gangs run (0 pods and 8 nodes read in", id="closed"),
    ],
)
async def test_an_answer_that_cannot_be_written_is_no_violation(tmp_path, output, code, said):
    async with Sandbox() as cluster:
        put(cluster, NODES)
        cluster.write_kubeconfig(tmp_path / "kubeconfig")
        command = f"{sys.executable} -m app audit -o json --kubeconfig {tmp_path}/kubeconfig"
        ran = await asyncio.to_thread(
            subprocess.run, f"{command} {output}", shell=True, cwd=ROOT,
            stderr=subprocess.PIPE, text=True, timeout=30, check=False,
        )  # fmt: skip
    assert ran.returncode == code, ran.stderr
    assert ran.stderr.startswith(said)
