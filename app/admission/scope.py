"""Which pods the webhook gates and checks; deploy/webhook.yaml has a coarser filter for them.

Source: KEP-976 "Pods subject to queueing".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.admission.namespaces import Namespaces
from app.dialects import corral
from app.labels import EVERYTHING, LabelSelector
from app.settings import Settings, is_named


@dataclass(frozen=True, slots=True)
class Scope:
    """Pods of some schedulers that both selectors select."""

    scheduler_name: str
    """spec.schedulerName of our pods; several with commas; "": any."""
    namespaces: Namespaces = field(default_factory=lambda: Namespaces(EVERYTHING))
    pods: LabelSelector = EVERYTHING

    def covers(self, namespace: str, scheduler: str, labels: Mapping[str, str]) -> bool:
        """Whether such pods in that namespace are ours, unless another controller has them."""
        return (
            is_named(scheduler, self.scheduler_name)
            and self.pods.matches(labels)
            and self.namespaces.selects(namespace)
        )


def scope_of(settings: Settings, namespaces: Namespaces) -> Scope:
    """What the operator has set; `namespaces` are those of the namespace selector."""
    return Scope(
        settings.scheduler_name,
        namespaces,
        settings.admission_pod_selector,
    )


def has_opted_out(labels: Mapping[str, str]) -> bool:
    """Whether the pod's owner wants no gate on it: it starts gateless."""
    return labels.get(corral.MANAGED) == "false"
