"""Pods that objects name, whichever of the two the watch shows first.

    object ──pods_named───▶ names ─┐
                                   ├──▶ due: pods to be claimed anew
    pod ────may_be_named──▶ pods ──┘

A gang has the records of its members; here are those of the pods that an object may name and that
no gang has. They stay until they go: a pod that has ended is a member as well, if it is named.
Beyond a number of them pods that have a node are left out, which is told: an object that comes to
name one of these later finds an ordinary pod.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from app.dialects.registry import Dialects
from app.dialects.spec import MOST_PODS, GangKey
from app.kube.core.objects import ObjectRecord, PodRecord
from app.state.objects.declared import Objects
from app.state.settings import EngineSettings

MOST_TOLD = 8  # problems that are shown at a time
MOST_UNCLAIMED = 65_536  # pods without a gang that are remembered with a node: 0.7 KiB each

TOO_MANY = (
    f"more than {MOST_UNCLAIMED} pods are in no gang: of the others those that have a node are"
    " ordinary pods for objects that name them from now on"
)

PodName = tuple[str, str]
"""Namespace and name: unique at any one time."""


@dataclass(slots=True)
class NamedPods:
    """Which objects name which pods; dicts to None are sets that keep their order.

    Invariants: `_uids` and `_names` say the same, and have every pod in `unclaimed`;
    `_by_name[name]` are the objects whose `_said` has the name, all of them in `objects`.
    """

    settings: EngineSettings
    dialects: Dialects
    objects: Objects
    is_empty: bool = field(init=False)
    """Whether no vocabulary has objects that name pods: then there is nothing here, ever."""
    unclaimed: dict[str, PodRecord] = field(default_factory=dict)
    """By uid: pods that an object may name, and that no gang has."""
    most_unclaimed: int = MOST_UNCLAIMED
    _names: dict[str, PodName] = field(default_factory=dict)  # by the uid of a pod
    _uids: dict[PodName, str] = field(default_factory=dict)  # of pods
    _said: dict[str, dict[PodName, object]] = field(default_factory=dict)  # by object's uid
    _by_name: dict[PodName, dict[str, None]] = field(default_factory=dict)  # uids of objects
    _sorting: dict[str, tuple[object, tuple[GangKey, ...]]] = field(default_factory=dict)
    """By the uid of an object: what it says of the leaves of pods, and of which gangs."""
    _sorted: dict[GangKey, dict[str, None]] = field(default_factory=dict)  # uids of pods
    _sorted_by: dict[str, tuple[GangKey, ...]] = field(default_factory=dict)  # by uid of a pod
    _due: dict[PodName, None] = field(default_factory=dict)
    _problems: dict[str, str] = field(default_factory=dict)  # by the uid of an object
    _is_full: bool = False
    """Pods with a node have been left out."""

    def __post_init__(self) -> None:
        self.is_empty = not self.dialects.names_pods

    @property
    def problems(self) -> tuple[str, ...]:
        """What of the objects is not read, as sentences."""
        told = tuple(islice(self._problems.values(), MOST_TOLD))
        return (*told, TOO_MANY) if self._is_full else told

    @property
    def uids(self) -> Collection[str]:
        """The pods that an object may name."""
        return self._names.keys()

    def may_have(self, pod: PodRecord) -> bool:
        """Whether objects may name a pod, and that would make it one of ours."""
        return self.settings.is_ours(pod) and self.dialects.may_be_named(pod)

    def of(self, pod: PodRecord) -> tuple[ObjectRecord, ...]:
        """The objects that name a pod or sort it, in the same order whichever came first."""
        keys = self.dialects.sorted_by(pod)
        # What names a pod counts where the pod says nothing itself.
        uids = None if keys else self._by_name.get((pod.namespace, pod.name))
        if not (uids or keys) or not (pod.uid in self._names or self.may_have(pod)):
            return ()
        found = {uid: self.objects.by_uid[uid] for uid in uids or ()}
        for key in keys:
            for each_key in (key, *self.objects.around(key)):
                found.update((each.uid, each) for each in self.objects.named(each_key))
        return tuple(sorted(found.values(), key=lambda each: (each.kind, each.key, each.uid)))

    def is_named(self, pod: PodRecord) -> bool:
        """Whether an object names a pod, or another one of its name."""
        return (pod.namespace, pod.name) in self._by_name

    # -- pods ----------------------------------------------------------------------------------

    def put(self, pod: PodRecord, *, is_member: bool) -> None:
        """Remember a pod if an object may name it; its record, if no gang has that."""
        if self.is_empty:
            return
        if not self.may_have(pod) or self._is_left_out(pod, is_member=is_member):
            self.drop(pod.uid)
            return
        name = (pod.namespace, pod.name)
        before = self._uids.get(name, pod.uid)
        if before != pod.uid:
            self.drop(before)  # it has gone, since another pod has its name
        self._uids[name], self._names[pod.uid] = pod.uid, name
        self._sort(pod.uid, self.dialects.sorted_by(pod))
        if is_member:
            self.unclaimed.pop(pod.uid, None)
        else:
            self.unclaimed[pod.uid] = pod

    def _is_left_out(self, pod: PodRecord, *, is_member: bool) -> bool:
        if is_member or not pod.node or len(self.unclaimed) < self.most_unclaimed:
            return False
        self._is_full = self._is_full or pod.uid not in self.unclaimed
        return pod.uid not in self.unclaimed

    def drop(self, uid: str) -> None:
        """Forget a pod that is gone."""
        self.unclaimed.pop(uid, None)
        name = self._names.pop(uid, None)
        if name is not None:
            del self._uids[name]
            self._sort(uid, ())

    def _sort(self, uid: str, keys: tuple[GangKey, ...]) -> None:
        """Note the gangs whose objects sort a pod."""
        before = self._sorted_by.pop(uid, ())
        if keys:
            self._sorted_by[uid] = keys
        for key in before if before != keys else ():
            of_gang = self._sorted[key]
            del of_gang[uid]
            if not of_gang:
                del self._sorted[key]
        for key in keys if before != keys else ():
            self._sorted.setdefault(key, {})[uid] = None

    # -- objects -------------------------------------------------------------------------------

    def put_object(self, record: ObjectRecord) -> None:
        """Learn which pods an object names now; what it says of the others has not changed."""
        self._replace(record.uid, self._read(record))
        says = self.dialects.sorts(record)
        self._sorts(record.uid, says, () if says is None else self.dialects.keys_of(record))

    def drop_object(self, uid: str) -> None:
        """Forget an object that is gone."""
        self._problems.pop(uid, None)
        self._replace(uid, {})
        self._sorts(uid, None, ())

    def _sorts(self, uid: str, says: object, keys: Iterable[GangKey]) -> None:
        """Have the pods of these gangs claimed anew if an object sorts them differently now."""
        before, was_of = self._sorting.pop(uid, (None, ()))
        now_of = tuple(keys)
        if says is not None:
            self._sorting[uid] = says, now_of
        for key in dict.fromkeys((*was_of, *now_of)) if (says, now_of) != (before, was_of) else ():
            for inner in self.objects.within(key):
                self._due.update((self._names[each], None) for each in self._sorted.get(inner, ()))

    def _read(self, record: ObjectRecord) -> dict[PodName, object]:
        named = list(islice(self.dialects.pods_named(record), MOST_PODS + 1))
        # An object must not make pods of other tenants members of its gang.
        home = record.namespace
        own: dict[PodName, object] = {
            (namespace, name): says
            for namespace, name, says in named[:MOST_PODS]
            if home in ("", namespace)
        }
        self._problems.pop(record.uid, None)
        if len(named) > MOST_PODS:
            self._tell(record, f"names more than {MOST_PODS} pods, and only so many are read")
        elif any(home not in ("", each[0]) for each in named):
            self._tell(record, "names pods of other namespaces, which are not read")
        elif unread := self.dialects.pods_unread(record):
            self._tell(record, f"names pods that are not read: {unread}")
        return own

    def _tell(self, record: ObjectRecord, what: str) -> None:
        self._problems[record.uid] = f"{record.kind} {record.key} {what}"

    def _replace(self, uid: str, said: dict[PodName, object]) -> None:
        before = self._said.pop(uid, {})
        if said:
            self._said[uid] = said
        for name, says in said.items():
            if name not in before:
                self._by_name.setdefault(name, {})[uid] = None
            elif before[name] == says:
                continue
            self._owe_named(name)
        for name in before.keys() - said.keys():
            self._forget(name, uid)
            self._owe_named(name)

    def _owe_named(self, name: PodName) -> None:
        """Have a pod of this name claimed anew, if there is one and it says nothing itself."""
        uid = self._uids.get(name)
        if uid is not None and uid not in self._sorted_by:
            self._due[name] = None

    def _forget(self, name: PodName, uid: str) -> None:
        of_name = self._by_name[name]
        del of_name[uid]
        if not of_name:
            del self._by_name[name]

    # -- pods to be claimed anew ---------------------------------------------------------------

    def owe(self, uid: str) -> None:
        """Have a pod claimed anew."""
        if uid in self._names:
            self._due[self._names[uid]] = None

    @property
    def is_due(self) -> bool:
        """Whether some pod is to be claimed anew."""
        return bool(self._due)

    def taken_due(self) -> Iterator[str]:
        """Remove and return the pods that are to be claimed anew and exist."""
        due, self._due = self._due, {}
        return (self._uids[name] for name in sorted(due) if name in self._uids)
