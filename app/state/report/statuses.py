"""What is written into the status of a vocabulary's objects: once per change of a gang.

a gang's phase or its objects change ──▶ due ──▶ dialect.status ──▶ WriteStatus, if new
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from app.dialects.registry import Dialects
from app.dialects.spec import GangKey, GangView, StatusPatch
from app.state.cache.objects import Objects
from app.state.effects import WriteStatus
from app.state.gang.gang import Gang


@dataclass(slots=True)
class Statuses:
    """The gangs whose status may have changed; `_written` is what was sent last."""

    dialects: Dialects
    objects: Objects
    _due: dict[GangKey, None] = field(default_factory=dict)
    _written: dict[GangKey, StatusPatch] = field(default_factory=dict)

    def note(self, key: GangKey) -> None:
        """Note that a gang changed in something that its vocabulary may report."""
        if self.dialects.of(key).writes_status:
            self._due[key] = None

    def repeat(self, key: GangKey) -> None:
        """Have the status of a gang written again: what was sent last was lost."""
        self._written.pop(key, None)
        self.note(key)

    def taken(self, gangs: Mapping[GangKey, Gang]) -> Iterator[WriteStatus]:
        """Every status that differs from what was written last."""
        due, self._due = self._due, {}
        for key in due:
            gang = gangs.get(key)
            patch = None if gang is None else self._patch(gang)
            if gang is None:
                self._written.pop(key, None)
            if patch is None or patch == self._written.get(key):
                continue
            self._written[key] = patch
            yield WriteStatus(key, patch.path, patch.uid, patch.status)

    def _patch(self, gang: Gang) -> StatusPatch | None:
        spec = gang.membership.spec
        if spec is None:
            return None
        view = GangView(
            gang.phase.value,
            gang.membership.members_live,
            len(gang.membership.bound),
            gang.reporting.sentence if gang.phase.value in ("gathering", "waiting") else "",
        )
        dialect = self.dialects.of(gang.key)
        return dialect.status(spec, self.objects.of(gang.key), view)
