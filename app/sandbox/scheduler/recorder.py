"""Events as the scheduler's recorder writes them.

What happens twice to the same version of a pod is one event with a series: the second occurrence
is written, the later ones are only counted, so a pod that is retried for hours costs two writes
(client-go tools/events, whose key holds the version and not the text).
"""

from __future__ import annotations

from typing import Literal

from app.sandbox.apiserver.rules.event_rules import micro_time
from app.sandbox.apiserver.rules.registry import Registry
from app.sandbox.apiserver.storage.kinds import EVENT, Object
from app.sandbox.apiserver.storage.patch import MERGE
from app.sandbox.scheduler.facts.pod_facts import PodFacts

_SERIES_KEPT = 20_000  # distinct events remembered


class Recorder:
    """Writes events about pods in the name of one scheduler profile."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._seen: dict[tuple[str, str, str], tuple[str, int]] = {}  # -> (event name, times)

    def record(
        self,
        facts: PodFacts,
        type_: Literal["Normal", "Warning"],
        reason: str,
        action: str,
        message: str,
    ) -> None:
        namespace, name = facts.key
        series = (facts.uid, facts.body["metadata"]["resourceVersion"], reason)
        event, count = self._seen.get(series, ("", 0))
        if not event:
            event = f"{name}.{self._registry.uid().replace('-', '')[:16]}"
            self._registry.create(
                EVENT, namespace, self._body(facts, event, type_, reason, action, message)
            )
        elif count == 1:
            observed = {"count": 2, "lastObservedTime": micro_time(self._registry.now())}
            change = {"series": observed}
            if self._registry.store.get(EVENT, (namespace, event)) is not None:
                self._registry.patch(EVENT, (namespace, event), change, MERGE)
        self._seen[series] = (event, count + 1)
        if len(self._seen) > _SERIES_KEPT:
            self._seen.pop(next(iter(self._seen)))

    def _body(
        self, facts: PodFacts, event: str, type_: str, reason: str, action: str, message: str
    ) -> Object:
        namespace, name = facts.key
        return {
            "metadata": {"name": event, "namespace": namespace},
            "involvedObject": {
                "kind": "Pod",
                "apiVersion": "v1",
                "namespace": namespace,
                "name": name,
                "uid": facts.uid,
                "resourceVersion": facts.body["metadata"]["resourceVersion"],
            },
            "type": type_,
            "reason": reason,
            "action": action,
            "message": message,
            "eventTime": micro_time(self._registry.now()),
            "reportingComponent": facts.scheduler,
            "reportingInstance": f"{facts.scheduler}-sandbox",
            "source": {},
        }
