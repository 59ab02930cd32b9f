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


class NodeAffinity(_Wire):
    required: NodeSelector | None = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=None
    )


class Affinity(_Wire):
    node_affinity: NodeAffinity | None = None


class PodToleration(_Wire):
    key: Text = None
    operator: Text = None
    value: Text = None
    effect: Text = None


class SchedulingGate(_Wire):
    name: Text = None


class PodSpec(_Wire):
    node_name: Text = None
    scheduler_name: Text = None
    priority: Int32 | None = None
    node_selector: Strings = None
    affinity: Affinity | None = None
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


class JobSpec(_Wire):
    parallelism: Int32 | None = None
    completions: Int32 | None = None
    suspend: bool | None = None


class JobStatus(_Wire):
    succeeded: Int32 | None = None
    conditions: list[Condition | None] | None = None


class Job(_Wire):
    metadata: Metadata | None = None
    spec: JobSpec | None = None
    status: JobStatus | None = None


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
