"""What the product answers to a scenario, in Kueue's form, and how that differs from an answer.

Kueue places the pod sets of a workload one after the other and says which of them fit before the
first that does not; a user sees one answer, as the workload is admitted whole or not at all. So
an answer with a reason is held against the gang's sentence alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from tests.parity.kueue.cases import Answer, Json
from tests.parity.kueue.product.cluster import Cluster
from tests.parity.kueue.product.objects import written
from tests.parity.kueue.product.verdicts import difference
from tests.parity.product import told

Places = Mapping[str, Counter[tuple[str, ...]]]
"""Name of a pod set -> pods in each domain, as Kueue names domains."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The places of all pod sets, or the sentence that the gang is told."""

    places: Places
    sentence: str = ""

    def differs(self, answer: Mapping[str, Answer]) -> str:
        """How it differs from an answer in Kueue's form; empty where it does not."""
        reason = next((one for one in answer.values() if isinstance(one, str)), None)
        if reason is not None and self.sentence:
            return difference(self.sentence, reason)
        if reason is not None:
            return f"placed: {_shown(self.places)}\n    not {reason}"
        wanted = {name: _pods_in(domains) for name, domains in answer.items()}
        if self.sentence:
            return f"{self.sentence}\n    not {_shown(wanted)}"
        placed = {name: self.places.get(name, Counter()) for name in wanted}
        return "" if placed == wanted else f"{_shown(placed)}\n    not {_shown(wanted)}"


def _pods_in(answer: Answer) -> Counter[tuple[str, ...]]:
    pods: Counter[tuple[str, ...]] = Counter()
    for values, number in () if isinstance(answer, str) else answer:
        pods[values] += number
    return pods


def _shown(places: Places) -> str:
    return "; ".join(
        f"{name}: " + ", ".join(f"{'/'.join(v)} {n}" for v, n in sorted(domains.items()))
        for name, domains in places.items()
    )


def outcome(scenario: Json, settings: Mapping[str, bool]) -> Outcome:
    """What the product answers. Raises: NotReachable."""
    objects = written(scenario)
    domains = Cluster(scenario).domains()
    names = [pod_set["name"] for pod_set in scenario["podSets"]]
    places: dict[str, Counter[tuple[str, ...]]] = {name: Counter() for name in names}
    for index, nodes in objects.running.items():
        for node, pods in nodes.items():
            places[names[index]][domains.get(node, (node,))] += pods
    sentences = set()
    for pod, answer in told(objects.objects, settings).items():
        if answer.node:
            places[names[objects.set_of[pod]]][domains[answer.node]] += 1
        else:
            sentences.add(answer.sentence)
    assert len(sentences) < 2, f"members are told different things: {sentences}"
    return Outcome(places, next(iter(sentences), ""))
