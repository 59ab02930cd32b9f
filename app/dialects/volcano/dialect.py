"""Volcano's vocabulary as a dialect."""

from __future__ import annotations

from collections.abc import Iterable

from app.dialects.dialect import Dialect
from app.dialects.spec import DomainView, StatusPatch, TopologySpec
from app.dialects.volcano import hyper_nodes
from app.kube.core.decode import Keep
from app.kube.core.objects import ObjectRecord
from app.kube.watch.resource import Resource


class VolcanoDialect(Dialect):
    """HyperNodes as a topology with a level for each tier."""

    def resources(self, keep: Keep) -> tuple[Resource, ...]:
        return (hyper_nodes.RESOURCE,)

    def topologies(self, record: ObjectRecord) -> Iterable[TopologySpec]:
        return hyper_nodes.specs_of(record)

    def domain_status(self, record: ObjectRecord, view: DomainView) -> StatusPatch | None:
        return hyper_nodes.status_of(record, view)
