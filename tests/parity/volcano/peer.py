"""One case of Volcano's judged; through the product once it has Volcano's vocabulary."""

from __future__ import annotations

from tests.parity.tally import Equal, Judgement, OnPurpose, OutOfReach, Peer, Unexplained
from tests.parity.volcano.cases import Case, difference, read
from topology import TopologyError

NO_DIALECT = "the product has no dialect of Volcano's PodGroups and HyperNodes yet"


def core(case: Case) -> Judgement:
    """What becomes of the core's answer."""
    try:
        wrong = difference(case)
    except (TopologyError, AssertionError, KeyError) as error:
        wrong = f"{type(error).__name__}: {error}"
    if not wrong:
        return Equal()
    return OnPurpose(case.left_out) if case.left_out else Unexplained(wrong)


def product(case: Case) -> Judgement:
    """What becomes of the product's answer."""
    return OutOfReach(NO_DIALECT)


PEER = Peer(read, core, product)
