"""Which named topologies are in use: those that objects declare, else the levels set."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from app.dialects.registry import Dialects
from app.dialects.spec import TopologySpec
from app.kube.core.objects import ObjectRecord, Record
from app.state.cache.books import Books
from app.state.settings import EngineSettings
from topology.errors import InvalidTopology
from topology.model.levels import levels_of

DEFAULT = "default"  # the name of the topology that the settings' levels make


@dataclass(slots=True)
class Topologies:
    """The topologies that objects declare, and why one of them is not used."""

    settings: EngineSettings
    books: Books
    dialects: Dialects
    problem: str = ""  # "" if all are used
    _declared: dict[str, dict[str, tuple[TopologySpec, ...]]] = field(default_factory=dict)
    # ^ by the kind and the uid of the object

    def __post_init__(self) -> None:
        self._use()

    def replace(self, kind: str, records: Iterable[Record]) -> bool:
        """Use what all objects of a kind declare, at once; True if that may be a change."""
        declared = {
            record.uid: specs
            for record in records
            if isinstance(record, ObjectRecord) and (specs := self._specs(record))
        }
        if not declared and not self._declared.get(kind):
            return False
        self._declared[kind] = declared
        self._use()
        return True

    def put(self, record: ObjectRecord) -> bool:
        """Use what an object declares now; True if that is a change."""
        specs = self._specs(record)
        of_kind = self._declared.setdefault(record.kind, {})
        if of_kind.get(record.uid, ()) == specs:
            return False
        of_kind[record.uid] = specs
        self._use()
        return True

    def drop(self, uid: str) -> bool:
        """Forget an object; True if it declared a topology."""
        dropped = [of_kind.pop(uid) for of_kind in self._declared.values() if uid in of_kind]
        if not any(dropped):
            return False
        self._use()
        return True

    def _specs(self, record: ObjectRecord) -> tuple[TopologySpec, ...]:
        return tuple(self.dialects.topologies(record))

    def _use(self) -> None:
        levels_by_name: dict[str, tuple[str, ...]] = {}
        self.problem = ""
        for of_kind in self._declared.values():
            for spec in (spec for specs in of_kind.values() for spec in specs):
                try:
                    levels_by_name[spec.name] = tuple(levels_of(spec.levels))
                except InvalidTopology as error:
                    self.problem = f"Topology {spec.name}: {error}"
        if not levels_by_name and self.settings.levels:
            levels_by_name[DEFAULT] = tuple(levels_of(self.settings.levels))
        self.books.set_topologies(levels_by_name)
