"""What is watched of ProvisioningRequests, and the one rule there is for pods that name a class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.dialects.dialect import Dialect
from app.dialects.flaw import Flaw
from app.dialects.provisioning import keys
from app.dialects.provisioning.records import (
    RequestRecord,
    TemplateRecord,
    decode_request,
    decode_template,
)
from app.dialects.rules import annotation, invalid
from app.kube.core.objects import PodRecord
from app.kube.decoding.decode import Keep
from app.kube.watch.resource import Resource
from app.settings import EngineOptions

NO_CLASS = (
    "must be the name of a provisioning class, such as"
    " best-effort-atomic-scale-up.autoscaling.x-k8s.io, or empty for none"
)


@dataclass(frozen=True, slots=True)
class ProvisioningDialect(Dialect):
    """Requests for nodes; read only where a class is set."""

    is_read: bool = False

    def configured(self, options: EngineOptions) -> ProvisioningDialect:
        return ProvisioningDialect(is_read=bool(options.provisioning_class))

    def resources(self, keep: Keep) -> tuple[Resource, ...]:
        if not self.is_read:
            return ()
        # Neither need be there yet, nor the right to read them.
        return (
            Resource(keys.KIND, keys.PATH, RequestRecord, decode_request, is_optional=True),
            Resource(
                keys.TEMPLATE_KIND,
                keys.TEMPLATE_PATH,
                TemplateRecord,
                decode_template,
                is_optional=True,
            ),
        )

    def keeps(self, key: str) -> bool:
        return self.is_read and key in keys.KEPT

    def rules(self, pod: PodRecord, pods: int | None) -> Iterator[Flaw]:
        name = pod.annotations.get(keys.CLASS, "") if self.is_read else ""
        if name and not keys.is_class(name):
            yield invalid(annotation(keys.CLASS), name, NO_CLASS, is_fatal=False)
