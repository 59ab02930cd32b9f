"""Which pods the webhook gates and checks; deploy/webhook.yaml has a coarser filter for them.

Source: KEP-976 "Pods subject to queueing".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.admission.namespaces import Namespaces
from app.dialects import corral
from app.dialects.kueue.in_charge import is_kueues
from app.labels import EVERYTHING, LabelSelector
from app.settings import Settings


@dataclass(frozen=True, slots=True)
class Scope:
    """Pods of one scheduler that both selectors select and that Kueue does not manage."""

    scheduler_name: str
    """spec.schedulerName of our pods; "": any."""
    namespaces: Namespaces = field(default_factory=lambda: Namespaces(EVERYTHING))
    pods: LabelSelector = EVERYTHING
    kueue_manages: bool = False
    """Whether Kueue runs here and takes every pod that names a queue."""

    def holds(
        self,
        namespace: str,
        scheduler: str,
        labels: Mapping[str, str],
        annotations: Mapping[str, str],
        gates: Sequence[str] = (),
    ) -> bool:
        """Whether a pod like this is Corral's to gate and to check."""
        return self.covers(namespace, scheduler, labels) and not self.is_kueues(
            labels, annotations, gates
        )

    def covers(self, namespace: str, scheduler: str, labels: Mapping[str, str]) -> bool:
        """Whether such pods in that namespace are ours, unless Kueue manages them."""
        return (
            (not self.scheduler_name or scheduler == self.scheduler_name)
            and self.pods.matches(labels)
            and self.namespaces.selects(namespace)
        )

    def is_kueues(
        self,
        labels: Mapping[str, str],
        annotations: Mapping[str, str],
        gates: Sequence[str] = (),
    ) -> bool:
        """Whether Kueue is in charge, so that Corral keeps its hands off."""
        return is_kueues(labels, annotations, gates, by_queue=self.kueue_manages)


def scope_of(settings: Settings, namespaces: Namespaces) -> Scope:
    """What the operator has set; `namespaces` are those of the namespace selector."""
    return Scope(
        settings.scheduler_name,
        namespaces,
        settings.admission_pod_selector,
        settings.kueue_manages,
    )


def has_opted_out(labels: Mapping[str, str]) -> bool:
    """Whether the pod's owner wants no gate on it: it starts gateless."""
    return labels.get(corral.MANAGED) == "false"
