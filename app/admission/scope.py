"""Which pods the webhook has a say in; the same is said, coarser, in deploy/webhook.yaml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.dialects import corral
from app.dialects.kueue.in_charge import is_kueues
from app.settings import Settings


@dataclass(frozen=True, slots=True)
class Scope:
    """Pods of one scheduler, outside some namespaces, that Kueue does not manage."""

    scheduler_name: str
    """spec.schedulerName of our pods; "": any."""
    namespaces_excluded: frozenset[str] = frozenset()
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
        return self.covers(namespace, scheduler) and not self.is_kueues(labels, annotations, gates)

    def covers(self, namespace: str, scheduler: str) -> bool:
        """Whether pods of that scheduler in that namespace are ours, whoever else is there."""
        if namespace in self.namespaces_excluded:
            return False
        return not self.scheduler_name or scheduler == self.scheduler_name

    def is_kueues(
        self,
        labels: Mapping[str, str],
        annotations: Mapping[str, str],
        gates: Sequence[str] = (),
    ) -> bool:
        """Whether Kueue is in charge, so that Corral keeps its hands off."""
        return is_kueues(labels, annotations, gates, by_queue=self.kueue_manages)


def scope_of(settings: Settings) -> Scope:
    """What the operator has set."""
    return Scope(
        settings.scheduler_name,
        frozenset(settings.admission_namespaces_excluded),
        settings.kueue_manages,
    )


def has_opted_out(labels: Mapping[str, str]) -> bool:
    """Whether the pod's owner wants no gate on it: it starts gateless."""
    return labels.get(corral.MANAGED) == "false"
