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
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from app.dialects.registry import DIALECTS, Dialects
from app.dialects.spec import GangKey, GangSpec
from app.kube.core.objects import Amounts, NodeRecord, ObjectRecord, PodRecord
from app.kube.watch.events import Applied, Event, Listed
from app.state.effects import BindFailed
from app.state.journal.checking.belonging import Belonging, least_pods
from app.state.journal.checking.findings import Checked, Findings
from app.state.journal.checking.places import Places
from app.state.journal.checking.together import Together
from app.state.journal.lines import (
    ARGS,
    LINE,
    In,
    args_of,
    decoded,
    decoders_of,
    event_of,
    settings_of,
)
from app.state.settings import EngineSettings

PASSED_OVER = ARGS.keys() - {"apply", "bind_arrived", "bind_finished"}
"""Calls of which nothing is judged."""
SETTLE_SECONDS = 60.0  # beyond the engine's own deadlines: a gang that is not whole by then is torn


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
    places: Places
    findings: Findings
    together: Together
    asked: dict[str, _Asked] = field(default_factory=dict)
    """By uid: the last request at /bind."""
    nodes_asked: dict[str, set[str]] = field(default_factory=dict)
    """By uid: in every request since a binding succeeded."""
    early: dict[str, _Before] = field(default_factory=dict)
    """By uid: of pods that the watch shows bound, whose binding is not known to have succeeded."""
    starts: dict[GangKey, _Start] = field(default_factory=dict)
    succeeded: Counter[GangKey] = field(default_factory=Counter)
    """Pods that have succeeded and are gone."""

    # -- events --------------------------------------------------------------------------------

    def hear(self, event: Event) -> None:
        if isinstance(event, Listed):
            listed = {each.name if event.kind == "Node" else each.uid for each in event.records}
            if event.kind == "Node":
                known = self.places.nodes
                self.places.nodes = {name: each for name, each in known.items() if name in listed}
            elif event.kind == "Pod":
                for uid in [uid for uid in self.places.records if uid not in listed]:
                    self._lose_pod(uid)
            else:
                self.places.tiered.keep(event.kind, listed)
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
            self.places.nodes.pop(record.name, None)
            for uid in self.places.on.get(record.name, ()):
                self._excuse(uid)
        elif isinstance(record, ObjectRecord):
            self.places.tiered.drop(record.uid)
        self.belonging.hear(event)

    def _see(self, record: object) -> None:
        if isinstance(record, PodRecord):
            self._see_pod(record)
        elif isinstance(record, NodeRecord):
            self.places.nodes[record.name] = record
            if not record.is_ready:
                for uid in self.places.on.get(record.name, ()):
                    self._excuse(uid)
        elif isinstance(record, ObjectRecord):
            specs = self.belonging.dialects.topologies(record)
            self.places.tiered.put(
                record, [each.domain for each in specs if each.domain is not None]
            )
            for spec in specs:
                if spec.domain is None:
                    self.places.levels[f"{record.uid}/{spec.name}"] = tuple(spec.levels)

    def _see_pod(self, pod: PodRecord) -> None:
        self.places.records[pod.uid] = pod
        if pod.is_finished or pod.is_terminating:
            self._excuse(pod.uid)
        if pod.is_finished:
            self.places.leave(pod.uid)
        elif pod.node:
            before = self.places.place_of.get(pod.uid)
            if before is not None and before != pod.node:
                by = "Corral has bound it" if pod.uid in self.places.bound else "it was"
                self.findings.of_pod(
                    "at most once", pod, f"it is on {pod.node}, and {by} on {before}"
                )
            self._note_early(pod)
            self.places.come(pod.uid, pod.node, self.findings.line)

    def _note_early(self, pod: PodRecord) -> None:
        """The watch may show a binding before its outcome is told."""
        claim = self.belonging.claims.get(pod.uid)
        is_asked = pod.node in self.nodes_asked.get(pod.uid, ())
        if claim is not None and is_asked and pod.uid not in self.places.place_of:
            self.early[pod.uid] = self._before(claim.gang)

    def _lose_pod(self, uid: str) -> None:
        self._excuse(uid)
        claim = self.belonging.claims.get(uid)
        record = self.places.records.pop(uid, None)
        if claim is not None and record is not None and record.phase == "Succeeded":
            self.succeeded[claim.gang] += 1
        self.places.forget(uid)
        for of_pod in (self.asked, self.nodes_asked, self.early):
            of_pod.pop(uid, None)

    def _excuse(self, uid: str) -> None:
        claim = self.belonging.claims.get(uid)
        if claim is not None and claim.gang in self.starts:
            self.starts[claim.gang].is_excused = True

    # -- bindings ------------------------------------------------------------------------------

    def ask(self, uid: str, node: str) -> None:
        """kube-scheduler asks at /bind."""
        there = self.places.nodes.get(node)
        allocatable, labels = (there.allocatable, there.labels) if there else ((), {})
        around = self.places.tiered.around(there) if there else frozenset()
        self.asked[uid] = _Asked(node, self.findings.line, allocatable, labels, around)
        self.nodes_asked.setdefault(uid, set()).add(node)

    def fail(self, uid: str) -> None:
        """A binding has failed."""
        self._excuse(uid)

    def bind(self, uid: str) -> None:
        """A binding has succeeded."""
        pod, asked = self.places.records.get(uid), self.asked.get(uid)
        if asked is None:
            if pod is not None:
                self.findings.of_pod(
                    "at most once", pod, "Corral has bound it, which was not asked at /bind"
                )
            return
        if pod is None:
            return  # it is gone by now
        where, named = self.places.place_of.get(uid), self.nodes_asked.get(uid, set())
        if uid in self.places.bound:
            if named and self.places.bound[uid] not in named:
                twice = f"it is bound to {self.places.bound[uid]} and to {asked.node}"
                self.findings.of_pod("at most once", pod, twice)
            return  # its outcome is known: this is another answer to the same request
        if where is not None and where not in named:
            asked_for = ", ".join(sorted(named))
            self.findings.of_pod(
                "at most once", pod, f"asked for {asked_for}, bound, and on {where}"
            )
            return
        node = where or asked.node
        self.nodes_asked.pop(uid, None)
        self.findings.found.pods_bound += 1
        self.places.bound[uid] = node
        claim = self.belonging.claims.get(uid)
        is_member = claim is not None and not claim.flaw and uid in self._uids_of(claim.gang)
        if claim is not None and is_member:
            self._judge_start(claim.gang, self.early.get(uid) or self._before(claim.gang))
            self.early.pop(uid, None)
        self.places.come(uid, node, self.findings.line)
        if asked.labels and asked.node == node:
            self.places.path_at[uid], self.places.around[uid] = asked.labels, asked.around
        if claim is not None and is_member:
            self._judge_capacity(pod, asked)
            start = self.starts.get(claim.gang)
            is_whole = start is not None and not start.is_excused
            self.together.judge(claim.gang, uid, is_whole=is_whole)

    def _uids_of(self, key: GangKey) -> Mapping[str, None]:
        return self.belonging.members.get(key, {})

    def _judge_capacity(self, pod: PodRecord, asked: _Asked) -> None:
        """On the books of the moment it was asked for: what others brought since is not ours."""
        there = self.places.nodes.get(asked.node)
        if there is None:
            return
        has = Counter(dict(asked.allocatable)) | Counter(dict(there.allocatable))
        taken: Counter[str] = Counter()
        for uid, since in self.places.on.get(asked.node, {}).items():
            claim = self.belonging.claims.get(uid)
            is_ours = uid in self.places.bound and claim is not None
            if uid == pod.uid or is_ours or since < asked.at:
                record = self.places.records.get(uid)
                taken.update(dict(record.request if record is not None else ()))
        for resource, amount in pod.request:
            if amount and taken[resource] > has[resource]:
                self.findings.of_pod(
                    "within capacity",
                    pod,
                    f"{taken[resource]} of {resource} are on {asked.node}, which has"
                    f" {has[resource]}",
                )

    # -- gangs ---------------------------------------------------------------------------------

    def _before(self, key: GangKey) -> _Before:
        live = self.belonging.live(key)
        if any(each.uid in self.places.place_of for each in live):
            return _Before(has_places=True)
        spec = self._spec(key)
        if spec is None:
            return _Before()
        came = sum(each.uid in self.asked for each in live) + self.succeeded[key]
        came += sum(
            self.places.records[uid].phase == "Succeeded"
            for uid in self._uids_of(key)
            if uid in self.places.records
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
        self.starts[key] = _Start(self.findings.line, self.findings.now)
        if is_known:
            return  # none of it ran any more: it starts anew
        self.findings.found.gangs_started += 1
        if before.came < before.needed:
            self.findings.of_gang(
                "whole", key, f"it starts with {before.came} of the {before.needed} that it needs"
            )

    def _spec(self, key: GangKey) -> GangSpec | None:
        spec = self.belonging.spec(key)
        if spec is None:
            what = "gangs of which the journal does not say what they are"
            self.findings.found.unjudged[what] += 1
        return spec

    def end(self) -> None:
        """What must hold when the journal is over."""
        settle = self.settings.gang_bind_seconds + self.settings.hold_seconds + SETTLE_SECONDS
        for key, start in self.starts.items():
            if start.is_excused or self.findings.now < start.at + settle:
                continue
            spec = self.belonging.spec(key)
            live = self.belonging.live(key)
            if spec is None or not live:
                continue
            runs = sum(each.uid in self.places.place_of for each in live) + self.succeeded[key]
            needed = _least_in_all(spec)
            if runs < needed:
                self.findings.of_gang(
                    "whole", key, f"{runs} of the {needed} pods that it needs have nodes"
                )


def _least_in_all(spec: GangSpec) -> int:
    """The fewest pods that it runs with; it may start with fewer."""
    return least_pods(replace(spec, starts_with=None))


def check(lines: Iterable[bytes], dialects: Dialects = DIALECTS) -> Checked:
    """Judge a journal. Raises: DecodeError naming the invalid line."""
    numbered = enumerate(lines, start=1)
    settings = settings_of(next(numbered, (1, b""))[1])
    configured = dialects.configured(settings)
    belonging, places = Belonging(settings, configured), Places(tuple(settings.levels))
    findings = Findings()
    together = Together(belonging, places, findings)
    judge = _Judge(settings, belonging, places, findings, together)
    decoders = decoders_of(configured)
    for number, step in _inputs(numbered):
        findings.line, findings.now = number, step.now
        if step.call in PASSED_OVER:
            continue
        args = args_of(number, step)
        match step.call:
            case "apply":
                judge.hear(event_of(number, args[0], decoders))
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
    return findings.found


def _inputs(numbered: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, In]]:
    for number, raw in numbered:
        if not raw.endswith(b"\n"):
            return  # torn: the process that wrote it has crashed
        line = decoded(LINE, number, raw)
        if isinstance(line, In):
            yield number, line
