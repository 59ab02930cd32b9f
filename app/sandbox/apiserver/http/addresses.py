"""From a request path to the object or collection it names, and to the verb of the request."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from app.sandbox.apiserver.http.event_versions import EVENTS_V1
from app.sandbox.apiserver.storage.failures import no_such_path
from app.sandbox.apiserver.storage.kinds import EVENT, Key, Kind


@dataclass(frozen=True, slots=True)
class Address:
    """kind: in the version of the path; for events always core/v1, as they are stored.

    is_events_v1: the client speaks events.k8s.io/v1 about a core event.
    """

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    is_events_v1: bool = False

    @property
    def key(self) -> Key:
        return self.namespace, self.name

    @property
    def resource(self) -> str:
        """As faults and authorization name it: `pods`, `pods/binding`."""
        plural = self.kind.plural
        return f"{plural}/{self.subresource}" if self.subresource else plural


class Addresses:
    """All paths at which these kinds are served."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self._kinds: dict[tuple[str, str], Kind] = {
            (kind.prefix, kind.plural): kind for kind in kinds
        }
        self._kinds[EVENTS_V1.prefix, EVENTS_V1.plural] = EVENTS_V1
        self._prefixes = sorted({prefix for prefix, _ in self._kinds}, key=len, reverse=True)

    def find(self, path: str) -> Address:
        """Raises: Refused (404) if nothing is served there, as for a CRD that is not installed."""
        for prefix in self._prefixes:
            if path.startswith(prefix + "/"):
                rest = path[len(prefix) + 1 :].rstrip("/").split("/")
                return self._below(prefix, rest)
        raise no_such_path()

    def _below(self, prefix: str, rest: list[str]) -> Address:
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2 and (prefix, rest[2]) in self._kinds:
            namespace, rest = rest[1], rest[2:]
        kind = self._kinds.get((prefix, rest[0]))
        if kind is None or len(rest) > 3:
            raise no_such_path()
        name = rest[1] if len(rest) > 1 else ""
        subresource = rest[2] if len(rest) > 2 else ""
        if kind.is_namespaced != bool(namespace) and (name or namespace):
            raise no_such_path()
        if subresource and subresource not in kind.subresources:
            raise no_such_path()
        if kind is EVENTS_V1:
            return Address(EVENT, namespace, name, subresource, is_events_v1=True)
        return Address(kind, namespace, name, subresource)


def verb_of(method: str, address: Address, *, is_watch: bool) -> str:
    """The Kubernetes verb of a request; empty if the address does not take it."""
    if address.subresource in address.kind.actions:
        return {"POST": "create"}.get(method, "")
    if method == "GET" and not address.name:
        return "watch" if is_watch else "list"
    verbs = {"GET": "get", "PUT": "update", "PATCH": "patch"}
    if address.subresource:
        return verbs.get(method, "")
    if address.name:
        return (verbs | {"DELETE": "delete"}).get(method, "")
    return {"POST": "create", "DELETE": "deletecollection"}.get(method, "")
