"""The few fields of Kubernetes JSON that are read, as partial msgspec structs.

Unknown fields are skipped without being built, which is what makes decoding 100 times faster
than client models. Everything may be null or absent, since Go reads null as the zero value:
hence `| None` everywhere, inside lists and maps too. A wrong type is a decoding error.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Text = str | None
Texts = list[Text] | None
Strings = dict[str, Text] | None
# Quantities are strings, but a bare JSON number means the same to the API server.
Quantities = dict[str, str | int | float | None] | None


class _Wire(msgspec.Struct, rename="camel", gc=False):
    """Base of the shapes: Go's field names in our spelling."""


class OwnerReference(_Wire):
    api_version: Text = None
    kind: Text = None
    name: Text = None
    uid: Text = None
    controller: bool | None = None


class Metadata(_Wire):
    name: Text = None
    namespace: Text = None
    uid: Text = None
    resource_version: Text = None
    creation_timestamp: Text = None
    deletion_timestamp: Text = None
    labels: Strings = None
    annotations: Strings = None
    owner_references: list[OwnerReference | None] | None = None


class Resources(_Wire):
    requests: Quantities = None


class Container(_Wire):
    resources: Resources | None = None
    restart_policy: Text = None


class SelectorRequirement(_Wire):
    key: Text = None
    operator: Text = None
    values: Texts = None


class SelectorTerm(_Wire):
    match_expressions: list[SelectorRequirement | None] | None = None
    match_fields: list[SelectorRequirement | None] | None = None


class NodeSelector(_Wire):
    node_selector_terms: list[SelectorTerm | None] | None = None


class PreferredTerm(_Wire):
    weight: Int32 | None = None
    preference: SelectorTerm | None = None


class NodeAffinity(_Wire):
    required: NodeSelector | None = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=None
    )
    preferred: list[PreferredTerm | None] | None = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=None
    )


class Affinity(_Wire):
    node_affinity: NodeAffinity | None = None


class PodToleration(_Wire):
    key: Text = None
    operator: Text = None
    value: Text = None
    effect: Text = None
    toleration_seconds: int | None = None


class SchedulingGate(_Wire):
    name: Text = None


class PodSpec(_Wire):
    node_name: Text = None
    scheduler_name: Text = None
    priority: Int32 | None = None
    node_selector: Strings = None
    affinity: msgspec.Raw = msgspec.Raw(b"null")  # `Affinity`, the same for a whole gang
    tolerations: list[PodToleration | None] | None = None
    scheduling_gates: list[SchedulingGate | None] | None = None
    containers: list[Container | None] | None = None
    init_containers: list[Container | None] | None = None
    overhead: Quantities = None
    resources: Resources | None = None


class PodStatus(_Wire):
    phase: Text = None
    nominated_node_name: Text = None


class Pod(_Wire):
    metadata: Metadata | None = None
    spec: PodSpec | None = None
    status: PodStatus | None = None


class NodeTaint(_Wire):
    key: Text = None
    value: Text = None
    effect: Text = None


class NodeSpec(_Wire):
    unschedulable: bool | None = None
    taints: list[NodeTaint | None] | None = None


class Condition(_Wire):
    type: Text = None
    status: Text = None


class NodeStatus(_Wire):
    capacity: Quantities = None
    allocatable: Quantities = None
    conditions: list[Condition | None] | None = None


class Node(_Wire):
    metadata: Metadata | None = None
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class TemplateMetadata(_Wire):
    annotations: Strings = None


class PodTemplate(_Wire):
    metadata: TemplateMetadata | None = None


class JobSpec(_Wire):
    parallelism: Int32 | None = None
    completions: Int32 | None = None
    suspend: bool | None = None
    template: PodTemplate | None = None


class JobStatus(_Wire):
    succeeded: Int32 | None = None
    conditions: list[Condition | None] | None = None


class Job(_Wire):
    metadata: Metadata | None = None
    spec: JobSpec | None = None
    status: JobStatus | None = None


class StatefulSetSpec(_Wire):
    replicas: Int32 | None = None
    pod_management_policy: Text = None
    template: PodTemplate | None = None


class StatefulSet(_Wire):
    metadata: Metadata | None = None
    spec: StatefulSetSpec | None = None


class JobTemplate(_Wire):
    spec: JobSpec | None = None


class ReplicatedJob(_Wire):
    name: Text = None
    replicas: Int32 | None = None
    template: JobTemplate | None = None
    depends_on: list[msgspec.Raw] | None = None


class StartupPolicy(_Wire):
    startup_policy_order: Text = None


class JobSetSpec(_Wire):
    replicated_jobs: list[ReplicatedJob | None] | None = None
    startup_policy: StartupPolicy | None = None
    suspend: bool | None = None


class JobSetStatus(_Wire):
    restarts: Int32 | None = None
    conditions: list[Condition | None] | None = None


class JobSet(_Wire):
    metadata: Metadata | None = None
    spec: JobSetSpec | None = None
    status: JobSetStatus | None = None


class LeaderWorkerTemplate(_Wire):
    size: Int32 | None = None
    leader_template: PodTemplate | None = None
    worker_template: PodTemplate | None = None


class RollingUpdate(_Wire):
    max_surge: int | str | None = None


class RolloutStrategy(_Wire):
    rolling_update_configuration: RollingUpdate | None = None


class LeaderWorkerSetSpec(_Wire):
    replicas: Int32 | None = None
    leader_worker_template: LeaderWorkerTemplate | None = None
    startup_policy: Text = None
    rollout_strategy: RolloutStrategy | None = None


class LeaderWorkerSet(_Wire):
    metadata: Metadata | None = None
    spec: LeaderWorkerSetSpec | None = None


class ReplicaSpec(_Wire):
    replicas: Int32 | None = None
    template: PodTemplate | None = None


ReplicaSpecs = dict[str, ReplicaSpec | None] | None


class RunPolicy(_Wire):
    suspend: bool | None = None


class TrainingSpec(_Wire):
    """The spec of any of Kubeflow's kinds; each has one of the maps, by replica type."""

    pytorch_replica_specs: ReplicaSpecs = None
    tf_replica_specs: ReplicaSpecs = None
    xgb_replica_specs: ReplicaSpecs = None
    paddle_replica_specs: ReplicaSpecs = None
    jax_replica_specs: ReplicaSpecs = None
    mpi_replica_specs: ReplicaSpecs = None
    run_policy: RunPolicy | None = None
    launcher_creation_policy: Text = None


class ReplicaStatus(_Wire):
    succeeded: Int32 | None = None


class TrainingStatus(_Wire):
    replica_statuses: dict[str, ReplicaStatus | None] | None = None
    conditions: list[Condition | None] | None = None


class TrainingJob(_Wire):
    metadata: Metadata | None = None
    spec: TrainingSpec | None = None
    status: TrainingStatus | None = None


class TopologyLevel(_Wire):
    node_label: Text = None


class TopologySpec(_Wire):
    levels: list[TopologyLevel | None] | None = None


class Topology(_Wire):
    metadata: Metadata | None = None
    spec: TopologySpec | None = None


class Page(_Wire):
    """One page of a list; each object is decoded from its own bytes."""

    metadata: PageMetadata | None = None
    items: list[msgspec.Raw] | None = None


class PageMetadata(_Wire):
    resource_version: Text = None
    # `continue` is a Python keyword.
    continue_token: Text = msgspec.field(name="continue", default=None)


class WatchLine(_Wire):
    """One line of a watch."""

    type: str
    object: msgspec.Raw


class Versioned(_Wire):
    """The little that is read of any object: bookmarks, and objects nothing else fits."""

    metadata: Metadata | None = None


class Status(_Wire):
    """What the API server answers instead of an object when it says no."""

    code: int | None = None
    reason: Text = None
    message: Text = None
