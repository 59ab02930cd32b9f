"""What /v1/map and /v1/nodes answer; the JSON has these names.

A map is made of columns: the same index in `nodes`, `allocatable`, `used`, `reserved` and `state`
is the same node, in the order of the tree. So 5,000 nodes are 0.2 MB, and one page in a browser.
"""

from __future__ import annotations

from app.explain.topology.usage_view import Amount, TopologyNames
from app.explain.view import View


class MapLevel(View):
    """The domains of one level above the nodes."""

    level: str
    names: tuple[str, ...]
    starts: tuple[int, ...]
    """The first node of each; the next one's first node, or the end of all, is its end."""


class MapGang(View):
    """A gang that is on the map. All without a name: the pods of gangs whose names the client may
    not see, together."""

    namespace: str
    name: str
    source: str


class MapShares(View):
    """What gangs take of nodes, in the order of the nodes; each index is one gang on one node."""

    node: tuple[int, ...]
    gang: tuple[int, ...]
    used: tuple[float, ...]
    """By its pods that are bound there."""
    reserved: tuple[float, ...]
    """For its pods that are planned there and not bound yet."""


class MapEarmarks(View):
    """Nodes kept free for gangs that have waited too long, or that came for a gang."""

    node: tuple[int, ...]
    gang: tuple[int, ...]


class MapPage(View):
    """One resource of every node of a topology, and the gangs that have it.

    Units: cores for cpu, bytes for memory, else as the resource is counted.
    """

    name: str
    levels: tuple[str, ...]
    """Widest first; the last is the node."""
    topologies: tuple[TopologyNames, ...]
    resource: str
    resources: tuple[str, ...]
    """Those that nodes have."""
    domains: tuple[MapLevel, ...]
    nodes: tuple[str, ...]
    allocatable: tuple[float, ...]
    used: tuple[float, ...]
    """By all pods that are bound there, of gangs or not."""
    reserved: tuple[float, ...]
    state: tuple[int, ...]
    """Of each node, the index of its state."""
    states: tuple[str, ...]
    """Empty: it takes pods; else why it takes none."""
    gangs: tuple[MapGang, ...]
    shares: MapShares
    earmarks: MapEarmarks
    unlabelled: int = 0
    """Nodes that are in no domain, since they lack the label of a level."""
    is_cut_short: bool = False
    """There are more shares than are told."""


class NodePod(View):
    """A pod on a node."""

    namespace: str
    name: str
    gang: str = ""
    """The name of its gang; empty: it is in none."""
    is_reserved: bool
    """It is planned there, and not bound yet."""
    amounts: dict[str, float]
    """What it requests, as in `resources`."""


class NodeView(View):
    """One node, and what is on it."""

    name: str
    state: str
    """Empty: it takes pods; else why it takes none."""
    resources: tuple[Amount, ...]
    pods: tuple[NodePod, ...]
    more_pods: int = 0
    """Pods beyond those that are told, and pods whose names the client may not see."""
    kept_for: tuple[MapGang, ...] = ()
    """Gangs that it is kept free for."""
