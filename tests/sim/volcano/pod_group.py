"""What a workload of Volcano's writes into its PodGroup, beside what follows from its pods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Json = dict[str, Any]

GROUP_NAME = "scheduling.k8s.io/group-name"  # annotation of pods: their PodGroup
TASK, TASK_INDEX = "volcano.sh/task-spec", "volcano.sh/task-index"
PARTITION = "volcano.sh/partition-id"  # label of pods, where their task has partitions
# Annotations of plain pods, of which Volcano's controller makes their PodGroup.
MIN_MEMBER = "scheduling.volcano.sh/group-min-member"
MODE = "volcano.sh/network-topology-mode"
HIGHEST_TIER = "volcano.sh/network-topology-highest-tier"


@dataclass(frozen=True, slots=True)
class Partitions:
    """Of one task: sub-groups of so many pods, of which so many have to start."""

    task: str
    size: int
    least: int
    topology: Json | None


@dataclass(frozen=True, slots=True)
class PodGroup:
    """The spec of a PodGroup, which is made for a vcjob, for plain pods, or by a user."""

    made_for: Literal["job", "pods", "user"]
    least: int
    least_of: dict[str, int]
    topology: Json | None
    partitions: Partitions | None
    queue: str
    requests: dict[str, int]  # minResources: cpu in millicores, and devices

    def spec(self) -> Json:
        """As the PodGroup has it."""
        said: Json = {"minMember": self.least, "queue": self.queue}
        if self.least_of:
            said["minTaskMember"] = self.least_of
        if self.topology is not None:
            said["networkTopology"] = self.topology
        if self.partitions is not None:
            said["subGroupPolicy"] = [_policy(self.partitions)]
        amounts = {key: str(amount) for key, amount in self.requests.items() if key != "cpu"}
        amounts["cpu"] = f"{self.requests['cpu']}m"
        said["minResources"] = {**amounts, "count/pods": str(self.least), "pods": str(self.least)}
        return said


def _policy(partitions: Partitions) -> Json:
    said: Json = {
        "name": partitions.task,
        "subGroupSize": partitions.size,
        "minSubGroups": partitions.least,
        "labelSelector": {"matchLabels": {TASK: partitions.task}},
        "matchLabelKeys": [PARTITION],
    }
    if partitions.topology is not None:
        said["networkTopology"] = partitions.topology
    return said
