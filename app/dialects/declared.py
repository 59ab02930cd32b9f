"""What objects declare beside gangs: topologies, what may be had together, what may be evicted."""

from __future__ import annotations

from dataclasses import dataclass

from app.labels import EVERYTHING, LabelSelector
from topology.model.explicit_tree import DomainFlaw


@dataclass(frozen=True, slots=True)
class NodesNamed:
    """Nodes that a domain names as its members: by name, by a pattern or by labels."""

    name: str = ""
    pattern: str = ""
    """In RE2's syntax, found anywhere in the name."""
    labels: LabelSelector | None = None


@dataclass(frozen=True, slots=True)
class DomainSpec:
    """One domain, as an object declares it."""

    name: str
    tier: int
    """Smaller is closer together."""
    level: str
    """The key of the level that its tier is."""
    tier_name: str = ""
    """What it calls its tier."""
    inner: tuple[str, ...] = ()
    """The domains that it names as its members."""
    nodes: tuple[NodesNamed, ...] = ()
    flaws: tuple[DomainFlaw, ...] = ()
    """Of what is left out here."""


@dataclass(frozen=True, slots=True)
class DomainView:
    """What a domain's vocabulary may say of it in a status."""

    nodes: int  # in it, at any depth
    flaws: tuple[DomainFlaw, ...]


@dataclass(frozen=True, slots=True)
class TopologySpec:
    """A named topology as an object declares it: by keys of node labels, or one domain of it."""

    name: str
    levels: tuple[str, ...] = ()
    """Widest first."""
    domain: DomainSpec | None = None
    """The domains of all objects with this name make the topology, a level for each tier."""
    aliases: tuple[tuple[str, str], ...] = ()
    """(other name, level): gangs that name this topology may call the level so."""
    replaces_settings: bool = True
    """The levels that the operator has set are not used beside it."""


JOINED = "~~"  # begins the names of joined topologies

JoinKey = tuple[tuple[str, str], ...]
"""(topology, the level that it ends at; "": its last) of each, the outermost first."""


@dataclass(frozen=True, slots=True)
class JoinPart:
    """One of the topologies that a gang names, and what its constraints name of it."""

    topology: str
    levels: tuple[str, ...]
    """By their keys or their other names, sorted."""
    ends_at: str = ""
    """The level in a domain of which all groups are that name the next one; "": there is none."""


@dataclass(frozen=True, slots=True)
class Join:
    """Topologies of which a gang names each inside one domain of the one before it."""

    parts: tuple[JoinPart, ...]
    """The outermost first."""

    @property
    def key(self) -> JoinKey:
        """Equal for gangs that have one tree."""
        return tuple((part.topology, part.ends_at) for part in self.parts)

    @property
    def name(self) -> str:
        """What its topology is called."""
        return join_name(self.key)


@dataclass(frozen=True, slots=True)
class TreePart:
    """Leaves of a gang that are placed in one tree, where others of it are placed in another."""

    leaves: frozenset[str]
    topology: str | None
    """None: its leaves name no level, and may be anywhere."""
    join: Join | None = None
    """Of several topologies, where `topology` is one that is made of them."""


def join_name(key: JoinKey) -> str:
    """What the topology of a join is called."""
    ends = (f"{name} to {ends_at}" if ends_at else name for name, ends_at in key)
    return f"{JOINED}{', '.join(ends)}"


@dataclass(frozen=True, slots=True)
class Allowance:
    """What the pods of a namespace may request in all, as one object says."""

    namespace: str
    where: str
    """What says so, for messages: "ResourceQuota team/compute"."""
    lines: tuple[tuple[str, int, int], ...]
    """(resource, most, used), in the units of a pod's request."""


@dataclass(frozen=True, slots=True)
class Pool:
    """What some gangs may have together, as one object says."""

    name: str
    """With its kind, for messages: "Queue default"."""
    most: tuple[tuple[str, int], ...]
    """(resource, amount), in the units of a pod's request; of others any amount."""
    is_open: bool = True
    """False: no gang gets anything of it any more."""


@dataclass(frozen=True, slots=True)
class Draw:
    """What a gang gets of a pool, for as long as it lasts."""

    pool: str
    """By name; one that does not exist has room for everything."""
    amounts: tuple[tuple[str, int], ...]
    is_drawn: bool
    """Whether the gang has it; else it waits."""
    since: str
    """When it was requested, as the API server writes times."""


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    """How many of some pods of a namespace may be evicted now, as one object says."""

    namespace: str
    name: str
    """With its namespace, for messages."""
    selector: LabelSelector
    allowed: int

    @classmethod
    def of_all(cls, namespace: str, name: str) -> DisruptionBudget:
        """One that may select any pod of the namespace, and lets none go."""
        return cls(namespace, name, EVERYTHING, 0)
