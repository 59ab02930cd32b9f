"""What `corral sandbox` runs: one cluster with a scheduler, until it is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.sandbox.apiserver.storage.kinds import Object
from app.sandbox.cluster import snapshot as snapshots
from app.sandbox.cluster.sandbox import Sandbox
from app.sandbox.cluster.synthetic import ClusterPlan, synthetic_snapshot
from app.sandbox.scheduler.facts.scheduler_config import ExtenderConfig, SchedulerConfig

_PROFILES = (
    "default-scheduler",
    "corral",
)  # the schedulerNames that pods may use without a configuration file
# Seconds. /bind has its own limit: an extender may hold the bindings of a gang for minutes.
_HTTP_TIMEOUT, _BIND_TIMEOUT = 30.0, 300.0
_LAST_PORT = 65_535


class InvalidOptions(ValueError):
    """An option is invalid, or two of them exclude each other."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The flags of `corral sandbox`.

    snapshot, overlay: a recorded cluster and one of the overlays in the file beside it
        (`NAME.topology-overlay.json.gz`). nodes: a synthetic one instead.
    load: how full it is at the start, 0..1; None keeps the snapshot's own pods.
    api_listen: 127.0.0.1:PORT; port 0 takes a free one.
    extender: the base URL of one extender with all verbs but preempt; scheduler_config: a
        KubeSchedulerConfiguration file that may name several.
    """

    snapshot: Path | None = None
    overlay: str = ""
    nodes: int = 0
    load: float | None = None
    seed: int = 0
    api_listen: str = "127.0.0.1:0"
    kubeconfig: Path | None = None
    extender: str = ""
    scheduler_config: Path | None = None


async def run(
    options: RunOptions, *, say: Callable[[str], None] = print, stop: asyncio.Event | None = None
) -> None:
    """Serve until `stop` is set or the task is cancelled.

    Raises: InvalidOptions, InvalidSnapshot, InvalidConfig, OSError.
    """
    config = _scheduler_config(options)
    cluster = _cluster(options)
    async with Sandbox(
        seed=options.seed,
        has_topology_crd=True,
        run_pods=True,
        asks_token=False,  # kubectl sends no token over plain HTTP
        port=_port(options.api_listen),
    ) as sandbox:
        if cluster is not None:
            loaded = sandbox.load(cluster, _load_options(options))
            say(f"{loaded.nodes} nodes, {loaded.pods_bound} pods on them")
        if options.kubeconfig is not None:
            sandbox.write_kubeconfig(options.kubeconfig)
            say(f"kubeconfig: {options.kubeconfig}")
        await sandbox.schedule_with(config=config)
        say(f"Kubernetes API: {sandbox.url}")
        await (stop or asyncio.Event()).wait()


def _scheduler_config(options: RunOptions) -> SchedulerConfig:
    if options.scheduler_config is not None:
        if options.extender:
            raise InvalidOptions("--extender and --scheduler-config both name extenders")
        return SchedulerConfig.read(options.scheduler_config)
    profiles: dict[str, int | None] = dict.fromkeys(_PROFILES, 100)
    if not options.extender:
        return SchedulerConfig(profiles=profiles)
    if not options.extender.startswith(("http://", "https://")):
        raise InvalidOptions(f"--extender {options.extender}: no http:// or https:// address")
    asked = ExtenderConfig(
        url=options.extender,
        filter_verb="filter",
        prioritize_verb="prioritize",
        weight=1,
        node_cache_capable=True,
        http_timeout=_HTTP_TIMEOUT,
    )
    binder = ExtenderConfig(options.extender, bind_verb="bind", http_timeout=_BIND_TIMEOUT)
    return SchedulerConfig(profiles=profiles, extenders=(asked, binder))


def _cluster(options: RunOptions) -> Object | None:
    if options.snapshot is not None and options.nodes:
        raise InvalidOptions("--snapshot and --nodes both name a cluster")
    if options.snapshot is not None:
        return snapshots.read_cluster(options.snapshot)
    if options.overlay:
        raise InvalidOptions("--overlay needs --snapshot")
    if not options.nodes:
        return None
    plan = ClusterPlan(nodes=options.nodes, load=options.load or 0.0, seed=options.seed)
    return synthetic_snapshot(plan)


def _load_options(options: RunOptions) -> snapshots.LoadOptions:
    if options.snapshot is None:
        return snapshots.LoadOptions()
    overlay = None
    if options.overlay:
        file = options.snapshot.with_name(
            f"{options.snapshot.name.split('.')[0]}.topology-overlay.json.gz"
        )
        overlay = snapshots.overlay_named(snapshots.read(file), options.overlay)
    return snapshots.LoadOptions(overlay=overlay, load=options.load)


def _port(listen: str) -> int:
    host, _, port = listen.rpartition(":")
    if host not in ("127.0.0.1", "localhost") or not port.isdigit():
        raise InvalidOptions(f"--api-listen {listen!r}: the sandbox listens on 127.0.0.1:PORT only")
    if int(port) > _LAST_PORT:
        raise InvalidOptions(f"--api-listen {listen!r}: ports end at {_LAST_PORT}")
    return int(port)
