"""What /v1 answers about gangs, and what the command line shows. The JSON has these names."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from app.state.gang.reasons import Reason


class View(BaseModel):
    """A part of an answer: never changed once it is made."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)


class Pods(View):
    """How many pods a gang has, and how far they are."""

    declared: int | None = None
    """How many it has in all; none: not known yet."""
    there: int
    """Pods that exist and belong to it."""
    planned: int
    """Of these, pods that have a node reserved."""
    bound: int
    """Of these, pods that kube-scheduler has bound."""


class NeedsNodes(View):
    """What node autoscalers are asked for."""

    reason: str
    """never: it would not fit if no pod ran; busy: it would; fragmented: its pods fit, apart;
    gradual: those of its pods fit that exist."""
    pods: int
    """So many of its pods have no node."""
    level: str = ""
    """One domain of it has to take them; empty: any nodes do."""
    largest: int
    """So many of them fit in the best one now."""
    ask: str
    """How they are asked. mark: the condition PodScheduled of its pods says Unschedulable. request:
    by a ProvisioningRequest, or it waits for its turn to make one."""
    request: str = ""
    """Its name; empty: there is none that may still bring nodes."""
    message: str = ""
    """How far it is, in the words of the one who serves it; of one that has failed, why."""
    since_seconds: float
    """For how long."""


class GangView(View):
    """One gang, without a search."""

    namespace: str
    name: str
    source: str
    """What declares it, such as `job`, `podgroup` or `podgang`."""
    phase: str
    """gathering, waiting, placed, binding, running, repairing or done."""
    reason: Reason
    """Why it is there, in one word."""
    message: str
    """The same in one sentence; of a gang that waits, the one in its pods' condition."""
    priority: int
    """The highest of its pods that wait."""
    waiting_seconds: float | None = None
    """How long it has been complete and without a place; none: it is not."""
    pods: Pods
    domains: tuple[str, ...] = ()
    """Where its pods run, or are planned to, such as `rack=b1/r7`: of the level that they name.
    Eight at most, and those of 64 pods that run."""
    needs_nodes: NeedsNodes | None = None
    """None: no autoscaler is asked for any."""


class Attempt(View):
    """A search that found no place or a plan that was lost, and those after it that ended alike."""

    reason: Reason
    message: str
    times: int
    first_seconds_ago: float
    last_seconds_ago: float


class GangPage(View):
    """Some of the gangs."""

    gangs: tuple[GangView, ...]
    next: str = ""
    """`after` for the page that follows; empty: this is the last one."""


class Excluded(View):
    """Nodes that take none of the pods that do not fit, for one reason."""

    reason: str
    nodes: int
    examples: tuple[str, ...] = ()
    """Two of them at most, by name."""


class Shortage(View):
    """What is free of one resource in one domain, and what the pods request together.

    Units: cores for cpu, bytes for memory, else as the resource is counted.
    """

    resource: str
    free: float
    requested: float


class Best(View):
    """The domain that could take most of the pods that do not fit."""

    domain: str
    """Such as `rack=b1/r7`; empty: all nodes together."""
    pods: int
    """So many of them fit there now."""
    needed: int
    """So many have to."""
    more_nodes: int | None = None
    """So many more nodes there would take the rest, empty and like the roomiest that there are for
    such pods; none: no node takes one of them."""
    short: tuple[Shortage, ...] = ()
    """Resources of which too little is free there; none: enough is free, in pieces too small."""


class Blocker(View):
    """Who has what is short in the best domain."""

    who: str
    """A gang, as `gang NAMESPACE/NAME`, or a pod, as `pod NAMESPACE/NAME`; `other namespaces`:
    all whose names the client may not see, together."""
    pods: int
    """Of its pods, those in that domain."""
    is_reserved: bool
    """They are not bound yet: Corral holds the capacity for them."""


class Relaxation(View):
    """One change with which the gang would fit, tried by the search itself."""

    kind: str
    """WiderLevel, FewerPods, FewerMembers, NodesBack, PodsGone, PodsAnew; or Never: nothing helps
    but a change of the gang."""
    text: str
    pod_sets: tuple[str, ...] = ()
    """Pod sets or groups that it is about."""
    level: str = ""
    """Of WiderLevel: the level that is required instead; empty: none is."""
    pods: int | None = None
    """Of FewerPods and PodsGone: how many."""
    nodes: tuple[str, ...] = ()
    """Of NodesBack: which."""
    is_cut_short: bool = False
    """A smaller change may do: not everything was tried."""


class RunsOn(View):
    """Where the pods of a gang are that have nodes."""

    nodes: int
    examples: tuple[str, ...] = ()
    """Eight of them at most, by name."""
    domains: tuple[str, ...] = ()
    """Of the levels that the gang names, such as `rack=b1/r7`: eight at most."""
    more_domains: int = Field(default=0, ge=0)
    """How many there are beyond those."""


class Explanation(View):
    """One gang that waits, searched on a copy of the cluster as it is now."""

    gang: GangView
    fits_now: bool
    """A place was found: Corral plans it with its next pass, or once it need not wait for what its
    reason names."""
    finds_now: str = ""
    """What the search says of the cluster as it is now, if the gang's message says other numbers:
    that one changes with the answer only, or a minute later, since a change of it costs every pod
    an attempt."""
    topology: str = ""
    """The topology that was searched first; empty: the levels of Corral's settings."""
    best: Best | None = None
    excluded: tuple[Excluded, ...] = ()
    """Nodes that take none of its pods, by reason."""
    blockers: tuple[Blocker, ...] = ()
    """Who has what is short in the best domain, the largest first."""
    relaxations: tuple[Relaxation, ...] = ()
    runs_on: RunsOn | None = None
    """None: no pod of it has a node."""
    awaited: tuple[str, ...] = ()
    """Pods that have a place, or would get one, and that kube-scheduler has not brought: five."""
    attempts: tuple[Attempt, ...] = ()
    """The last of them, the newest first."""
    tries_again: str
    """What makes Corral look for a place again."""
    advice: str
    """What its owner or an administrator can do; empty: nothing has to be done."""
    retry_seconds: float | None = Field(default=None, ge=0)
    """The next search is put off for so long."""
