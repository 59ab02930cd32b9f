"""`corral topology`: HyperNodes from labels, and the tree of the cluster."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from app.cli import main
from app.cli.common.options import NOT_READ
from app.cli.topology import reading
from app.dialects.volcano.hyper_nodes import MOST_MEMBERS
from app.errors import DecodeError
from app.sandbox import Sandbox
from app.sandbox.apiserver.storage.kinds import DEFINITION, NODE
from tests.app.dialects.volcano.from_labels.labelled import BLOCK, LEVELS, RACK, nodes_of
from tests.app.dialects.volcano.objects import by_pattern, exact, hyper_node
from tests.app.kube.apiserver import page, serving

ROOT = Path(__file__).resolve().parents[3]
BOTH = ",".join(LEVELS)
FOUR = "n1 b1/r1\nn2 b1/r1\nn3 b1/r2\nn4 b2/r1"


def run(*arguments: Any, stdin: str | None = None) -> Any:
    return CliRunner().invoke(main, ["topology", *map(str, arguments)], input=stdin)


def generated(*arguments: Any, stdin: str | None = None) -> Any:
    return run("generate", "hypernodes", *arguments, stdin=stdin)


def as_objects(text: str) -> list[dict[str, Any]]:
    return [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
        for name, labels in nodes_of(text).items()
    ]


def as_list(objects: list[dict[str, Any]]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": objects, "metadata": {}}


@pytest.fixture
def nodes(tmp_path):
    path = tmp_path / "nodes.json"
    path.write_text(json.dumps(as_list(as_objects(FOUR))))
    return path


def tiers(output: str) -> dict[str, int]:
    return {
        each["metadata"]["name"]: each["spec"]["tier"]
        for each in yaml.safe_load_all(output)
        if each["kind"] == "HyperNode"
    }


FOUR_TIERS = {
    "hypernode-b1.r1": 1,
    "hypernode-b1.r2": 1,
    "hypernode-b2.r1": 1,
    "hypernode-b1": 2,
    "hypernode-b2": 2,
}


# -- generate ------------------------------------------------------------------------------------


def test_one_hyper_node_for_each_domain_is_written_as_yaml(nodes):
    ran = generated("--levels", BOTH, "--nodes", nodes)
    assert ran.exit_code == 0, ran.stderr
    assert tiers(ran.stdout) == FOUR_TIERS
    assert ran.stderr == ""


def test_the_node_level_makes_no_hyper_nodes(nodes):
    ran = generated("--levels", f"{BOTH},kubernetes.io/hostname", "--nodes", nodes)
    assert tiers(ran.stdout) == FOUR_TIERS


STATUS = {"images": [{"names": ["a", "b"]}], "nodeInfo": {"osImage": "x\n\n  status:\n y"}}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(json.dumps(as_list(as_objects(FOUR))), id="json"),
        pytest.param(yaml.safe_dump(as_list(as_objects(FOUR))), id="yaml"),
        pytest.param(
            yaml.safe_dump(as_list([each | {"status": STATUS} for each in as_objects(FOUR)])),
            id="yaml_with_status",
        ),
        pytest.param(yaml.safe_dump_all(as_objects(FOUR)), id="documents"),
        pytest.param(
            json.dumps({"kind": "NodeList", "items": [
                {"metadata": each["metadata"]} for each in as_objects(FOUR)
            ]}),
            id="raw_list_without_kinds",
        ),
    ],
)  # fmt: skip
def test_whatever_kubectl_writes_is_read(text):
    ran = generated("--levels", BOTH, "--nodes", "-", stdin=text)
    assert ran.exit_code == 0, ran.stderr
    assert tiers(ran.stdout) == FOUR_TIERS


def test_equal_labels_give_equal_bytes_in_whatever_order_the_nodes_come(nodes):
    backwards = json.dumps(as_list(as_objects(FOUR)[::-1]))
    first = generated("--levels", BOTH, "--nodes", nodes)
    second = generated("--levels", BOTH, "--nodes", "-", stdin=backwards)
    assert first.stdout == second.stdout != ""


def test_nodes_without_a_label_are_named_with_it():
    text = json.dumps(as_list(as_objects("n1 b1/r1\nn2 b1/-\nn3 -/r1\nn4 b1/-")))
    ran = generated("--levels", BOTH, "--nodes", "-", stdin=text)
    assert ran.exit_code == 0
    assert [line.split(": ", 1)[1] for line in ran.stderr.splitlines()] == [
        f"without label {BLOCK}, and in no domain of it: n3",
        f"without label {RACK}, and in no domain of it: n2, n4",
    ]
    assert "n3" not in ran.stdout


def test_of_many_nodes_without_a_label_the_first_are_named_and_what_lists_them():
    few, many = (json.dumps(as_list([node(f"n{at:04}") for at in range(n)])) for n in (20, 1500))
    said = generated("--levels", RACK, "--nodes", "-", stdin=few).stderr
    assert "n0019\n" in said
    said = generated("--levels", RACK, "--nodes", "-", stdin=many).stderr.splitlines()[0]
    assert said.endswith(f"n0018, n0019 and 1,480 others: kubectl get nodes -l '!{RACK}'")


def test_a_hyper_node_of_more_members_than_are_read_is_named():
    text = "\n".join(f"n{at} b1/-" for at in range(MOST_MEMBERS + 1))
    command = ("--nodes", "-", "--levels", BLOCK)
    found = generated(*command, stdin=json.dumps(as_list(as_objects(text))))
    assert found.exit_code == 0
    assert found.stderr == (
        "corral: hypernode-b1 has 10,001 members, and Corral reads no HyperNode of more than"
        " 10,000: a narrower level, or --members labels\n"
    )
    by_labels = generated(
        *command, "--members", "labels", stdin=json.dumps(as_list(as_objects(text)))
    )
    assert by_labels.stderr == ""


def test_topographs_labels_are_levels():
    labels = {"fabric.topograph.run/tier-0": "leaf", "fabric.topograph.run/tier-1": "spine"}
    node = {"kind": "Node", "metadata": {"name": "n1", "labels": labels}}
    ran = generated("--topograph", "--nodes", "-", stdin=json.dumps(node))
    assert tiers(ran.stdout) == {"hypernode-spine.leaf": 1, "hypernode-spine": 2}


CONFIG = {
    "networkTopologyDiscovery": [
        {
            "source": "label",
            "enabled": True,
            "config": {
                "networkTopologyTypes": {
                    "a3": [{"nodeLabel": key} for key in (*LEVELS, "kubernetes.io/hostname")]
                }
            },
        }
    ]
}
CONFIG_MAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "volcano-controller-configmap"},
    "data": {"volcano-controller.conf": yaml.safe_dump(CONFIG)},
}


@pytest.mark.parametrize("config", [CONFIG, CONFIG_MAP], ids=["content", "config_map"])
def test_volcanos_configuration_is_read(nodes, tmp_path, config):
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    there = hyper_node("hypernode-a3-tier1-vvvvv", 1, exact("Node", "n3"))
    there["metadata"]["labels"] = {RACK: "r2", "volcano.sh/network-topology-source": "label"}
    ran = generated(
        "--discovery-config", path, "--nodes", nodes, "--hypernodes", "-", stdin=json.dumps(there)
    )
    assert ran.exit_code == 0, ran.stderr
    found = tiers(ran.stdout)
    assert (
        sorted(name[:18] for name in found)
        == ["hypernode-a3-tier1"] * 3 + ["hypernode-a3-tier2"] * 2
    )
    assert "hypernode-a3-tier1-vvvvv" in found
    assert f"{RACK}=r1 is in {BLOCK}=b1 and {BLOCK}=b2" in ran.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param("a: [", "conf", id="no_yaml"),
        pytest.param("", "networkTopologyDiscovery: a list is required", id="empty"),
        pytest.param("kind: ConfigMap", "data[volcano-controller.conf]", id="other_config_map"),
        pytest.param("a: 1\n---\nb: 1", "one document", id="two_documents"),
    ],
)
def test_a_configuration_that_cannot_be_read_is_named(nodes, tmp_path, content, said):
    path = tmp_path / "conf"
    path.write_text(content)
    ran = generated("--discovery-config", path, "--nodes", nodes)
    assert ran.exit_code == 1
    assert str(path) in ran.stderr
    assert said in ran.stderr
    assert ran.stdout == ""


# -- wrong input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param([], "one of --levels", id="no_levels"),
        pytest.param(["--levels", BOTH, "--topograph"], "one of --levels", id="two_ways"),
        pytest.param(["--levels", ""], "empty key", id="empty"),
        pytest.param(["--levels", f"{RACK},{RACK}"], "named twice", id="twice"),
        pytest.param(["--levels", "a b/c"], "'a b/c' is no label key", id="no_key"),
        pytest.param(["--levels", "kubernetes.io/hostname"], "above the node", id="node_level"),
        pytest.param(["--levels", "gkee"], "did you mean 'gke'", id="misspelt_preset"),
        pytest.param(["--levels", BOTH, "--members", "all"], "'all'", id="members"),
        pytest.param(["--levels", BOTH, "--prefix", "A_"], "'A_'", id="prefix"),
        pytest.param(["--levels", BOTH, "--hypernodes", "x"], "--discovery-config", id="names"),
        pytest.param(["--discovery-config", "x", "--prefix", "a"], "--prefix", id="volcanos_names"),
        pytest.param(["--discovery-config", "-", "--nodes", "-"], "stdin", id="stdin_twice"),
        pytest.param(["--levels", BOTH, "--nodes", "/no/file"], "/no/file", id="no_file"),
        pytest.param(["--levels", BOTH, "--kubeconfig", "/no/file"], "/no/file", id="kubeconfig"),
    ],
)
def test_options_that_cannot_be_are_said_in_one_sentence(options, said):
    ran = generated(*options)
    assert ran.exit_code == 2
    assert said in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert ran.stdout == ""


def node(name: Any, **labels: Any) -> dict[str, Any]:
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("", ["no Node"], id="empty"),
        pytest.param("{", ["stdin"], id="half_a_document"),
        pytest.param("a: [", ["stdin", "line "], id="no_yaml"),
        pytest.param("text", ["'text'"], id="no_object"),
        pytest.param(json.dumps({"kind": "Pod"}), ["no Node"], id="another_kind"),
        pytest.param(
            json.dumps(as_list([node("n1"), node("n1")])), ["items[1]", "Node n1"], id="twice"
        ),
        pytest.param(json.dumps(node("N_1")), ["metadata.name", "'N_1'"], id="name"),
        pytest.param(json.dumps(node("n1", a=1)), ["labels", "int"], id="label_that_is_no_text"),
        pytest.param(json.dumps(node("n1", **{BLOCK: "a b"})), ["n1", BLOCK, "'a b'"], id="value"),
        pytest.param(json.dumps(node("n1", a="b")), ["no node has these labels"], id="no_label"),
    ],
)
def test_nodes_that_cannot_be_read_are_named(text, said):
    ran = generated("--levels", BOTH, "--nodes", "-", stdin=text)
    assert ran.exit_code == 1
    assert [part for part in said if part not in ran.stderr] == []
    assert ran.stdout == ""


# -- show ----------------------------------------------------------------------------------------


def rows(output: str) -> list[list[str]]:
    """The cells of the table; the lines of the tree are part of the first one."""
    table = output.split("\n\n")[0].splitlines()
    starts = [table[0].index(column) for column in ("DOMAIN", "LEVEL", "NODES")]
    ends = [*starts[1:], None]
    return [
        [line[start:end].rstrip() for start, end in zip(starts, ends, strict=True)]
        for line in table[1:]
    ]


LABEL_TREE = [
    ["cluster", "", "4"],
    ["├── b1", BLOCK, "3"],
    ["│   ├── r1", RACK, "2"],
    ["│   └── r2", RACK, "1"],
    ["└── b2", BLOCK, "1"],
    ["    └── r1", RACK, "1"],
]


@pytest.mark.parametrize("command", [[], ["show"]], ids=["by_default", "show"])
def test_the_tree_of_labels_is_shown(nodes, command):
    ran = run(*command, "--levels", BOTH, "--nodes", nodes)
    assert ran.exit_code == 0, ran.stderr
    assert rows(ran.stdout) == LABEL_TREE


def test_the_tree_of_hyper_nodes_is_shown_with_what_is_wrong():
    objects = [
        *as_objects(FOUR),
        hyper_node("leaf-b", 1, [*exact("Node", "n3"), *by_pattern("n1")]),
        hyper_node("leaf-a", 1, exact("Node", "n1", "n2", "gone")),
        hyper_node("spine", 2, exact("HyperNode", "leaf-a", "leaf-b", "leaf-c")),
    ]
    objects[-1]["spec"]["tierName"] = "spine-switch"
    ran = run("--nodes", "-", stdin=yaml.safe_dump(as_list(objects)))
    assert ran.exit_code == 0, ran.stderr
    assert rows(ran.stdout) == [
        ["cluster", "", "4"],
        ["├── spine", "tier 2 (spine-switch)", "3"],
        ["│   ├── leaf-a", "tier 1", "2"],
        ["│   └── leaf-b", "tier 1", "1"],
        ["└── (in no HyperNode)", "", "1"],
    ]
    problems = [line.split(": ")[:2] for line in ran.stdout.split("\n\n")[1].splitlines()]
    assert problems == [
        ["HyperNode leaf-a", "NodeNotFound"],
        ["HyperNode leaf-b", "NodeTaken"],
        ["HyperNode spine", "MemberNotFound"],
    ]


def test_what_was_generated_can_be_looked_at_before_it_is_applied(nodes):
    made = generated("--levels", BOTH, "--nodes", nodes).stdout
    ran = run("--hypernodes", "-", "--nodes", nodes, stdin=made)
    assert [row[2] for row in rows(ran.stdout)] == [row[2] for row in LABEL_TREE]
    assert "\n\n" not in ran.stdout


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        pytest.param([], 1, "there are no HyperNodes; --levels", id="no_hyper_nodes"),
        pytest.param(["--levels", BOTH, "--hypernodes", "x"], 2, "only one of", id="both"),
        pytest.param(["--topograph"], 1, "no node has a label of topograph", id="no_topograph"),
    ],
)
def test_what_cannot_be_shown_is_said(nodes, options, code, said):
    ran = run(*options, "--nodes", nodes)
    assert ran.exit_code == code
    assert said in ran.stderr


def test_a_hyper_node_that_cannot_be_read_is_named(nodes):
    wrong = hyper_node("leaf", 1, exact("Node", "n1"))
    wrong["spec"]["tier"] = "one"
    ran = run("--nodes", nodes, "--hypernodes", "-", stdin=json.dumps(wrong))
    assert ran.exit_code == 1
    assert "HyperNode leaf" in ran.stderr
    assert "spec.tier" in ran.stderr


# -- the API server, and the process ---------------------------------------------------------------


def hyper_node_definition() -> dict[str, Any]:
    definition: dict[str, Any] = yaml.safe_load(
        (ROOT / "deploy" / "hypernode-crd.yaml").read_text()
    )
    return definition


async def in_thread(*arguments: Any) -> Any:
    """The command has an event loop of its own."""
    return await asyncio.to_thread(run, *arguments)


@pytest.mark.parametrize("has_kind", [False, True], ids=["without_kind", "with_hyper_nodes"])
async def test_both_are_read_from_the_api_server(tmp_path, monkeypatch, has_kind):
    monkeypatch.setattr("app.cli.common.api_server.PAGE_OBJECTS", 3)
    kubeconfig = tmp_path / "kubeconfig"
    async with Sandbox() as cluster:
        cluster.write_kubeconfig(kubeconfig)
        for each in as_objects(FOUR):
            cluster.registry.create(NODE, "", each)
        by_label = await in_thread("--levels", BOTH, "--kubeconfig", kubeconfig)
        if has_kind:
            cluster.registry.create(DEFINITION, "", hyper_node_definition())
            kind = next(each for each in cluster.registry.kinds if each.plural == "hypernodes")
            cluster.registry.create(kind, "", hyper_node("leaf", 1, exact("Node", "n1", "n2")))
        shown = await in_thread("--kubeconfig", kubeconfig)
    assert rows(by_label.stdout) == LABEL_TREE
    if has_kind:
        assert ["├── leaf", "tier 1", "2"] in rows(shown.stdout)
    else:
        assert shown.exit_code == 1
        assert "there are no HyperNodes" in shown.stderr


async def test_another_context_of_the_kubeconfig_can_be_named(tmp_path):
    async with serving() as server:
        server.script = [page(list(as_objects(FOUR)), "1")] * 2
        kubeconfig = kubeconfig_of(tmp_path, server.url)
        content = yaml.safe_load(kubeconfig.read_text())
        content["clusters"].append({"name": "far", "cluster": {"server": "http://127.0.0.1:9"}})
        content["contexts"].append({"name": "far", "context": {"cluster": "far", "user": "u"}})
        kubeconfig.write_text(yaml.safe_dump(content | {"current-context": "far"}))
        options = ("--levels", BOTH, "--kubeconfig", kubeconfig, "--context", "c")
        shown = await in_thread(*options)
        made = await in_thread("generate", "hypernodes", *options)
    assert rows(shown.stdout) == LABEL_TREE
    assert tiers(made.stdout) == FOUR_TIERS


async def test_a_tree_of_labels_takes_no_right_to_hyper_nodes(tmp_path):
    async with serving() as server:
        server.script = [page(list(as_objects(FOUR)), "1")]
        kubeconfig = kubeconfig_of(tmp_path, server.url)
        shown = await in_thread("--levels", BOTH, "--kubeconfig", kubeconfig)
        assert [each.path for each in server.asked] == ["/api/v1/nodes"]
    assert rows(shown.stdout) == LABEL_TREE


def test_without_any_way_to_a_cluster_the_options_are_named(tmp_path, monkeypatch):
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    ran = run()
    assert ran.exit_code == 2
    assert all(option in ran.stderr for option in ("--kubeconfig", "--nodes"))
    assert len(ran.stderr.splitlines()) == 1


def kubeconfig_of(folder: Path, url: str) -> Path:
    kubeconfig = folder / "kubeconfig"
    cluster = {"name": "c", "cluster": {"server": url}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    users = [{"name": "u", "user": {"token": "t"}}]
    content = {"clusters": [cluster], "contexts": [context], "users": users}
    kubeconfig.write_text(yaml.safe_dump(content | {"current-context": "c", "apiVersion": "v1"}))
    return kubeconfig


def test_an_api_server_that_does_not_answer_is_said_in_one_sentence(tmp_path):
    ran = run("--kubeconfig", kubeconfig_of(tmp_path, "http://127.0.0.1:9"))
    assert ran.exit_code == 1
    assert "GET /api/v1/nodes" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


@pytest.mark.slow
def test_a_reader_that_goes_away_makes_no_traceback(nodes):
    racks = "\n".join(f"n{at} b1/r{at}" for at in range(5_000))
    nodes.write_text(json.dumps(as_list(as_objects(racks))))
    command = [sys.executable, "-m", "app", "topology", "show", "--levels", BOTH, "--nodes", nodes]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait() == NOT_READ


@pytest.mark.slow
def test_six_thousand_nodes_take_seconds_and_no_more(nodes):
    text = "\n".join(f"n{at} b{at // 256}/r{at // 16}" for at in range(6_000))
    nodes.write_text(json.dumps(as_list(as_objects(text))))
    began = time.process_time()
    ran = generated("--levels", BOTH, "--nodes", nodes)
    assert ran.exit_code == 0
    assert time.process_time() - began < 5.0  # 0.5 on an idle machine
    assert ran.stdout.count("kind: HyperNode") == 6_000 // 16 + -(-6_000 // 256)


async def test_a_list_of_the_api_server_that_never_ends_is_given_up(monkeypatch):
    pages = []

    class Endless:
        async def request(self, method, path, *, params, timeout, most_bytes):
            pages.append(dict(params))
            return b'{"metadata": {"continue": "more"}, "items": []}'

    monkeypatch.setattr("app.kube.watch.pages.MOST_PAGES", 3)
    with pytest.raises(DecodeError, match="list of /api/v1/nodes: over 3 pages"):
        await reading._list(reading.Cluster(), Endless(), "/api/v1/nodes", "Node")
    assert [page.get("continue") for page in pages] == [None, "more", "more"]
