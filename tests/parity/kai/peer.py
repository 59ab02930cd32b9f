"""One scenario of KAI-Scheduler's judged; through the product once it has KAI's vocabulary."""

from __future__ import annotations

from tests.parity.kai.cases import LEFT_OUT, Case, difference, read
from tests.parity.tally import Equal, Judgement, OnPurpose, OutOfReach, Peer, Unexplained
from topology import TopologyError

NO_DIALECT = "the product has no dialect of KAI's PodGroups yet"


def core(case: Case) -> Judgement:
    """What becomes of the core's answer."""
    try:
        wrong = difference(case)
    except (TopologyError, AssertionError, KeyError) as error:
        wrong = f"{type(error).__name__}: {error}"
    if not wrong:
        return Equal()
    reason = LEFT_OUT.get(case.name)
    return OnPurpose(reason) if reason else Unexplained(wrong)


def product(case: Case) -> Judgement:
    """What becomes of the product's answer."""
    return OutOfReach(NO_DIALECT)


PEER = Peer(read, core, product)
