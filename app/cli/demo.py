"""`corral demo`: a whole cluster in this process, a dozen gangs placed, and what to type next.

The sandbox's API server and scheduler, and Corral between them, talk over real HTTP on loopback,
exactly as the real ones do.
"""

from __future__ import annotations

import asyncio
import shlex
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.common import next_steps
from app.cli.common.columns import aligned
from app.cli.showcase import (
    BLOCK,
    GPU,
    PLANNED,
    RACK,
    SHOWPIECES,
    TOO_BIG,
    Showpiece,
    with_levels,
)

if TYPE_CHECKING:
    import aiohttp

    from app.process.parts import Parts
    from app.sandbox import Sandbox

SYNTHETIC_NODES = 1523  # as many as the recorded cluster has
SCHEDULER = "corral"
NO_SCHEDULER = "no-scheduler"  # a schedulerName that no scheduler has
READY_SECONDS = 15.0
PLACE_SECONDS = 15.0  # after that a gang counts as waiting
FOREVER_SECONDS = 86_400.0
POLL_SECONDS = 0.05


def demo(
    once: Annotated[bool, typer.Option("--once", help="Print the table and exit")] = False,
    snapshot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A recorded cluster-snapshot/v1; none: a synthetic one"),
    ] = None,
    load: Annotated[
        float, typer.Option(metavar="SHARE", min=0.0, max=1.0, help="How full the cluster is")
    ] = 0.2,
    seed: Annotated[int, typer.Option(help="Decides the synthetic cluster")] = 0,
) -> None:
    """Place a dozen gangs in a cluster of 1,523 nodes in this process, and say what to type next.

    \b
    Examples:
      corral demo
      corral demo --snapshot cluster.json.gz --load 0.5

    \b
    Exit code 0: with --once it was printed; else a signal ended it
              2: the snapshot cannot be used
    """
    from app.cli.common.logs import log_to_stderr
    from app.cli.common.options import said_of, usage
    from app.cli.common.until_signal import run_until_signal
    from app.sandbox.cluster.snapshot import InvalidSnapshot

    log_to_stderr("warning")
    try:
        run_until_signal(_show(once=once, recorded=snapshot, load=load, seed=seed))
    except InvalidSnapshot as error:
        raise usage(f"--snapshot: {error}") from error
    except OSError as error:
        raise usage(f"--snapshot: {said_of(error)}") from error


async def _show(*, once: bool, recorded: Path | None, load: float, seed: int) -> None:
    with tempfile.TemporaryDirectory(prefix="corral-demo-") as name:
        folder = Path(name)
        async with _stage(folder, recorded, load, seed) as stage:
            typer.echo(stage.title)
            typer.echo(f"placing {len(SHOWPIECES)} gangs ...\n")
            placed = await _place(stage, SHOWPIECES)
            explanations = {
                each.piece.name: await _explained(stage, each.piece) for each in placed if each.why
            }
            _print_table([_in_corrals_words(each, explanations) for each in placed])
            if once:
                typer.echo("\nWithout --once the cluster stays up, with lines to type here.")
                return
            at = next_steps.Addresses(
                stage.corral.extender_url, stage.sandbox.url, stage.kubeconfig, folder
            )
            typer.echo("")
            for line in next_steps.lines(at, TOO_BIG, explanations.get(TOO_BIG.name), SCHEDULER):
                typer.echo(line)
            await _print_curl_lines(stage, folder)
            await asyncio.Event().wait()


async def _explained(stage: Stage, piece: Showpiece) -> dict[str, Any] | None:
    """What `corral explain` says of it; None: Corral does not know it yet."""
    import aiohttp

    url = f"{stage.corral.extender_url}/v1/gangs/default/{piece.name}/explanation"
    async with aiohttp.ClientSession() as client, client.get(url) as answer:
        found: dict[str, Any] | None = await answer.json() if answer.ok else None
        return found


def _in_corrals_words(shown: Shown, explanations: Mapping[str, dict[str, Any] | None]) -> Shown:
    """Without what kube-scheduler adds around the verdict in the pod's condition."""
    explanation = explanations.get(shown.piece.name)
    return shown if explanation is None else replace(shown, why=explanation["gang"]["message"])


@dataclass(frozen=True, slots=True)
class Stage:
    """Everything that runs."""

    title: str
    sandbox: Sandbox
    corral: Parts
    api: aiohttp.ClientSession
    kubeconfig: Path


@asynccontextmanager
async def _stage(
    folder: Path, recorded: Path | None, load: float, seed: int
) -> AsyncIterator[Stage]:
    """The cluster, Corral and the scheduler, each with the others' addresses."""
    import aiohttp

    from app.main import started
    from app.sandbox import ExtenderConfig, Sandbox
    from app.setting_values import Address
    from app.settings import Settings

    began = time.monotonic()
    kubeconfig = folder / "kubeconfig"
    # kubectl sends no token over plain HTTP.
    async with Sandbox(seed=seed, run_pods=True, asks_token=False) as sandbox:
        loaded = _load(sandbox, recorded, load, seed)
        sandbox.write_kubeconfig(kubeconfig)
        settings = Settings(
            kubeconfig=kubeconfig,
            extender_listen=Address("127.0.0.1", 0),
            levels=(BLOCK, RACK),
            scheduler_name="",  # `PLANNED` has a scheduler of its own
            hold_seconds=FOREVER_SECONDS,
        )
        async with (
            aiohttp.ClientSession(sandbox.url) as api,
            started(settings) as corral,
        ):
            async with asyncio.timeout(READY_SECONDS):
                while corral.unready():  # noqa: ASYNC110  # readiness is polled, as by a probe
                    await asyncio.sleep(POLL_SECONDS)
            await sandbox.schedule_with(
                ExtenderConfig(
                    url=corral.extender_url,
                    filter_verb="filter",
                    prioritize_verb="prioritize",
                    weight=15,
                    node_cache_capable=True,
                    http_timeout=30.0,
                ),
                ExtenderConfig(corral.extender_url, bind_verb="bind", http_timeout=300.0),
                profiles={SCHEDULER: 100},
            )
            seconds = time.monotonic() - began
            title = f"{loaded}; ready after {seconds:.1f} s\n"
            yield Stage(title, sandbox, corral, api, kubeconfig)


def _load(sandbox: Sandbox, recorded: Path | None, load: float, seed: int) -> str:
    """Fill the sandbox; a sentence about what was loaded."""
    from app.sandbox import ClusterPlan, LoadOptions, synthetic_snapshot
    from app.sandbox.cluster.snapshot import read_cluster

    if recorded is None:
        plan = ClusterPlan(nodes=SYNTHETIC_NODES, load=load, seed=seed)
        loaded = sandbox.load(synthetic_snapshot(plan))
        name = "a synthetic cluster"
    else:
        snapshot = read_cluster(recorded)
        options = LoadOptions(overlay=with_levels(snapshot), load=load)
        loaded = sandbox.load(snapshot, options)
        name = str(snapshot.get("name", recorded.name))
    return f"{name}: {loaded.nodes:,} nodes, {loaded.pods_bound:,} pods running"


@dataclass(frozen=True, slots=True)
class Shown:
    """The result for a showpiece: its domains in words and its nodes, or why it waits."""

    piece: Showpiece
    domains: str = "-"
    nodes: int = 0
    seconds: float = 0.0
    why: str = ""


async def _place(stage: Stage, pieces: Sequence[Showpiece]) -> list[Shown]:
    """Create all pieces and watch them until each is bound or too late."""
    path_of = {
        node["metadata"]["name"]: tuple(
            node["metadata"]["labels"].get(level, "-") for level in (BLOCK, RACK)
        )
        for node in await _list(stage.api, "/api/v1/nodes")
    }
    created: dict[str, float] = {}
    for piece in pieces:
        for each in piece.objects(SCHEDULER):
            await _create(stage.api, each)
        created[piece.name] = time.monotonic()
    shown: dict[str, Shown] = {}
    deadline = time.monotonic() + PLACE_SECONDS
    while len(shown) < len(pieces) and time.monotonic() < deadline:
        await asyncio.sleep(POLL_SECONDS)
        for piece in pieces:
            if piece.name not in shown:
                pods = await _pods_of(stage.api, piece)
                seen = _seen(piece, pods, path_of, time.monotonic() - created[piece.name])
                if seen is not None:
                    shown[piece.name] = seen
    return [shown.get(piece.name, Shown(piece, why="still waiting")) for piece in pieces]


def _seen(
    piece: Showpiece,
    pods: Sequence[dict[str, Any]],
    path_of: Mapping[str, tuple[str, ...]],
    seconds: float,
) -> Shown | None:
    """The result for a piece, if there is one: every pod bound, or a verdict of Corral."""
    nodes = [pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")]
    if len(nodes) == piece.pods:
        domains = _domains({path_of[node] for node in nodes})
        return Shown(piece, domains, len(set(nodes)), seconds)
    verdicts = (
        condition.get("message", "")
        for pod in pods
        for condition in pod.get("status", {}).get("conditions", [])
        if condition["type"] == "PodScheduled"
    )
    why = next((text for text in verdicts if "cannot be placed" in text), "")
    return Shown(piece, seconds=seconds, why=why) if why else None


def _print_table(placed: Sequence[Shown]) -> None:
    rows = [("gang", "pods", "each", "constraint", "domains", "nodes", "seconds")]
    for shown in placed:
        piece = shown.piece
        each = f"{piece.gpus} GPU" if piece.gpus else f"{piece.cpu} CPU"
        rows.append(
            (
                piece.name,
                str(piece.pods),
                each,
                piece.constraint,
                shown.domains,
                str(shown.nodes) if shown.nodes else "-",
                f"{shown.seconds:.2f}" if shown.nodes else "waits",
            )
        )
    for line in aligned(rows, "  "):
        typer.echo(line)
    for shown in placed:
        if shown.why:
            typer.echo(f"\n{shown.piece.name}: {shown.why}")


def _domains(racks: set[tuple[str, ...]]) -> str:
    """The rack, or the block and how many of its racks, or how many of both."""
    blocks = {block for block, _ in racks}
    if len(racks) == 1:
        return min(racks)[1]
    if len(blocks) == 1:
        return f"{min(blocks)}, {len(racks)} racks"
    return f"{len(blocks)} blocks, {len(racks)} racks"


async def _print_curl_lines(stage: Stage, folder: Path) -> None:
    """One /filter of a planned member and one /prioritize of an ordinary pod, to be repeated."""
    import orjson

    for each in PLANNED.objects(NO_SCHEDULER):
        await _create(stage.api, each)
    names = [node["metadata"]["name"] for node in await _list(stage.api, "/api/v1/nodes")]
    member = (await _pods_of(stage.api, PLANNED))[0]
    ordinary: dict[str, Any] = {
        "metadata": {"name": "ordinary", "namespace": "default", "uid": "ordinary"},
        "spec": {"containers": [{"name": "a", "resources": {"requests": {GPU: "1"}}}]},
    }
    typer.echo(
        f"\nWhat kube-scheduler asks of a pod of the gang {PLANNED.name}, which no scheduler binds,"
        " and of an ordinary pod:\n"
    )
    for verb, pod in (("filter", member), ("prioritize", ordinary)):
        body = folder / f"{verb}.json"
        body.write_bytes(orjson.dumps({"Pod": pod, "Nodes": None, "NodeNames": names}))
        line = (
            f"{next_steps.INDENT}curl -s {stage.corral.extender_url}/{verb}"
            f" -H 'Content-Type: application/json' -d @{shlex.quote(str(body))}"
        )
        answer = await _answer(f"{stage.corral.extender_url}/{verb}", body.read_bytes())
        typer.echo(f"{line}\n{next_steps.INDENT}  {answer}")


async def _answer(url: str, body: bytes) -> str:
    """The start of what the verb answers."""
    import aiohttp

    async with aiohttp.ClientSession() as client, client.post(url, data=body) as answer:
        text = await answer.text()
    return text if len(text) <= 160 else f"{text[:157]}..."


async def _create(api: aiohttp.ClientSession, thing: dict[str, Any]) -> None:
    home = "/apis/batch/v1" if thing["kind"] == "Job" else "/api/v1"
    path = f"{home}/namespaces/default/{thing['kind'].lower()}s"
    async with api.post(path, json=thing) as answer:
        answer.raise_for_status()


async def _pods_of(api: aiohttp.ClientSession, piece: Showpiece) -> list[dict[str, Any]]:
    return await _list(
        api, "/api/v1/namespaces/default/pods", labelSelector=f"corral-demo={piece.name}"
    )


async def _list(api: aiohttp.ClientSession, path: str, **params: str) -> list[dict[str, Any]]:
    async with api.get(path, params=params) as answer:
        answer.raise_for_status()
        items: list[dict[str, Any]] = (await answer.json())["items"]
        return items
