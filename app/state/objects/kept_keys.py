"""Label keys of pods that objects name: kept from then on, and the pods are read again.

    object ──keys_named──▶ new key ──kept at once──▶ a list is wanted (`pod_lists.py`)
                              └──one too many──▶ refused: the operator is told

Until a list that began with the key is in, some pods lack its label. What a gang is, is not known
as long as one of its objects names a key that is not read: it would start in the wrong shape.

Tenants write objects. A key costs memory on every pod that has it, and a list of all pods: so there
are bounds, and a key that was taken stays, or each object that comes and goes would be a list. Only
labels are kept by it, since an annotation may have 256 KiB.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from app.dialects.registry import Dialects
from app.kube.core.objects import ObjectRecord
from app.kube.decoding.label_keys import LabelKeys
from app.labels import is_label_key

MOST_KEYS = 64  # in all
MOST_KEYS_OF_NAMESPACE = 8  # that objects of one namespace were the first to name
MOST_KEYS_OF_NO_GANG = 24  # of all, that objects of no gang were the first to name, such as budgets
MOST_TOLD = 8  # refused keys of one namespace, and namespaces with any


@dataclass(frozen=True, slots=True)
class Lacking:
    """Keys that objects name and pods were read without."""

    unread: tuple[str, ...]
    refused: tuple[str, ...]


@dataclass(slots=True)
class KeptKeys:
    """The keys that objects name. Only this file adds to `labels`."""

    dialects: Dialects
    labels: LabelKeys = field(init=False)
    _named: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By the uid of an object: the keys it names that no vocabulary keeps anyway."""
    _taken: Counter[str] = field(default_factory=Counter)  # keys, by namespace
    _of_no_gang: int = 0  # keys that objects of no gang were the first to name
    _refused: dict[str, dict[str, None]] = field(default_factory=dict)  # by namespace
    _read: int = 0  # the edition of the last list of pods
    _asked: int = 0  # the edition for which one was last asked

    def __post_init__(self) -> None:
        self.labels = LabelKeys(self.dialects.keeps)

    @property
    def objects(self) -> Iterable[str]:
        """The uids of the objects that name keys."""
        return self._named.keys()

    @property
    def problems(self) -> tuple[str, ...]:
        """The keys that are refused, as sentences."""
        return tuple(
            f"label keys {', '.join(keys)} are not read, which objects of"
            f" {f'namespace {namespace}' if namespace else 'the cluster'} name: at most"
            f" {MOST_KEYS_OF_NAMESPACE} per namespace, {MOST_KEYS_OF_NO_GANG} that no gang needs"
            f" and {MOST_KEYS} in all are"
            for namespace, keys in self._refused.items()
        )

    # -- objects -------------------------------------------------------------------------------

    def put(self, record: ObjectRecord) -> None:
        """Keep the keys that an object names, as far as there is room."""
        self._named.pop(record.uid, None)
        # One more than there is room for is enough to be refused.
        named = tuple(islice(self._new_keys(record), MOST_KEYS + 1))
        if named:
            self._named[record.uid] = named
        is_of_gang = any(True for _ in self.dialects.keys_of(record))
        for key in named:
            if self.labels.edition_of(key) is None:
                self._take(key, record.namespace, is_of_gang=is_of_gang)

    def drop(self, uid: str) -> None:
        """Forget an object that is gone; its keys stay."""
        self._named.pop(uid, None)

    def _new_keys(self, record: ObjectRecord) -> Iterator[str]:
        for key in dict.fromkeys(self.dialects.keys_named(record)):
            if not self.dialects.keeps(key) and is_label_key(key):  # else no pod has it
                yield key

    def _take(self, key: str, namespace: str, *, is_of_gang: bool) -> None:
        is_room = self._taken[namespace] < MOST_KEYS_OF_NAMESPACE
        if is_room and not is_of_gang:
            # A gang starts only once its keys are read; others can do without.
            is_room = self._of_no_gang < MOST_KEYS_OF_NO_GANG
        if is_room and self.labels.edition < MOST_KEYS:
            self._taken[namespace] += 1
            self._of_no_gang += not is_of_gang
            self.labels.add(key)
        elif namespace in self._refused or len(self._refused) < MOST_TOLD:
            refused = self._refused.setdefault(namespace, {})
            if len(refused) < MOST_TOLD:
                refused[key] = None

    def lacking(self, objects: Iterable[ObjectRecord]) -> Lacking | None:
        """The keys of these objects that pods were read without; None if there are none."""
        unread, refused = [], []
        for key in dict.fromkeys(key for each in objects for key in self._named.get(each.uid, ())):
            edition = self.labels.edition_of(key)
            if edition is None:
                refused.append(key)
            elif edition > self._read:
                unread.append(key)
        return Lacking(tuple(unread), tuple(refused)) if unread or refused else None

    # -- pods ----------------------------------------------------------------------------------

    def pods_read(self, edition: int) -> bool:
        """Note a list of pods that began with this edition; True if it has more keys."""
        is_news = edition > self._read
        self._read = max(edition, self._read)
        return is_news

    @property
    def wants_list(self) -> bool:
        """Whether there are keys that no list has, and none was asked for since."""
        return self.labels.edition > max(self._asked, self._read)

    def note_asked(self) -> None:
        """Note that a list is asked for, which will have every key of now."""
        self._asked = self.labels.edition
