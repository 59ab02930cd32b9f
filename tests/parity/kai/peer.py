"""One scenario of KAI-Scheduler's judged; through the product once it has KAI's vocabulary."""

from __future__ import annotations

from tests.parity.kai.cases import LEFT_OUT, Case, difference, read
from tests.parity.tally import Judgement, OutOfReach, Peer, judged

NO_DIALECT = "the product has no dialect of KAI's PodGroups yet"


def core(case: Case) -> Judgement:
    """What becomes of the core's answer."""
    return judged(lambda: difference(case), LEFT_OUT.get(case.name))


def product(case: Case) -> Judgement:
    """What becomes of the product's answer."""
    return OutOfReach(NO_DIALECT)


PEER = Peer(read, core, product)
