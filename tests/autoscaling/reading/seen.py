"""What an autoscaler knows of the cluster at one moment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.autoscaling.reading.pods import is_finished, node_of, nominated_of
from tests.autoscaling.reading.rooms import Room, room_of
from tests.cluster import Object, Objects


@dataclass(frozen=True)
class Seen:
    """All objects that matter, as the API server has them."""

    pods: Objects = field(default_factory=list)
    nodes: Objects = field(default_factory=list)
    templates: Objects = field(default_factory=list)
    requests: Objects = field(default_factory=list)

    def by_node(self) -> dict[str, Objects]:
        """The pods that are bound to each node and have not ended."""
        return _by(node_of, self.pods)

    def nominated_by_node(self) -> dict[str, Objects]:
        """The pods that are bound nowhere and nominated for each node."""
        return _by(nominated_of, [each for each in self.pods if not node_of(each)])

    def template(self, namespace: str, name: str) -> Object | None:
        """A PodTemplate."""
        for each in self.templates:
            if (each["metadata"]["namespace"], each["metadata"]["name"]) == (namespace, name):
                return each
        return None


def _by(node: Callable[[Object], str], pods: Objects) -> dict[str, Objects]:
    found: dict[str, Objects] = defaultdict(list)
    for each in pods:
        if node(each) and not is_finished(each):
            found[node(each)].append(each)
    return found


def filled(node: Object, pods: Objects) -> Room:
    """A node as it is, with what runs there."""
    room = room_of(node)
    room.take(pods)
    return room
