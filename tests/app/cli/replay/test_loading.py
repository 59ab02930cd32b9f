"""A recorded cluster as a load: late answers do not slow it, latencies begin when a pod is due."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner, Result

from app.cli import main
from app.cli.replay.loading.client import Client, NoAnswer
from app.cli.replay.loading.command import _snapshot, levels_in
from app.cli.replay.loading.driving import Load, Pace
from app.cli.replay.loading.figures import (
    BIND_MEMBER,
    FILTER_MEMBER,
    FILTER_ORDINARY,
    PRIORITIZE,
    Figures,
    Timings,
)
from app.cli.replay.loading.processes import NotStarted, _url
from app.cli.replay.loading.work import Mix, work_of
from app.sandbox import ClusterPlan, synthetic_snapshot
from app.sandbox.cluster.snapshot import SCHEMA
from tests.app.polling import until
from tests.app.state.journal.checking.test_check import history
from tests.cluster import BLOCK, GPU, RACK, node, pod

REQUIRED = "kueue.x-k8s.io/podset-required-topology"

ROOT = Path(__file__).parents[4]
Answer = Callable[[str, Any], Any]


def recording(pods: int = 24, nodes: int = 4) -> dict[str, Any]:
    return {
        "schema": "cluster-snapshot/v1",
        "nodes": [node(f"n{at}", gpus=64) for at in range(nodes)],
        "pods": [pod(f"p{at}", requests={GPU: 1}) for at in range(pods)],
    }


@asynccontextmanager
async def extender(answer: Answer) -> AsyncIterator[str]:
    """A server that answers what it is told to, as late as that takes."""

    tasks: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                _, path, _ = head.decode().split(" ", 2)
                _, _, rest = head.lower().partition(b"content-length:")
                length = int(rest.split(b"\r\n")[0] or 0)
                body = await reader.readexactly(length)
                said = await answer(path, orjson.loads(body) if body else None)
                raw = orjson.dumps(said)
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(raw), raw))
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        yield f"http://{host}:{port}"
        for task in tasks:
            task.cancel()
        # One that had not begun, or was closing its connection, ends as cancelled.
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert [each for each in ended if isinstance(each, Exception)] == []


async def plain(path: str, body: Any) -> Any:
    """An extender that agrees with everything."""
    if path == "/filter":
        return {"NodeNames": body["NodeNames"]}
    if path == "/prioritize":
        return [{"Host": name, "Score": at} for at, name in enumerate(body["NodeNames"])]
    return {"Error": ""} if path == "/bind" else {}


async def driven(answer: Answer, pace: Pace, *, mix: Mix | None = None, pods: int = 24) -> Figures:
    work = work_of(recording(pods), mix or Mix(share=0.0), most=pods)
    by_uid = {each["metadata"]["uid"]: each for each in work.snapshot["pods"]}
    async with extender(answer) as url:
        client = Client(url)
        load = Load(client, work.snapshot["nodes"], [], by_uid, pace, lambda _: None)
        try:
            return await load.run(work.arriving)
        finally:
            await client.close()


async def test_every_pod_goes_through_the_verbs_as_kube_scheduler_brings_it() -> None:
    asked: list[tuple[str, Any]] = []

    async def answer(path: str, body: Any) -> Any:
        asked.append((path, body))
        return await plain(path, body)

    figures = await driven(answer, Pace(500.0, reads=False), pods=6)
    assert (figures.bound, figures.shed, figures.unfinished) == (6, 0, 0)
    assert sorted({path for path, _ in asked}) == ["/bind", "/filter", "/prioritize"]
    (first, *_) = [body for path, body in asked if path == "/filter"]
    assert first["NodeNames"] == ["n0", "n1", "n2", "n3"]
    assert first["Pod"]["metadata"]["name"] == "p0"
    bound = [body for path, body in asked if path == "/bind"]
    assert {each["Node"] for each in bound} == {"n3"}  # the highest score
    assert {each["PodUID"] for each in bound} == {f"load-{at}" for at in range(6)}


async def test_a_stall_is_in_the_latency_of_every_pod_that_was_due_in_it() -> None:
    """Coordinated omission: a client that waited would send one slow request, then fast ones."""
    stalled_until = 0.0

    async def answer(path: str, body: Any) -> Any:
        nonlocal stalled_until
        stalled_until = stalled_until or time.perf_counter() + 0.4
        await asyncio.sleep(max(0.0, stalled_until - time.perf_counter()))
        return await plain(path, body)

    figures = await driven(answer, Pace(100.0, reads=False, binds=False), pods=60)
    slow = [each for each in figures.rows[FILTER_ORDINARY].seconds if each > 0.1]
    assert len(slow) >= 20
    assert figures.rows[FILTER_ORDINARY].percentile(0.99) > 0.25


async def test_what_is_over_the_bound_is_not_sent_and_counted() -> None:
    most = now = 0

    async def answer(path: str, body: Any) -> Any:
        nonlocal most, now
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.2)
        now -= 1
        return await plain(path, body)

    figures = await driven(answer, Pace(400.0, in_flight=3, reads=False, binds=False))
    assert most <= 3
    assert figures.shed >= 10
    assert not figures.is_answered


async def test_a_server_that_never_answers_does_not_hold_the_load_up() -> None:
    async def answer(path: str, body: Any) -> Any:
        await asyncio.sleep(3_600)

    began = time.perf_counter()
    figures = await driven(answer, Pace(1_000.0, grace=0.3, reads=False), pods=5)
    assert time.perf_counter() - began < 5.0
    assert (figures.unfinished, figures.bound) == (5, 0)
    assert any("no answer when the time was over" in each for each in figures.sentences())


async def test_a_refusal_is_counted_and_goes_no_further() -> None:
    async def answer(path: str, body: Any) -> Any:
        assert path == "/filter"
        return {"NodeNames": [], "FailedAndUnresolvableNodes": {}}

    figures = await driven(answer, Pace(1_000.0, reads=False), pods=5)
    assert figures.rows[FILTER_ORDINARY].refused == 5
    assert figures.bound == 0


async def test_a_pod_that_fits_nowhere_is_not_sent() -> None:
    figures = await driven(plain, Pace(5_000.0, reads=False), pods=300)  # of 256 GPUs
    assert (figures.bound, figures.unschedulable) == (256, 44)


@pytest.mark.parametrize("flags", [(), ("--bind",)])
async def test_a_corral_that_is_named_binds_only_if_that_is_said(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    asked: set[str] = set()

    async def answer(path: str, body: Any) -> Any:
        asked.add(path)
        return await plain(path, body)

    file = tmp_path / "cluster.json"
    file.write_bytes(orjson.dumps(recording(pods=8)))
    async with extender(answer) as url:
        ran = await asyncio.to_thread(run, file, "--load", 200, "--server", url, *flags)
    assert ran.exit_code == 0, ran.output
    assert {"/filter", "/prioritize"} <= asked
    assert ("/bind" in asked) == bool(flags)
    assert "8 pods at 200 a second on 4 nodes" in ran.stdout


async def test_what_is_no_answer_is_said() -> None:
    async def answer(path: str, body: Any) -> Any:
        raise ConnectionError

    async with extender(answer) as url:
        client = Client(url)
        with pytest.raises(NoAnswer, match="/filter"):
            await client.request("POST", "/filter", b"{}", seconds=1.0)
        await client.close()


async def test_somebody_follows_the_gangs_meanwhile_where_that_is_served() -> None:
    told = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if head.startswith(b"GET /v1/events "):
            writer.write(
                b"HTTP/1.1 200 OK\r\n\r\nevent: gang\ndata: {}\n\nevent: gang\ndata: {}\n\n"
            )
            await writer.drain()
            told.set()
            await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        client = Client(f"http://{host}:{port}")
        lines: list[bytes] = []
        following = asyncio.create_task(client.follow("/v1/events", lines.append))
        await told.wait()
        await until(lambda: lines.count(b"event: gang\n") == 2)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        with pytest.raises(NoAnswer):
            await client.follow("/v1/other", lines.append)
        await client.close()


def test_consecutive_pods_become_whole_gangs_and_the_share_is_kept() -> None:
    work = work_of(recording(100), Mix(share=0.5, size=8, level="rack"), most=80)
    assert len(work.arriving) == 80
    sizes: dict[str, int] = {}
    for each in work.arriving:
        sizes[each.gang] = sizes.get(each.gang, 0) + 1
    assert sizes.pop("") == 40
    assert set(sizes.values()) == {8}
    first = next(each for each in work.arriving if each.gang)
    made = next(p for p in work.snapshot["pods"] if p["metadata"]["uid"] == first.uid)
    assert made["metadata"]["annotations"]["kueue.x-k8s.io/pod-group-total-count"] == "8"
    assert made["metadata"]["annotations"]["kueue.x-k8s.io/podset-preferred-topology"] == "rack"


def test_a_gang_of_any_vocabulary_comes_as_a_pod_group_of_its_size() -> None:
    owner = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": "train",
        "uid": "u",
        "controller": True,
    }
    pods = [pod(f"train-{at}", annotations={REQUIRED: "rack"}) for at in range(3)]
    for each in pods:
        each["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    pods[1:1] = [pod("plain")]
    work = work_of({"nodes": [], "pods": pods}, Mix(share=0.0), most=10)
    gangs = [each.gang for each in work.arriving]
    assert gangs[1] == ""
    assert len(set(gangs)) == 2
    said = [each["metadata"].get("annotations") for each in work.snapshot["pods"]]
    assert said[0] == said[3] == {
        "kueue.x-k8s.io/pod-group-name": gangs[0],
        "kueue.x-k8s.io/pod-group-total-count": "3",
        REQUIRED: "rack",
    }  # fmt: skip
    assert work.snapshot["pods"][0]["metadata"]["name"] == "train-0"


def test_what_a_journal_ends_with_is_a_cluster_as_well(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    world = history()
    path.write_bytes(b"".join(world.lines))
    found, levels = _snapshot(path)
    assert len(found["nodes"]) == 16
    nodes = {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in found["pods"]}
    assert nodes == {each.name: each.node for each in world.pods.values()}
    assert levels == levels_in(found) == (BLOCK, RACK)
    work = work_of(found, Mix(share=0.0), most=10)
    assert sorted(each.gang for each in work.arriving) == ["", "g-group", "g-group", "g-group"]


def test_pods_that_ran_come_again_and_those_of_a_daemon_set_stay() -> None:
    snapshot = synthetic_snapshot(ClusterPlan(nodes=4, load=1.0))
    daemon = pod("d", nodeName="node-00000")
    daemon["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "controller": True}]
    work = work_of({**snapshot, "pods": [daemon, *snapshot["pods"]]}, Mix(share=0.0), most=1_000)
    assert len(work.arriving) == 32
    on = [each["spec"].get("nodeName", "") for each in work.snapshot["pods"]]
    assert sorted(set(on)) == ["", "node-00000"]


@pytest.mark.parametrize(
    ("seconds", "share", "expected"),
    [
        ([3.0, 1.0, 2.0], 0.5, 2.0),
        ([1.0] * 99 + [9.0], 0.99, 1.0),
        ([1.0] * 98 + [9.0] * 2, 0.99, 9.0),
        ([], 0.99, 0.0),
        ([4.0], 0.5, 4.0),
    ],
)
def test_a_percentile_is_one_of_the_latencies(
    seconds: list[float], share: float, expected: float
) -> None:
    assert Timings(seconds).percentile(share) == expected


# -- as a user runs it -----------------------------------------------------------------------------


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(main, ["replay", *map(str, arguments)])


@pytest.mark.slow
def test_a_generated_cluster_is_a_load_on_a_corral_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    path.write_bytes(orjson.dumps(synthetic_snapshot(ClusterPlan(nodes=16, load=0.8))))
    ran = run(path, "--load", 40, "--seconds", 2, "-o", "json")
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.stdout)
    assert found["pods_due"] == found["bound"] == 80
    verbs = found["verbs"]
    assert verbs[FILTER_MEMBER]["requests"] == verbs[BIND_MEMBER]["requests"] == 40
    assert verbs[PRIORITIZE]["requests"] == 40
    assert 0 < verbs[FILTER_MEMBER]["p50"] <= verbs[FILTER_MEMBER]["p99"] < 5.0
    assert verbs["GET /v1/gangs, beside it"]["requests"] > 0
    assert "starting a cluster of 16 nodes" in ran.stderr


@pytest.mark.slow
def test_recorded_gangs_keep_the_levels_that_they_name(tmp_path: Path) -> None:
    path, rack = tmp_path / "journal", "example.com/rack"
    lines = b"".join(history().lines)
    path.write_bytes(lines.replace(BLOCK.encode(), b"example.com/block").replace(
        RACK.encode(), rack.encode()
    ))  # fmt: skip
    options = ("--load", 20, "--gangs", 0, "-o", "json")
    every = 4  # three of a gang in a rack, and one alone
    assert json.loads(run(path, *options).stdout)["bound"] == every
    snapshot, levels = _snapshot(path)
    cluster = tmp_path / "cluster.json"
    cluster.write_bytes(orjson.dumps({"schema": SCHEMA, **snapshot}))
    given = run(cluster, *options, "--levels", ",".join(levels))
    assert json.loads(given.stdout)["bound"] == every


@pytest.mark.slow
def test_nothing_of_it_is_left_when_it_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    path.write_bytes(orjson.dumps(synthetic_snapshot(ClusterPlan(nodes=4, load=0.8))))
    command = [sys.executable, "-m", "app", "replay", str(path), "--load", "1", "--seconds", "60"]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
    children: list[int] = []
    deadline = time.monotonic() + 30.0
    while len(children) < 3 and time.monotonic() < deadline:  # with the tracker of resources
        time.sleep(0.1)
        listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        children = [int(each) for each in listed.split()]
    time.sleep(3.0)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 30.0
    while any(is_alive(each) for each in children) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(children) == 3
    assert [each for each in children if is_alive(each)] == []


def is_alive(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


@pytest.mark.parametrize("content", ["{}", "word", '{"journal":99}'])
def test_what_is_no_snapshot_is_one_sentence(tmp_path: Path, content: str) -> None:
    path = tmp_path / "file.json"
    path.write_text(content)
    ran = run(path, "--load", 1)
    assert ran.exit_code == 2
    assert "no cluster-snapshot/v1" in ran.stderr
    assert "Invalid" not in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1


def test_two_ways_to_replay_exclude_each_other(tmp_path: Path) -> None:
    ran = run(tmp_path / "x", "--load", 1, "--check")
    assert ran.exit_code == 2
    assert "--load and --check exclude each other" in ran.stderr


def test_a_pipe_is_no_file_for_a_load(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    ran = CliRunner().invoke(main, ["replay", "--load", "1", str(pipe)])
    assert ran.exit_code == 2
    assert ran.stderr == f"corral: {pipe}: --load reads it twice, so it has to be a file\n"


def test_a_process_that_ends_before_it_is_ready_is_not_said_to_be_slow():
    ours, theirs = Pipe()
    ended = SimpleNamespace(is_alive=lambda: False, exitcode=1)
    with ours, theirs, pytest.raises(NotStarted) as raised:
        _url(ours, ended, "Corral")
    assert str(raised.value) == "Corral did not start: it ended with exit code 1"
