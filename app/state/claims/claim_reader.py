"""Which gang a pod claims to belong to, by what it says itself and what objects say of it."""

from __future__ import annotations

from dataclasses import dataclass

from app.dialects.registry import Dialects
from app.dialects.spec import Claim
from app.kube.core.objects import PodRecord
from app.state.claims.named_pods import NamedPods
from app.state.settings import EngineSettings


@dataclass(frozen=True, slots=True)
class ClaimReader:
    """Reads claims of pods."""

    settings: EngineSettings
    dialects: Dialects
    named_pods: NamedPods

    def claim(self, pod: PodRecord) -> Claim | None:
        """The gang that a pod claims; None if it is ordinary, or not ours to schedule and plan."""
        if self.dialects.is_silent(pod) and not self.named_pods.is_named(pod):
            return None
        is_kept = self.settings.is_ours(pod) and not self.dialects.is_managed(
            pod.labels, pod.annotations, pod.gates, pod.pod_group
        )
        return self.dialects.claim(pod, self.named_pods.of(pod)) if is_kept else None
