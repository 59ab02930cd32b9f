"""A Corral that is killed, cut off and kept busy, on a real control plane, and what is left of it.

    python -m benchmarks.soak [--json] [--seconds 300] [--seed 0] [--kill-seconds 20] [--webhook]

    kube-scheduler ──▶ corral serve ──▶ CutProxy ──▶ kube-apiserver ◀── Chronicle, Unrest

For `--seconds`: gangs come and go, members are lost, nodes flap (benchmarks/unrest.py), Corral is
killed every 20 s, its connections to the API server are cut. With `--webhook` every new pod comes
by the shipped webhook, which is killed and started with it, and a quarter of the gangs are Jobs,
whose pods are born in place. For a third of that again the same
without kills, so that its memory can be watched. Then nothing is broken any more, what is left is
compared with the API server, and `corral audit` says of every gang whether it is where it should
be. Exit code 1 if anything is not as it must be.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import httpx

from benchmarks.costs import corral_counts
from benchmarks.table import Row, show
from benchmarks.unrest import GPUS, NODES_PER_RACK, RACKS, Unrest
from tests.certificates import pair
from tests.cluster import BLOCK, GPU, RACK, pod
from tests.controlplane.chronicle import Chronicle
from tests.controlplane.cut_proxy import CutProxy
from tests.controlplane.plane import ControlPlane, free_ports
from tests.controlplane.webhook import configurations, path_of
from tests.corral_process import BUGS, CorralProcess
from tests.workloads import asking, members

STEP_SECONDS = 0.1
KILL_SECONDS = 20.0
CUT_SECONDS = (3.0, 9.0)
OUTAGE_SECONDS = 2.0  # every third cut lasts so long
PARTIAL_SECONDS = 30.0  # a gang may be bound in part, with room for the rest: kube-scheduler's
# httpTimeout, within which the barrier and the bindings end, and a kill in the middle of it
HEAL_SECONDS = 30.0  # for all that fits to run, once nothing is broken any more
SETTLE_SECONDS = 20.0
MEMORY_FROM_SECONDS = 60.0  # a shorter tail says nothing of memory
GROWTH = 0.05  # of the resident memory, from the middle third of the tail to its last


@dataclass(slots=True)
class Soak:
    """One run. `problems` is empty afterwards, or Corral has a bug."""

    plane: ControlPlane
    corral: CorralProcess
    proxy: CutProxy
    chronicle: Chronicle
    unrest: Unrest
    random: Random
    problems: list[str] = field(default_factory=list)
    kills: int = 0
    cuts: int = 0
    told: Counter[str] = field(default_factory=Counter)  # what all killed Corrals had counted
    resident: list[float] = field(default_factory=list)  # MiB, of the last one
    audited: list[int] = field(default_factory=list)  # gangs, by each `corral audit`
    _cut_at: float = 0.0

    def run(self, seconds: float, kill_seconds: float) -> None:
        """All of it."""
        self.unrest.begin()
        began = time.monotonic()
        kill_at = began + kill_seconds
        while (now := time.monotonic()) < began + seconds:
            if now >= kill_at:
                kill_at = now + kill_seconds
                self._kill()
            self._step(now)
        self._watch_memory(seconds / 3)
        self._heal()
        self._compare()
        self._empty()
        self.problems += self.chronicle.problems

    def _step(self, now: float) -> None:
        self.unrest.step(now)
        if now >= self._cut_at:
            self._cut_at = now + self.random.uniform(*CUT_SECONDS)
            self.cuts += 1
            if self.cuts % 3:
                self.proxy.cut()
            else:
                self.proxy.refuse(OUTAGE_SECONDS)
        time.sleep(STEP_SECONDS)

    def _kill(self) -> None:
        with contextlib.suppress(httpx.HTTPError):  # it may not be up yet
            self.told += corral_counts(self.corral.url)
        self.corral.kill()
        self.kills += 1
        self.corral.start_unready()

    def _watch_memory(self, seconds: float) -> None:
        ends_at = time.monotonic() + seconds
        next_at = 0.0
        while (now := time.monotonic()) < ends_at:
            if now >= next_at:
                next_at = now + 1.0
                self.resident.append(_resident_mib(self.corral.pid))
            self._step(now)
        if seconds >= MEMORY_FROM_SECONDS and self.growth > GROWTH:
            self.problems.append(f"resident memory has grown by {self.growth:.1%} in the tail")

    @property
    def growth(self) -> float:
        """Of the resident memory, from the middle third of the tail to its last."""
        third = len(self.resident) // 3
        if not third:
            return 0.0
        middle, last = self.resident[third : 2 * third], self.resident[2 * third :]
        return statistics.median(last) / statistics.median(middle) - 1

    # -- at the end ----------------------------------------------------------------------------

    def _heal(self) -> None:
        """Nothing is broken any more: whatever fits starts."""
        self.unrest.calm()
        self._wait(self._all_that_fits_runs, HEAL_SECONDS, "all that fits runs")

    def _all_that_fits_runs(self) -> bool:
        self.unrest.complete()
        self.unrest.clock(self.chronicle.gangs(), time.monotonic())
        return not self.unrest.helpable() and self._is_complete()

    def _is_complete(self) -> bool:
        gangs = self.chronicle.gangs()
        return all(len(gangs.get(one.name, [])) == one.size for one in self.unrest.owners)

    def _compare(self) -> None:
        """Corral says of every gang what the API server shows, and holds nothing beside it."""
        self._wait(lambda: self._phases() == self._expected(), SETTLE_SECONDS, "phases as seen")
        whole = {name for name, pods in self.chronicle.gangs().items() if all(p.node for p in pods)}
        self.unrest.end_all_but(whole)
        self._audit()
        self._fill("fill")

    def _audit(self) -> None:
        """Have `corral audit` look at what runs, from the API server alone."""
        command = [sys.executable, "-m", "app", "audit", "-A", "-o", "json"]
        options = ["--kubeconfig", str(self.plane.kubeconfig()), "--levels", f"{BLOCK},{RACK}"]
        ran = subprocess.run(
            [*command, *options], capture_output=True, text=True, timeout=60.0, check=False
        )
        if ran.returncode not in (0, 1):
            self.problems.append(f"corral audit ends with {ran.returncode}: {ran.stderr}")
            return
        verdicts = json.loads(ran.stdout)["verdicts"]
        self.audited.append(len({each["name"] for each in verdicts}))
        self.problems += [
            f"corral audit: gang {each['name']}, {each['constraint']}: {each['text']}"
            for each in verdicts
            if each["verdict"] != "MATCH"
        ]

    def _expected(self) -> Counter[str]:
        gangs = self.chronicle.gangs().values()
        whole = sum(all(one.node for one in pods) for pods in gangs)
        return +Counter({"running": whole, "waiting": len(gangs) - whole})

    def _phases(self) -> Counter[str]:
        counts = corral_counts(self.corral.url)
        prefix = 'corral_gangs{phase="'
        return +Counter(
            {key[len(prefix) : -2]: n for key, n in counts.items() if key.startswith(prefix)}
        )

    def _fill(self, name: str) -> None:
        """Places an ordinary pod on every node that is free; one that is held keeps one away."""
        free = [node for nodes in self.unrest.free_nodes().values() for node in nodes]
        for at, _ in enumerate(free):
            self.plane.cluster().create(pod(f"{name}-{at}", requests={GPU: GPUS}))
        self._wait(
            lambda: self._bound(name) == len(free),
            SETTLE_SECONDS,
            f"{len(free)} ordinary pods on {len(free)} free nodes",
        )

    def _bound(self, name: str) -> int:
        """How many pods whose names begin so run."""
        return sum(bool(one.node) and one.name.startswith(name) for one in self.chronicle.pods())

    def _empty(self) -> None:
        """Nothing is left of pods once they are deleted: every rack takes a gang of its size."""
        cluster = self.plane.cluster()
        self.unrest.end_all_but(())
        cluster.delete_all("Pod")
        self._wait(lambda: not self.chronicle.pods(), SETTLE_SECONDS, "no pod left")
        self._wait(lambda: not self._phases(), SETTLE_SECONDS, "no gang left")
        for rack in range(RACKS):
            fields = {"requests": {GPU: GPUS}, "annotations": asking(required=RACK)}
            cluster.create_all(members(f"rack{rack}", NODES_PER_RACK, **fields))  # type: ignore[arg-type]
        self._wait(
            lambda: self._phases() == Counter({"running": RACKS}), SETTLE_SECONDS, "racks full"
        )
        self._audit()
        cluster.delete_all("Pod")
        self._wait(lambda: not self._phases(), SETTLE_SECONDS, "no gang left at the end")
        self.told += corral_counts(self.corral.url)
        if self.corral.metric("corral_held_binds"):
            self.problems.append("bindings are held at the end")
        for name, value in self.told.items():
            if value and name.startswith(BUGS):
                self.problems.append(f"{name} is {value}")
        if self.unrest.counts.longest_partial > PARTIAL_SECONDS:
            self.problems.append(
                f"a gang was bound in part for {self.unrest.counts.longest_partial:.1f} s"
            )

    def _wait(self, condition: Callable[[], bool], seconds: float, what: str) -> None:
        """Returns when it holds; a problem if it does not in time."""
        deadline = time.monotonic() + seconds
        while not self._holds(condition):
            if time.monotonic() >= deadline:
                found = f"Corral says {dict(self._phases())}, the API {dict(self._expected())}"
                self.problems.append(f"after {seconds:g} s not: {what}; {found}")
                return
            time.sleep(STEP_SECONDS)

    def _holds(self, condition: Callable[[], bool]) -> bool:
        try:
            return condition()
        except httpx.HTTPError:
            return False  # Corral is just starting


def soak(
    plane: ControlPlane,
    folder: Path,
    seconds: float,
    seed: int,
    kill_seconds: float = KILL_SECONDS,
    *,
    has_webhook: bool = False,
) -> Soak:
    """Runs it on an empty control plane; the result has what was seen."""
    with ExitStack() as stack:
        proxy = stack.enter_context(CutProxy(plane.url))
        kubeconfig = proxy.kubeconfig(plane.kubeconfig("corral"))
        settings: dict[str, Any] = {"audit_seconds": 1.0}
        if has_webhook:
            certificate, key = pair("apiserver").write(folder)
            (port,) = free_ports(1)
            settings |= {"admission_cert": str(certificate), "admission_key": str(key)}
            settings |= {"admission_listen": f"127.0.0.1:{port}", "born_seconds": 10}
        corral = stack.enter_context(CorralProcess(kubeconfig, folder, **settings))
        if has_webhook:
            for each in configurations(f"https://{settings['admission_listen']}", settings):
                made = path_of(each["kind"])
                plane.cluster().request("POST", made, body=each)
                one = f"{made}/{each['metadata']['name']}"
                stack.callback(plane.cluster().request, "DELETE", one)
            stack.enter_context(plane.granted("corral-suspend"))
            stack.enter_context(plane.controller("job-controller"))
        plane.start_scheduler(extender=corral.url)
        stack.callback(plane.stop_scheduler)
        chronicle = stack.enter_context(Chronicle(plane, GPUS))
        random = Random(seed)
        unrest = Unrest(plane.cluster(), chronicle, random, has_jobs=has_webhook)
        run = Soak(plane, corral, proxy, chronicle, unrest, random)
        run.run(seconds, kill_seconds)
        return run


def rows_of(run: Soak) -> Iterator[Row]:
    counts, nodes = run.unrest.counts, RACKS * NODES_PER_RACK
    for case, value, unit, target in (
        ("gangs started", counts.started, "gangs", ""),
        ("pods bound", run.chronicle.bindings, "pods", ""),
        ("pods born in place", run.told["corral_pods_born_total"], "pods", ""),
        ("members lost", counts.members_lost, "pods", ""),
        ("nodes lost", counts.nodes_lost, "nodes", ""),
        ("Corral killed", run.kills, "times", ""),
        ("connections cut", run.proxy.connections_cut, "connections", ""),
        ("longest bound in part with room", counts.longest_partial, "s", "<= 30 s"),
        ("longest unstarted with room", counts.longest_start, "s", ""),
        ("peak RSS in the tail", max(run.resident, default=0.0), "MiB", ""),
        ("growth of RSS in the tail", 100 * run.growth, "%", "<= 5 %"),
        ("gangs looked at by corral audit", sum(run.audited), "gangs", ""),
        ("problems", len(run.problems), "", "0"),
    ):
        yield Row("soak", case, nodes, float(value), unit, target=target)


def _resident_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    parser.add_argument("--seconds", type=float, default=300.0, help="with kills; a third more")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kill-seconds", type=float, default=KILL_SECONDS, help="between kills")
    parser.add_argument("--webhook", action="store_true", help="new pods come by the webhook")
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="corral-soak-") as folder,
        ControlPlane(Path(folder)) as plane,
    ):
        run = soak(
            plane,
            Path(folder),
            asked.seconds,
            asked.seed,
            asked.kill_seconds,
            has_webhook=asked.webhook,
        )
    show(list(rows_of(run)), as_json=asked.json)
    for problem in run.problems:
        print(problem, file=sys.stderr)
    sys.exit(1 if run.problems else 0)


if __name__ == "__main__":
    main()
