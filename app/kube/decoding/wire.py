"""The few fields of Kubernetes JSON that are read, as partial msgspec structs.

Unknown fields are skipped without being built, which is what makes decoding 100 times faster
than client models. Everything may be null or absent, since Go reads null as the zero value:
hence `| None` everywhere, inside lists and maps too. A wrong type is a decoding error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Text = str | None
Texts = list[Text] | None
Strings = dict[str, Text] | None
# Quantities are strings, but a bare JSON number means the same to the API server.
Quantities = dict[str, str | int | float | None] | None


class Wire(msgspec.Struct, rename="camel", gc=False):
    """Base of the shapes: Go's field names in our spelling."""


class OwnerReference(Wire):
    api_version: Text = None
    kind: Text = None
    name: Text = None
    uid: Text = None
    controller: bool | None = None


class Metadata(Wire):
    name: Text = None
    namespace: Text = None
    uid: Text = None
    resource_version: Text = None
    creation_timestamp: Text = None
    deletion_timestamp: Text = None
    deletion_grace_period_seconds: int | None = None
    labels: Strings = None
    annotations: Strings = None
    owner_references: list[OwnerReference | None] | None = None


class Resources(Wire):
    requests: Quantities = None


class Container(Wire):
    resources: Resources | None = None
    restart_policy: Text = None
    name: Text = None


class SelectorRequirement(Wire):
    key: Text = None
    operator: Text = None
    values: Texts = None


class LabelSelector(Wire):
    match_labels: Strings = None
    match_expressions: list[SelectorRequirement | None] | None = None


class SelectorTerm(Wire):
    match_expressions: list[SelectorRequirement | None] | None = None
    match_fields: list[SelectorRequirement | None] | None = None


class NodeSelector(Wire):
    node_selector_terms: list[SelectorTerm | None] | None = None


class PreferredTerm(Wire):
    weight: Int32 | None = None
    preference: SelectorTerm | None = None


class NodeAffinity(Wire):
    required: NodeSelector | None = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=None
    )
    preferred: list[PreferredTerm | None] | None = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=None
    )


class Affinity(Wire):
    node_affinity: NodeAffinity | None = None


class PodToleration(Wire):
    key: Text = None
    operator: Text = None
    value: Text = None
    effect: Text = None
    toleration_seconds: int | None = None


class SchedulingGate(Wire):
    name: Text = None


class SchedulingGroup(Wire):
    pod_group_name: Text = None


class PodSpec(Wire):
    node_name: Text = None
    scheduler_name: Text = None
    priority: Int32 | None = None
    node_selector: Strings = None
    affinity: msgspec.Raw = msgspec.Raw(b"null")  # `Affinity`, the same for a whole gang
    tolerations: list[PodToleration | None] | None = None
    scheduling_gates: list[SchedulingGate | None] | None = None
    # A list; of a large pod `containers.Containers`.
    containers: Sequence[Container | None] | None = None
    init_containers: Sequence[Container | None] | None = None
    overhead: Quantities = None
    resources: Resources | None = None
    resource_claims: list[msgspec.Raw] | None = None
    preemption_policy: Text = None
    scheduling_group: SchedulingGroup | None = None
    active_deadline_seconds: int | None = None
    termination_grace_period_seconds: int | None = None


class Readiness(Wire):
    """A condition, as far as it matters of one that every pod has."""

    type: Text = None
    status: Text = None


class Terminated(Wire):
    exit_code: int | None = None


class ContainerState(Wire):
    terminated: Terminated | None = None


class ContainerStatus(Wire):
    ready: bool | None = None
    started: bool | None = None
    last_state: ContainerState | None = None


class ContainerResources(Wire):
    """The status of a container, as far as it matters while its pod is resized."""

    name: Text = None
    resources: Resources | None = None
    allocated_resources: Quantities = None


class PodStatus(Wire):
    phase: Text = None
    nominated_node_name: Text = None
    conditions: msgspec.Raw = msgspec.Raw(b"null")  # a list of `Condition`, of which few matter
    container_statuses: msgspec.Raw = msgspec.Raw(b"null")  # lists of `ContainerStatus`, read …
    init_container_statuses: msgspec.Raw = msgspec.Raw(b"null")  # … while the pod is not ready
    resources: msgspec.Raw = msgspec.Raw(b"null")  # `Resources`, of the pod as a whole, …
    allocated_resources: msgspec.Raw = msgspec.Raw(b"null")  # … and `Quantities`


class Pod(Wire):
    metadata: Metadata | None = None
    spec: PodSpec | None = None
    status: PodStatus | None = None


class NodeTaint(Wire):
    key: Text = None
    value: Text = None
    effect: Text = None


class NodeSpec(Wire):
    unschedulable: bool | None = None
    taints: list[NodeTaint | None] | None = None


class Condition(Wire):
    type: Text = None
    status: Text = None
    reason: Text = None
    last_transition_time: Text = None


class NodeStatus(Wire):
    capacity: Quantities = None
    allocatable: Quantities = None
    conditions: list[Condition | None] | None = None


class Node(Wire):
    metadata: Metadata | None = None
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class Page(Wire):
    """One page of a list; each object is decoded from its own bytes."""

    metadata: PageMetadata | None = None
    items: list[msgspec.Raw] | None = None


class PageMetadata(Wire):
    resource_version: Text = None
    # `continue` is a Python keyword.
    continue_token: Text = msgspec.field(name="continue", default=None)


class WatchLine(Wire):
    """One line of a watch."""

    type: str
    object: msgspec.Raw


class VersionedMetadata(Wire):
    name: Text = None
    namespace: Text = None
    uid: Text = None
    resource_version: Text = None


class Versioned(Wire):
    """The little that is read of any object: bookmarks, and objects nothing else fits."""

    metadata: VersionedMetadata | None = None


class Status(Wire):
    """What the API server answers instead of an object when it says no."""

    code: int | None = None
    reason: Text = None
    message: Text = None
