"""The kinds the sandbox always serves, one row each, with the few ways in which kinds differ.

Kinds of custom resources are rows too: `rules.custom_resources` makes them from definitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]  # one Kubernetes object as JSON; never changed once it is stored
Key = tuple[str, str]  # (namespace, name); namespace is "" for cluster-scoped kinds
Home = tuple[str, str]  # (group, plural): where all versions of one resource are kept


@dataclass(frozen=True, slots=True)
class Kind:
    """One resource of the API in one version.

    is_custom: defined by a CRD: no strategic merge, and list items carry kind and apiVersion.
    has_status: status is written through the /status subresource only.
    actions: the subresources that are only posted to.
    has_generation: metadata.generation counts changes of spec (or `webhooks`, `template`); of a
        custom resource, changes of everything but metadata and a status with a subresource.
    must_name_version: a PUT without metadata.resourceVersion is refused.
    immutable: of a custom resource, the paths of fields that may not change once they are set.
    may_create_by_put: a PUT of an object that is not there creates it.
    """

    group: str
    version: str
    plural: str
    name: str
    is_namespaced: bool = True
    is_custom: bool = False
    has_status: bool = False
    has_generation: bool = False
    must_name_version: bool = False
    may_create_by_put: bool = False
    actions: tuple[str, ...] = ()
    immutable: tuple[tuple[str, ...], ...] = ()
    singular: str = ""
    list_name: str = ""
    short_names: tuple[str, ...] = ()

    @property
    def home(self) -> Home:
        return self.group, self.plural

    @property
    def subresources(self) -> tuple[str, ...]:
        return ("status", *self.actions) if self.has_status else self.actions

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def prefix(self) -> str:
        """The path below which the kind is served: /api/v1 or /apis/GROUP/VERSION."""
        return f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"

    @property
    def resource(self) -> str:
        """The name error messages use: `pods`, `jobs.batch`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_name(self) -> str:
        """The name validation messages use: `Pod`, `Job.batch`."""
        return f"{self.name}.{self.group}" if self.group else self.name


POD = Kind(
    "",
    "v1",
    "pods",
    "Pod",
    has_status=True,
    has_generation=True,
    actions=("binding", "eviction"),
    short_names=("po",),
)
POD_TEMPLATE = Kind("", "v1", "podtemplates", "PodTemplate", has_generation=True)
NODE = Kind("", "v1", "nodes", "Node", is_namespaced=False, has_status=True, short_names=("no",))
NAMESPACE = Kind(
    "", "v1", "namespaces", "Namespace", is_namespaced=False, has_status=True, short_names=("ns",)
)
EVENT = Kind("", "v1", "events", "Event", may_create_by_put=True, short_names=("ev",))
QUOTA = Kind(  # kept and shown, not enforced
    "", "v1", "resourcequotas", "ResourceQuota", has_status=True, short_names=("quota",)
)
JOB = Kind("batch", "v1", "jobs", "Job", has_status=True, has_generation=True)
LEASE = Kind(
    "coordination.k8s.io",
    "v1",
    "leases",
    "Lease",
    must_name_version=True,
    may_create_by_put=True,
)
PRIORITY_CLASS = Kind(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", is_namespaced=False
)
DISRUPTION_BUDGET = Kind(
    "policy",
    "v1",
    "poddisruptionbudgets",
    "PodDisruptionBudget",
    has_status=True,
    has_generation=True,
)
VOLUME_CLAIM = Kind(  # there or not: no volume is ever provisioned
    "",
    "v1",
    "persistentvolumeclaims",
    "PersistentVolumeClaim",
    has_status=True,
    short_names=("pvc",),
)
DEVICE_CLAIM = Kind(  # there or not: no device is ever allocated
    "resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", has_status=True
)
DEFINITION = Kind(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    is_namespaced=False,
    has_status=True,
    has_generation=True,
    must_name_version=True,
    short_names=("crd", "crds"),
)
MUTATING = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    is_namespaced=False,
    has_generation=True,
)
VALIDATING = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    is_namespaced=False,
    has_generation=True,
)

BUILT_IN = (
    POD,
    POD_TEMPLATE,
    NODE,
    NAMESPACE,
    EVENT,
    QUOTA,
    JOB,
    LEASE,
    PRIORITY_CLASS,
    DISRUPTION_BUDGET,
    VOLUME_CLAIM,
    DEVICE_CLAIM,
    DEFINITION,
    MUTATING,
    VALIDATING,
)


def key_of(body: Object) -> Key:
    metadata = body["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
