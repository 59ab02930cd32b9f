"""One scenario of KAI-Scheduler's judged, by the core and through the product."""

from __future__ import annotations

from tests.parity.kai import product as through
from tests.parity.kai.cases import LEFT_OUT, Case, difference, read
from tests.parity.tally import Judgement, OnPurpose, Peer, Unexplained, judged

TWO_TOPOLOGIES = "sub-groups beside each other name different Topologies"
REASONS = {
    TWO_TOPOLOGIES: "a gang is placed in one tree of domains: the pods wait, and say so",
}
_BY_CASE = {
    "Allocate one job with two subgroups using different topology CRs": TWO_TOPOLOGIES,
}


def core(case: Case) -> Judgement:
    """What becomes of the core's answer."""
    return judged(lambda: difference(case), LEFT_OUT.get(case.name))


def product(case: Case) -> Judgement:
    """What becomes of the product's answer."""
    reason = _BY_CASE.get(case.name)
    judgement = judged(lambda: through.difference(case), LEFT_OUT.get(case.name))
    return OnPurpose(reason) if reason and isinstance(judgement, Unexplained) else judgement


PEER = Peer(read, core, product, REASONS)
