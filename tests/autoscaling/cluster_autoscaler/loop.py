"""cluster-autoscaler's loop, every ten seconds.

    nodes + machines on their way ─▶ pack: pending pods, then bookings ─▶ one request, or one group
    grows for what is left ─▶ else: nodes that nobody needs go

`step` may be called as often as one likes: machines live in between.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tests.autoscaling.cluster_autoscaler.requests import Requests, pods_from
from tests.autoscaling.cluster_autoscaler.scale_down import ScaleDown
from tests.autoscaling.cluster_autoscaler.scale_up import ScaleUp
from tests.autoscaling.machines.actions import Action, DeleteNode, EmitEvent, PatchRequest, SetTaint
from tests.autoscaling.machines.cloud import Cloud, Machine, has_devices, is_ready
from tests.autoscaling.machines.groups import NodeGroup
from tests.autoscaling.objects import ATOMIC_SCALE_UP, CHECK_CAPACITY
from tests.autoscaling.reading.pods import (
    EXPENDABLE_BELOW,
    SCALE_UP_DELAY,
    annotations_of,
    by_size,
    consumes,
    is_unschedulable,
    key_of,
    nominated_of,
)
from tests.autoscaling.reading.rooms import STARTUP_PREFIXES, TO_BE_DELETED, Room, pack
from tests.autoscaling.reading.seen import Seen, filled
from tests.cluster import Object, Objects

LOOP_SECONDS = 10.0


@dataclass(frozen=True)
class Settings:
    """Flags of cluster-autoscaler, with its defaults."""

    unneeded: float = 600.0  # --scale-down-unneeded-time
    delay_after_add: float = 600.0  # --scale-down-delay-after-add
    drains: bool = True  # nodes that are little used
    provision: float = 900.0  # --max-node-provision-time: what has not come by then is given up
    # --initial-node-group-backoff-duration, --max-…: of a group that did not get its machines
    backoff: tuple[float, float] = (300.0, 1800.0)
    provisioning_requests: bool = True  # --enable-provisioning-requests; off by default there
    ends_consumed: bool = False  # bookings whose pods all sit; in newest code only


class ClusterAutoscaler:
    """One that leads, its cloud and that cloud's kubelets."""

    def __init__(self, groups: Sequence[NodeGroup], settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.cloud = Cloud(groups)
        self._begin()

    def _begin(self) -> None:
        self._requests = Requests(ends_consumed=self.settings.ends_consumed)
        self._scale_up = ScaleUp(self.cloud, self.settings.backoff)
        self._scale_down = ScaleDown(
            self.cloud, unneeded=self.settings.unneeded, drains=self.settings.drains
        )
        self._loop_at = 0.0
        self._grew_at = -math.inf
        self._was_request = False  # whose turn the last loop was
        self._unschedulable_at: dict[str, float] = {}  # since when, by pod
        self._told: set[tuple[str, str]] = set()  # (pod, reason) of events

    def restart(self, seen: Seen) -> list[Action]:
        """Forget all but the cloud, as another replica that leads; no node is given up any more.

        Source: core/static_autoscaler.go, cleanUpIfRequired.
        """
        self._begin()
        return [
            SetTaint(node["metadata"]["name"], taint, is_set=False)
            for node in seen.nodes
            for taint in node["spec"].get("taints") or []
            if taint["key"] == TO_BE_DELETED
        ]

    @property
    def next_at(self) -> float:
        """When `step` has something to do."""
        return min(self._loop_at, self.cloud.next_at)

    def step(self, seen: Seen, now: float) -> list[Action]:
        """What is to be done by now."""
        self.cloud.see(seen.nodes)
        actions: list[Action] = self.cloud.step(now)
        if not actions and now >= self._loop_at:  # else the cluster is another one than was seen
            self._loop_at = now + LOOP_SECONDS
            actions += self._loop(seen, now)
        return actions

    # -- one loop ------------------------------------------------------------------------------

    def _loop(self, seen: Seen, now: float) -> list[Action]:
        nodes = {each["metadata"]["name"]: each for each in seen.nodes}
        bound = seen.by_node()
        self._note_whole(nodes)
        self._give_up(now)
        self._scale_up.learn(nodes, bound, now)
        actions = [*self._scale_down.finish(nodes, bound)]
        for each in actions:
            if isinstance(each, DeleteNode):
                del nodes[each.name]
        rooms = self._rooms(seen, nodes, now)
        left = pack(by_size(self._demand(seen, now)), list(rooms.values()))
        request: Object | None = None
        if self.settings.provisioning_requests:
            actions += self._requests.refresh(seen, now)
            pack(self._requests.booked(seen), list(rooms.values()))
            request = self._requests.next(seen, now)
        grew_at = self._grew_at
        if request is not None and not (left and self._was_request):
            self._was_request = True
            self._loop_at = now  # the next one starts at once
            actions += self._serve(request, seen, list(rooms.values()), now)
        elif left:
            self._was_request = False
            actions += self._grow(left, now)
        if self._grew_at == grew_at:
            is_cooling = now - self._grew_at < self.settings.delay_after_add
            actions += self._scale_down.look(nodes, bound, rooms, now, is_cooling=is_cooling)
        return actions

    def _demand(self, seen: Seen, now: float) -> Objects:
        """The pods that nodes may be made for."""
        waiting = [each for each in seen.pods if is_unschedulable(each)]
        self._unschedulable_at = {
            key_of(each): self._unschedulable_at.get(key_of(each), now) for each in waiting
        }
        return [each for each in waiting if self._counts(each, now)]

    def _counts(self, pod: Object, now: float) -> bool:
        waited = now - self._unschedulable_at[key_of(pod)]
        return (
            not nominated_of(pod)
            and not consumes(pod)
            and (pod["spec"].get("priority") or 0) >= EXPENDABLE_BELOW
            and waited >= seconds_of(annotations_of(pod).get(SCALE_UP_DELAY, "0s"))
        )

    def _note_whole(self, nodes: dict[str, Object]) -> None:
        for name, machine in self.cloud.machines.items():
            node = nodes.get(name)
            if node is not None and _is_started(node) and has_devices(node, machine):
                machine.is_whole = True

    def _give_up(self, now: float) -> None:
        """Machines that never registered."""
        until = now - self.settings.provision
        late = [each for each in self.cloud.machines.values() if _is_late(each, until)]
        for each in late:
            self.cloud.release(each.name)
        for group in sorted({each.group.name for each in late}):
            self._scale_up.failed(group, now)

    def _rooms(self, seen: Seen, nodes: dict[str, Object], now: float) -> dict[str, Room]:
        """Ready nodes as they are, and the template of each machine that is on its way."""
        pods, nominated = seen.by_node(), seen.nominated_by_node()
        rooms: dict[str, Room] = {}
        for name, node in nodes.items():
            machine = self.cloud.machines.get(name)
            is_upcoming = machine is not None and not machine.is_whole
            if not is_upcoming and _is_started(node) and not self._scale_down.is_going(name):
                rooms[name] = filled(node, pods.get(name, []))
        for name, machine in self.cloud.machines.items():
            if not machine.is_whole and now - machine.ordered_at < self.settings.provision:
                rooms[name] = self._scale_up.room(machine)
                rooms[name].take(pods.get(name, []))
        for name, room in rooms.items():
            for each in nominated.get(name, []):  # they sit there
                room.put(each)
        return rooms

    def _serve(
        self, request: Object, seen: Seen, rooms: Sequence[Room], now: float
    ) -> list[Action]:
        """One request: what fits is taken off with no regard to racks, the rest is one group's."""
        pods = pods_from(request, seen)
        if pods is None:
            return [self._requests.failed_template(request)]
        return [self._requests.accepted(request), self._outcome(request, pods, rooms, now)]

    def _outcome(
        self, request: Object, pods: Objects, rooms: Sequence[Room], now: float
    ) -> PatchRequest:
        left = pack(pods, [each.copy() for each in rooms])
        if not left:
            if request["spec"]["provisioningClassName"] == CHECK_CAPACITY:
                pack(pods, rooms)  # the other class forgets where they fit until they are booked
            return self._requests.provisioned(request, now, is_found=True)
        if request["spec"]["provisioningClassName"] == ATOMIC_SCALE_UP:
            option = self._scale_up.best(left, now, all_or_nothing=True)
            if option is not None:
                self._scale_up.grow(option, now)
                self._grew_at = now
                return self._requests.provisioned(request, now, is_found=False)
        return self._requests.not_found(request, now)

    def _grow(self, left: Objects, now: float) -> list[Action]:
        """One group for what is left of the demand."""
        option = self._scale_up.best(left, now)
        helped: set[str] = set()
        actions: list[Action] = []
        if option is not None:
            before = len(self.cloud.of(option.group.name))
            self._scale_up.grow(option, now)
            self._grew_at = now
            sizes = f"{before}->{before + option.nodes} (max: {option.group.max})"
            text = f"pod triggered scale-up: [{{{option.group.name} {sizes}}}]"
            helped = {key_of(each) for each in option.helped}
            actions += [
                EmitEvent(each, "Normal", "TriggeredScaleUp", text) for each in option.helped
            ]
        for each in left:
            if key_of(each) not in helped and (key_of(each), "NotTriggerScaleUp") not in self._told:
                self._told.add((key_of(each), "NotTriggerScaleUp"))
                text = "pod didn't trigger scale-up"
                actions.append(EmitEvent(each, "Normal", "NotTriggerScaleUp", text))
        return actions


def seconds_of(duration: str) -> float:
    """A duration as Go writes it, such as 1h30m or 45s. Raises: ValueError."""
    units = {"h": 3600.0, "m": 60.0, "s": 1.0}
    total, digits = 0.0, ""
    for letter in duration:
        if letter in units:
            total, digits = total + float(digits) * units[letter], ""
        else:
            digits += letter
    if digits not in ("", "0"):
        raise ValueError(f"{duration!r} is not a duration such as 1h30m")
    return total


def _is_started(node: Object) -> bool:
    """Ready, and no taint says that it still starts."""
    taints = (node.get("spec") or {}).get("taints") or []
    starts = [each for each in taints if each["key"].startswith(STARTUP_PREFIXES)]
    starts = [each for each in starts if each["key"] != "node.kubernetes.io/unschedulable"]
    return is_ready(node) and not starts


def _is_late(machine: Machine, until: float) -> bool:
    """Whether a machine that was ordered by then has not come."""
    return not machine.is_registered and machine.ordered_at <= until
