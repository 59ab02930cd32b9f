"""Which pods of a gang have run to completion, also those that were deleted since.

    pod succeeds ──▶ present ──pod is deleted──▶ gone
                        └──────── text ───────────┴──▶ annotation of live members ──restart──▶ both

A succeeded pod is not replaced (KEP-976 "Retrying Failed Pods"), so its gang has one pod fewer for
good. The pod itself says so for as long as it exists. What is said of it after that stands on live
members of its gang: how many are gone, and which of those present are counted, so that none counts
twice whatever was deleted while Corral did not run.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b

from app.dialects import corral


@dataclass(slots=True)
class SucceededPods:
    """The succeeded pods of one gang. Its own methods alone write it."""

    gone: Counter[str] = field(default_factory=Counter)  # pod set -> pods that were deleted
    present: dict[str, str] = field(default_factory=dict)  # uid -> pod set
    _listed: dict[str, str] = field(default_factory=dict)  # digest -> pod set, as a text has it
    _weight: tuple[int, int] = (0, 0)  # of that text: its pods, those of them that are gone

    def note(self, uid: str, pod_set: str) -> None:
        """A pod has succeeded."""
        self.present[uid] = pod_set

    def drop(self, uid: str) -> bool:
        """A pod was deleted; True if it had succeeded."""
        pod_set = self.present.pop(uid, None)
        if pod_set is not None:
            self.gone[pod_set] += 1
        return pod_set is not None

    def learn(self, text: str) -> None:
        """Read what a member remembers, before `settle`; of several texts the largest is latest."""
        gone, listed = corral.succeeded_from_text(text)
        weight = (sum(gone.values()) + len(listed), sum(gone.values()))
        if weight > self._weight:
            self._weight, self.gone, self._listed = weight, Counter(gone), dict(listed)

    def settle(self) -> None:
        """All pods that exist have been noted: those listed besides are gone."""
        if self._listed:
            present = {_digest(uid) for uid in self.present}
            self.gone.update(set_ for digest, set_ in self._listed.items() if digest not in present)
            self._listed.clear()

    @property
    def text(self) -> str:
        """What live members are to remember; "" if nothing."""
        present = {_digest(uid): pod_set for uid, pod_set in self.present.items()}
        return corral.succeeded_text(self.gone, present)


@lru_cache(maxsize=65_536)
def _digest(uid: str) -> str:
    return blake2b(uid.encode(), digest_size=4).hexdigest()
