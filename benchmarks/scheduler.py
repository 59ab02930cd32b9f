"""Gangs through a real kube-scheduler with Corral, beside the stock one that ignores gangs.

    python -m benchmarks.scheduler [--json] [--workloads W1,W2 …] [--runs 1] [--set NAME=VALUE]
                                   [--profile]

Every case has a fresh etcd, kube-apiserver and kube-scheduler (tests/controlplane builds them).
Nodes have 64 cpu, 512Gi, 110 pods and 8 GPUs; 16 nodes to a rack, 16 racks to a block.

    8 connections ──POST pods──▶ kube-apiserver ◀── kube-scheduler ──▶ corral serve
                                       └──watch of bound pods──▶ first and last bind

pods/s is bound pods over first POST → last bind seen on the watch, so creation is included, on the
same cores. Members are pods of a Kueue pod group.

    webhook     Corral's webhook, as it is shipped, gates and checks each pod
    born        the same, and gangs are born in place: stored narrowed, without a gate; bare pods
                are where their group says fast admission
    policies    no webhook: the policies of deploy/policies.yaml, in kube-apiserver, gate and check
    gated       no webhook: the pods come with our gate
    gateless    no webhook: a pod that comes before its gang is complete is rejected once and woken
    stock       the stock scheduler with its default sampling in a cluster without anything of
                Corral's, same pods without gates: the baseline

W5 to W7 are one gang that takes longer to pass kube-scheduler than a /bind is held. What Corral's
work for one of its pods costs is set beside as many pods in gangs of 64. J2 is W2 as users have it:
250 Jobs, of which Kubernetes' own Job controller makes the pods, with more requests a second than
it may make as it comes. With `--profile` py-spy says which part of Corral takes how much of its
CPU: the innermost frame that is of a part decides, so that a part has the libraries that it calls.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import yaml

from benchmarks.costs import CORRAL, PROCESSES, Costs, corral_counts
from benchmarks.load import NODES, PODS, Binds, create
from benchmarks.sampled import PARTS, sampled
from benchmarks.table import Row, show
from benchmarks.workloads import WORKLOADS, Workload, body_of, nodes
from tests.certificates import pair
from tests.cluster import BLOCK, RACK, pod
from tests.controlplane.admission import wait_effective
from tests.controlplane.plane import (
    SCHEDULER_CONFIG,
    ControlPlane,
    free_ports,
    shipped_rights,
    wait_ready,
)
from tests.controlplane.policies import applied
from tests.controlplane.process import Process
from tests.controlplane.webhook import configurations, path_of

CLIENT = {"qps": 2000, "burst": 4000}  # of kube-scheduler: far above what it reaches here
SETTLE_SECONDS = 30.0  # for the first, ordinary pod to be bound

Mode = Literal[
    "webhook", "born", "policies", "gated", "gateless", "stock", "stock at 100 %", "in gangs of 64"
]
WEBHOOK: tuple[Mode, ...] = ("webhook", "born")
BORN_SECONDS = 10.0
Settings = dict[str, object]

Key = tuple[str, str]  # name, unit
Figures = dict[Key, float]
"""The values of one run."""

ALL_BOUND = ("last pod created to all bound", "s")
ALL_STARTED = ("first Job created to all bound", "s")
RATE = ("bound per second", "pods/s")
SPREAD, WIDEST = ("gang spread, median", "s"), ("gang spread, largest", "s")
WHOLE = ("gangs whole in one rack", "gangs")
CREATED = ("created per second", "pods/s")
FILTERED = ("/filter answers", "per pod")
CORRAL_CPU = ("CPU of corral", "ms per pod")
UNBOUND = ("pods left unbound", "pods")
OF_GANGS = (FILTERED, CORRAL_CPU)  # which the stock scheduler has no figures of
SMALL = 64  # pods of a gang that is no large one


JOBS = "/apis/batch/v1/namespaces/default/jobs"
JOB_CONTROLLER = ("--kube-api-qps=2000", "--kube-api-burst=4000", "--concurrent-job-syncs=16")
USUAL: tuple[Mode, ...] = ("stock", "webhook", "born", "policies", "gated")
MODES: dict[str, tuple[Mode, ...]] = {
    "W2": (*USUAL, "gateless", "stock at 100 %"),
    "W5": ("stock", "gated", "in gangs of 64"),
    "W6": ("stock", "gated", "in gangs of 64"),
    "W7": ("stock", "gateless"),
    "J2": ("stock", "webhook", "born", "policies"),
}

# The figures to reach, by case and quantity.
TARGETS = {
    ("W1 born", ALL_BOUND): "<= 0.9 s",
    ("W1 born", SPREAD): "<= 0.4 s",
    **{(f"{name} born", RATE): ">= 0.8x" for name in ("W2", "W3", "W4", "J2")},
    ("W4 born", WIDEST): "<= 0.2 s",
    **{
        (f"{name} {mode}", WHOLE): str(WORKLOADS[name].gangs)
        for name in ("W2", "W3", "W4", "J2")
        for mode in ("webhook", "born", "policies", "gated")
    },
    ("W2 gateless", WHOLE): str(WORKLOADS["W2"].gangs),
    ("W5 gated", ALL_BOUND): "<= 15 s",
    ("W6 gated", ALL_BOUND): "<= 60 s",
    **{(f"{name} gated", FILTERED): "<= 2.5" for name in ("W5", "W6")},
    **{(f"{name} gated", CORRAL_CPU): "<= 1.5x" for name in ("W5", "W6")},
    **{(case, UNBOUND): "0" for case in ("W5 gated", "W6 gated", "W7 gateless")},
}
GATELESS_TARGET = ">= 0.4x"


# -- one case --------------------------------------------------------------------------------------


def run(
    workload: Workload, mode: Mode, settings: Settings | None = None, *, is_profiled: bool = False
) -> Figures:
    """One workload on a fresh control plane. `settings`: Corral's own, beside the levels."""
    if mode == "in gangs of 64":
        workload = dataclasses.replace(workload, gangs=workload.pods // SMALL, pods_per_gang=SMALL)
    with tempfile.TemporaryDirectory(prefix="corral-bench-") as folder, ExitStack() as stack:
        has_corral = not mode.startswith("stock")
        manifests = None if has_corral else WITHOUT_CORRAL
        plane = stack.enter_context(ControlPlane(Path(folder), manifests=manifests))
        create(plane, NODES, (body_of(one) for one in nodes(workload.nodes)))
        served = corral(plane, stack, mode, settings or {}) if has_corral else NOT_SERVED
        extender = served.url
        client = {"kubeconfig": str(plane.kubeconfig("corral-scheduler")), **CLIENT}
        percentage = 100 if mode == "stock at 100 %" else 0
        stock = [{"schedulerName": "corral", "percentageOfNodesToScore": percentage}]
        plane.start_scheduler(
            SCHEDULER_CONFIG,
            extender or None,
            clientConnection=client,
            **({} if has_corral else {"profiles": stock}),
        )
        stack.callback(plane.stop_scheduler)
        binds = Binds(plane)
        stack.callback(binds.stop)
        binds.start()
        settle(plane, binds)
        costs, counts = Costs.now(plane), corral_counts(extender)
        is_gated = mode in ("gated", "in gangs of 64")
        is_sampled = is_profiled and has_corral
        with sampled(served.pid) if is_sampled else nullcontext(Counter[str]()) as samples:
            if workload.as_jobs:
                stack.enter_context(plane.controller("job-controller", *JOB_CONTROLLER))
                began, created = create(plane, JOBS, workload.job_bodies())
            else:
                bodies = workload.pod_bodies(is_gated=is_gated, is_fast=mode == "born")
                began, created = create(plane, PODS, bodies)
            binds.wait(workload.pods, workload.seconds)
        counts = corral_counts(extender) - counts
        return {
            **_times(workload, binds, began, created),
            **_spent(workload, costs, Costs.now(plane), counts),
            **_shares(samples),
        }


def creation_limit(workload: Workload) -> Figures:
    """How fast the load generator creates the same pods while no scheduler runs."""
    with (
        tempfile.TemporaryDirectory(prefix="corral-bench-") as folder,
        ControlPlane(Path(folder), manifests=WITHOUT_CORRAL) as plane,
    ):
        began, created = create(plane, PODS, workload.pod_bodies(is_gated=False))
        return {("created per second, no scheduler", "pods/s"): workload.pods / (created - began)}


@dataclass(frozen=True, slots=True)
class Served:
    """A `corral serve` that runs: where kube-scheduler reaches it, and its process."""

    url: str
    pid: int


NOT_SERVED = Served("", 0)
WITHOUT_CORRAL = tuple(
    each for each in shipped_rights() if not each["kind"].startswith("ValidatingAdmissionPolicy")
)
"""What a cluster has whose API server asks no policy about its pods."""


def corral(plane: ControlPlane, stack: ExitStack, mode: Mode, settings: Settings) -> Served:
    """Starts `corral serve` as its own process."""
    port, admission = free_ports(2)
    file = plane.folder / "corral.yaml"
    if mode in WEBHOOK:
        certificate, key = pair("apiserver").write(plane.folder, "webhook")
        settings = {
            "born_seconds": BORN_SECONDS if mode == "born" else 0,
            "admission_listen": f"127.0.0.1:{admission}",
            "admission_cert": str(certificate),
            "admission_key": str(key),
            **settings,
        }
    file.write_text(yaml.safe_dump(settings), encoding="utf-8")
    command = [
        *CORRAL,
        "serve",
        f"--kubeconfig={plane.kubeconfig('corral')}",
        f"--extender-listen=127.0.0.1:{port}",
        f"--levels={BLOCK},{RACK}",
        f"--settings={file}",
    ]
    process = Process(command, plane.folder / "corral.log")
    stack.callback(process.stop)
    url = f"http://127.0.0.1:{port}"
    wait_ready(process, f"{url}/readyz")
    if mode in WEBHOOK:
        _install_webhook(plane, f"https://127.0.0.1:{admission}")
    elif mode == "policies":
        stack.enter_context(applied(plane))
    return Served(url, process.pid)


def _install_webhook(plane: ControlPlane, url: str) -> None:
    """Has kube-apiserver call it, and waits until it does."""
    cluster = plane.cluster()
    for each in configurations(url):
        cluster.request("POST", path_of(each["kind"]), body=each)
    wait_effective(cluster)


def settle(plane: ControlPlane, binds: Binds) -> None:
    """Has one ordinary pod bound and deleted: then all caches are filled, all connections open."""
    create(plane, PODS, [body_of(pod("first"))])
    binds.wait(1, SETTLE_SECONDS)
    if "first" not in binds.at:
        last = plane.scheduler_log[-2000:]
        raise TimeoutError(f"no pod was bound in {SETTLE_SECONDS:g} s: {last}")
    plane.cluster().delete("Pod", "first")
    time.sleep(1.0)  # kube-scheduler and Corral hear of it; what they do beside it is over
    binds.at.clear()


def _times(workload: Workload, binds: Binds, began: float, created: float) -> Figures:
    at = dict(binds.at)
    last = max(at.values(), default=created)
    members: dict[str, list[str]] = {}
    for name in at:
        members.setdefault(name.partition("-")[0], []).append(name)
    whole = [names for names in members.values() if len(names) == workload.pods_per_gang]
    spreads = [max(at[name] for name in names) - min(at[name] for name in names) for names in whole]
    racks = [{binds.node_of[name].rpartition("-")[0] for name in names} for names in whole]
    figures = {
        **(
            {ALL_STARTED: last - began}
            if workload.as_jobs
            else {ALL_BOUND: last - created, CREATED: workload.pods / (created - began)}
        ),
        RATE: len(at) / (last - began),
        UNBOUND: float(workload.pods - len(at)),
        ("gangs bound in part", "gangs"): float(len(members) - len(whole)),
    }
    if spreads:
        figures[SPREAD], figures[WIDEST] = statistics.median(spreads), max(spreads)
    if workload.in_one_rack:
        figures[WHOLE] = float(sum(len(of_gang) == 1 for of_gang in racks))
    return figures


def _spent(workload: Workload, before: Costs, after: Costs, counts: Counter[str]) -> Figures:
    figures: Figures = {}
    for name in PROCESSES:
        if name in after.cpu:
            figures[f"CPU of {name}", "s"] = after.cpu[name] - before.cpu[name]
            figures[f"peak RSS of {name}", "MiB"] = after.peak_mib[name]
    if "corral" in after.cpu:
        figures[CORRAL_CPU] = 1000 * figures["CPU of corral", "s"] / workload.pods
    written = after.writes - before.writes
    for said, count in (
        ("patches of pods", written["PATCH pods"]),
        ("bindings", written["POST pods/binding"]),
        ("status and events", written.total() - sum(written[each] for each in _OF_PODS)),
    ):
        figures[said, "per pod"] = count / workload.pods
    for key, name in (
        (FILTERED, "corral_filter_answers_total"),
        (("rejected in /filter", "per pod"), 'corral_filter_answers_total{answer="rejected"}'),
        (("woken", "per pod"), "corral_wakes_total"),
    ):
        if counts:
            found = sum(value for label, value in counts.items() if label.startswith(name))
            figures[key] = found / workload.pods
    return figures


def _shares(samples: Counter[str]) -> Figures:
    """What part of Corral takes how much of its CPU."""
    every = samples.total()
    return {
        (f"CPU of corral, {part}", "%"): 100 * samples[part] / every
        for part in dict.fromkeys(PARTS.values())
        if every
    }


_OF_PODS = ("POST pods", "PATCH pods", "POST pods/binding")


# -- the table -------------------------------------------------------------------------------------


def rows_of(case: str, measured: list[Figures], stock: list[Figures]) -> Iterator[Row]:
    """Medians of all runs of one case, the stock scheduler's beside them."""
    for key in measured[0]:
        value = statistics.median(run[key] for run in measured if key in run)
        known = [run[key] for run in stock if key in run]
        baseline = statistics.median(known) if known else None
        # How a scheduler that knows no gangs spreads them is no yardstick.
        if key in (SPREAD, WIDEST, WHOLE):
            baseline = None
        yield _row(case, key, value, baseline, TARGETS.get((case, key), ""))


def _row(case: str, key: Key, value: float, baseline: float | None, target: str = "") -> Row:
    figure, unit = key
    return Row(
        benchmark="scheduler",
        case=f"{case}: {figure}",
        nodes=WORKLOADS[case.split()[0]].nodes,
        value=value,
        unit=unit,
        baseline=baseline,
        ratio=value / baseline if baseline else None,
        target=target,
    )


def measure(
    name: str, runs: int, settings: Settings, *, is_profiled: bool = False
) -> Iterator[Row]:
    """All rows of one workload; its cases take turns."""
    workload = WORKLOADS[name]
    modes = MODES.get(name, USUAL)
    found: dict[Mode, list[Figures]] = {mode: [] for mode in modes}
    for _ in range(runs):
        for mode in modes:
            found[mode].append(run(workload, mode, settings, is_profiled=is_profiled))
    for key, value in () if workload.as_jobs else creation_limit(workload).items():
        yield _row(name, key, value, None)
    small = [{key: run[key] for key in OF_GANGS} for run in found.get("in gangs of 64", ())]
    for mode in (*WEBHOOK, "policies", "gated", "gateless"):
        if mode in modes:
            yield from rows_of(f"{name} {mode}", found[mode], [*found["stock"], *small])
    if name == "W2":
        value, baseline = (
            statistics.median(run[RATE] for run in found[mode])
            for mode in ("gateless", "stock at 100 %")
        )
        beside = (f"{RATE[0]}, beside stock at 100 %", RATE[1])
        yield _row(f"{name} gateless", beside, value, baseline, GATELESS_TARGET)


def main() -> None:
    """Measures every workload asked for and prints a table of each, or one list of all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    parser.add_argument("--workloads", default=",".join(WORKLOADS), help="names, with commas")
    parser.add_argument("--runs", type=int, default=1, help="runs of each case; medians are shown")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of Corral"
    )
    parser.add_argument("--profile", action="store_true", help="sample Corral's stack as it works")
    arguments = parser.parse_args()
    names = arguments.workloads.split(",")
    if unknown := sorted(set(names) - WORKLOADS.keys()):
        parser.error(f"no workload {unknown[0]!r}; there are {', '.join(WORKLOADS)}")
    given = (setting.partition("=") for setting in arguments.set)
    settings = {setting: yaml.safe_load(value) for setting, _, value in given}
    rows = list[Row]()
    for name in names:
        found = list(measure(name, arguments.runs, settings, is_profiled=arguments.profile))
        if not arguments.json:
            show(found, as_json=False)
            sys.stdout.flush()  # the next one takes minutes
        rows += found
    if arguments.json:
        show(rows, as_json=True)


if __name__ == "__main__":
    main()
