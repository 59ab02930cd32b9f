"""The gangs that `corral demo` creates: mixed sizes and constraints, as their owners write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

BLOCK = "cloud.provider.com/topology-block"
RACK = "cloud.provider.com/topology-rack"
KUEUE = "kueue.x-k8s.io/"
GPU = "nvidia.com/gpu"
NODES_PER_RACK, RACKS_PER_BLOCK = 16, 8  # for recorded clusters without topology labels

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Showpiece:
    """One gang: its pods and its topology request, in Kueue's annotations."""

    name: str
    pods: int
    gpus: int
    cpu: int
    mode: str  # required, preferred or unconstrained
    level: str = ""
    is_job: bool = False

    @property
    def constraint(self) -> str:
        """For the table."""
        return f"{self.mode} {self.level.rpartition('-')[2]}".rstrip()

    def objects(self, scheduler: str) -> list[Object]:
        """A Job, or the pods of a pod group."""
        if self.is_job:
            return [self._job(scheduler)]
        annotations = {
            KUEUE + "pod-group-name": self.name,
            KUEUE + "pod-group-total-count": str(self.pods),
        }
        return [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": f"{self.name}-{index}",
                    "namespace": "default",
                    "labels": self._labels(),
                    "annotations": annotations | self._topology(),
                },
                "spec": self._spec(scheduler),
            }
            for index in range(self.pods)
        ]

    def _job(self, scheduler: str) -> Object:
        template = {
            "metadata": {"labels": self._labels(), "annotations": self._topology()},
            "spec": self._spec(scheduler) | {"restartPolicy": "Never"},
        }
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": self.name, "namespace": "default"},
            "spec": {
                "parallelism": self.pods,
                "completions": self.pods,
                "completionMode": "Indexed",
                "template": template,
            },
        }

    def _labels(self) -> Mapping[str, str]:
        return {"corral-demo": self.name}

    def _topology(self) -> dict[str, str]:
        return {f"{KUEUE}podset-{self.mode}-topology": self.level or "true"}

    def _spec(self, scheduler: str) -> Object:
        amounts = {"cpu": str(self.cpu)} | ({GPU: str(self.gpus)} if self.gpus else {})
        container = {
            "name": "work",
            "image": "example.invalid/work",
            "resources": {"requests": amounts, "limits": amounts},
        }
        return {"schedulerName": scheduler, "containers": [container]}


TOO_BIG = Showpiece("too-big", 20, 8, 16, "required", RACK, is_job=True)
"""Larger than any rack: the demo shows its message, and what gets it bound."""

SHOWPIECES: Sequence[Showpiece] = (
    Showpiece("train-a", 4, 1, 4, "required", RACK),
    Showpiece("train-b", 8, 1, 4, "required", RACK),
    Showpiece("train-c", 8, 2, 8, "required", RACK),
    Showpiece("train-d", 4, 8, 16, "required", RACK),
    Showpiece("train-e", 8, 8, 16, "required", BLOCK),
    Showpiece("pretrain", 32, 8, 16, "preferred", RACK),
    Showpiece("tune", 8, 4, 8, "required", RACK, is_job=True),
    Showpiece("batch", 16, 1, 4, "required", BLOCK, is_job=True),
    Showpiece("infer", 24, 1, 2, "preferred", RACK),
    Showpiece("search", 64, 1, 2, "preferred", BLOCK),
    Showpiece("mpi", 16, 0, 8, "unconstrained"),
    Showpiece("sweep", 100, 0, 1, "unconstrained"),
    TOO_BIG,
)
"""Twelve that fit, and one that does not."""

PLANNED = Showpiece("planned", 4, 1, 1, "required", RACK)
"""A gang whose scheduler does not run: it is planned but never bound, so /filter can be tried."""


def with_levels(snapshot: Object) -> Mapping[str, tuple[str, str]] | None:
    """Racks and blocks by name order, for a recorded cluster without topology labels; else None."""
    nodes: Iterable[Object] = snapshot["nodes"]
    if any(RACK in (node["metadata"].get("labels") or {}) for node in nodes):
        return None
    names = sorted(node["metadata"]["name"] for node in nodes)
    racks = [place // NODES_PER_RACK for place in range(len(names))]
    return {
        name: (f"block-{rack // RACKS_PER_BLOCK}", f"rack-{rack}")
        for name, rack in zip(names, racks, strict=True)
    }
