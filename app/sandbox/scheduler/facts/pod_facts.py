"""What a scheduler needs to know of a pod, read once per version of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import orjson

from app.sandbox.apiserver.rules.pod_rules import has_ended
from app.sandbox.apiserver.rules.quantity import amount
from app.sandbox.apiserver.storage.kinds import Key, Object, key_of
from app.sandbox.apiserver.storage.store import Stored

NOW = "~"  # a time after all others
TARGET, BY_SCHEDULER = "DisruptionTarget", "PreemptionByScheduler"  # a condition and its reason
# What scoring assumes of a container that requests nothing (scheduler/util/pod_resources.go).
_ASSUMED_CPU, _ASSUMED_MEMORY = 100, 200 * 1024 * 1024


@dataclass(frozen=True, slots=True, eq=False)
class PodFacts:
    """requests: what NodeResourcesFit counts, without the pod itself; zero amounts left out.

    scored: (cpu, memory) as the scores count them: never 0.
    terms: required node affinity, OR-ed; None where the pod has none.
    started: when it began to run, in the API's form; NOW while no kubelet has said so.
    shape: equal for pods that the same nodes' labels suit.
    Units: millicores, base units.
    """

    stored: Stored
    key: Key
    uid: str
    scheduler: str
    priority: int
    requests: Mapping[str, int]
    scored: tuple[int, int]
    selector: Mapping[str, str]
    terms: tuple[Object, ...] | None
    shape: bytes
    tolerations: tuple[Object, ...]
    gates: tuple[str, ...]
    node: str
    nominated_node: str
    started: str

    @property
    def body(self) -> Object:
        return self.stored.body

    @property
    def is_finished(self) -> bool:
        return has_ended(self.body)

    @property
    def is_going(self) -> bool:
        return bool(self.body["metadata"].get("deletionTimestamp"))

    @property
    def is_preempted(self) -> bool:
        """Whether it ends because a scheduler preempts it; one that is evicted does not count."""
        conditions = (self.body.get("status") or {}).get("conditions") or []
        said: Object = next((each for each in conditions if each["type"] == TARGET), {})
        is_target = said.get("status") == "True" and said.get("reason") == BY_SCHEDULER
        return self.is_going and is_target


def facts_of(stored: Stored, ignored: Collection[str] = ()) -> PodFacts:
    """`ignored`: resources that no node has to have."""
    body = stored.body
    spec, status = body["spec"], body.get("status") or {}
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    terms = None if required is None else tuple(required.get("nodeSelectorTerms") or [])
    selector = spec.get("nodeSelector") or {}
    requests = {name: wanted for name, wanted in pod_requests(spec).items() if name not in ignored}
    return PodFacts(
        stored=stored,
        key=key_of(body),
        uid=body["metadata"]["uid"],
        scheduler=spec.get("schedulerName", "default-scheduler"),
        priority=spec.get("priority") or 0,
        requests=requests,
        scored=(requests.get("cpu", _ASSUMED_CPU), requests.get("memory", _ASSUMED_MEMORY)),
        selector=selector,
        terms=terms,
        shape=orjson.dumps([selector, terms], option=orjson.OPT_SORT_KEYS),
        tolerations=tuple(spec.get("tolerations") or []),
        gates=tuple(gate["name"] for gate in spec.get("schedulingGates") or []),
        node=spec.get("nodeName", ""),
        nominated_node=status.get("nominatedNodeName", ""),
        started=status.get("startTime") or NOW,
    )


def pod_requests(spec: Object) -> dict[str, int]:
    """The effective request: containers and sidecars together, or the largest init step.

    Overhead is added; pod-level resources replace the sum for what they name.
    Source: component-helpers resource.PodRequests.
    """
    total: dict[str, int] = {}
    for container in spec.get("containers") or []:
        _add(total, _requests(container))
    largest: dict[str, int] = {}
    sidecars: dict[str, int] = {}
    for container in spec.get("initContainers") or []:
        step = dict(_requests(container))
        if container.get("restartPolicy") == "Always":
            _add(total, step.items())
            _add(sidecars, step.items())
            step = dict(sidecars)
        else:
            _add(step, sidecars.items())
        for name, wanted in step.items():
            largest[name] = max(largest.get(name, 0), wanted)
    for name, wanted in largest.items():
        total[name] = max(total.get(name, 0), wanted)
    total |= dict(_requests(spec))  # spec.resources
    overhead = spec.get("overhead") or {}
    _add(total, ((name, amount(name, text)) for name, text in overhead.items()))
    return {name: wanted for name, wanted in sorted(total.items()) if wanted}


def _requests(owner: Object) -> Iterable[tuple[str, int]]:
    resources = owner.get("resources") or {}
    requests = resources.get("requests") or {}
    return [(name, amount(name, text)) for name, text in requests.items()]


def _add(total: dict[str, int], more: Iterable[tuple[str, int]]) -> None:
    for name, wanted in more:
        total[name] = total.get(name, 0) + wanted
