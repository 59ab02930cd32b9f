"""The arguments of Volcano's plugin network-topology-aware, as its scheduler's file has them.

    tiers:
    - plugins:
      - name: network-topology-aware
        arguments:
          hypernode.binpack.cpu: 5
          hypernode.binpack.resources: nvidia.com/gpu
          hypernode.binpack.resources.nvidia.com/gpu: 2
          hypernode.binpack.normal-pod.fading: 0.5

Other plugins are not looked at, and only the first of this name is. Volcano takes its default for a
value that is none, and leaves out an argument that it does not know; here both are told.
Source: volcano pkg/scheduler/plugins/network-topology-aware/network_topology_aware.go (v1.14), New;
pkg/scheduler/conf/scheduler_conf.go; the ConfigMap of installer/helm/chart/volcano.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import yaml

from app.dialects.spec import TierPacking
from app.errors import DecodeError

PLUGIN = "network-topology-aware"
CONFIG_KEY = "volcano-scheduler.conf"  # of the ConfigMap
MOST_WEIGHT = 1_000_000

SWITCH = "enableNodeOrder"  # of a plugin, beside its arguments
WEIGHT = "weight"
CPU = "hypernode.binpack.cpu"
MEMORY = "hypernode.binpack.memory"
RESOURCES = "hypernode.binpack.resources"
NORMAL_PODS = "hypernode.binpack.normal-pod.enable"
FADING = "hypernode.binpack.normal-pod.fading"
# Of Volcano's actions gangpreempt and gangreclaim.
EVICTING = "hypernode.gradient.evict.max-hypernodes"
KNOWN = (WEIGHT, CPU, MEMORY, RESOURCES, f"{RESOURCES}.NAME", NORMAL_PODS, FADING, EVICTING)


def packing_in(text: str) -> TierPacking:
    """What the file says, or the ConfigMap around it, with the plugin's defaults for the rest.

    Raises: DecodeError naming the field, or the argument and its value.
    """
    document = _yaml(text)
    if isinstance(document, dict) and document.get("kind") == "ConfigMap":
        data = document.get("data")
        inner = data.get(CONFIG_KEY) if isinstance(data, dict) else None
        if not isinstance(inner, str):
            raise DecodeError(f"ConfigMap: data[{CONFIG_KEY}]: a text is required")
        document = _yaml(inner)
    for plugin in _plugins(document):
        if plugin.get("name") == PLUGIN:
            return _packing(plugin)
    raise DecodeError(f"no tier has the plugin {PLUGIN}")


def _yaml(text: str) -> object:
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise DecodeError(f"not YAML: {' '.join(str(error).split())}") from error


def _plugins(document: object) -> Iterator[Mapping[object, object]]:
    for tier in _list(document, "tiers", ""):
        for plugin in _list(tier, "plugins", "tiers[]."):
            if isinstance(plugin, dict):
                yield plugin


def _list(outer: object, name: str, where: str) -> list[object]:
    found = outer.get(name) if isinstance(outer, dict) else None
    if not isinstance(found, list):
        raise DecodeError(f"{where}{name}: a list is required, not {found!r}")
    return found


def _packing(plugin: Mapping[object, object]) -> TierPacking:
    values = plugin.get("arguments")
    if values is None:
        values = {}
    if not isinstance(values, dict):
        raise DecodeError(f"{PLUGIN}: arguments: a mapping is required, not {values!r}")
    switches, arguments = (
        _Arguments({str(name): value for name, value in said.items()}) for said in (plugin, values)
    )
    listed = arguments.names(RESOURCES)
    arguments.check(listed)
    resources = {name: arguments.number(f"{RESOURCES}.{name}", 1) for name in listed}
    resources |= {"cpu": arguments.number(CPU, 1), "memory": arguments.number(MEMORY, 1)}
    is_used = [
        arguments.number(WEIGHT, 1) > 0,
        arguments.boolean(NORMAL_PODS),
        switches.boolean(SWITCH),
    ]
    return TierPacking(tuple(resources.items()), arguments.share(FADING, 0.8), all(is_used))


@dataclass(frozen=True, slots=True)
class _Arguments:
    """Arguments by name, each of the kind that it has to be."""

    values: Mapping[str, object]

    def check(self, listed: tuple[str, ...]) -> None:
        """Raises: DecodeError for an argument that there is not."""
        for name, value in self.values.items():
            resource = name.removeprefix(f"{RESOURCES}.")
            if resource != name and resource not in listed:
                raise DecodeError(
                    f"{PLUGIN}: {name}: {value!r}: {RESOURCES} does not list {resource}"
                )
            if resource == name and name not in KNOWN:
                raise DecodeError(
                    f"{PLUGIN}: no argument {name!r} ({value!r}); known: {', '.join(KNOWN)}"
                )

    def number(self, name: str, default: int) -> int:
        """A whole number, as weights are."""
        value = self.values.get(name, default)
        if type(value) is not int or not 0 <= value <= MOST_WEIGHT:
            raise self._wrong(name, f"a whole number from 0 to {MOST_WEIGHT}")
        return value

    def share(self, name: str, default: float) -> float:
        """A number, whole or not."""
        value = self.values.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(name, f"a number from 0 to {MOST_WEIGHT}")
        if not 0 <= value <= MOST_WEIGHT:
            raise self._wrong(name, f"a number from 0 to {MOST_WEIGHT}")
        return float(value)

    def boolean(self, name: str) -> bool:
        """Whether something is so; by default it is."""
        value = self.values.get(name, True)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def names(self, name: str) -> tuple[str, ...]:
        """Names between commas, each once."""
        value = self.values.get(name, "")
        if not isinstance(value, str):
            raise self._wrong(name, "names between commas")
        return tuple(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))

    def _wrong(self, name: str, required: str) -> DecodeError:
        return DecodeError(f"{PLUGIN}: {name}: {self.values[name]!r} is not {required}")
