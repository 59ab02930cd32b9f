"""One scenario of KAI-Scheduler's judged, by the core and through the product."""

from __future__ import annotations

from tests.parity.kai import product as through
from tests.parity.kai.cases import LEFT_OUT, Case, difference, read
from tests.parity.tally import Judgement, Peer, judged


def core(case: Case) -> Judgement:
    """What becomes of the core's answer."""
    return judged(lambda: difference(case), LEFT_OUT.get(case.name))


def product(case: Case) -> Judgement:
    """What becomes of the product's answer."""
    return judged(lambda: through.difference(case), LEFT_OUT.get(case.name))


PEER = Peer(read, core, product, {})
