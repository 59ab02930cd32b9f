"""One case of Volcano's judged; through the product once it has Volcano's vocabulary."""

from __future__ import annotations

from tests.parity.tally import Judgement, OutOfReach, Peer, judged
from tests.parity.volcano.cases import Case, difference, read

NO_DIALECT = "the product has no dialect of Volcano's PodGroups and HyperNodes yet"


def core(case: Case) -> Judgement:
    """What becomes of the core's answer."""
    return judged(lambda: difference(case), case.left_out)


def product(case: Case) -> Judgement:
    """What becomes of the product's answer."""
    return OutOfReach(NO_DIALECT)


PEER = Peer(read, core, product)
