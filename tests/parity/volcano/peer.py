"""One case of Volcano's judged: asked of the core, and of the product with a user's objects."""

from __future__ import annotations

from tests.parity.tally import Judgement, OnPurpose, Peer, Unexplained, judged
from tests.parity.volcano import product as through
from tests.parity.volcano.cases import (
    Case,
    difference,
    end_to_end_difference,
    read,
    unit_difference,
)

UNKNOWN_NAME = "a tier name that no HyperNode has"
NO_OBJECTS = "domains by tier, and no HyperNode"
REASONS = {
    NO_OBJECTS: "no cluster is like that: the domains come from the HyperNodes",
    UNKNOWN_NAME: "Volcano leaves the constraint out; here the pods wait, and the verdict says why",
}
_BY_CASE = {
    "TestAllocateWithPartitionPolicyNetworkTopology/08": NO_OBJECTS,
    "TestAllocateWithNetWorkTopologies/24": UNKNOWN_NAME,
}


def core(case: Case) -> Judgement:
    """What becomes of the core's answer."""
    return judged(lambda: difference(case), case.left_out)


def product(case: Case) -> Judgement:
    """What becomes of the product's answer."""
    reason = _BY_CASE.get(case.name)
    judgement = judged(lambda: _difference(case), case.left_out)
    return OnPurpose(reason) if reason and isinstance(judgement, Unexplained) else judgement


def _difference(case: Case) -> str:
    if case.tree is None:
        return unit_difference(case.scenario, through.placed(case.scenario))
    kills = case.scenario["expect"]["killsPods"]
    placed: dict[str, str] = {}
    for turn, nodes in enumerate(through.rounds(case.scenario, case.tree)):
        if turn and len(nodes) < len(placed):
            return f"of {len(placed)} pods {kills} were killed and not placed again"
        placed = nodes
        wrong = end_to_end_difference(case.scenario, case.tree, list(nodes.values()), turn)
        if wrong or not kills:
            return wrong
    return ""


PEER = Peer(read, core, product, REASONS)
