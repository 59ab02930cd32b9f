"""One case of Kueue's judged, by the core's answer and by the product's."""

from __future__ import annotations

from tests.parity.kueue.cases import Case, read
from tests.parity.kueue.core.answers import answers
from tests.parity.kueue.core.deviations import DEVIATIONS, deviation_of
from tests.parity.kueue.core.questions import has_remainder
from tests.parity.kueue.product.changes import CHANGES, REFUSED, explained_by
from tests.parity.kueue.product.objects import NotReachable
from tests.parity.kueue.product.outcome import outcome
from tests.parity.tally import Equal, Judgement, OnPurpose, OutOfReach, Peer, Unexplained
from topology import TopologyError

SETTINGS = {
    "preferred_affinity": "TASRespectNodeAffinityPreferred",
    "balanced_placement": "TASBalancedPlacement",
}
"""Setting -> the gate of Kueue's that it stands for."""

CUT_SHORT = "asks for the pods Kueue places of a size that does not divide, not for all"


def core(case: Case) -> Judgement:
    """What becomes of the core's answer."""
    try:
        found = answers(case)
    except (TopologyError, AssertionError) as error:
        return Unexplained(f"{type(error).__name__}: {error}")
    if found == case.expected:
        return Equal(CUT_SHORT if has_remainder(case.scenario) else "")
    deviation = deviation_of(case, found)
    if deviation is None:
        return Unexplained(f"{found}\n    not {case.expected}")
    return OnPurpose(deviation.name)


def product(case: Case) -> Judgement:
    """What becomes of the product's answer: where it is the core's, what becomes of that."""
    gates = case.scenario["featureGates"]
    settings = {setting: gates[gate] for setting, gate in SETTINGS.items()}
    try:
        found = outcome(case.scenario, settings)
    except NotReachable as error:
        return OutOfReach(str(error))
    difference = found.differs(case.expected)
    if not difference:
        return Equal()
    names = explained_by(case.scenario, found)
    if names is None:
        return Unexplained(difference)
    return OnPurpose(" + ".join(names)) if names else core(case)


REASONS = {each.name: each.reason for each in (*DEVIATIONS, *CHANGES)} | REFUSED
PEER = Peer(read, core, product, REASONS)
