"""What a run costs on a control plane: CPU and memory per process, and writes at the API server."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.controlplane.plane import ControlPlane

PROCESSES = ("corral", "kube-scheduler", "kube-apiserver", "etcd")
CORRAL = (sys.executable, "-m", "app")  # what the command `corral` runs

_REQUEST = re.compile(r"apiserver_request_total\{(.*)\}")
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_VERBS = ("POST", "PATCH", "PUT", "DELETE")


@dataclass(frozen=True, slots=True)
class Costs:
    """Counters at one moment: CPU seconds, peak MiB, and writes as "POST pods/binding"."""

    cpu: dict[str, float]
    peak_mib: dict[str, float]
    writes: Counter[str]

    @classmethod
    def now(cls, plane: ControlPlane) -> Costs:
        cpu: dict[str, float] = {}
        peak: dict[str, float] = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                fields = (folder / "stat").read_text().rpartition(") ")[2].split()
                if int(fields[1]) != os.getpid():
                    continue  # no child of ours
                command = (folder / "cmdline").read_text().split("\0")
                status = (folder / "status").read_text()
            except OSError:
                continue  # it ended meanwhile
            is_corral = tuple(command[: len(CORRAL)]) == CORRAL
            name = "corral" if is_corral else Path(command[0]).name
            cpu[name] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            peak[name] = int(status.partition("VmHWM:")[2].split()[0]) / 1024
        return cls(cpu, peak, writes(plane))


def writes(plane: ControlPlane) -> Counter[str]:
    """Writes the API server has taken, leases left out: "PATCH pods", "POST pods/binding" …"""
    found: Counter[str] = Counter()
    for name, value in plane.apiserver_metrics().items():
        match = _REQUEST.fullmatch(name)
        if match is None:
            continue
        labels = dict(_LABEL.findall(match[1]))
        below = f"/{labels['subresource']}" if labels.get("subresource") else ""
        if labels["verb"] in _VERBS and labels["resource"] != "leases":
            found[f"{labels['verb']} {labels['resource']}{below}"] += int(value)
    return found


def corral_counts(url: str) -> Counter[str]:
    """Corral's own counters by name and label, or nothing without a Corral."""
    if not url:
        return Counter()
    text = httpx.get(f"{url}/metrics", timeout=60, trust_env=False).text
    samples = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return Counter({name: int(float(value)) for name, value in samples})
