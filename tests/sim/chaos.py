"""Faults at random times, each by its own rate; `heal` ends them all.

A seed draws which kinds of fault it has at all: histories with few kinds and many of each find
other bugs than those with a little of everything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from app.kube.core.objects import NodeRecord, PodRecord, Taint
from tests.records import GPU, RACK
from tests.sim.api import ApiServer
from tests.sim.clock import Clock, History
from tests.sim.corral import Corral
from tests.sim.faults import Hits
from tests.sim.kinds import MAINTENANCE, POOL, Workload
from tests.sim.node_filters import counts, is_open
from tests.sim.workloads import Workloads

if TYPE_CHECKING:
    from tests.sim.world import World

LONG_LAGS = ((0.2, 1.0), (1.0, 5.0), (5.0, 30.0))
TAINT = Taint(MAINTENANCE, "", "NoSchedule")


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of fault: how often per virtual minute where a seed has it, and what it does."""

    per_minute: float
    act: Callable[[Chaos], None]


class Chaos:
    """The faults of one world, until it is healed."""

    def __init__(
        self,
        world: World,
        clock: Clock,
        api: ApiServer,
        rng: Random,
        history: History,
        hits: Hits,
        workloads: Workloads,
    ) -> None:
        self.world, self.clock, self.api, self.rng = world, clock, api, rng
        self.history, self.hits, self.workloads = history, hits, workloads
        self.is_healed = False
        self.node_changed_at: dict[str, float] = {}
        self._sound: dict[str, NodeRecord] = dict(api.nodes)  # as they are when all is well
        self.machines: Mapping[str, NodeRecord] = {}
        # ^ the same of nodes that an autoscaler has made; one that goes does not come back

    def begin(self, kinds: Mapping[str, Kind], intensity: float) -> None:
        """Have each of these kinds happen from now on."""
        for kind in kinds.values():
            self._plan(kind, intensity)

    def _plan(self, kind: Kind, intensity: float) -> None:
        def happen() -> None:
            if not self.is_healed:
                kind.act(self)
                self._plan(kind, intensity)

        self.clock.after(self.rng.expovariate(kind.per_minute * intensity / 60.0), happen)

    def heal(self) -> None:
        """No more faults; nodes are what they were."""
        self.is_healed = True
        self.history.say("healed")
        for name in sorted({*self._sound, *self.machines}):
            self._restore(name)

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        self.clock.after(seconds, lambda: None if self.is_healed else action())

    # -- nodes (F11) ---------------------------------------------------------------------------

    def _node(self) -> NodeRecord | None:
        names = sorted(self.api.nodes)
        # Rather one that is in use: there a fault matters.
        used = sorted({found.node for found in self.api.pods.values() if found.node} & set(names))
        held = sorted(
            {
                node
                for corral in self.world.corrals
                if corral.life is not None
                for node in corral.engine.books.held_on
            }
            & set(names)
        )
        some = held or used or names
        if self.rng.random() < 0.4:
            some = names
        return self.api.nodes[self.rng.choice(some)] if some else None

    def _change_node(self, name: str, **fields: object) -> None:
        if name in self.api.nodes:
            self.node_changed_at[name] = self.clock.now
            self.history.say(f"node {name}: {fields}")
            self.api.change("Node", name, **fields)

    def _restore(self, name: str) -> None:
        sound = self._sound.get(name) or self.machines.get(name)
        if sound is None:
            return  # its machine has been given back
        self.node_changed_at[name] = self.clock.now
        self.history.say(f"node {name}: as it was")
        if name in self.api.nodes:
            self.api.change(
                "Node",
                name,
                is_ready=sound.is_ready,
                is_unschedulable=sound.is_unschedulable,
                taints=sound.taints,
                labels=sound.labels,
                allocatable=sound.allocatable,
            )
        else:
            self.api.create("Node", sound)

    def _node_fault(self, fault: str, seconds: float, **fields: object) -> None:
        node = self._node()
        if node is not None:
            self.hits.hit(fault)
            self._change_node(node.name, **fields)
            self._later(seconds, lambda: self._restore(node.name))

    def not_ready(self) -> None:
        self._node_fault("F11 not ready", self.rng.uniform(5, 40), is_ready=False)

    def cordon(self) -> None:
        self._node_fault("F11 cordon", self.rng.uniform(5, 40), is_unschedulable=True)

    def taint(self) -> None:
        self._node_fault("F11 taint", self.rng.uniform(5, 40), taints=(TAINT,))

    def flap(self) -> None:
        node = self._node()
        if node is None:
            return
        self.hits.hit("F11 flap")
        at = 0.0
        for _ in range(self.rng.randint(2, 6)):
            self._later(at, lambda: self._change_node(node.name, is_ready=False))
            at += self.rng.uniform(0.3, 2.0)
            self._later(at, lambda: self._change_node(node.name, is_ready=True))
            at += self.rng.uniform(0.3, 2.0)

    def shrink(self) -> None:
        node = self._node()
        if node is None:
            return
        gpus = dict(node.allocatable).get(GPU, 0)
        if gpus:
            self.hits.hit("F11 shrink")
            less = {**dict(node.allocatable), GPU: self.rng.randint(0, gpus - 1)}
            self._change_node(node.name, allocatable=tuple(sorted(less.items())))
            self._later(self.rng.uniform(5, 40), lambda: self._restore(node.name))

    def relabel(self) -> None:
        node = self._node()
        others = sorted({each.labels.get(RACK, "") for each in self.api.nodes.values()} | {"r9"})
        if node is not None:
            labels = {**node.labels, RACK: self.rng.choice(others)}
            if self.rng.random() < 0.3:
                labels[POOL] = self.rng.choice(("a", "b"))
            self._node_fault_on(node, "F11 label", labels=labels)

    def _node_fault_on(self, node: NodeRecord, fault: str, **fields: object) -> None:
        self.hits.hit(fault)
        self._change_node(node.name, **fields)
        self._later(self.rng.uniform(5, 40), lambda: self._restore(node.name))

    def move_node(self, name: str, seconds: float, labels: Mapping[str, str]) -> None:
        """Have a node in other domains for so long."""
        if not self.is_healed and name in self.api.nodes:
            self.hits.hit("F11 label")
            self._change_node(name, labels=labels)
            self._later(seconds, lambda: self._restore(name))

    def delete_node(self) -> None:
        node = self._node()
        if node is not None and len(self.api.nodes) > 2:
            self.hits.hit("F11 deleted")
            self._delete_node(node.name)
            self._later(self.rng.uniform(0.5, 30), lambda: self._restore(node.name))

    def _delete_node(self, name: str) -> None:
        self.node_changed_at[name] = self.clock.now
        self.api.remove("Node", name)
        self.workloads.kubelets.node_gone(name)

    def lose_node(self, name: str, seconds: float, *, is_gone: bool) -> None:
        """Have a node gone, or not ready, for so long."""
        if self.is_healed or name not in self.api.nodes:
            return
        if is_gone:
            self._delete_node(name)
        else:
            self._change_node(name, is_ready=False)
        self._later(seconds, lambda: self._restore(name))

    # -- pods and gangs (F12, F4) --------------------------------------------------------------

    def _pod(self, *, bound: bool | None = None) -> tuple[PodRecord, Workload] | None:
        found = [
            (each, self.workloads.of_uid[each.uid])
            for _, each in sorted(self.api.pods.items())
            if each.uid in self.workloads.of_uid
            and not each.is_finished
            and not each.is_terminating
            and (bound is None or bool(each.node) == bound)
        ]
        return self.rng.choice(found) if found else None

    def _workload(self, kind: str = "") -> Workload | None:
        found = [
            each
            for each in self.workloads.all.values()
            if not each.is_over and (each.kind == kind if kind else each.is_gang)
        ]
        return self.rng.choice(found) if found else None

    def delete_pod(self) -> None:
        chosen = self._pod()
        if chosen is not None:
            found = chosen[0]
            self.hits.hit("F12 gated deleted" if found.gates else "F12 deleted")
            self.history.say(f"somebody deletes {found.name}")
            self.workloads.delete_pod(found)

    def fail_pod(self) -> None:
        chosen = self._pod(bound=True)
        if chosen is not None:
            self.hits.hit("F12 failed")
            self.workloads.kubelets.fail(chosen[0])

    def resize(self) -> None:
        workload = self._workload("job")
        if workload is not None:
            self.hits.hit("F12 resized")
            self.workloads.resize(workload)

    def recreate(self) -> None:
        workload = self._workload()
        if workload is not None:
            self.hits.hit("F12 same gang")
            self.workloads.recreate(workload)

    def excess(self) -> None:
        workload = self._workload("group")
        if workload is not None:
            self.hits.hit("F12 excess")
            self.workloads.add_excess(workload)

    def foreign(self) -> None:
        node = self._node()
        if node is None:
            return
        free = self._free(node)
        if free > 0 and is_open(node):
            self.hits.hit("F12 foreign")
            self.workloads.add_foreign(node.name, self.rng.randint(1, free))

    def _free(self, node: NodeRecord) -> int:
        """How many devices no pod has that is on the node."""
        taken = sum(
            dict(found.request).get(GPU, 0)
            for found in self.api.pods.values()
            if found.node == node.name and counts(found)
        )
        return dict(node.allocatable).get(GPU, 0) - taken

    def take_node(self, name: str) -> bool:
        """Have another scheduler's pod take all that is free on a node, if anything is."""
        node = self.api.nodes.get(name)
        if node is None or self.is_healed or not is_open(node) or self._free(node) <= 0:
            return False
        self.workloads.add_foreign(name, self._free(node))
        return True

    # -- watches (F3, F4) ----------------------------------------------------------------------

    def _corral(self) -> Corral | None:
        up = [corral for corral in self.world.corrals if corral.life is not None]
        return self.rng.choice(up) if up else None

    def lag(self) -> None:
        streams = self.world.all_streams()
        if not streams:
            return
        stream = self.rng.choice(streams)
        stream.lag = self.rng.choice(LONG_LAGS)
        self.history.say(f"the {stream.kind} watch of {self.world.owner_of(stream)} lags")
        quick = self.world.quick_lag
        self._later(self.rng.uniform(5, 40), lambda: setattr(stream, "lag", quick))

    def cut(self) -> None:
        streams = self.world.all_streams()
        if streams:
            stream = self.rng.choice(streams)
            self.history.say(f"the {stream.kind} watch of {self.world.owner_of(stream)} is cut")
            stream.cut(self.rng.choice((0.0, 0.5, 5.0)), repeats=True)

    def expire_watch(self) -> None:
        streams = self.world.all_streams()
        if streams:
            stream = self.rng.choice(streams)
            self.history.say(f"the {stream.kind} watch of {self.world.owner_of(stream)} expires")
            if stream.expire(self.rng.uniform(0.1, 5.0)):
                self.hits.hit("F4 relisted")

    # -- processes (F5, F9, F10) ---------------------------------------------------------------

    def crash(self) -> None:
        corral = self._corral()
        if corral is not None:
            self.world.crash(corral, "F5 any time")

    def crash_holding(self) -> None:
        for corral in self.world.corrals:
            if corral.life is not None and corral.life.desk:
                self.world.crash(corral, "F5 holding")
                return

    def crash_binding(self) -> None:
        for corral in self.world.corrals:
            if corral.life is not None and corral.life.binding:
                self.world.crash(corral, "F5 binding")
                return

    def crash_rebuilding(self) -> None:
        corral = self._corral()
        if corral is not None:
            self.world.crash(corral, "F5 any time", again_while_rebuilding=True)

    def drain(self) -> None:
        corral = self._corral()
        if corral is not None:
            self.hits.hit("F5 drained")
            self.world.stop(corral)

    def pause(self) -> None:
        corral = self._corral()
        if corral is not None:
            self.hits.hit("F9 pause")
            corral.pause(self.rng.choice((1.0, 5.0, 29.0)))

    def wall_clock(self) -> None:
        self.hits.hit("F9 wall clock")
        self.clock.set_wall(self.rng.uniform(-3600.0, 3600.0))

    def stall_scheduler(self) -> None:
        if self.world.scheduler.pods_waiting:
            self.hits.hit("F10 stalled")
            seconds = self.rng.choice((3.0, 25.0, 70.0))
            self.history.say(f"kube-scheduler hangs for {seconds} s")
            self.world.scheduler.stalled_until = self.clock.now + seconds

    def restart_scheduler(self) -> None:
        self.world.new_leader()


KINDS: dict[str, Kind] = {
    "not ready": Kind(2.0, Chaos.not_ready),
    "cordon": Kind(2.0, Chaos.cordon),
    "taint": Kind(2.0, Chaos.taint),
    "flap": Kind(1.5, Chaos.flap),
    "shrink": Kind(2.0, Chaos.shrink),
    "relabel": Kind(1.5, Chaos.relabel),
    "delete node": Kind(1.5, Chaos.delete_node),
    "delete pod": Kind(4.0, Chaos.delete_pod),
    "fail pod": Kind(3.0, Chaos.fail_pod),
    "resize": Kind(1.5, Chaos.resize),
    "recreate": Kind(1.5, Chaos.recreate),
    "excess": Kind(0.7, Chaos.excess),
    "foreign": Kind(3.0, Chaos.foreign),
    "lag": Kind(4.0, Chaos.lag),
    "cut": Kind(4.0, Chaos.cut),
    "expire watch": Kind(5.0, Chaos.expire_watch),
    "crash": Kind(0.7, Chaos.crash),
    "crash holding": Kind(3.0, Chaos.crash_holding),
    "crash binding": Kind(20.0, Chaos.crash_binding),
    "crash rebuilding": Kind(0.5, Chaos.crash_rebuilding),
    "drain": Kind(0.5, Chaos.drain),
    "pause": Kind(1.0, Chaos.pause),
    "wall clock": Kind(1.0, Chaos.wall_clock),
    "stall scheduler": Kind(2.0, Chaos.stall_scheduler),
    "restart scheduler": Kind(4.0, Chaos.restart_scheduler),
}
