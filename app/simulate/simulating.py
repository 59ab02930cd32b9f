"""The simulation itself: objects and pods into an engine of its own, and what it says of them.

Pure but for what it takes of the caller: it runs in a thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby

import msgspec

from app.admission.scope import Scope
from app.dialects.grove.priority_classes import KIND as CLASS
from app.dialects.grove.priority_classes import decode_priority_class
from app.errors import DecodeError
from app.explain.answering import answer
from app.explain.asking import Asking, asking
from app.explain.gangs import view
from app.explain.view import Explanation, GangView
from app.kube.core.objects import ObjectRecord, PodRecord
from app.kube.core.turns import turn
from app.kube.watch.events import Applied
from app.settings import RoleRules
from app.simulate.admitting import Admission
from app.simulate.copying import Copy
from app.simulate.given import Given
from app.simulate.made import Made, TooLarge, make, resources_of, with_scheduler
from app.simulate.view import Domain, Error, Place, Simulated, Simulation, Verdict
from app.state.cache.books import ALL_NODES
from app.state.cache.topology_books import TopologyBooks
from app.state.engine import Engine
from app.state.gang.gang import PLANNABLE, Gang, Phase
from app.state.gang.members.member import Member
from app.state.gang.reasons import Reason
from app.state.plan.question.request import copied
from app.state.preempt.room import RoomRequest
from app.state.turns.queue import in_order
from topology.model.levels import NODE_LEVEL

MOST_TICKS = 64
MOST_TERMS = 2_000  # of all shapes: each is compared with every node
MOST_EXPLAINED = 8  # gangs of one simulation
BETWEEN_SECONDS = 1e-6  # objects are created one after another, and gangs complete so
MOST_DOMAINS = 16  # of one level that are shown
_PLACED = (Phase.PLACED, Phase.BINDING, Phase.RUNNING)


@dataclass(frozen=True, slots=True)
class Rules:
    """How the webhook is set up."""

    scope: Scope
    roles: RoleRules = "kueue"


def simulate(
    given: Sequence[Given], copy: Copy, rules: Rules, *, sees_all: bool = True
) -> Simulation:
    """What would become of these objects. Raises: TooLarge.

    `sees_all`: who asks sees the names of every namespace; else only of a gang's own.
    """
    copy, replaced = _without(copy, given)
    copy = _with_classes(copy, given)
    engine = copy.engine(names_others=sees_all)
    admission = Admission(rules.scope, engine.dialects, rules.roles, engine.topologies.declared)
    admission.note_classes(copy.objects)
    found = [Made(each) for each in given if not each.is_class]
    make(with_scheduler(found, engine.settings.scheduler_name), admission, resources_of(engine))
    for made in found:
        if str(made.given) in replaced:
            made.notes.append(f"{made.given} exists: this is another one in its place")
    if admission.unknown_classes:
        names = ", ".join(admission.unknown_classes)
        for made in found:
            made.notes.append(
                f"the value of PriorityClass {names} is not known here, and"
                f" {admission.default_priority} was taken: put the object beside these"
            )
    return _Run(engine, copy, found, admission, sees_all=sees_all).simulation()


def _without(copy: Copy, given: Sequence[Given]) -> tuple[Copy, frozenset[str]]:
    """The copy without the objects in whose places these come."""
    # Several API groups have a PodGroup, and two a Job.
    pairs = dict.fromkeys((one.group, one.kind) for one in given)
    kinds = {each: copy.dialects.kind_of(*each) for each in pairs}
    names = {(kinds[one.group, one.kind], one.namespace, one.name): str(one) for one in given}
    replaced: dict[str, None] = {}
    kept: list[ObjectRecord] = []
    for record in copy.objects:
        name = names.get((record.kind, record.namespace, record.name))
        if name is not None:
            replaced[name] = None
        else:
            kept.append(record)
    return replace(copy, objects=tuple(kept)), frozenset(replaced)


def _with_classes(copy: Copy, given: Sequence[Given]) -> Copy:
    """The copy with the PriorityClasses among these, in the place of those of their names."""
    classes: dict[str, ObjectRecord] = {}
    for each in given:
        if each.is_class:
            with suppress(DecodeError):  # then it is not known
                classes[each.name] = decode_priority_class(msgspec.json.encode(each.content))
    kept = (each for each in copy.objects if each.kind != CLASS or each.name not in classes)
    return replace(copy, objects=(*kept, *classes.values())) if classes else copy


def _check_shapes(pods: Iterable[PodRecord]) -> None:
    """Raises: TooLarge where pods say more of their nodes than is looked through for them."""
    asked = 0
    for shape in {pod.shape for pod in pods}:
        asked += len(shape.terms) + len(shape.preferred) + len(shape.tolerations)
        if asked > MOST_TERMS:
            raise TooLarge(
                f"the pods have more than {MOST_TERMS} different terms of node affinity and"
                " tolerations together"
            )


# -- what the engine says of them ------------------------------------------------------------------


@dataclass(slots=True)
class _Run:
    """One simulation, once everything is read."""

    engine: Engine
    copy: Copy
    found: list[Made]
    admission: Admission
    now: float = field(init=False)
    sees_all: bool
    owner_of: dict[str, Made] = field(default_factory=dict)  # by the uid of a pod
    explained: int = 0  # gangs

    def __post_init__(self) -> None:
        self.now = self.copy.now

    def simulation(self) -> Simulation:
        """Everything is applied, and planned; then each gang is looked at."""
        valid = [each for each in self.found if not each.errors]
        for each in valid:
            for record in each.records:
                self.engine.apply(Applied(record), self.now)
        keys = self.engine.kept_keys
        keys.pods_read(keys.labels.edition)
        pods = self._read(valid)
        _check_shapes(pods)
        self.engine.queue.want_pass()  # gangs are planned in their order, whichever comes first
        for _, its in groupby(pods, key=lambda pod: id(self.owner_of[pod.uid])):
            for pod in its:
                turn()
                self.engine.apply(Applied(pod), self.now)
            self.now += BETWEEN_SECONDS
        self._settle()
        gangs = in_order(self.engine.gangs.by_key.values())
        placed = [self._placed(each) for each in gangs]
        waiting = [
            None if done else self._waiting(gang) for gang, done in zip(gangs, placed, strict=True)
        ]
        if any(gang.phase is Phase.GATHERING for gang in gangs):
            self._gather()  # what is missing is said after a while
        shown = [
            done or late or self._gathering(gang)
            for gang, done, late in zip(gangs, placed, waiting, strict=True)
        ]
        told = {name for each in shown for name in each.objects}
        others = [self._no_gang(each, pods, str(each.given) in told) for each in valid]
        invalid = [_invalid(each) for each in self.found if each.errors]
        every = (*shown, *filter(None, others), *invalid)
        return Simulation(gangs=tuple(every), pods=len(pods))

    def _read(self, valid: Iterable[Made]) -> list[PodRecord]:
        """The pods, with the labels that objects name by now."""
        decode = resources_of(self.engine)[1].decode
        found: list[PodRecord] = []
        for each in valid:
            for content in each.pods:
                turn()
                record = decode(content)
                assert isinstance(record, PodRecord)
                self.owner_of[record.uid] = each
                found.append(record)
        return found

    def _settle(self) -> None:
        """Ticks until nothing is owed; large gangs rest between their roll calls."""
        for at in range(MOST_TICKS):
            self.engine.tick(self.now)
            if not self.engine.gangs.unreviewed and not self.engine.queue.turns_left:
                return
            self.now += 0.05 if at > 2 else 0.0

    def _gather(self) -> None:
        self.now += self.engine.settings.gather_seconds + 1.0
        self.engine.tick(self.now)

    # -- one gang ------------------------------------------------------------------------------

    def _placed(self, gang: Gang) -> Simulated | None:
        """A gang that has a place; None: it has none, or has to wait first."""
        if gang.phase not in _PLACED or not gang.plan.nodes or self.engine.pools.refusal(gang.key):
            return None
        shown = view(gang, self.now, self.engine.books)
        topology = self._topology(gang)
        return Simulated(
            objects=self._objects(gang),
            verdict=Verdict.FITS,
            message=_fits(gang),
            gang=shown,
            topology="" if topology is None else topology.name,
            places=tuple(self._places(gang)),
            domains=() if topology is None else tuple(_domains(gang, topology)),
            notes=self._notes(gang),
        )

    def _waiting(self, gang: Gang) -> Simulated | None:
        """A gang that is complete, and waits."""
        if gang.phase not in PLANNABLE:
            return None
        return self._told(gang, view(gang, self.now, self.engine.books), explained=True)

    def _gathering(self, gang: Gang) -> Simulated:
        why = self.engine.pools.refusal(gang.key)
        shown = view(gang, self.now, self.engine.books)
        if why:
            shown = shown.model_copy(update={"message": f"gang {gang.key} has to wait: {why}"})
        return self._told(gang, shown, explained=not why)

    def _told(self, gang: Gang, shown: GangView, *, explained: bool) -> Simulated:
        verdict = Verdict.WAITS
        if shown.reason is Reason.DOES_NOT_FIT:
            verdict = Verdict.DOES_NOT_FIT
        elif shown.reason is Reason.INVALID:
            verdict = Verdict.INVALID
        named = self._objects(gang)
        error = Error(object=named[0], field="", message=shown.message)
        explanation = self._explanation(gang) if explained else None
        is_left_out = explained and explanation is None
        only = (f"only {MOST_EXPLAINED} gangs are explained at a time",) if is_left_out else ()
        return Simulated(
            objects=named,
            verdict=verdict,
            message=shown.message,
            gang=shown,
            errors=(error,) if verdict is Verdict.INVALID else (),
            explanation=explanation,
            notes=(*self._notes(gang), *only),
        )

    def _explanation(self, gang: Gang) -> Explanation | None:
        """Of the first few gangs: each takes some hundred searches."""
        self.explained += 1
        if self.explained > MOST_EXPLAINED:
            return None
        turn()
        return answer(self._asking(gang))

    def _asking(self, gang: Gang) -> Asking:
        """As `explain` asks, with those who run: the engine of its own knows no other gang."""
        names_in = "" if self.sees_all else gang.key.namespace
        asked = asking(self.engine, gang, self.now, names_in)
        if not asked.searches or self.engine.planner.serving.is_in_parts(gang):
            return asked
        standing = replace(
            self.copy.standing, axis=self.engine.books.axis, held=dict(self.engine.books.held)
        )
        searches = tuple(copied(each.request) for each in asked.searches)
        room = RoomRequest(gang.key, gang.membership.lowest_priority, searches, standing)
        return replace(asked, room=room, held_for={**self.copy.held_for, **asked.held_for})

    def _makers(self, gang: Gang) -> list[Made]:
        uids = gang.members.keys() & self.owner_of.keys()
        wanted = {id(self.owner_of[uid]) for uid in uids}
        return [
            each
            for each in self.found
            if id(each) in wanted or (not each.errors and self._declares(each, gang))
        ]

    def _declares(self, made: Made, gang: Gang) -> bool:
        """Whether the object itself is one that says what the gang is."""
        if made.pods:
            return False
        objects = (each for each in made.records if isinstance(each, ObjectRecord))
        return any(gang.key in self.engine.dialects.keys_of(each) for each in objects)

    def _objects(self, gang: Gang) -> tuple[str, ...]:
        return tuple(str(each.given) for each in self._makers(gang)) or (str(gang.key),)

    def _notes(self, gang: Gang) -> tuple[str, ...]:
        found: list[str] = []
        if gang.key in self.copy.gangs:
            found.append(f"gang {gang.key} exists: its own pods are not counted as part of it here")
        for each in self._makers(gang):
            found.extend(each.notes)
        return tuple(dict.fromkeys(found))

    def _places(self, gang: Gang) -> Iterator[Place]:
        for member in sorted(gang.planned(), key=lambda each: each.seniority):
            uid = member.pod.uid
            to_come = uid in gang.placeholders
            name = _to_come(gang, member) if to_come else member.pod.name
            yield Place(pod=name, node=gang.plan.nodes[uid], to_come=to_come)

    def _topology(self, gang: Gang) -> TopologyBooks | None:
        """The topology that its places are told in: one that has its levels, and its nodes."""
        spec, books, levels = gang.membership.spec, self.engine.books, gang.levels
        if spec is not None and spec.parts:
            return None  # each of its pods has a domain on one of several
        named = None if spec is None else spec.topology
        nodes = set(gang.plan.nodes.values())
        for each in books.topologies.values():
            if each.name == ALL_NODES or (named is not None and each.name != named):
                continue
            if levels <= set(each.levels) and nodes <= each.tree.slot_of.keys():
                return each
        return None

    # -- no gang -------------------------------------------------------------------------------

    def _no_gang(self, made: Made, pods: Iterable[PodRecord], is_told: bool) -> Simulated | None:
        """What is said of pods that are in no gang; None: there are none."""
        known = self.engine.gangs.key_of
        others = [p for p in pods if self.owner_of[p.uid] is made and p.uid not in known]
        if not others:
            why = "no pod of it is among these" if made.records else "it makes no pods"
            return None if is_told else self._plain(made, why)
        one, settings = others[0], self.engine.settings
        pods_of_it = "1 pod" if len(others) == 1 else f"{len(others)} pods"
        if not settings.is_ours(one):
            ours = settings.scheduler_name
            why = f"schedulerName is {one.scheduler}, and Corral plans for {ours}"
        elif self.engine.dialects.is_managed(one.labels, one.annotations, one.gates, one.pod_group):
            why = "another controller plans them"
        else:
            why = "they request no gang and no topology"
        return self._plain(made, f"{pods_of_it} of no gang, placed one by one: {why}")

    def _plain(self, made: Made, why: str) -> Simulated:
        return Simulated(
            objects=(str(made.given),),
            verdict=Verdict.NO_GANG,
            message=why,
            notes=tuple(made.notes),
        )


def _to_come(gang: Gang, member: Member) -> str:
    """How a pod is told of that does not exist before others run."""
    number = "a pod" if member.index is None else f"number {member.index.index}"
    return f"{number} of {member.leaf or gang.key.name}"


def _fits(gang: Gang) -> str:
    planned, declared = len(gang.plan.nodes), gang.membership.pods
    if declared is None or planned >= declared:
        pods = "only pod has" if planned == 1 else f"{planned} pods have"
        return f"gang {gang.key} fits: its {pods} a place"
    return (
        f"gang {gang.key} fits: {planned} of its {declared} pods have a place, which are enough to"
        " start; the others follow as they fit"
    )


def _domains(gang: Gang, topology: TopologyBooks) -> Iterator[Domain]:
    """At each level the domains with most pods, in the order of the levels."""
    tree = topology.tree
    slots = [tree.slot_of[node] for node in gang.plan.nodes.values()]
    for depth, level in enumerate(topology.levels):
        if level == NODE_LEVEL:
            continue
        pods = Counter(int(tree.domain_of[depth][slot]) for slot in slots)
        most = sorted(pods, key=lambda domain: (-pods[domain], domain))[:MOST_DOMAINS]
        for domain in most:
            path = "/".join(tree.path(depth, domain))
            yield Domain(level=level, domain=path, pods=pods[domain])


def _invalid(made: Made) -> Simulated:
    first = made.errors[0]
    text = f"{first.object}: {first.field}: {first.message}" if first.field else first.message
    more = len(made.errors) - 1
    return Simulated(
        objects=(str(made.given),),
        verdict=Verdict.INVALID,
        message=f"{text} (and {more} more)" if more else text,
        errors=tuple(made.errors),
        notes=tuple(made.notes),
    )
