"""The vocabularies that Corral reads: a new one is a folder here and a line in `DIALECTS`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple, TypeVar

from app.dialects import (
    autoscalers,
    budgets,
    devices,
    grove,
    kai,
    kueue,
    native,
    provisioning,
    quota,
    volcano,
)
from app.dialects.declared import (
    Allowance,
    DisruptionBudget,
    DomainView,
    Draw,
    Join,
    Pool,
    TopologySpec,
)
from app.dialects.dialect import (
    Dialect,
    KeptKind,
    NamedPod,
    ObjectRules,
    PodSetClaim,
    Strings,
    TemplateOwner,
)
from app.dialects.flaw import Flaw
from app.dialects.rules import forbidden
from app.dialects.silence import Silence
from app.dialects.spec import (
    NO_PODS,
    Claim,
    FailureLimit,
    GangKey,
    GangSpec,
    LeafPods,
    Said,
    Suspension,
)
from app.dialects.workloads import TemplatePlace
from app.dialects.written import Prerequisite, StatusPatch
from app.kube.core.objects import ObjectRecord, PodRecord
from app.kube.decoding.decode import Keep
from app.kube.decoding.label_keys import LabelKeys
from app.kube.decoding.requests import NONE_OFFERED, Offered
from app.kube.watch.resource import Resource, nodes, pods
from app.settings import EngineOptions

_T = TypeVar("_T")


class Reading(NamedTuple):
    """What a pod says in all vocabularies together."""

    claim: Claim | None
    contradiction: Flaw | None
    """It requests two things, of which neither may be left out."""


@dataclass(frozen=True, slots=True)
class Dialects:
    """Several vocabularies as one, and whose word counts of a pod that more than one claims."""

    each: tuple[Dialect, ...]
    of_scheduler: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The names of those that pods of some schedulers are read in; pods of others: in all."""
    spoken: frozenset[str] | None = None
    """The names of those that pods of some scheduler of ours are read in; None: all of them."""
    of_nodes: frozenset[str] = frozenset()
    """The keys of annotations of nodes that are kept."""
    _silence: Silence = field(default_factory=Silence, compare=False, repr=False)

    def configured(self, options: EngineOptions) -> Dialects:
        """The same vocabularies, as the operator wants them read.

        Raises: ValueError for a name that none of them has.
        """
        chosen: dict[str, frozenset[str]] = {}
        known = sorted(filter(None, (dialect.name for dialect in self.each)))
        for scheduler, name in options.scheduler_vocabularies:
            if name not in known:
                raise ValueError(f"{scheduler}={name}: expected one of {', '.join(known)}")
            chosen[scheduler] = chosen.get(scheduler, frozenset()) | {name}
        each = tuple(dialect.configured(options) for dialect in self.each)
        of_nodes = autoscalers.OF_NODES if options.protect_held_nodes else frozenset[str]()
        return Dialects(each, chosen, _spoken(options.scheduler_name, chosen), of_nodes)

    def resources(
        self,
        keep: Keep | None = None,
        labels: LabelKeys | None = None,
        offered: Offered = NONE_OFFERED,
    ) -> tuple[Resource, ...]:
        """What to watch: nodes, pods, and the objects of every vocabulary, each kind once.

        `labels`: which of the labels of pods are kept; by default those that `keep` says.
        `offered`: the resources that are counted also of a pod with too many.
        """
        keep = keep or self.keeps
        own = {one.kind: one for dialect in self.each for one in dialect.resources(keep)}
        of_nodes = nodes(self.of_nodes.__contains__ if self.of_nodes else None)
        return (of_nodes, pods(keep, labels, offered), *own.values())

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of what is watched."""
        return tuple(resource.kind for resource in self.resources())

    def kind_of(self, group: str, kind: str) -> str:
        """What a kind is called in `kinds`: with its group, where another group has one as well."""
        whole = f"{kind}.{group}"
        return whole if whole in self.kinds else kind

    def words(self) -> dict[str, tuple[str, ...]]:
        """Vocabulary that pods of ours are read in -> what its members say; see `Dialect.words`."""
        read = (each for each in self.each if self._is_spoken(each.name))
        return {each.name: each.words for each in read if each.words}

    def keeps(self, key: str) -> bool:
        """Whether a pod's label or annotation with this key is worth its memory."""
        return any(dialect.keeps(key) for dialect in self.each)

    def claim(self, pod: PodRecord, objects: Collection[ObjectRecord] = ()) -> Claim | None:
        """Where the pod belongs, which these objects name; None for an ordinary pod.

        What the pod says itself counts before what objects say of it.
        """
        if not objects and self.is_silent(pod):
            return None
        found = self._claims(pod, objects, own=bool(objects))
        if objects and all(dialect.asked_in(pod, objects) is None for dialect, _ in found):
            found = self._claims(pod, objects)
        return _decided(pod, found, objects)

    def is_silent(self, pod: PodRecord) -> bool:
        """Whether a pod is an ordinary one for sure, unless an object names it."""
        return self._silence.of(pod, self.each)

    def read(self, pod: PodRecord) -> Reading:
        """What the vocabularies make together of a pod that no object names."""
        found = self._claims(pod, ())
        return Reading(_decided(pod, found, ()), _contradiction_of(pod, found))

    def is_managed(
        self, labels: Strings, annotations: Strings, gates: Sequence[str] = (), pod_group: str = ""
    ) -> bool:
        """Whether a controller that plans for itself has the pod, or pods of such a template."""
        return any(each.is_managed(labels, annotations, gates, pod_group) for each in self.each)

    def lifts_gates(self, pod: PodRecord) -> bool:
        """Whether an operator takes every gate off the pod, also Corral's."""
        return any(each.lifts_gates(pod) for each in self._read_of(pod.scheduler))

    @property
    def names_keys(self) -> bool:
        """Whether some vocabulary has objects that name label keys of pods."""
        return any(type(each).keys_named is not Dialect.keys_named for each in self.each)

    def keys_named(self, record: ObjectRecord) -> Iterator[str]:
        """The label keys of pods that an object makes worth keeping."""
        for dialect in self.each:
            yield from dialect.keys_named(record)

    @property
    def names_pods(self) -> bool:
        """Whether some vocabulary has objects that name pods; if not, none is ever named."""
        return any(
            type(each).may_be_named is not Dialect.may_be_named
            or type(each).may_name is not Dialect.may_name
            or type(each).sorted_by is not Dialect.sorted_by
            for each in self.each
        )

    def may_be_named(self, pod: PodRecord) -> bool:
        """Whether an object may name this pod, or sort it."""
        if self.is_silent(pod):
            return any(dialect.may_name(pod) for dialect in self._read_of(pod.scheduler))
        if any(dialect.may_be_named(pod) for dialect in self._read_of(pod.scheduler)):
            return True
        if not any(dialect.may_name(pod) for dialect in self._read_of(pod.scheduler)):
            return False
        # Its own word, also in a vocabulary that pods of its scheduler are not read in.
        return all(
            dialect.claim(pod) is None or dialect.asked_in(pod) is None for dialect in self.each
        )

    def sorted_by(self, pod: PodRecord) -> tuple[GangKey, ...]:
        """The gangs, one of a vocabulary, whose objects say whether and where the pod is in it."""
        if self.is_silent(pod):
            return ()
        return tuple(key for _, key in self._said(pod, lambda dialect: dialect.sorted_by(pod)))

    def sorts(self, record: ObjectRecord) -> object:
        """What an object says of the leaves of its gangs' pods."""
        return next((said for each in self.each if (said := each.sorts(record)) is not None), None)

    def pods_named(self, record: ObjectRecord) -> Iterator[NamedPod]:
        """The pods that an object names."""
        for dialect in self.each:
            yield from dialect.pods_named(record)

    def pods_unread(self, record: ObjectRecord) -> str:
        """Why it is not known which pods an object names; "": it is."""
        return next(filter(None, (each.pods_unread(record) for each in self.each)), "")

    def keys_of(self, record: ObjectRecord) -> Iterator[GangKey]:
        """The gangs whose spec depends on an object."""
        for dialect in self.each:
            yield from dialect.keys_of(record)

    def refers_to(self, record: ObjectRecord) -> str:
        """The name of another object that the specs of this one's gangs depend on; "": of none."""
        return next(filter(None, (each.refers_to(record) for each in self.each)), "")

    def referred(self, record: ObjectRecord) -> str:
        """The name by which others refer to this one; "": none does."""
        return next(filter(None, (each.referred(record) for each in self.each)), "")

    @property
    def nests_objects(self) -> bool:
        """Whether some vocabulary has objects inside one another; if not, none ever is."""
        return any(type(each).inside is not Dialect.inside for each in self.each)

    def inside(self, record: ObjectRecord) -> GangKey | None:
        """The key of the object that this one is inside, if it is inside one."""
        return next((key for each in self.each if (key := each.inside(record))), None)

    def spec(
        self,
        key: GangKey,
        objects: Collection[ObjectRecord],
        said: Sequence[Said],
        ended: Sequence[Said],
        pods: Mapping[str, LeafPods] = NO_PODS,
    ) -> GangSpec | None:
        """What a gang is, as its own vocabulary reads it; see `Dialect.spec`."""
        return self.of(key).spec(key, objects, said, ended, pods)

    def of(self, key: GangKey) -> Dialect:
        """The vocabulary of a gang."""
        return next(dialect for dialect in self.each if key.source in dialect.sources)

    @property
    def prerequisites(self) -> tuple[Prerequisite, ...]:
        """Objects to make where they are absent."""
        return tuple(each for dialect in self.each for each in dialect.prerequisites())

    @property
    def kept_kinds(self) -> tuple[KeptKind, ...]:
        """Objects that follow from the labels of nodes and are kept so."""
        return tuple(each for dialect in self.each for each in dialect.kept_kinds())

    def topologies(self, record: ObjectRecord) -> Iterable[TopologySpec]:
        """The topologies that an object declares."""
        return [spec for dialect in self.each for spec in dialect.topologies(record)]

    def levels_named(self, record: ObjectRecord) -> Iterator[str]:
        """The keys of node labels that an object names as levels for its gangs."""
        for dialect in self.each:
            yield from dialect.levels_named(record)

    def joins(self, record: ObjectRecord) -> Iterator[Join]:
        """The topologies of others that an object names together."""
        for dialect in self.each:
            yield from dialect.joins(record)

    def domain_status(self, record: ObjectRecord, view: DomainView) -> StatusPatch | None:
        """What is to be written on the object of a domain; None: nothing, or it is there."""
        found = (dialect.domain_status(record, view) for dialect in self.each)
        return next((patch for patch in found if patch is not None), None)

    def allowance(self, record: ObjectRecord) -> Allowance | None:
        """What the pods of a namespace may request in all, if an object says so."""
        return next((found for each in self.each if (found := each.allowance(record))), None)

    def failure_limit(
        self, record: ObjectRecord, owner: ObjectRecord | None
    ) -> FailureLimit | None:
        """How many pods of a controller may be evicted until it gives up; None: any number."""
        answers = (each.failure_limit(record, owner) for each in self.each)
        return next((found for found in answers if found is not None), None)

    def suspended(self, record: ObjectRecord) -> Suspension | None:
        """A workload that Corral has suspended, and that goes on once its pods are gone."""
        return next((found for each in self.each if (found := each.suspended(record))), None)

    def budget(self, record: ObjectRecord) -> DisruptionBudget | None:
        """How many pods of a namespace may be evicted, if an object says so."""
        return next((found for each in self.each if (found := each.budget(record))), None)

    def pool(self, record: ObjectRecord) -> Pool | None:
        """What some gangs may have together, if an object says so."""
        return next((found for each in self.each if (found := each.pool(record))), None)

    def draw(self, record: ObjectRecord) -> Draw | None:
        """What the gang of an object gets of a pool, if an object says so."""
        return next((found for each in self.each if (found := each.draw(record))), None)

    def claimed(self, record: ObjectRecord) -> tuple[str, ...]:
        """The resources that an object has kube-scheduler take from drivers, by claims."""
        return tuple(chain.from_iterable(each.claimed(record) for each in self.each))

    def object_rules(self, group: str, kind: str) -> ObjectRules | None:
        """The rules of objects of a kind; None where none is known.

        Objects name no scheduler. Those of a vocabulary that pods of no scheduler of ours are read
        in are another scheduler's, whose rules may be others.
        """
        ours = (one for one in self.each if not one.name or self._is_spoken(one.name))
        every = (rules for dialect in ours for rules in dialect.object_rules())
        return next((each for each in every if (each.group, each.kind) == (group, kind)), None)

    def templates(self, group: str, kind: str) -> tuple[TemplatePlace, ...]:
        """Where objects of a kind keep the templates of their pods; () where no rule is known."""
        return next((found for each in self.each if (found := each.templates(group, kind))), ())

    def rules(
        self, pod: PodRecord, pods: int | None, reading: Reading | None = None
    ) -> Iterator[Flaw]:
        """Every rule that a pod breaks, or a template of so many pods.

        `reading`: what `read` made of it, so that it is not read again.
        """
        for dialect in self._read_of(pod.scheduler):
            yield from dialect.rules(pod, pods)
        contradiction = (reading or self.read(pod)).contradiction
        if contradiction is not None:
            yield contradiction

    def rules_together(self, owner: TemplateOwner) -> Iterator[tuple[PodSetClaim, Flaw]]:
        """Every rule that the templates of one object break together."""
        for dialect in self.each:
            yield from dialect.rules_together(owner)

    def change(self, before: PodRecord, after: PodRecord) -> Iterator[Flaw]:
        """Every rule that a change of a pod breaks."""
        for dialect in self._read_of(after.scheduler):
            yield from dialect.change(before, after)

    def _claims(
        self, pod: PodRecord, objects: Collection[ObjectRecord], *, own: bool = False
    ) -> list[tuple[Dialect, Claim]]:
        """The claims of each; `own`: only those that the pod makes without the objects too."""

        def claim(dialect: Dialect) -> Claim | None:
            if own and dialect.claim(pod) is None:
                return None
            return dialect.claim(pod, objects)

        return self._said(pod, claim)

    def _said(
        self, pod: PodRecord, say: Callable[[Dialect], _T | None]
    ) -> list[tuple[Dialect, _T]]:
        """What each vocabulary says of a pod for which no other one speaks."""
        found: list[tuple[Dialect, _T]] = []
        for dialect in self._read_of(pod.scheduler):
            if found and any(dialect.name in other.speaks_for for other, _ in found):
                continue
            said = say(dialect)
            if said is not None:
                found.append((dialect, said))
        return found

    def _is_spoken(self, name: str) -> bool:
        """Whether pods of some scheduler of ours are read in this vocabulary."""
        return self.spoken is None or name in self.spoken

    def _read_of(self, scheduler: str) -> Iterable[Dialect]:
        """The vocabularies that pods of a scheduler are read in."""
        names = self.of_scheduler.get(scheduler)
        return self.each if names is None else (one for one in self.each if one.name in names)


def _spoken(scheduler_name: str, chosen: Mapping[str, frozenset[str]]) -> frozenset[str] | None:
    """The names of the vocabularies of these schedulers, with commas between; None: all are."""
    ours = [each.strip() for each in scheduler_name.split(",")]
    if not scheduler_name or any(each not in chosen for each in ours):
        return None
    return frozenset[str]().union(*(chosen[each] for each in ours))


def _decided(
    pod: PodRecord, found: Sequence[tuple[Dialect, Claim]], objects: Collection[ObjectRecord]
) -> Claim | None:
    """The claim that counts of several; None of none.

    What users have asked for counts before what a controller may have written, and that before a
    gang of its own; of two alike the first. Two that were asked for contradict each other.
    """
    if len(found) < 2:
        return found[0][1] if found else None
    asked = [(dialect.asked_in(pod, objects), claim) for dialect, claim in found]
    by_users = [(where, claim) for where, claim in asked if where]
    if len(by_users) > 1 and not by_users[0][1].flaw:
        (first, claim), (second, _) = by_users[:2]
        flaw = _contradiction(first, second)
        return replace(claim, flaw=f"pod {pod.namespace}/{pod.name}: {flaw}")
    grouped = (claim for where, claim in (by_users or asked) if where is not None)
    return next(grouped, asked[0][1])


def _contradiction_of(pod: PodRecord, found: Sequence[tuple[Dialect, Claim]]) -> Flaw | None:
    """What a pod, or a template, requests in the words of two vocabularies."""
    if len(found) < 2:
        return None
    asked = [where for dialect, _ in found if (where := dialect.asked_in(pod))]
    return _contradiction(asked[0], asked[1]) if len(asked) > 1 else None


def _contradiction(first: str, second: str) -> Flaw:
    root, _, where = second.partition(".")
    return replace(forbidden(where, f"may not be set together with {first}"), root=root)


DIALECTS = Dialects(
    (
        grove.DIALECT,
        native.DIALECT,
        kueue.DIALECT,
        volcano.DIALECT,
        kai.DIALECT,
        quota.DIALECT,
        budgets.DIALECT,
        devices.DIALECT,
        provisioning.DIALECT,
    )
)
