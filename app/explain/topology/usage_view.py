"""What /v1/topology answers; the JSON has these names."""

from __future__ import annotations

from app.explain.view import Excluded, View


class TopologyNames(View):
    """One of the topologies that are in use."""

    name: str
    levels: tuple[str, ...]
    """Widest first; the last is the node."""


class Amount(View):
    """One resource of a domain. Units: cores for cpu, bytes for memory, else as it is counted."""

    resource: str
    capacity: float
    """Of all its nodes."""
    used: float
    """By pods that are bound."""
    reserved: float
    """For pods that are planned and not bound yet."""
    free: float
    """Of nodes that take pods, added up: for pods in pieces, see free_for."""


class Free(View):
    """How many more pods of one shape fit, node by node."""

    shape: str
    pods: int
    nodes: int
    """Nodes that take one at least."""
    excluded: tuple[Excluded, ...] = ()
    """Open nodes that take none by their labels or taints."""


class DomainUsage(View):
    """One domain, with all that is inside it."""

    level: str = ""
    """Empty: all that was asked about."""
    domain: str = ""
    """Its values from the widest level on, such as `b1/r7`."""
    nodes: int
    resources: tuple[Amount, ...]
    free_for: tuple[Free, ...] = ()
    excluded: tuple[Excluded, ...] = ()
    """Nodes that take no pods, by reason."""


class TopologyPage(View):
    """A topology, or a part of one: each domain comes before those inside it."""

    name: str
    levels: tuple[str, ...]
    topologies: tuple[TopologyNames, ...]
    """All that are in use; `name` is one of them."""
    total: DomainUsage
    domains: tuple[DomainUsage, ...]
    next: str = ""
    """`after` for the page that follows; empty: this is the last one."""
