"""Which pods and gangs a sentence names: those of every namespace, or of the one it is told in.

    name_other_namespaces on    gang red/web        pod red/web-0                 red/web
    off, told in red            gang red/web        pod red/web-0                 red/web
    off, told elsewhere         a gang of another namespace, a pod of another …   another namespace

Who may read what a gang or a pod is told may not be allowed to know who else runs in the cluster.
Nodes, priorities and numbers are told either way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from app.dialects.spec import GangKey
from app.state.effects import RoomAnswer

ANOTHER = "another namespace"


def namespace_in(words: str) -> str:
    """The namespace in a name: NS/NAME, `gang NS/NAME`, `pod NS/NAME`, `… of namespace NS`."""
    return words.partition("/")[0].rpartition(" ")[2]


@dataclass(frozen=True, slots=True)
class Naming:
    """Decides that. `told`: the namespace of the gang or pod that is told a sentence."""

    names_others: bool = True

    def of(self, key: GangKey, told: str) -> str:
        """A gang, where the words before it say what it is."""
        return str(key) if self._is_named(key.namespace, told) else ANOTHER

    def gang(self, key: GangKey, told: str) -> str:
        """A gang."""
        return self._in_words(f"gang {key}", told)

    def pod(self, namespace: str, name: str, told: str) -> str:
        """A pod."""
        return self._in_words(f"pod {namespace}/{name}", told)

    def answer(self, found: RoomAnswer, told: str) -> RoomAnswer:
        """An answer with the names that a sentence may have; gangs of two tenants may share one."""
        if self.names_others:
            return found
        named = tuple((self._in_words(name, told), its) for name, its in found.named)
        return replace(found, named=named, budgets=tuple(self._budgets(found.budgets, told)))

    def _budgets(self, names: Iterable[str], told: str) -> Iterator[str]:
        """The namespace's own, then how many others."""
        others = 0
        for name in names:
            if self._is_named(namespace_in(name), told):
                yield name
            else:
                others += 1
        if others:
            yield f"1 of {ANOTHER}" if others == 1 else f"{others} of other namespaces"

    def _in_words(self, name: str, told: str) -> str:
        """`gang NS/NAME` or `pod NS/NAME`, as it may be named."""
        if self._is_named(namespace_in(name), told):
            return name
        return f"a {name.partition(' ')[0]} of {ANOTHER}"

    def _is_named(self, namespace: str, told: str) -> bool:
        return self.names_others or namespace == told
