"""The scheduler's configuration file and the options of a run."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest

from app.sandbox.apiserver.rules.quantity import amount, parse
from app.sandbox.cluster.run import InvalidOptions, RunOptions, run
from app.sandbox.scheduler.facts.scheduler_config import (
    ExtenderConfig,
    InvalidConfig,
    SchedulerConfig,
)
from tests.app.sandbox.http import NODES, Client, until

FILE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 30
podMaxBackoffSeconds: 20
profiles:
- schedulerName: default-scheduler
- schedulerName: corral
  percentageOfNodesToScore: 100
extenders:
- urlPrefix: http://127.0.0.1:9/ext
  filterVerb: filter
  prioritizeVerb: prioritize
  bindVerb: bind
  weight: 20
  nodeCacheCapable: true
  httpTimeout: 1m30.5s
  managedResources: [{name: corral.dev/marker}, {name: corral.dev/other, ignoredByScheduler: true}]
"""


def test_the_file_of_the_real_scheduler_drives_this_one(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(FILE)
    config = SchedulerConfig.read(tmp_path / "config.yaml")
    (extender,) = config.extenders
    assert config.profiles == {"default-scheduler": None, "corral": 100}
    assert config.percentage_of_nodes_to_score == 30
    assert (config.initial_backoff, config.max_backoff) == (1.0, 20.0)
    assert extender == ExtenderConfig(
        url="http://127.0.0.1:9/ext",
        filter_verb="filter",
        prioritize_verb="prioritize",
        bind_verb="bind",
        weight=20,
        node_cache_capable=True,
        http_timeout=90.5,
        managed_resources=frozenset({"corral.dev/marker", "corral.dev/other"}),
        ignored_resources=frozenset({"corral.dev/other"}),
    )
    assert config.ignored_resources == {"corral.dev/other"}


def test_without_a_timeout_it_is_five_seconds(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("kind: KubeSchedulerConfiguration\nextenders: [{urlPrefix: 'http://x'}]\n")
    (extender,) = SchedulerConfig.read(file).extenders
    assert extender.http_timeout == 5.0


@pytest.mark.parametrize(
    "extenders",
    [
        pytest.param(
            (ExtenderConfig("a", bind_verb="bind"), ExtenderConfig("b", bind_verb="bind")),
            id="two_binders",
        ),
        pytest.param((ExtenderConfig("a", prioritize_verb="p"),), id="scores_without_weight"),
        pytest.param(
            (
                ExtenderConfig("a", managed_resources=frozenset({"x/y"})),
                ExtenderConfig("b", managed_resources=frozenset({"x/y"})),
            ),
            id="a_resource_managed_twice",
        ),
    ],
)
def test_what_the_real_scheduler_refuses_is_refused(extenders: tuple[ExtenderConfig, ...]) -> None:
    with pytest.raises(InvalidConfig):
        SchedulerConfig(extenders=extenders)


@pytest.mark.parametrize(
    ("resource", "text", "expected"),
    [
        ("cpu", "2500m", 2500),
        ("cpu", "0.1", 100),
        ("cpu", "1n", 1),
        ("memory", "16Gi", 16 * 2**30),
        ("memory", "1e3", 1000),
        ("memory", "1.5k", 1500),
        ("nvidia.com/gpu", "8", 8),
        ("memory", "100E", 2**63 - 1),
    ],
)
def test_quantities_are_exact_and_round_up(resource: str, text: str, expected: int) -> None:
    assert amount(resource, text) == expected


@pytest.mark.parametrize("text", ["", "1 ", "one", "1ki", "1e1000", "--1", "NaN"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        parse(text)


async def test_a_run_serves_a_synthetic_cluster_until_told_to_stop(tmp_path: Path) -> None:
    stop, said = asyncio.Event(), list[str]()
    options = RunOptions(nodes=5, load=0.5, kubeconfig=tmp_path / "config")
    running = asyncio.create_task(run(options, say=said.append, stop=stop))
    await until(lambda: running.done() or len(said) == 3)
    url = said[2].removeprefix("Kubernetes API: ")
    async with aiohttp.ClientSession() as session:
        listed = await Client(session, url).get(NODES)
    assert len(listed.body["items"]) == 5
    assert url in (tmp_path / "config").read_text()
    stop.set()
    await running


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(RunOptions(api_listen="0.0.0.0:80"), id="another_interface"),
        pytest.param(RunOptions(snapshot=Path("x"), nodes=3), id="two_clusters"),
        pytest.param(RunOptions(overlay="a"), id="an_overlay_of_nothing"),
        pytest.param(RunOptions(extender="http://x", scheduler_config=Path("y")), id="two_sources"),
    ],
)
async def test_options_that_contradict_each_other_are_refused(options: RunOptions) -> None:
    with pytest.raises(InvalidOptions):
        await run(options, say=lambda text: None)
