"""Puts a load together, runs it, and writes down what it came to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import typer
import uvloop

from app.cli.common.columns import aligned, on_one_line
from app.cli.common.options import Output, write
from app.cli.record.from_corral.manifests import node_manifest, pod_manifest
from app.cli.replay.loading.client import Client
from app.cli.replay.loading.driving import Load, Pace
from app.cli.replay.loading.figures import Figures
from app.cli.replay.loading.processes import running
from app.cli.replay.loading.work import Mix, Work, with_overlay, work_of
from app.cli.replay.reading import STDIN, lines_of
from app.errors import DecodeError, SettingsError
from app.sandbox.cluster.snapshot import (
    BLOCK,
    RACK,
    SCHEMA,
    InvalidSnapshot,
    overlay_named,
    read,
    read_cluster,
)
from app.state.journal.mirror import mirror

LIST_SECONDS = 60.0
PAGE = 500


@dataclass(frozen=True, slots=True)
class Asked:
    """What the options say. `server`: a Corral that runs already; "": one of our own.

    seconds: how long pods come, at most.
    """

    file: Path
    rate: float
    seconds: float = 60.0
    overlay: str = ""
    gangs: float = 0.5
    gang_size: int = 8
    in_flight: int = 1_000
    server: str = ""
    binds: bool = True
    levels: tuple[str, ...] = ()
    """None: those of the journal, or of a sandbox's nodes."""


def run(asked: Asked, output: Output) -> bool:
    """Run a load and write its figures; whether every pod that was sent got its answers."""
    from app.cli.common.options import failures, note

    with failures():
        figures = load(asked, note)
    if output is Output.TABLE:
        for line in aligned(figures.table(), "   "):
            typer.echo(line)
        for line in figures.sentences():
            typer.echo(on_one_line(line))
    else:
        write(figures.plain(), output)
    return figures.is_answered


def load(asked: Asked, say: Callable[[str], None]) -> Figures:
    """Run it. Raises: SettingsError, NotStarted, NoAnswer; OSError for the file."""
    if asked.file == STDIN or (asked.file.exists() and not asked.file.is_file()):
        raise SettingsError(f"{asked.file}: --load reads it twice, so it has to be a file")
    try:
        snapshot, own = _snapshot(asked.file)
        if asked.overlay:
            snapshot = with_overlay(snapshot, _overlay(asked), (BLOCK, RACK))
        levels = asked.levels or own or levels_in(snapshot)
        mix = Mix(asked.gangs, asked.gang_size, levels[-1] if levels else "")
        work = work_of(snapshot, mix, int(asked.rate * asked.seconds))
    except (InvalidSnapshot, DecodeError) as wrong:
        raise SettingsError(f"no cluster-snapshot/v1, and no journal: {wrong}") from wrong
    except (KeyError, TypeError, AttributeError) as wrong:  # in a pod or a node of it
        raise SettingsError(f"no cluster-snapshot/v1: {asked.file}: {wrong!r}") from wrong
    pace = Pace(asked.rate, asked.in_flight, binds=asked.binds)
    if asked.server:
        pods = work.snapshot["pods"]
        nodes = work.snapshot["nodes"]
        return _run(_drive(asked.server, nodes, pods, work, pace, say))
    # The sandbox reads a file's own form of a snapshot.
    snapshot = work.snapshot | {"schema": SCHEMA}
    say(f"starting a cluster of {len(snapshot['nodes'])} nodes and a Corral for it")
    with running(snapshot, levels) as both:

        async def drive() -> Figures:
            cluster = Client(both.cluster)
            try:
                nodes = await _listed(cluster, "/api/v1/nodes")
                pods = await _listed(cluster, "/api/v1/pods")
            finally:
                await cluster.close()
            return await _drive(both.corral, nodes, pods, work, pace, say)

        return _run(drive())


def _snapshot(file: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A recorded cluster, or the one that a journal ends with, and the levels that this says.

    Raises: InvalidSnapshot, DecodeError, OSError.
    """
    with lines_of(file) as lines:
        is_journal = next(lines, b"").startswith(b'{"journal":')
    if not is_journal:
        return read_cluster(file), ()
    with lines_of(file) as lines:
        known = mirror(lines)
    pods = [each for each in known.pods.values() if not each.is_finished]
    snapshot = {
        "nodes": [node_manifest(each) for each in known.nodes.values()],
        "pods": [pod_manifest(each) for each in pods],
    }
    return snapshot, tuple(known.settings.levels)


def _overlay(asked: Asked) -> Any:
    stem = asked.file.name.split(".")[0]
    file = asked.file.with_name(f"{stem}.topology-overlay.json.gz")
    return overlay_named(read(file), asked.overlay)


def levels_in(snapshot: dict[str, Any]) -> tuple[str, ...]:
    """The levels that the nodes have labels for, of those that a sandbox gives its nodes."""
    labels = [each["metadata"].get("labels") or {} for each in snapshot["nodes"]]
    return tuple(key for key in (BLOCK, RACK) if labels and all(key in each for each in labels))


async def _drive(
    url: str,
    nodes: list[dict[str, Any]],
    pods: list[dict[str, Any]],
    work: Work,
    pace: Pace,
    say: Callable[[str], None],
) -> Figures:
    by_uid = {each["metadata"].get("uid", ""): each for each in pods}
    client = Client(url)
    try:
        found = Load(client, nodes, [each for each in pods if "nodeName" in each["spec"]], by_uid,
                     pace, say)  # fmt: skip
        return await found.run(work.arriving)
    finally:
        await client.close()


async def _listed(client: Client, path: str) -> list[dict[str, Any]]:
    """Every object of a list, as a scheduler reads it. Raises: NoAnswer."""
    found: list[dict[str, Any]] = []
    more = ""
    while True:
        asked = f"{path}?limit={PAGE}" + (f"&continue={more}" if more else "")
        page = orjson.loads(await client.request("GET", asked, seconds=LIST_SECONDS))
        found.extend(page["items"])
        more = (page.get("metadata") or {}).get("continue") or ""
        if not more:
            return found


def _run(work: Any) -> Figures:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        figures: Figures = runner.run(work)
        return figures
