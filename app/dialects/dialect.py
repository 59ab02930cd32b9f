"""What every vocabulary does: the interface behind `registry.DIALECTS`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Protocol

from app.dialects.declared import (
    Allowance,
    DisruptionBudget,
    DomainView,
    Draw,
    Join,
    Pool,
    TopologySpec,
)
from app.dialects.flaw import Flaw
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
from app.dialects.workloads.templates import TemplatePlace
from app.dialects.written import Difference, GangView, Prerequisite, StatusPatch
from app.kube.core.objects import ObjectRecord, PodRecord
from app.kube.decoding.decode import Json, Keep
from app.kube.watch.events import Kind
from app.kube.watch.resource import Resource
from app.settings import EngineOptions

Strings = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PodSetClaim:
    """One template of an object that makes pods."""

    path: str
    """Of its metadata in the object."""
    annotations: Strings
    pods: int | None
    """None: not known."""
    is_grouped: bool = True
    """Whether the object has all pod sets of the workload."""
    scheduler: str = ""
    """The schedulerName of its pods."""


@dataclass(frozen=True, slots=True)
class TemplateOwner:
    """An object that makes pods."""

    group: str
    kind: str
    annotations: Strings
    pod_sets: tuple[PodSetClaim, ...]
    content: Mapping[str, object] = field(default_factory=dict)
    """All of it, its JSON decoded."""


class PodsMade(NamedTuple):
    """Pods that an object makes, as far as it matters whose they are."""

    scheduler: str
    """Their schedulerName."""
    labels: Strings


@dataclass(frozen=True, slots=True)
class CheckedObject:
    """What is wrong with an object, and whose it is."""

    flaws: Iterator[Flaw]
    pods: tuple[PodsMade, ...] | None = None
    """What it makes: it is checked if some of these are ours. None: it does not say whose they are,
    and is always checked."""


Known = Callable[[str], TopologySpec | None]
"""The topology of a name, as an object declares it by the labels of nodes."""


def none_known(_name: str) -> TopologySpec | None:
    """Where no topology is there."""
    return None


@dataclass(frozen=True, slots=True)
class ObjectRules:
    """The rules of one kind of object, beside those of the templates in it."""

    group: str
    kind: str
    check: Callable[[Json, Json | None, Known], CheckedObject]
    """Of an object, of what it was before a change, and of the topologies that it may name: what
    takes long to look at is not looked at again where it was there already.
    Raises: DecodeError for what the API server would not send."""


class NamedPod(NamedTuple):
    """A pod that an object names."""

    namespace: str
    name: str
    says: object = None
    """What the object says of the pod, as its claim depends on it: that is made anew when this
    changes, and not whenever the object does."""


class KeptKind(Protocol):
    """Objects of one kind that follow from the labels of nodes, and are kept as these are now."""

    @property
    def kind(self) -> Kind:
        """As it is watched. Each name is there once: the kind has no namespaces."""

    @property
    def path(self) -> str:
        """In the API: of all objects of the kind."""

    def difference(
        self, nodes: Mapping[str, Strings], there: Mapping[str, ObjectRecord]
    ) -> Difference:
        """What is to be written. `nodes`: labels by name; `there`: the objects by name. Pure.

        It may take long: it is called in a thread.
        """


class Dialect:
    """One vocabulary. What a method says here is what a vocabulary does that leaves it out.

    Methods are pure. `sources` are those of the keys of its gangs; no other dialect has them.
    """

    name: ClassVar[str] = ""
    """As the setting `scheduler_vocabularies` calls it; "": it claims no pods."""
    speaks_for: ClassVar[frozenset[str]] = frozenset()
    """The names of others that are not asked about its pods: their words there are its own, or an
    operator's that says the same again."""
    sources: ClassVar[frozenset[str]] = frozenset()
    writes_status: ClassVar[bool] = False
    reads_health: ClassVar[bool] = False
    """Whether its status says how the pods are that run, and how near they are to one another."""
    writes_first: ClassVar[bool] = False
    """Whether it writes a status also where no pod has come yet."""
    writes_last: ClassVar[bool] = False
    """Whether it writes one as well when the last pod is gone."""

    @property
    def words(self) -> tuple[str, ...]:
        """What every pod says that claims a place by itself, one of them: keys, fields, prefixes.

        A prefix ends with / or -. The webhook's conditions look for these.
        """
        return ()

    def configured(self, options: EngineOptions) -> Dialect:
        """This vocabulary, as the operator wants it read."""
        return self

    def resources(self, keep: Keep) -> tuple[Resource, ...]:
        """What to watch; labels and annotations only as far as `keep` says."""
        return ()

    def keeps(self, key: str) -> bool:
        """Whether a pod's label or annotation with this key is worth its memory."""
        return False

    def keys_named(self, record: ObjectRecord) -> Iterable[str]:
        """The label keys of pods that an object makes worth keeping.

        What its gangs are is not known, and nothing of them starts, before all pods have been read
        with these.
        """
        return ()

    def claim(self, pod: PodRecord, objects: Collection[ObjectRecord] = ()) -> Claim | None:
        """Where the pod belongs; None: this vocabulary says nothing of it.

        `objects` are those that name the pod, or sort the pods of its gang, by kind, namespace and
        name; () for a pod that none may name. A claim without them is the pod's own word, in
        whatever vocabulary, and counts before those of objects that name it.
        """
        return None

    def is_silent(self, pod: PodRecord) -> bool:
        """Whether this vocabulary surely says nothing of a pod that no object names.

        It claims and sorts neither this pod nor any that is like it in labels, annotations, the
        kind of its owner, scheduler, PodGroup and in whether there is a problem. False: it may.
        """
        of_pods = (
            (type(self).claim, Dialect.claim),
            (type(self).sorted_by, Dialect.sorted_by),
            (type(self).may_be_named, Dialect.may_be_named),
        )
        return all(its is none for its, none in of_pods)

    def asked_in(self, pod: PodRecord, objects: Collection[ObjectRecord] = ()) -> str | None:
        """The field of a pod it claims by which users have it placed in the words of it.

        "": a controller may have put the pod into its gang, and nothing more is requested. None:
        that is no more than a gang of its own. Asked where other vocabularies claim the pod too.
        """
        return ""

    def sorted_by(self, pod: PodRecord) -> GangKey | None:
        """The gang whose objects say which leaf of it the pod is in; None: the pod says it all."""
        return None

    def sorts(self, record: ObjectRecord) -> object:
        """What an object says of the leaves of its gangs' pods: when this changes, they move."""
        return None

    def is_managed(
        self, labels: Strings, annotations: Strings, gates: Sequence[str] = (), pod_group: str = ""
    ) -> bool:
        """Whether a controller that plans for itself has the pod, or the pods of such a template.

        Corral keeps its hands off these. `pod_group`: that the pod's spec.schedulingGroup names.
        """
        return False

    def lifts_gates(self, pod: PodRecord) -> bool:
        """Whether an operator takes every gate off the pod, also Corral's.

        It is not gated then: its gang is held at /filter and /bind.
        """
        return False

    def may_be_named(self, pod: PodRecord) -> bool:
        """Whether an object may name this pod: it is remembered until one does, or it goes."""
        return self.sorted_by(pod) is not None

    def may_name(self, pod: PodRecord) -> bool:
        """Whether an object may name this pod, if it says nothing itself in any vocabulary."""
        return False

    def pods_named(self, record: ObjectRecord) -> Iterable[NamedPod]:
        """The pods that an object names: of its own namespace, if it has one; each of them once.

        It says nothing of those that are sorted by an object which they name themselves.
        """
        return ()

    def pods_unread(self, record: ObjectRecord) -> str:
        """Why it is not known which pods an object names; "": it is."""
        return ""

    def keys_of(self, record: ObjectRecord) -> Iterable[GangKey]:
        """The gangs whose spec depends on an object."""
        return ()

    def refers_to(self, record: ObjectRecord) -> str:
        """The name of another object that the specs of this one's gangs depend on; "": of none."""
        return ""

    def referred(self, record: ObjectRecord) -> str:
        """The name by which others refer to this one; "": none does. It concerns no gang itself."""
        return ""

    def inside(self, record: ObjectRecord) -> GangKey | None:
        """The key of the object that this one is inside, as a part of the same gang; None: of none.

        The other one, which may not be there, has this key in `keys_of`. Its gang's spec depends on
        all objects inside, at any depth; the claims of pods that an object sorts, on those around.
        """
        return None

    def spec(
        self,
        key: GangKey,
        objects: Collection[ObjectRecord],
        said: Sequence[Said],
        ended: Sequence[Said],
        pods: Mapping[str, LeafPods] = NO_PODS,
    ) -> GangSpec | None:
        """What a gang is; None if that is not known yet.

        `objects` are those that it depends on; `said` is what its live pods say, the ones that run
        first, and `ended` what its failed pods said. `pods`: those of each leaf that live or
        have succeeded.
        """
        return None

    def awaited(self, key: GangKey) -> str:
        """What has to happen before it is known what a gang is: "its Job is known"."""
        return "its Job is known"

    def topologies(self, record: ObjectRecord) -> Iterable[TopologySpec]:
        """The topologies that an object declares."""
        return ()

    def levels_named(self, record: ObjectRecord) -> Iterable[str]:
        """The keys of node labels that an object names as levels for its gangs.

        One that no topology has is a level of its own, as far as there is room for such levels.
        """
        return ()

    def joins(self, record: ObjectRecord) -> Iterable[Join]:
        """The topologies of others that an object names together, each inside another."""
        return ()

    def allowance(self, record: ObjectRecord) -> Allowance | None:
        """What the pods of a namespace may request in all, if an object says so."""
        return None

    def failure_limit(
        self, record: ObjectRecord, owner: ObjectRecord | None
    ) -> FailureLimit | None:
        """How many pods of a controller may be evicted until it gives up; None: any number.

        `owner`: what controls this controller, if the watch shows that.
        """
        return None

    def suspended(self, record: ObjectRecord) -> Suspension | None:
        """A workload that Corral has suspended, and that goes on once its pods are gone."""
        return None

    def budget(self, record: ObjectRecord) -> DisruptionBudget | None:
        """How many pods of a namespace may be evicted, if an object says so."""
        return None

    def pool(self, record: ObjectRecord) -> Pool | None:
        """What some gangs may have together, if an object says so."""
        return None

    def draw(self, record: ObjectRecord) -> Draw | None:
        """What the gang of an object gets of a pool; None: nothing, or no more."""
        return None

    def claimed(self, record: ObjectRecord) -> tuple[str, ...]:
        """The resources that an object has kube-scheduler take from drivers, by claims."""
        return ()

    def object_rules(self) -> tuple[ObjectRules, ...]:
        """The rules of its own kinds of objects."""
        return ()

    def templates(self, group: str, kind: str) -> tuple[TemplatePlace, ...]:
        """Where objects of a kind keep the templates of their pods, if their rules are known."""
        return ()

    def rules(self, pod: PodRecord, pods: int | None) -> Iterator[Flaw]:
        """Every rule that a pod breaks, or a template of so many pods; None: not known."""
        return iter(())

    def rules_together(self, owner: TemplateOwner) -> Iterator[tuple[PodSetClaim, Flaw]]:
        """Every rule that the templates of one object break together."""
        return iter(())

    def change(self, before: PodRecord, after: PodRecord) -> Iterator[Flaw]:
        """Every rule that a change of a pod breaks."""
        return iter(())

    def status(
        self, spec: GangSpec, objects: Collection[ObjectRecord], view: GangView
    ) -> StatusPatch | None:
        """The status this vocabulary expects on its object; None: none, or it is there already.

        It is asked as well of a gang that has objects and no pods, if it `writes_first` or
        `writes_last`.
        """
        return None

    def statuses(
        self, spec: GangSpec, objects: Collection[ObjectRecord], view: GangView
    ) -> Iterable[StatusPatch]:
        """The same of all its objects, where a gang has several that say what becomes of it."""
        patch = self.status(spec, objects, view)
        return () if patch is None else (patch,)

    def prerequisites(self) -> tuple[Prerequisite, ...]:
        """Objects to make where they are absent, as the operator wants it."""
        return ()

    def kept_kinds(self) -> tuple[KeptKind, ...]:
        """Objects that follow from the labels of nodes and are kept so, as the operator wants."""
        return ()

    def domain_status(self, record: ObjectRecord, view: DomainView) -> StatusPatch | None:
        """The status this vocabulary expects on the object of a domain; None: it is there."""
        return None
