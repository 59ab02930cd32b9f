"""Whether a journal shows every promise kept, judged by what it says happened and by nothing else.

    at most once    no pod is bound twice, nor elsewhere than kube-scheduler asked
    within capacity what Corral binds for a gang fits beside all that was known to be on the node
    whole           no gang starts before as many of its pods have come as it needs, and none that
                    has started stays without them
    in its domains  what a gang requires to be together is together

The journal's inputs are events of the watch, requests and outcomes of bindings; answers are in it
as digests, and not needed: what Corral has decided shows in the cluster. Where the blame could be
another's, such as a pod that came to a node at the same time, nothing is found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from app.dialects import corral
from app.dialects.nvlink import level_value
from app.dialects.registry import DIALECTS, Dialects
from app.dialects.spec import GangKey, GangSpec, GroupSpec, LeafSpec, Within
from app.kube.core.objects import Amounts, NodeRecord, ObjectRecord, PodRecord
from app.kube.watch.events import Applied, Event, Listed
from app.state.effects import BindFailed
from app.state.journal.belonging import Belonging, least_pods, parts_of
from app.state.journal.lines import ARGS, LINE, In, decoded, decoders_of, event_of, settings_of
from app.state.journal.tiers import TieredDomains
from app.state.settings import EngineSettings
from topology.model.levels import NODE_LEVEL
from topology.model.request import Slice

Promise = Literal["at most once", "within capacity", "whole", "in its domains"]
SETTLE_SECONDS = 60.0  # beyond the engine's own deadlines: a gang that is not whole by then is torn


@dataclass(frozen=True, slots=True)
class Broken:
    """A promise that was not kept."""

    line: int
    """Of the journal, counted from 1, where it shows."""
    now: float
    promise: Promise
    about: str
    """The gang, or the pod."""
    text: str

    def __str__(self) -> str:
        return f"line {self.line} at {self.now!r}: not {self.promise}: {self.about}: {self.text}"


@dataclass(slots=True)
class Checked:
    """What was looked at, and what was found."""

    broken: list[Broken] = field(default_factory=list)
    pods_bound: int = 0
    """By Corral."""
    gangs_started: int = 0
    domains: int = 0
    """Groups of pods of which it was judged whether they are together."""
    unjudged: Counter[str] = field(default_factory=Counter)
    """Why something was not judged, and how often."""


@dataclass(slots=True)
class _Asked:
    """A request at /bind."""

    node: str
    at: int
    """The line."""
    allocatable: Amounts
    labels: Mapping[str, str]
    around: frozenset[str] = frozenset()
    """The domains of objects that the node was in."""


@dataclass(frozen=True, slots=True)
class _Before:
    """A gang before one of its pods is bound. Units: pods."""

    has_places: bool = False
    """Others of it have nodes already."""
    came: int = 0
    """To /bind, or have done their work."""
    needed: int = 0


@dataclass(slots=True)
class _Start:
    """A gang that Corral has started."""

    line: int
    at: float
    is_excused: bool = False
    """A pod of it was lost, or its binding failed: being whole again takes its owner."""


@dataclass(slots=True)
class _Judge:
    """Follows a journal line by line."""

    settings: EngineSettings
    belonging: Belonging
    found: Checked = field(default_factory=Checked)
    nodes: dict[str, NodeRecord] = field(default_factory=dict)
    records: dict[str, PodRecord] = field(default_factory=dict)
    """Of pods that are there, by uid."""
    on: dict[str, dict[str, int]] = field(default_factory=dict)
    """By node: the uids on it, and in which line that was first known."""
    asked: dict[str, _Asked] = field(default_factory=dict)
    """By uid: the last request at /bind."""
    nodes_asked: dict[str, set[str]] = field(default_factory=dict)
    """By uid: in every request since a binding succeeded."""
    early: dict[str, _Before] = field(default_factory=dict)
    """By uid: of pods that the watch shows bound, whose binding is not known to have succeeded."""
    bound: dict[str, str] = field(default_factory=dict)
    """By uid: where Corral has bound a pod."""
    place_of: dict[str, str] = field(default_factory=dict)
    """By uid: where a pod is."""
    path_at: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """By uid: the labels of its node, as they were when it came there."""
    levels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By uid of an object: the levels of a topology."""
    tiered: TieredDomains = field(default_factory=TieredDomains)
    around: dict[str, frozenset[str]] = field(default_factory=dict)
    """By uid: the domains of objects that its node was in when it came there."""
    starts: dict[GangKey, _Start] = field(default_factory=dict)
    succeeded: Counter[GangKey] = field(default_factory=Counter)
    """Pods that have succeeded and are gone."""
    line: int = 0
    now: float = 0.0
    _noted: set[tuple[str, str, str]] = field(default_factory=set)

    # -- events --------------------------------------------------------------------------------

    def hear(self, event: Event) -> None:
        if isinstance(event, Listed):
            listed = {each.name if event.kind == "Node" else each.uid for each in event.records}
            if event.kind == "Node":
                self.nodes = {name: each for name, each in self.nodes.items() if name in listed}
            elif event.kind == "Pod":
                for uid in [uid for uid in self.records if uid not in listed]:
                    self._lose_pod(uid)
            else:
                self.tiered.keep(event.kind, listed)
            # Claims first: what a pod is found to be on counts for its gang.
            self.belonging.hear(event)
            for record in event.records:
                self._see(record)
            return
        if isinstance(event, Applied):
            self.belonging.hear(event)
            self._see(event.record)
            return
        record = event.record
        if isinstance(record, PodRecord):
            self._lose_pod(record.uid)
        elif isinstance(record, NodeRecord):
            self.nodes.pop(record.name, None)
            for uid in self.on.get(record.name, ()):
                self._excuse(uid)
        elif isinstance(record, ObjectRecord):
            self.tiered.drop(record.uid)
        self.belonging.hear(event)

    def _see(self, record: object) -> None:
        if isinstance(record, PodRecord):
            self._see_pod(record)
        elif isinstance(record, NodeRecord):
            self.nodes[record.name] = record
            if not record.is_ready:
                for uid in self.on.get(record.name, ()):
                    self._excuse(uid)
        elif isinstance(record, ObjectRecord):
            specs = self.belonging.dialects.topologies(record)
            self.tiered.put(record, [each.domain for each in specs if each.domain is not None])
            for spec in specs:
                if spec.domain is None:
                    self.levels[f"{record.uid}/{spec.name}"] = tuple(spec.levels)

    def _see_pod(self, pod: PodRecord) -> None:
        self.records[pod.uid] = pod
        if pod.is_finished or pod.is_terminating:
            self._excuse(pod.uid)
        if pod.is_finished:
            self._leave(pod.uid)
        elif pod.node:
            before = self.place_of.get(pod.uid)
            if before is not None and before != pod.node:
                by = "Corral has bound it" if pod.uid in self.bound else "it was"
                self._break("at most once", pod, f"it is on {pod.node}, and {by} on {before}")
            self._note_early(pod)
            self._come(pod.uid, pod.node)

    def _note_early(self, pod: PodRecord) -> None:
        """The watch may show a binding before its outcome is told."""
        claim = self.belonging.claims.get(pod.uid)
        is_asked = pod.node in self.nodes_asked.get(pod.uid, ())
        if claim is not None and is_asked and pod.uid not in self.place_of:
            self.early[pod.uid] = self._before(claim.gang)

    def _come(self, uid: str, node: str) -> None:
        if self.place_of.get(uid) == node:
            return
        self._leave(uid)
        self.place_of[uid] = node
        self.on.setdefault(node, {})[uid] = self.line
        if node in self.nodes:
            self.path_at[uid] = self.nodes[node].labels
            self.around[uid] = self.tiered.around(self.nodes[node])

    def _leave(self, uid: str) -> None:
        node = self.place_of.pop(uid, None)
        if node is not None:
            self.on[node].pop(uid, None)

    def _lose_pod(self, uid: str) -> None:
        self._excuse(uid)
        claim = self.belonging.claims.get(uid)
        record = self.records.pop(uid, None)
        if claim is not None and record is not None and record.phase == "Succeeded":
            self.succeeded[claim.gang] += 1
        self._leave(uid)
        for of_pod in (
            self.asked, self.nodes_asked, self.early, self.bound, self.path_at, self.around
        ):  # fmt: skip
            of_pod.pop(uid, None)

    def _excuse(self, uid: str) -> None:
        claim = self.belonging.claims.get(uid)
        if claim is not None and claim.gang in self.starts:
            self.starts[claim.gang].is_excused = True

    # -- bindings ------------------------------------------------------------------------------

    def ask(self, uid: str, node: str) -> None:
        """kube-scheduler asks at /bind."""
        there = self.nodes.get(node)
        allocatable, labels = (there.allocatable, there.labels) if there else ((), {})
        around = self.tiered.around(there) if there else frozenset()
        self.asked[uid] = _Asked(node, self.line, allocatable, labels, around)
        self.nodes_asked.setdefault(uid, set()).add(node)

    def fail(self, uid: str) -> None:
        """A binding has failed."""
        self._excuse(uid)

    def bind(self, uid: str) -> None:
        """A binding has succeeded."""
        pod, asked = self.records.get(uid), self.asked.get(uid)
        if asked is None:
            if pod is not None:
                self._break(
                    "at most once", pod, "Corral has bound it, which was not asked at /bind"
                )
            return
        if pod is None:
            return  # it is gone by now
        where, named = self.place_of.get(uid), self.nodes_asked.get(uid, set())
        if uid in self.bound:
            if named and self.bound[uid] not in named:
                twice = f"it is bound to {self.bound[uid]} and to {asked.node}"
                self._break("at most once", pod, twice)
            return  # its outcome is known: this is another answer to the same request
        if where is not None and where not in named:
            asked_for = ", ".join(sorted(named))
            self._break("at most once", pod, f"asked for {asked_for}, bound, and on {where}")
            return
        node = where or asked.node
        self.nodes_asked.pop(uid, None)
        self.found.pods_bound += 1
        self.bound[uid] = node
        claim = self.belonging.claims.get(uid)
        is_member = claim is not None and not claim.flaw and uid in self._uids_of(claim.gang)
        if claim is not None and is_member:
            self._judge_start(claim.gang, self.early.get(uid) or self._before(claim.gang))
            self.early.pop(uid, None)
        self._come(uid, node)
        if asked.labels and asked.node == node:
            self.path_at[uid], self.around[uid] = asked.labels, asked.around
        if claim is not None and is_member:
            self._judge_capacity(pod, asked)
            self._judge_domains(claim.gang, {uid})

    def _uids_of(self, key: GangKey) -> Mapping[str, None]:
        return self.belonging.members.get(key, {})

    def _judge_capacity(self, pod: PodRecord, asked: _Asked) -> None:
        """On the books of the moment it was asked for: what others brought since is not ours."""
        there = self.nodes.get(asked.node)
        if there is None:
            return
        has = Counter(dict(asked.allocatable)) | Counter(dict(there.allocatable))
        taken: Counter[str] = Counter()
        for uid, since in self.on.get(asked.node, {}).items():
            claim = self.belonging.claims.get(uid)
            is_ours = uid in self.bound and claim is not None
            if uid == pod.uid or is_ours or since < asked.at:
                taken.update(dict(self.records[uid].request if uid in self.records else ()))
        for resource, amount in pod.request:
            if amount and taken[resource] > has[resource]:
                self._break(
                    "within capacity",
                    pod,
                    f"{taken[resource]} of {resource} are on {asked.node}, which has"
                    f" {has[resource]}",
                )

    # -- gangs ---------------------------------------------------------------------------------

    def _before(self, key: GangKey) -> _Before:
        live = self.belonging.live(key)
        if any(each.uid in self.place_of for each in live):
            return _Before(has_places=True)
        spec = self._spec(key)
        if spec is None:
            return _Before()
        came = sum(each.uid in self.asked for each in live) + self.succeeded[key]
        came += sum(
            self.records[uid].phase == "Succeeded"
            for uid in self._uids_of(key)
            if uid in self.records
        )
        claims = (self.belonging.claims[each.uid].said for each in live)
        # Places are reserved for the others, which are made later.
        is_early = spec.reserves_all or any(each.reserves_all or each.leaves for each in claims)
        return _Before(came=came, needed=1 if is_early else least_pods(spec))

    def _judge_start(self, key: GangKey, before: _Before) -> None:
        """At its first binding a gang has as many pods that came to /bind as it needs."""
        if before.has_places:
            return
        is_known = key in self.starts
        self.starts[key] = _Start(self.line, self.now)
        if is_known:
            return  # none of it ran any more: it starts anew
        self.found.gangs_started += 1
        if before.came < before.needed:
            self._break_gang(
                "whole", key, f"it starts with {before.came} of the {before.needed} that it needs"
            )

    def _spec(self, key: GangKey) -> GangSpec | None:
        spec = self.belonging.spec(key)
        if spec is None:
            self.found.unjudged["gangs of which the journal does not say what they are"] += 1
        return spec

    def _judge_domains(self, key: GangKey, only: Iterable[str] = ()) -> None:
        """Each domain that a part of the gang requires; `only` the parts that have these pods."""
        spec = self.belonging.spec(key)
        if spec is None:
            return
        chosen = set(only)
        live = [each for each in self.belonging.live(key) if each.uid in self.place_of]
        by_leaf: dict[str, list[str]] = {}
        for each in live:
            by_leaf.setdefault(self.belonging.claims[each.uid].leaf, []).append(each.uid)
        together: dict[tuple[int, str, str], list[str]] = {}
        tiered: dict[tuple[int, str], tuple[Within, list[str]]] = {}
        for leaf, parts in parts_of(spec, by_leaf).items():
            groups = [part for part in parts if isinstance(part, GroupSpec)]
            declared = next((part for part in parts if isinstance(part, LeafSpec)), None)
            for uid in by_leaf[leaf]:
                for part in groups:
                    if level := part.constraint.required:
                        together.setdefault((id(part), part.name, level), []).append(uid)
                    if part.within is not None and not part.within.is_soft:
                        its = tiered.setdefault((id(part), part.name), (part.within, []))
                        its[1].append(uid)
                name, level = self._of_leaf(uid, declared)
                if level:
                    together.setdefault((0, name, level), []).append(uid)
        for (_, name, level), uids in together.items():
            if not chosen or chosen & set(uids):
                self._judge_together(key, name, level, uids)
        for (_, name), (within, uids) in tiered.items():
            if not chosen or chosen & set(uids):
                self._judge_tier(key, name, within, uids)
        start = self.starts.get(key)
        if start is not None and not start.is_excused:
            self._judge_slices(key, spec, self.belonging.live(key))

    def _judge_slices(self, key: GangKey, spec: GangSpec, live: Sequence[PodRecord]) -> None:
        """Of a pod set that runs as a whole, each domain has whole slices.

        `live`: the gang's pods with and without a node.
        """
        leaves = {leaf.name: leaf for leaf in spec.leaves()}
        pod_sets: dict[str, list[str]] = {}
        cut: dict[str, tuple[Slice, ...]] = {}
        for each in live:
            claim = self.belonging.claims[each.uid]
            leaf = leaves.get(claim.leaf) or leaves.get("")
            name, _ = self._of_leaf(each.uid, leaf)
            pod_sets.setdefault(name, []).append(each.uid)
            is_declared = leaf is not None and leaf.constraint is not None
            cut[name] = leaf.slices if leaf is not None and is_declared else claim.said.slices
        for name, uids in pod_sets.items():
            if not cut[name] or any(uid not in self.bound for uid in uids):
                continue  # it does not run as a whole, or was not started by what is judged
            for each_slice in cut[name]:
                self._judge_slice(key, name, each_slice, uids)

    def _judge_slice(self, key: GangKey, name: str, cut: Slice, uids: list[str]) -> None:
        if len(uids) % cut.pods:
            return
        paths = [self._path(uid, cut.level, self.path_at.get(uid, {})) for uid in uids]
        if any(path is None for path in paths):
            return
        self.found.domains += 1
        counts = Counter("/".join(path) for path in paths if path is not None)
        torn = sorted(f"{domain} has {pods}" for domain, pods in counts.items() if pods % cut.pods)
        if torn:
            part = f"{name}: " if name and not name.startswith("(") else ""
            said = f"slices of {cut.pods} pods, each in one {cut.level}: {', '.join(torn)}"
            self._break_gang("in its domains", key, f"{part}{said}")

    def _of_leaf(self, uid: str, leaf: LeafSpec | None) -> tuple[str, str | None]:
        """What tells a pod's set from others, and the level that it requires."""
        if leaf is not None and leaf.constraint is not None:
            return leaf.name, leaf.constraint.required
        pod, claim = self.records[uid], self.belonging.claims[uid]
        # Where objects do not tell pods apart, what they request does.
        name = claim.leaf or f"({pod.request}, {corral.own_shape(pod)[0]})"
        return name, claim.said.constraint.required

    def _judge_together(self, key: GangKey, name: str, level: str, uids: list[str]) -> None:
        domains: dict[tuple[str, ...], list[str]] = {}
        for uid in uids:
            path = self._path(uid, level, self.path_at.get(uid, {}))
            there = self.nodes.get(self.place_of[uid])
            if path is None:
                self.found.unjudged[f"pods on nodes without a value at {level}"] += 1
                return
            if there is not None and self._path(uid, level, there.labels) != path:
                self.found.unjudged["gangs of which a node has moved to another domain"] += 1
                return
            domains.setdefault(path, []).append(uid)
        self.found.domains += 1
        # Others may have put them apart before; Corral has to follow none of these.
        before = [d for d, its in domains.items() if any(uid not in self.bound for uid in its)]
        if len(domains) > 1 and len(before) <= 1:
            where = ", ".join(sorted("/".join(each) for each in domains))
            part = f"{name}: " if name and not name.startswith("(") else ""
            self._break_gang("in its domains", key, f"{part}one {level} is required: {where}")

    def _judge_tier(self, key: GangKey, name: str, within: Within, uids: list[str]) -> None:
        try:
            tier = self.tiered.widest(within)
        except KeyError:
            self.found.unjudged["groups in a tier that no domain has"] += 1
            return
        if tier is None:
            return
        for uid in uids:
            there = self.nodes.get(self.place_of[uid])
            if there is not None and self.tiered.around(there) != self.around.get(uid):
                self.found.unjudged["gangs of which a node has moved to another domain"] += 1
                return
        self.found.domains += 1
        around = {uid: self.around.get(uid, frozenset()) for uid in uids}
        before = [its for uid, its in around.items() if uid not in self.bound]
        if self.tiered.are_together([*around.values()], tier):
            return
        # Others may have put them apart before; Corral has to follow none of these.
        if not before or self.tiered.are_together(before, tier):
            part = f"{name}: " if name and not name.startswith("(") else ""
            where = ", ".join(sorted({self.place_of[uid] for uid in uids}))
            said = f"one domain of at most tier {tier} is required, and none has {where}"
            self._break_gang("in its domains", key, f"{part}{said}")

    def _path(self, uid: str, level: str, labels: Mapping[str, str]) -> tuple[str, ...] | None:
        """The domain of the node that a pod is on, by these labels of it."""
        if level == NODE_LEVEL:
            return (self.place_of[uid],)
        every = (self.settings.levels, *self.levels.values())
        levels = next((each for each in every if level in each), (level,))
        above = levels[: levels.index(level) + 1]
        path = tuple(level_value(labels, each) for each in above)
        return path if path[-1] else None

    def end(self) -> None:
        """What must hold when the journal is over."""
        settle = self.settings.gang_bind_seconds + self.settings.hold_seconds + SETTLE_SECONDS
        for key, start in self.starts.items():
            if start.is_excused or self.now < start.at + settle:
                continue
            spec = self.belonging.spec(key)
            live = self.belonging.live(key)
            if spec is None or not live:
                continue
            runs = sum(each.uid in self.place_of for each in live) + self.succeeded[key]
            needed = _least_in_all(spec)
            if runs < needed:
                self._break_gang(
                    "whole", key, f"{runs} of the {needed} pods that it needs have nodes"
                )

    # -- what is found -------------------------------------------------------------------------

    def _break(self, promise: Promise, pod: PodRecord, text: str) -> None:
        self._note(promise, f"pod {pod.namespace}/{pod.name}", text)

    def _break_gang(self, promise: Promise, key: GangKey, text: str) -> None:
        self._note(promise, f"gang {key}", text)

    def _note(self, promise: Promise, about: str, text: str) -> None:
        """Each thing once, where it shows first."""
        if (promise, about, text) not in self._noted:
            self._noted.add((promise, about, text))
            self.found.broken.append(Broken(self.line, self.now, promise, about, text))


def _least_in_all(spec: GangSpec) -> int:
    """The fewest pods that it runs with; it may start with fewer."""
    return least_pods(replace(spec, starts_with=None))


def check(lines: Iterable[bytes], dialects: Dialects = DIALECTS) -> Checked:
    """Judge a journal. Raises: DecodeError naming the invalid line."""
    numbered = enumerate(lines, start=1)
    settings = settings_of(next(numbered, (1, b""))[1])
    configured = dialects.configured(settings)
    judge = _Judge(settings, Belonging(settings, configured))
    decoders = decoders_of(configured)
    for number, step in _inputs(numbered):
        judge.line, judge.now = number, step.now
        if step.call not in ("apply", "bind_arrived", "bind_finished"):
            continue
        args = decoded(ARGS[step.call], number, step.args)
        match step.call:
            case "apply":
                judge.hear(event_of(args[0], decoders))
            case "bind_arrived":
                _, _, uid, node = args
                judge.ask(uid, node)
            case "bind_finished":
                uid, failed = args
                if isinstance(failed, BindFailed):
                    judge.fail(uid)
                else:
                    judge.bind(uid)
    judge.end()
    return judge.found


def _inputs(numbered: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, In]]:
    for number, raw in numbered:
        if not raw.endswith(b"\n"):
            return  # torn: the process that wrote it has crashed
        line = decoded(LINE, number, raw)
        if isinstance(line, In):
            yield number, line
