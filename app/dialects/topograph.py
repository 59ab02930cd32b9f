"""NVIDIA topograph's node labels as levels.

    since v1.0   fabric.topograph.run/tier-N      0 is the closest switch, any depth
                 accelerator.topograph.run/domain and …/sub-domain, on some nodes
    before       network.topology.nvidia.com/core, spine, leaf, accelerator

An accelerator's domain may span switches: then it is no level inside them, and is left out.
Source: topograph docs/reference/node-labels.md (v1.0), and v0.5.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

NAME = "topograph"  # stands for the levels of its labels
FABRIC = "fabric.topograph.run/tier-{}"
ACCELERATORS = ("accelerator.topograph.run/domain", "accelerator.topograph.run/sub-domain")
EARLIER_FABRIC = tuple(f"network.topology.nvidia.com/{each}" for each in ("core", "spine", "leaf"))
EARLIER_ACCELERATORS = ("network.topology.nvidia.com/accelerator",)

_TIER = re.compile(r"fabric\.topograph\.run/tier-(0|[1-9][0-9]{0,3})", re.ASCII)


def levels_on(nodes: Collection[Mapping[str, str]]) -> tuple[tuple[str, ...], list[str]]:
    """The levels that the labels of nodes have, widest first; and a note for each left out.

    Returns no levels if no node has such a label.
    """
    keys = {key for labels in nodes for key, value in labels.items() if value}
    tiers = sorted((int(found[1]) for key in keys if (found := _TIER.fullmatch(key))), reverse=True)
    fabric: tuple[str, ...] = tuple(FABRIC.format(tier) for tier in tiers)
    accelerators = tuple(key for key in ACCELERATORS if key in keys)
    notes: list[str] = []
    if not (fabric or accelerators):
        fabric = tuple(key for key in EARLIER_FABRIC if key in keys)
        accelerators = tuple(key for key in EARLIER_ACCELERATORS if key in keys)
    elif any(key in keys for key in (*EARLIER_FABRIC, *EARLIER_ACCELERATORS)):
        notes.append("network.topology.nvidia.com/…: left out, topograph has written newer labels")
    if accelerators and (split := _split(nodes, fabric, accelerators[0])):
        notes.append(
            f"{accelerators[0]}={split} is not within one {fabric[-1]}: it is no level of the "
            f"fabric; --levels {','.join(accelerators)} makes a topology of its own"
        )
        accelerators = ()
    return (*fabric, *accelerators), notes


def _split(nodes: Collection[Mapping[str, str]], fabric: tuple[str, ...], accelerator: str) -> str:
    """A value of the accelerator's domain that is in several places of the fabric; "": none is."""
    if not fabric:
        return ""
    places: dict[str, set[tuple[str, ...]]] = {}
    for labels in nodes:
        place = tuple(labels.get(key, "") for key in fabric)
        if labels.get(accelerator) and all(place):
            places.setdefault(labels[accelerator], set()).add(place)
    return min((value for value, found in places.items() if len(found) > 1), default="")
