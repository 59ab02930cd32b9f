"""A Deployment's rollout over pairs of {kube-scheduler, Corral}, while gangs keep coming.

    with Replicas(plane, folder, tree=old) as replicas, Arrivals(plane) as arrivals:
        replicas.roll(new)          # one after the other, none of the old ones is left
        arrivals.stop()
        arrivals.waits(30)          # seconds of each gang

As the Deployment of deploy/corral.yaml does it: a new pod is ready before an old one ends.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.load import Binds
from tests.cluster import GPU, RACK, Cluster, Objects
from tests.controlplane.pairs import Pair, leader, pair
from tests.controlplane.plane import ControlPlane, token
from tests.corral_process import ROOT
from tests.workloads import asking, behind_gate, members

REPLICAS = 2
ELECTED_SECONDS = 30.0  # a Lease that nobody gave back, and a retry
PODS = 8  # of a gang that comes, two GPUs each
SHAPE: Mapping[str, str | int] = {"cpu": "1", GPU: 2}


@dataclass
class Replicas:
    """As many pairs as deploy/corral.yaml has, under names of their own, while the block lasts."""

    plane: ControlPlane
    folder: Path
    prefix: str
    tree: Path = ROOT
    options: Mapping[str, Any] = field(default_factory=dict)
    _pairs: dict[str, Pair] = field(default_factory=dict)
    _numbers: count[int] = field(default_factory=count)
    _stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        try:
            for _ in range(REPLICAS):
                self.start(self.tree)
            self.leader()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def leader(self) -> Pair:
        """The one that leads, when one does. Raises: TimeoutError."""
        found = self.plane.cluster().wait(
            lambda: leader(self.plane, self._pairs), ELECTED_SECONDS, "a leader"
        )
        return self._pairs[found]

    def all(self) -> list[Pair]:
        return list(self._pairs.values())

    def roll(self, tree: Path) -> None:
        """Replace each by one of these sources, first the one that leads."""
        for name in self.names():
            self.start(tree)
            self.end(name)
        self.leader()

    def names(self) -> list[str]:
        """Of all of them, first the one that leads. Raises: TimeoutError."""
        first = self.leader().name
        return sorted(self._pairs, key=lambda name: name != first)

    def end(self, name: str) -> None:
        """As kubelet ends a pod. Raises: TimeoutError."""
        self._pairs.pop(name).terminate()

    def start(self, tree: Path) -> None:
        """One more, ready. Raises: ProcessEnded; TimeoutError."""
        name = f"{self.prefix}-{next(self._numbers)}"
        started = pair(self.plane, self.folder, name, tree=tree, **self.options)
        made = self._stack.enter_context(started)
        made.corral.wait_ready()
        self._pairs[name] = made


class Arrivals:
    """Gangs of eight, each in a rack, one after the other until `stop` or the block's end."""

    def __init__(self, plane: ControlPlane, every_seconds: float) -> None:
        self.created_at: dict[str, float] = {}  # when its last pod was there; monotonic seconds
        self._plane, self._every_seconds = plane, every_seconds
        self._binds = Binds(plane)
        self._is_over = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="arrivals", daemon=True)

    def __enter__(self) -> Self:
        self._binds.start()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._thread.join()
        self._binds.stop()

    def stop(self) -> None:
        """No more of them. Raises: what kept one from being created."""
        self._is_over.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def waits(self, seconds: float) -> dict[str, float]:
        """Of each gang so far, from its last pod's creation to its last binding, in seconds.

        Raises: TimeoutError if one is not whole within that time.
        """
        began = dict(self.created_at)
        deadline = time.monotonic() + seconds
        while missing := [name for name in began if not pods_of(name) <= self._binds.at.keys()]:
            if time.monotonic() > deadline:
                raise TimeoutError(f"not whole after {seconds:g} s: {missing}")
            time.sleep(0.05)
        at = self._binds.at
        return {
            name: max(at[pod] for pod in pods_of(name)) - created for name, created in began.items()
        }

    def _run(self) -> None:
        try:
            self._create()
        except BaseException as error:
            self._failure = error

    def _create(self) -> None:
        with Cluster(self._plane.url, token("admin"), self._plane.ca) as cluster:
            for number in count():
                name = f"load{number}"
                cluster.create_all(gated(name, PODS, SHAPE))
                self.created_at[name] = time.monotonic()
                if self._is_over.wait(self._every_seconds):
                    return


def pods_of(gang: str, pods: int = PODS) -> set[str]:
    """The names of its pods."""
    return {f"{gang}-{number}" for number in range(pods)}


def gated(name: str, pods: int, requests: Mapping[str, str | int], **fields: Any) -> Objects:
    """A gang in one rack, as the webhook leaves its pods."""
    made = members(name, pods, requests=requests, annotations=asking(required=RACK), **fields)
    return [behind_gate(one) for one in made]
