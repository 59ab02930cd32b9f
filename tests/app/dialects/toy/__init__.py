"""A vocabulary nobody else speaks: all that it takes to teach Corral one.

    kind: Band                       pods: labels toys.example.org/band, toys.example.org/section
    spec: {within: KEY, sections: [{name, players, within: KEY}]}
    status: {phase, seated, reason}

A band is within one domain of a level, each of its sections within one of a narrower level.

    spec: {…, named: [{pod: NAME, section}], sectionKey}     pods: label toys.example.org/managed

A band may name its players instead. A player whom it gives no section is in the one that its own
label says, under the key that the band names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from app.dialects.dialect import Dialect, NamedPod
from app.dialects.spec import NO_PODS, Claim, GangKey, GangSpec, GroupSpec, LeafPods, LeafSpec, Said
from app.dialects.written import GangView, StatusPatch
from app.kube.core.objects import ObjectRecord, PodRecord
from app.kube.decoding import wire
from app.kube.decoding.decode import Json, Keep, decoded
from app.kube.watch.resource import Resource
from topology.model.request import Constraint

GROUP = "toys.example.org"
BAND, SECTION = f"{GROUP}/band", f"{GROUP}/section"
MANAGED = f"{GROUP}/managed"
PATH = f"/apis/{GROUP}/v1/bands"


class Section(msgspec.Struct, frozen=True):
    name: str
    players: int
    within: str


class Player(msgspec.Struct, frozen=True):
    pod: str
    section: str = ""
    namespace: str = ""


class Spec(msgspec.Struct, frozen=True, rename="camel"):
    within: str
    sections: tuple[Section, ...]
    named: tuple[Player, ...] = ()
    section_key: str = SECTION
    more_keys: tuple[str, ...] = ()


class Band(ObjectRecord, frozen=True, gc=False):
    spec: Spec
    status: Mapping[str, Any] = {}


class _Band(wire.Wire):
    metadata: wire.Metadata
    spec: Spec
    status: dict[str, Any] | None = None


_BAND = msgspec.json.Decoder(_Band)


def decode_band(raw: Json) -> Band:
    band = decoded(_BAND, raw, "Band")
    metadata = band.metadata
    return Band(
        kind="Band",
        namespace=metadata.namespace or "",
        name=metadata.name or "",
        uid=metadata.uid or "",
        version=metadata.resource_version or "",
        spec=band.spec,
        status=band.status or {},
    )


class ToyDialect(Dialect):
    """Bands and their sections."""

    sources: ClassVar[frozenset[str]] = frozenset(("band",))
    writes_status: ClassVar[bool] = True

    def resources(self, keep: Keep) -> tuple[Resource, ...]:
        return (Resource("Band", PATH, Band, decode_band, is_optional=True),)

    def keeps(self, key: str) -> bool:
        return key in (BAND, SECTION, MANAGED)

    def may_be_named(self, pod: PodRecord) -> bool:
        return MANAGED in pod.labels

    def pods_named(self, record: ObjectRecord) -> Iterable[NamedPod]:
        if isinstance(record, Band):
            for each in record.spec.named:
                says = (each.section, record.spec.section_key)
                yield NamedPod(each.namespace or record.namespace, each.pod, says)

    def keys_named(self, record: ObjectRecord) -> Iterable[str]:
        if isinstance(record, Band):
            yield from (record.spec.section_key, *record.spec.more_keys)

    def claim(self, pod: PodRecord, objects: Collection[ObjectRecord] = ()) -> Claim | None:
        section = pod.labels.get(SECTION, "")
        band = next((each for each in objects if isinstance(each, Band)), None)
        name = pod.labels.get(BAND, "" if band is None else band.name)
        if band is not None and band.name == name:
            said = (each.section for each in band.spec.named if each.pod == pod.name)
            section = next(said, "") or pod.labels.get(band.spec.section_key, "")
        return Claim(GangKey(pod.namespace, name, "band"), section) if name else None

    def keys_of(self, record: ObjectRecord) -> Iterable[GangKey]:
        if isinstance(record, Band):
            yield GangKey(record.namespace, record.name, "band")

    def spec(
        self,
        key: GangKey,
        objects: Collection[ObjectRecord],
        said: Sequence[Said],
        ended: Sequence[Said],
        pods: Mapping[str, LeafPods] = NO_PODS,
    ) -> GangSpec | None:
        for band in objects:
            if isinstance(band, Band):
                sections = tuple(
                    LeafSpec(each.name, each.players, Constraint(required=each.within))
                    for each in band.spec.sections
                )
                root = GroupSpec(key.name, sections, Constraint(required=band.spec.within))
                return GangSpec(key, root, f"sections of Band {band.name}")
        return None

    def status(
        self, spec: GangSpec, objects: Collection[ObjectRecord], view: GangView
    ) -> StatusPatch | None:
        for band in objects if view.phase else ():
            if isinstance(band, Band):
                status: dict[str, object] = {
                    "phase": view.phase,
                    "seated": view.bound,
                    "reason": view.message,
                }
                path = f"/apis/{GROUP}/v1/namespaces/{band.namespace}/bands/{band.name}/status"
                stands = band.status == status
                return None if stands else StatusPatch(path, band.uid, status)
        return None


DIALECT = ToyDialect()
