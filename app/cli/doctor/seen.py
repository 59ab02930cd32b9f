"""What was read of an installation: one field for each part, as data that checks are run over.

A part that was not read is `Unread`, with the reason; every check that needs it says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from app.cli.doctor.configuration import SchedulerConfig
from app.cli.doctor.findings import Problem
from app.kube.core.objects import NodeRecord, PodRecord
from app.settings import Settings

Object = dict[str, Any]
MUTATING, VALIDATING = POLICY_KINDS = ("MutatingAdmissionPolicy", "ValidatingAdmissionPolicy")


@dataclass(frozen=True, slots=True)
class Unread:
    """Why a part is not there."""

    why: str


NO_CLUSTER = Unread("no cluster was read")


@dataclass(frozen=True, slots=True)
class OwnSettings:
    """Corral's settings, and how messages name where they stand."""

    where: str
    values: Settings

    @property
    def schedulers(self) -> tuple[str, ...]:
        """The schedulerNames that are planned for; (): any."""
        names = self.values.scheduler_name.split(",")
        return tuple(name.strip() for name in names if name.strip())


@dataclass(frozen=True, slots=True)
class Right:
    """One thing that a service account has to be allowed, and what grants it."""

    account: str
    """NAMESPACE/NAME."""
    verb: str
    group: str
    resource: str
    """With its subresource: pods/binding."""
    name: str
    """Of the one object; "": of all."""
    namespace: str
    """"": of all namespaces."""
    role: str
    """The Role or ClusterRole of deploy/rbac.yaml."""


@dataclass(frozen=True, slots=True)
class TopologyObject:
    """An object that declares a topology: what is wrong with it, or the levels it has."""

    name: str
    """KIND NAME."""
    flaws: tuple[str, ...]
    levels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Topology:
    """The nodes, and what divides them into domains."""

    nodes: Mapping[str, NodeRecord]
    objects: tuple[TopologyObject, ...]


@dataclass(frozen=True, slots=True)
class Members:
    """Pods that say they are in a gang. At most `most` are kept of all there are."""

    pods: tuple[PodRecord, ...]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class WebhookService:
    """What one Service that webhooks name has behind it."""

    exists: bool
    ready: int = 0
    """How many addresses of it are ready."""
    ports: tuple[int, ...] = ()
    addresses: tuple[tuple[str, int], ...] = ()
    """(host, port) of pods that are ready, some of them."""


@dataclass(frozen=True, slots=True)
class Webhooks:
    """Every configuration of the cluster, Corral's among them, and what is behind Corral's."""

    mutating: tuple[Object, ...]
    validating: tuple[Object, ...]
    services: Mapping[str, WebhookService | Unread]
    """By NAMESPACE/NAME."""


@dataclass(frozen=True, slots=True)
class Policies:
    """Corral's admission policies: those of both kinds that are named as deploy/ names them."""

    mutating: tuple[Object, ...]
    validating: tuple[Object, ...]
    bound: frozenset[tuple[str, str]]
    """Kind and name of every policy, of anybody's, that some binding names, to change or deny."""

    @property
    def gating(self) -> tuple[Object, ...]:
        """Those that gate pods: a policy without a binding does nothing."""
        return tuple(each for each in self.mutating if self.is_bound(each))

    def is_bound(self, policy: Object) -> bool:
        """Whether a binding names this policy."""
        return (policy["kind"], policy["metadata"]["name"]) in self.bound


@dataclass(frozen=True, slots=True)
class Handshake:
    """What a TLS handshake with the webhook's port, as the API server makes it, came to."""

    address: str
    """HOST:PORT."""
    problem: str
    """Why the certificate that is served is not trusted; "": it is."""


@dataclass(frozen=True, slots=True)
class Readiness:
    """What /readyz of one pod says."""

    pod: str
    status: Literal["ready", "not ready", "unreachable"]
    text: str


@dataclass(frozen=True, slots=True)
class Canary:
    """A pod of a gang as the API server would have stored it."""

    namespace: str
    pod: Object | None
    """None: it was refused, as `refusal` says."""
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything that was read."""

    faults: tuple[Problem, ...] = ()
    """What could not be read, and should have been."""
    config: SchedulerConfig | Unread = NO_CLUSTER
    settings: OwnSettings | Unread = NO_CLUSTER
    deployment: Object | Unread = NO_CLUSTER
    pods: tuple[Object, ...] | Unread = NO_CLUSTER
    """Of the Deployment."""
    denied: tuple[Right, ...] | Unread = NO_CLUSTER
    """What Corral needs and may not do."""
    topology: Topology | Unread = NO_CLUSTER
    members: Members | Unread = NO_CLUSTER
    webhooks: Webhooks | Unread = NO_CLUSTER
    policies: Policies | Unread = NO_CLUSTER
    handshakes: Mapping[tuple[str, str], Handshake] | Unread = NO_CLUSTER
    """By what a webhook calls and its caBundle."""
    skew: float | Unread = NO_CLUSTER
    """By how much the API server's clock is ahead of ours. Units: seconds."""
    version: str | Unread = NO_CLUSTER
    """The API server's gitVersion."""
    readiness: tuple[Readiness, ...] | Unread = NO_CLUSTER
    canary: Canary | Unread = NO_CLUSTER
    shipped: tuple[str, ...] = ()
    """The minor versions of kube-scheduler that scheduler-config/ has a configuration for."""

    @property
    def gating_policies(self) -> tuple[Object, ...]:
        """What gates pods without a webhook; () where that was not read."""
        return () if isinstance(self.policies, Unread) else self.policies.gating
