"""What many pods request in all, by namespace and resource."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from app.kube.core.objects import Amounts


@dataclass(slots=True)
class Totals:
    """Sums that are kept as requests come and go; none that is zero is remembered."""

    _in: dict[str, Counter[str]] = field(default_factory=dict)

    def of(self, namespace: str) -> Counter[str]:
        """By resource; a copy."""
        return Counter(self._in.get(namespace))

    def add(self, namespace: str, request: Amounts, times: int = 1) -> None:
        """Count one more request, or so many equal ones."""
        self._move(namespace, request, times)

    def remove(self, namespace: str, request: Amounts) -> None:
        """Count one that was added no more."""
        self._move(namespace, request, -1)

    def _move(self, namespace: str, request: Amounts, times: int) -> None:
        sums = self._in.setdefault(namespace, Counter())
        for resource, amount in request:
            sums[resource] += times * amount
            if not sums[resource]:
                del sums[resource]
        if not sums:
            del self._in[namespace]
