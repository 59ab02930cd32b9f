"""The vocabularies as the engines of simulated worlds read them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from app.dialects import registry
from app.dialects.spec import Claim, GangKey
from app.kube.core.objects import ObjectRecord, PodRecord
from app.settings import EngineOptions

# In worlds without native PodGroups no pod names one, and the setting makes no difference.
DIALECTS = registry.DIALECTS.configured(EngineOptions(native_pod_groups="on"))
MOST_RECORDS = 20_000  # of pods, remembered


@dataclass(slots=True, eq=False)
class _Read:
    """What was read of one record of a pod; None: not yet."""

    pod: PodRecord  # kept: its id is another record's otherwise
    is_silent: bool | None = None
    may_be_named: bool | None = None
    sorted_by: tuple[GangKey, ...] | None = None
    claims: dict[tuple[int, ...], tuple[Collection[ObjectRecord], Claim | None]] = field(
        default_factory=dict
    )


@dataclass(frozen=True, slots=True)
class Remembering(registry.Dialects):
    """Vocabularies that read each record of a pod once, since records never change.

    An engine asks several times for the claim of a pod, and an audit for that of every pod.
    """

    _read: dict[int, _Read] = field(default_factory=dict, compare=False, repr=False)

    def configured(self, options: EngineOptions) -> registry.Dialects:
        return self  # it is, for engines of the settings that it was made for

    def is_silent(self, pod: PodRecord) -> bool:
        read = self._of(pod)
        if read.is_silent is None:
            read.is_silent = registry.Dialects.is_silent(self, pod)
        return read.is_silent

    def may_be_named(self, pod: PodRecord) -> bool:
        read = self._of(pod)
        if read.may_be_named is None:
            read.may_be_named = registry.Dialects.may_be_named(self, pod)
        return read.may_be_named

    def sorted_by(self, pod: PodRecord) -> tuple[GangKey, ...]:
        read = self._of(pod)
        if read.sorted_by is None:
            read.sorted_by = registry.Dialects.sorted_by(self, pod)
        return read.sorted_by

    def claim(self, pod: PodRecord, objects: Collection[ObjectRecord] = ()) -> Claim | None:
        claims = self._of(pod).claims
        key = tuple(map(id, objects))
        if key not in claims:
            claims[key] = objects, registry.Dialects.claim(self, pod, objects)
        return claims[key][1]

    def _of(self, pod: PodRecord) -> _Read:
        read = self._read.get(id(pod))
        if read is None:
            if len(self._read) >= MOST_RECORDS:
                self._read.clear()
            read = self._read[id(pod)] = _Read(pod)
        return read


def remembering(settings: EngineOptions) -> Remembering:
    """The vocabularies for engines of these settings; nothing has been read yet."""
    its = registry.DIALECTS.configured(settings)
    return Remembering(its.each, its.of_scheduler, its.spoken, its.of_nodes)
