"""What becomes of pods that have a node: they start, run for a while, succeed or fail."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from app.kube.core.objects import PodRecord
from tests.sim.api import ApiServer
from tests.sim.clock import Clock, History


class Kubelets:
    """All of them. `seconds_of`: how long a pod of this uid runs, None if it is not one of ours.

    While `is_frozen`, nothing ends by itself.
    """

    def __init__(
        self,
        clock: Clock,
        api: ApiServer,
        rng: Random,
        history: History,
        seconds_of: Callable[[str], float | None],
    ) -> None:
        self.is_frozen = False
        self._clock, self._api, self._rng = clock, api, rng
        self._history, self._seconds_of = history, seconds_of
        self._started: dict[str, None] = {}  # uids whose kubelet knows of them
        api.subscribe("Pod", self._pod_changed)

    def _pod_changed(self) -> None:
        change = self._api.changes["Pod"][-1]
        found = change.record
        assert isinstance(found, PodRecord)
        if change.is_deleted or not found.node or found.uid in self._started:
            return
        seconds = self._seconds_of(found.uid)
        if seconds is None:
            return
        self._started[found.uid] = None
        name, uid = found.name, found.uid
        self._clock.after(self._rng.uniform(0.2, 2.0), lambda: self._run(name, uid))
        seconds *= self._rng.uniform(0.9, 1.1)
        self._clock.after(2.0 + seconds, lambda: self.finish(name, uid, "Succeeded"))

    def _run(self, name: str, uid: str) -> None:
        found = self._api.pods.get(name)
        if found is not None and found.uid == uid and found.phase == "Pending":
            self._api.change("Pod", name, phase="Running", health="ready")

    def finish(self, name: str, uid: str, phase: str, *, then_remove: bool = False) -> None:
        """The pod's containers have ended."""
        if self.is_frozen:
            return
        found = self._api.pods.get(name)
        if found is None or found.uid != uid or found.is_finished:
            return
        self._api.end(name, phase)
        if then_remove:
            self._api.remove("Pod", name)

    def thaw(self) -> None:
        """Pods end again, those that were due meanwhile one after another."""
        self.is_frozen = False
        for _, found in sorted(self._api.pods.items()):
            if found.node and not found.is_finished:
                seconds = self._rng.uniform(1.0, 60.0)
                self._clock.after(seconds, partial(self.finish, found.name, found.uid, "Succeeded"))

    def fail(self, found: PodRecord) -> None:
        """A container of the pod ends badly."""
        self._history.say(f"pod {found.name} fails")
        self.finish(found.name, found.uid, "Failed")

    def node_gone(self, node: str) -> None:
        """The pod garbage collector removes what ran on a node that is no more."""

        def collect() -> None:
            if node in self._api.nodes:
                return
            for found in list(self._api.pods.values()):
                if found.node == node:
                    self._api.remove("Pod", found.name)

        self._clock.after(self._rng.uniform(1.0, 10.0), collect)
