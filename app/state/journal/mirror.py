"""The objects that a journal tells of, as they are after its last line; no engine plays it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from app.dialects.registry import DIALECTS, Dialects
from app.kube.core.objects import NodeRecord, ObjectRecord, PodRecord, Record
from app.kube.watch.events import Applied, Event, Kind, Listed
from app.state.journal.lines import LINE, In, args_of, decoded, decoders_of, event_of, settings_of
from app.state.settings import EngineSettings


@dataclass(slots=True)
class Mirror:
    """By kind, and of that by uid; nodes by name."""

    settings: EngineSettings = field(default_factory=EngineSettings)
    of_kind: dict[Kind, dict[str, Record]] = field(default_factory=dict)

    @property
    def nodes(self) -> dict[str, NodeRecord]:
        """The nodes by name."""
        return self.of_kind.setdefault("Node", {})  # type: ignore[return-value]

    @property
    def pods(self) -> dict[str, PodRecord]:
        """The pods by uid."""
        return self.of_kind.setdefault("Pod", {})  # type: ignore[return-value]

    def apply(self, event: Event) -> None:
        """Follow one event."""
        if isinstance(event, Listed):
            self.of_kind[event.kind] = {_id(each): each for each in event.records}
        elif isinstance(event, Applied):
            self.of_kind.setdefault(kind_of(event.record), {})[_id(event.record)] = event.record
        else:
            self.of_kind.setdefault(kind_of(event.record), {}).pop(_id(event.record), None)


def kind_of(record: Record) -> Kind:
    """The kind of object that a record is of."""
    if isinstance(record, ObjectRecord):
        return record.kind
    return "Pod" if isinstance(record, PodRecord) else "Node"


def _id(record: Record) -> str:
    return record.name if isinstance(record, NodeRecord) else record.uid


def mirror(
    lines: Iterable[bytes],
    heard: Callable[[Event], None] | None = None,
    dialects: Dialects = DIALECTS,
) -> Mirror:
    """What is there after all these lines; `heard` gets each event on the way.

    Raises: DecodeError naming the invalid line.
    """
    numbered = enumerate(lines, start=1)
    found = Mirror(settings_of(next(numbered, (1, b""))[1]))
    decoders = decoders_of(dialects.configured(found.settings))
    for number, raw in numbered:
        line = decoded(LINE, number, raw)
        if isinstance(line, In) and line.call == "apply":
            (said,) = args_of(number, line)
            event = event_of(number, said, decoders)
            found.apply(event)
            if heard is not None:
                heard(event)
    return found
