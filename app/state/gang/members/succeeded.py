"""Which pods of a gang have run to completion, also those that were deleted since.

    pod succeeds ──▶ present ──pod is deleted──▶ gone
                        └──────── text ───────────┴──▶ annotation of live members ──restart──▶ both

A succeeded pod is not replaced (KEP-976 "Retrying Failed Pods"), so its gang has one pod fewer for
good. The pod itself says so for as long as it exists. What is said of it after that stands on live
members of its gang: how many are gone, and which of those present are counted, so that none counts
twice whatever was deleted while Corral did not run. Once all of its pods have succeeded and are
gone, those that exist are another gang's, of the same name: nothing is remembered then. Another
Corral, that of the replica or the one before, may have seen what this one has not: its notes are
read whenever the watch shows them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b

from app.dialects import corral
from app.dialects.spec import MOST_KINDS
from app.kube.core.cached import cached


@dataclass(slots=True)
class SucceededPods:
    """The succeeded pods of one gang. Its own methods alone write it."""

    gone: Counter[str] = field(default_factory=Counter)
    """Pod set -> pods that were deleted; of so many pod sets as a gang may have kinds of pods."""
    present: dict[str, str] = field(default_factory=dict)  # uid -> pod set
    _unsettled: dict[str, None] = field(default_factory=dict)  # notes that were read

    def note(self, uid: str, pod_set: str) -> None:
        """A pod has succeeded."""
        self.present[uid] = pod_set

    def drop(self, uid: str) -> bool:
        """A pod was deleted; True if it had succeeded."""
        pod_set = self.present.pop(uid, None)
        if pod_set is not None and (pod_set in self.gone or len(self.gone) < MOST_KINDS):
            self.gone[pod_set] += 1
        return pod_set is not None

    def learn(self, text: str) -> None:
        """Read what a member remembers; `settle` compares it with the pods that exist."""
        self._unsettled[text] = None

    @property
    def is_unsettled(self) -> bool:
        """Whether notes were read that have not been compared with the pods that exist."""
        return bool(self._unsettled)

    def settle(self) -> None:
        """All pods that exist have been noted: those that a note lists besides are gone.

        No note and no Corral can tell of more pods than have gone: the largest number is latest.
        """
        present = {_digest(uid) for uid in self.present} if self._unsettled else set()
        for text in self._unsettled:
            gone, listed = corral.succeeded_from_text(text)
            said = Counter(gone)
            said.update(pod_set for digest, pod_set in listed.items() if digest not in present)
            self.gone |= said
        for pod_set in list(self.gone)[MOST_KINDS:]:
            del self.gone[pod_set]
        self._unsettled.clear()

    def is_all_of(self, pods: int) -> bool:
        """Whether so many have succeeded and all of them are gone: no pod of the gang is left."""
        return not self.present and self.gone.total() >= pods > 0

    def begin_anew(self) -> None:
        """The pods that exist are of another gang of the same name."""
        self.gone.clear()

    @property
    def text(self) -> str:
        """What live members are to remember; "" if nothing."""
        present = {_digest(uid): pod_set for uid, pod_set in self.present.items()}
        return corral.succeeded_text(self.gone, present)


@cached(8_192, 512)
def _digest(uid: str) -> str:
    return blake2b(uid.encode(), digest_size=4).hexdigest()
