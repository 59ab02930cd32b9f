"""Which named topologies are in use: the cluster's Topology objects, else the levels set."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from app.kube.core.objects import Record, TopologyRecord
from app.state.cache.books import Books
from app.state.settings import EngineSettings
from topology.errors import InvalidTopology
from topology.model.levels import levels_of

DEFAULT = "default"  # the name of the topology that the settings' levels make


@dataclass(slots=True)
class Topologies:
    """The Topology objects, and why one of them is not used; the levels are the cluster's."""

    settings: EngineSettings
    books: Books
    records: dict[str, TopologyRecord] = field(default_factory=dict)
    problem: str = ""  # "" if all are used

    def __post_init__(self) -> None:
        self._use()

    def replace(self, records: Iterable[Record]) -> None:
        """Use these all at once: a set that is known already costs no rebuilding."""
        self.records = {
            record.name: record for record in records if isinstance(record, TopologyRecord)
        }
        self._use()

    def put(self, record: TopologyRecord) -> None:
        """Add or replace one."""
        self.replace((*self.records.values(), record))

    def drop(self, name: str) -> bool:
        """Forget one; True if it was known."""
        if self.records.pop(name, None) is None:
            return False
        self._use()
        return True

    def _use(self) -> None:
        levels_by_name: dict[str, tuple[str, ...]] = {}
        self.problem = ""
        for record in self.records.values():
            try:
                levels_by_name[record.name] = tuple(levels_of(record.levels))
            except InvalidTopology as error:
                self.problem = f"Topology {record.name}: {error}"
        if not levels_by_name and self.settings.levels:
            levels_by_name[DEFAULT] = tuple(levels_of(self.settings.levels))
        self.books.set_topologies(levels_by_name)
