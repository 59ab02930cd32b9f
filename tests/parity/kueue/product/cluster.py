"""The cluster of a scenario as Kubernetes objects.

nodes          Nodes; named after their hostname, as kubelets do and Kueue asks
levels         one Topology
pods, usage    pods that run on their node, one at least where something is used
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tests.parity.kueue.cases import Json, amount, is_open
from tests.parity.product import Object
from topology import NODE_LEVEL


def container(amounts: Mapping[str, int]) -> Json:
    """A container that asks for so much, in millicores and base units."""
    requests = {name: _quantity(name, number) for name, number in amounts.items() if name != "pods"}
    return {"name": "work", "resources": {"requests": requests}}


def _quantity(resource: str, number: int) -> str:
    return f"{number}m" if resource == "cpu" else str(number)


def _allocatable(node: Json) -> Counter[str]:
    return Counter({key: amount(key, text) for key, text in node["allocatable"].items()})


def topology(levels: list[str]) -> Object:
    """The Topology object."""
    return {
        "kind": "Topology",
        "metadata": {"name": "default"},
        "spec": {"levels": [{"nodeLabel": level} for level in levels]},
    }


@dataclass(slots=True)
class Cluster:
    """The nodes of a scenario under the names they have as objects."""

    scenario: Json
    more: dict[str, Counter[str]] = field(default_factory=dict)
    """Node -> what it has beside what the scenario says."""

    def name_of(self, node: Json) -> str:
        """A node's name; Kueue takes the label for it."""
        name = node["labels"].get(NODE_LEVEL) if self._has_nodes else None
        return str(name or node["name"])

    @property
    def _has_nodes(self) -> bool:
        return bool(self.scenario["levels"][-1] == NODE_LEVEL)

    def make_room(self, node: str, requests: Mapping[str, int], pods: int) -> None:
        """Gives a node what pods take that the scenario does not count."""
        for resource, number in {**requests, "pods": 1}.items():
            self.more.setdefault(node, Counter())[resource] += number * pods

    def domains(self) -> dict[str, tuple[str, ...]]:
        """Node -> the values by which Kueue names it, or the domain that it takes for one."""
        levels = self.scenario["levels"]
        found: dict[str, tuple[str, ...]] = {}
        for node in self.scenario["nodes"]:
            name = self.name_of(node)
            values = tuple(node["labels"].get(level, "") for level in levels)
            found[name] = (name,) if self._has_nodes else values
        return found

    def nodes(self) -> Iterator[Object]:
        for node in self.scenario["nodes"]:
            name = self.name_of(node)
            amounts = _allocatable(node) + self.more.get(name, Counter())
            status = "True" if node["ready"] else "False"
            yield {
                "kind": "Node",
                "metadata": {"name": name, "uid": f"uid-{name}", "labels": node["labels"]},
                "spec": {
                    "taints": node.get("taints") or [],
                    "unschedulable": bool(node.get("unschedulable")),
                },
                "status": {
                    "allocatable": {key: _quantity(key, number) for key, number in amounts.items()},
                    "conditions": [{"type": "Ready", "status": status}],
                },
            }

    def used(self) -> Iterator[Object]:
        """Pods of others that run."""
        names = {node["name"]: self.name_of(node) for node in self.scenario["nodes"]}
        for number, pod in enumerate(self.scenario.get("pods") or []):
            containers = [
                {"name": f"c{index}", "resources": {"requests": requests}}
                for index, requests in enumerate(pod["requests"])
            ]
            node = names.get(pod["nodeName"], pod["nodeName"])
            yield _running(f"other-{number}", node, containers, pod["phase"])
        for leaf, amounts in (self.scenario.get("aggregatedDomainUsage") or {}).items():
            yield from self._used_in(leaf, Counter(amounts))
        for used in self.scenario.get("priorOwnUsage") or []:
            values = used["values"]
            leaf = values[-1] if self._has_nodes else ",".join(values)
            total = Counter({**used["singlePodRequests"], "pods": 1})
            for _ in range(used["count"]):
                yield from self._used_in(leaf, total)

    def _used_in(self, leaf: str, amounts: Counter[str]) -> Iterator[Object]:
        """Usage of one node, or of a domain that Kueue takes for one: node by node, as it fits."""
        nodes = [node for node in self.scenario["nodes"] if self._is_in(node, leaf)]
        left = Counter(amounts)
        for node in nodes:
            is_last = node is nodes[-1]
            here = left if is_last else left & _allocatable(node)
            left = left - here
            if not any(here.values()):
                continue
            name = self.name_of(node)
            for number in range(max(1, here["pods"])):
                requests = {} if number else dict(here)
                yield _running(
                    f"used-{leaf}-{name}-{number}", name, [container(requests)], "Running"
                )

    def _is_in(self, node: Json, leaf: str) -> bool:
        if self._has_nodes:
            return self.name_of(node) == leaf
        values = [node["labels"].get(level) for level in self.scenario["levels"]]
        return all(values) and ",".join(values) == leaf and is_open(node)


def _running(name: str, node: str, containers: list[Json], phase: str) -> Object:
    return {
        "kind": "Pod",
        "metadata": {"namespace": "other", "name": name, "uid": f"uid-{name}"},
        "spec": {"nodeName": node, "containers": containers},
        "status": {"phase": phase},
    }
