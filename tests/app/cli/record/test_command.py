"""`corral record` as a user runs it: from an API server, and from a running Corral."""

from __future__ import annotations

import asyncio
import gzip
import json
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner, Result

from app.api.standing import Standing
from app.cli import main
from app.cli.record.recording import Recording
from app.cli.record.renaming import Names, left_over, names_in, renaming
from app.dialects.devices.dialect import DeviceClassRecord
from app.dialects.kueue.driver_sets import SETS
from app.kube.core.objects import Shape
from app.process.records.journal_file import JournalFile
from app.sandbox import Sandbox
from app.sandbox.apiserver.storage.kinds import JOB, NODE, POD
from app.sandbox.cluster.snapshot import read
from app.state.effects import BindFailed
from app.state.engine import Engine
from app.state.journal.replay import replay
from tests.app.cli.served import corral
from tests.app.state.recorded import RecordedWorld
from tests.app.state.world import World, four_racks, members
from tests.cluster import GPU, RACK, job, node, pod
from tests.records import RACK as RACK_LEVEL
from tests.records import group

SECRET = "c4n4ry"
PREFIX = "kueue.x-k8s.io/"


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(main, ["record", *map(str, arguments)])


def filled(cluster: Sandbox) -> None:
    """Two nodes, a pod that runs, a gang that waits, one pod that has ended and a Job."""
    for at in range(2):
        labels = {RACK: f"r{at}", "pool": "p", "team-secret": SECRET}
        cluster.registry.create(NODE, "", node(f"worker-{at}", labels=labels, gpus=8))
    runs = pod("running", requests={GPU: 1, "cpu": "2"}, nodeName="worker-0")
    runs["spec"]["containers"][0] |= {
        "env": [{"name": "TOKEN", "value": SECRET}],
        "command": [SECRET],
        "image": f"{SECRET}.example/{SECRET}",
    }
    annotations = {
        PREFIX + "pod-group-name": "llama-train",
        PREFIX + "pod-group-total-count": "2",
        "note": SECRET,
    }
    waits = pod("llama-train-0", annotations=annotations, nodeSelector={"pool": "p"})
    ended = pod("ended") | {"status": {"phase": "Failed"}}
    for each in (runs, waits, ended):
        each["metadata"]["uid"] = f"uid-of-{each['metadata']['name']}"
        each.setdefault("status", {"phase": "Pending"})
        cluster.registry.adopt(POD, each)
    made = job("sleeper", pods=0)
    made["metadata"]["annotations"] = {"note": SECRET}
    cluster.registry.create(JOB, "default", made)


async def recorded(tmp_path: Path, *options: str) -> tuple[Path, Result]:
    kubeconfig, file = tmp_path / "kubeconfig", tmp_path / "out.json.gz"
    async with Sandbox() as cluster:
        filled(cluster)
        cluster.write_kubeconfig(kubeconfig)
        ran = await asyncio.to_thread(run, "-o", file, "--kubeconfig", kubeconfig, *options)
    assert ran.exit_code == 0, ran.output
    return file, ran


async def test_a_cluster_is_recorded_from_its_api_server_alone(tmp_path: Path) -> None:
    file, ran = await recorded(tmp_path)
    found = read(file)
    assert found["schema"] == "cluster-snapshot/v1"
    assert [each["metadata"]["name"] for each in found["nodes"]] == ["worker-0", "worker-1"]
    assert [each["metadata"]["name"] for each in found["pods"]] == ["llama-train-0", "running"]
    assert [each["kind"] for each in found["objects"]] == ["Job"]
    assert SECRET not in gzip.decompress(file.read_bytes()).decode()
    assert "2 nodes, 2 pods, 1 objects" in ran.stderr
    assert file.stat().st_mode & 0o077 == 0


async def test_of_the_labels_of_nodes_only_what_something_names_is_recorded(tmp_path: Path) -> None:
    file, _ = await recorded(tmp_path, "--levels", RACK)
    labels = read(file)["nodes"][0]["metadata"]["labels"]
    assert labels == {"kubernetes.io/hostname": "worker-0", RACK: "r0", "pool": "p"}


async def test_without_levels_a_label_that_nothing_names_is_left_out(tmp_path: Path) -> None:
    file, _ = await recorded(tmp_path)
    assert "pool" in read(file)["nodes"][0]["metadata"]["labels"]
    assert RACK not in read(file)["nodes"][0]["metadata"]["labels"]


async def test_what_is_recorded_opens_in_the_sandbox(tmp_path: Path) -> None:
    file, _ = await recorded(tmp_path)
    async with Sandbox() as cluster:
        loaded = cluster.load(read(file))
        assert (loaded.nodes, loaded.pods_bound, loaded.pods_waiting) == (2, 1, 1)
        running = cluster.store.get(POD, ("default", "running"))
        assert running is not None
        assert running.body["spec"]["nodeName"] == "worker-0"


def test_names_of_three_letters_may_stand_in_other_texts() -> None:
    assert left_over("a gpu-node", ["gpu", "node", "else"]) == ["node"]


async def test_other_names_are_the_same_ones_everywhere(tmp_path: Path) -> None:
    file, _ = await recorded(tmp_path, "--anonymise")
    text = gzip.decompress(file.read_bytes()).decode()
    names = ("worker-0", "worker-1", "running", "llama-train-0", "llama-train", "sleeper")
    assert left_over(text, names) == []
    found = json.loads(text)
    assert [each["metadata"]["name"] for each in found["nodes"]] == ["node-0000", "node-0001"]
    assert found["nodes"][0]["metadata"]["labels"]["kubernetes.io/hostname"] == "node-0000"
    (on,) = [each["spec"]["nodeName"] for each in found["pods"] if "nodeName" in each["spec"]]
    assert on == "node-0000"
    assert {each["metadata"]["namespace"] for each in found["pods"]} == {"namespace-0000"}
    assert {each["spec"]["schedulerName"] for each in found["pods"]} == {"corral"}


@pytest.mark.parametrize("options", [(), ("--anonymise",)])
async def test_who_records_stands_in_no_file_nor_does_his_cluster_in_one_with_other_names(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    kubeconfig, file = tmp_path / "kubeconfig", tmp_path / "out.json.gz"
    why = 'jobs.batch is forbidden: User "ann@example.com" cannot list resource "jobs"'
    async with Sandbox() as cluster:
        filled(cluster)
        cluster.write_kubeconfig(kubeconfig)
        at = kubeconfig.read_text().replace("corral-sandbox", "arn:of:account-7:prod")
        kubeconfig.write_text(at)
        refused = {"verb": "list", "resource": "jobs", "status": 403, "reason": "Forbidden"}
        cluster.faults.fail_next(1, message=why, **refused)
        named = ("--kubeconfig", kubeconfig, "--context", "arn:of:account-7:prod")
        ran = await asyncio.to_thread(run, "-o", file, *named, *options)
    assert ran.exit_code == 0, ran.output
    assert why in ran.stderr
    text = gzip.decompress(file.read_bytes()).decode()
    assert "Job: 403 Forbidden" in text
    assert "ann@example.com" not in text
    assert ("account-7" in text) == (not options)


def test_where_nothing_answers_it_is_one_sentence_and_nothing_is_written(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    ran = run("-o", file, "--server", "http://127.0.0.1:1")
    assert ran.exit_code == 1
    assert "does not answer" in ran.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "said"), [("", "Is a directory"), ("no/x.gz", "No such file")])
def test_where_no_file_can_be_nothing_is_read_for_it(tmp_path: Path, name: str, said: str) -> None:
    file = tmp_path / name
    ran = run("-o", file, "--server", "http://127.0.0.1:1")
    assert ran.exit_code == 2
    assert ran.stderr.startswith(f"corral: {file}: {said}")


def test_a_kubeconfig_of_the_environment_does_not_keep_server_from_being_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    with serving(busy_world().engine, None) as url:
        ran = run("-o", tmp_path / "out.json", "--server", url)
    assert ran.exit_code == 0, ran.output


def test_but_one_that_a_flag_names_does(tmp_path: Path) -> None:
    ran = run("--server", "http://127.0.0.1:1", "--kubeconfig", tmp_path / "kubeconfig")
    assert ran.exit_code == 2
    assert "needs --server https://" in ran.stderr


# -- from a running Corral -------------------------------------------------------------------------


def serving(engine: Engine, journal: JournalFile | None) -> AbstractContextManager[str]:
    """Where a Corral with this engine and this journal answers."""
    return corral(engine, Standing(lambda: "", journal=journal))


def busy_world() -> World:
    world = World(four_racks())
    runs = members("runs", 2)
    world.put(*runs)
    assert len(world.schedule(*runs)) == 2
    world.put(*members("waits", 5))
    world.put(*members("placed", 2))
    world.tick()
    return world


@pytest.fixture
def dumped(tmp_path: Path) -> Any:
    world = busy_world()

    def record(*options: str) -> tuple[World, Path, Path, Result]:
        with serving(world.engine, None) as url:
            file = tmp_path / "out.json.gz"
            ran = run("-o", file, "--server", url, *options)
        assert ran.exit_code == 0, ran.output
        return world, file, tmp_path / "out.journal.gz", ran

    return record


def test_what_a_corral_knows_is_recorded_with_a_journal_of_what_follows(dumped: Any) -> None:
    world, file, journal, ran = dumped()
    found = read(file)
    assert f"{len(found['nodes'])} nodes, {len(found['pods'])} pods; " in ran.stderr
    assert "objects are in the journal alone" in ran.stderr  # and none are counted as 0
    assert len(found["nodes"]) == len(world.engine.books.nodes)
    nodes = {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in found["pods"]}
    assert nodes == {each.name: each.node for each in world.pods.values()}
    lines = gzip.decompress(journal.read_bytes()).splitlines(keepends=True)
    assert any(b'"call":"filter"' in line for line in lines)
    assert list(replay(lines)) == []


def test_renamed_it_is_decided_alike(dumped: Any) -> None:
    _, _, journal, _ = dumped()
    plain = gzip.decompress(journal.read_bytes()).splitlines()
    world, _, journal, _ = dumped("--anonymise")
    renamed = gzip.decompress(journal.read_bytes())
    names = (*world.engine.books.nodes, *(each.name for each in world.pods.values()))
    assert left_over(renamed.decode(), [each for each in names if len(each) > 3]) == []
    assert list(replay(renamed.splitlines(keepends=True))) == []
    assert len(renamed.splitlines()) == len(plain)
    assert RACK_LEVEL in renamed.decode()
    assert group("waits", 5)[PREFIX + "pod-group-name"] not in renamed.decode()


def test_the_file_of_a_corral_opens_in_the_sandbox_too(dumped: Any) -> None:
    world, file, _, _ = dumped()

    async def load() -> Any:
        async with Sandbox() as cluster:
            return cluster.load(read(file))

    loaded = asyncio.run(load())
    bound = len(world.engine.books.bound)
    assert (loaded.pods_bound, loaded.pods_waiting) == (bound, len(world.pods) - bound)


def test_of_a_whole_journal_also_names_that_are_gone_are_other_ones(tmp_path: Path) -> None:
    file = JournalFile(tmp_path / "journal", 2**24)

    world = RecordedWorld(four_racks(), file.write)
    world.put(*members("bygone", 2))
    world.tick()
    pods = list(world.pods.values())
    assert len(world.schedule(*pods)) == 2
    world._take(world.inputs.bind_finished(pods[0].uid, BindFailed("bygone0 is late"), world.now))
    world.delete(*pods)

    found = {}
    for options in ((), ("--anonymise",)):
        with serving(world.engine, file) as url:
            ran = run("-o", tmp_path / "out.json", "--server", url, *options)
        assert ran.exit_code == 0, ran.output
        found[options] = (tmp_path / "out.journal").read_bytes()
    file.close()
    assert len(found[()]) == len((tmp_path / "journal").read_bytes())
    plain, renamed = (each.splitlines(keepends=True) for each in found.values())
    assert [line[line.index(b"bygone") - 90 :][:140] for line in renamed if b"bygone" in line] == []
    assert len(plain) == len(renamed)
    assert list(replay(plain)) == list(replay(renamed)) == []


@pytest.mark.parametrize("has_journal", [False, True])
def test_labels_of_nodes_that_nothing_names_are_not_in_a_journal(
    tmp_path: Path, has_journal: bool
) -> None:
    file = JournalFile(tmp_path / "journal", 2**24)

    nodes = [
        msgspec.structs.replace(each, labels={**each.labels, "secret": SECRET, "pool": "p"})
        for each in four_racks()
    ]
    world = RecordedWorld(nodes, file.write)
    picky = Shape(selector=(("pool", "p"),))
    world.put(*(msgspec.structs.replace(each, shape=picky) for each in members("g", 2)))
    world.tick()
    with serving(world.engine, file if has_journal else None) as url:
        ran = run("-o", tmp_path / "out.json", "--server", url)
    file.close()
    assert ran.exit_code == 0, ran.output
    lines = (tmp_path / "out.journal").read_bytes()
    assert SECRET.encode() not in lines + (tmp_path / "out.json").read_bytes()
    assert b'"pool":"p"' in lines
    assert list(replay(lines.splitlines(keepends=True))) == []


def test_other_names_are_given_below_a_status_too() -> None:
    names = Names()
    names.nodes.add("n-old")
    change = renaming(names.renamed())
    made = {"kind": "Pod", "metadata": {"name": "p"}, "status": {"nominatedNodeName": "n-old"}}
    assert change(made)["status"] == {"nominatedNodeName": "node-0000"}
    amounts = {"kind": "Node", "metadata": {"name": "x"}, "status": {"capacity": {"c": "n-old"}}}
    assert change(amounts)["status"] == {"capacity": {"c": "n-old"}}


def test_a_class_of_devices_keeps_its_name_which_pods_have_in_a_resource() -> None:
    names = Names()
    names.add(DeviceClassRecord("DeviceClass", "", "gpu.example.com", "uid-class", "1"))
    metadata = {"name": "gpu.example.com", "uid": "uid-class"}
    made = msgspec.json.encode({"kind": "DeviceClass", "metadata": metadata})
    for each in (names, names_in(Recording("", objects=[made]))):
        assert each.renamed() == {"uid-class": "uid-0000"}


DRIVER_SETS = json.dumps(
    [
        {
            "name": "workers",
            "count": 2,
            "template": {
                "spec": {
                    "nodeSelector": {"kubernetes.io/hostname": "n00"},
                    "containers": [
                        {"env": [{"name": "TOKEN", "value": SECRET}], "requests": {"cpu": "1"}}
                    ],
                }
            },
        }
    ]
)


async def test_the_templates_that_a_driver_declares_are_recorded_without_their_secrets(
    tmp_path: Path,
) -> None:
    annotations = {SETS: DRIVER_SETS, PREFIX + "pod-group-name": "g"}
    async with Sandbox() as cluster:
        driver = pod("driver", annotations=annotations)
        cluster.registry.adopt(POD, {**driver, "status": {"phase": "Pending"}})
        cluster.write_kubeconfig(tmp_path / "kubeconfig")
        options = ("-o", tmp_path / "out.json", "--kubeconfig", tmp_path / "kubeconfig")
        ran = await asyncio.to_thread(run, *options)
    assert ran.exit_code == 0, ran.output
    said = (tmp_path / "out.json").read_text()
    assert "workers" in said
    assert SECRET not in said


@pytest.mark.parametrize("has_journal", [False, True])
def test_nor_are_they_in_a_journal_which_replays_as_ever(tmp_path: Path, has_journal: bool) -> None:
    file = JournalFile(tmp_path / "journal", 2**24)
    world = RecordedWorld(four_racks(), file.write)
    (driver,) = members("driver", 1)
    for text in (DRIVER_SETS, f"[{SECRET}"):
        world.put(msgspec.structs.replace(driver, annotations={**driver.annotations, SETS: text}))
        world.tick()
    world.put(
        msgspec.structs.replace(driver, annotations={**driver.annotations, SETS: DRIVER_SETS})
    )
    world.tick()
    for options in ((), ("--anonymise",)):
        with serving(world.engine, file if has_journal else None) as url:
            ran = run("-o", tmp_path / "out.json", "--server", url, *options)
        assert ran.exit_code == 0, ran.output
        lines = (tmp_path / "out.journal").read_bytes()
        written = lines + (tmp_path / "out.json").read_bytes()
        assert SECRET.encode() not in written
        assert b"workers" in written
        assert list(replay(lines.splitlines(keepends=True))) == []
    assert b'"n00' not in written
    file.close()
