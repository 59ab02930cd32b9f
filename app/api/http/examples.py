"""One answer of each kind, as the description of /v1 shows it."""

from __future__ import annotations

from typing import Any

from app.explain.advice import ADVICE
from app.explain.decisions import DecisionPage, DecisionView
from app.explain.topology.map_view import (
    MapEarmarks,
    MapGang,
    MapLevel,
    MapPage,
    MapShares,
    NodePod,
    NodeView,
)
from app.explain.topology.usage_view import Amount, DomainUsage, Free, TopologyNames, TopologyPage
from app.explain.view import (
    Attempt,
    Best,
    Blocker,
    Excluded,
    Explanation,
    GangPage,
    GangView,
    NeedsNodes,
    Pods,
    Relaxation,
    Shortage,
    View,
)
from app.simulate.view import Simulated, Simulation, Verdict
from app.state.gang.reasons import Reason

RACK = "cloud.provider.com/topology-rack"
GPU = "nvidia.com/gpu"
_SENTENCE = f"gang team-a/train cannot be placed: 7 of 8 pods fit in one {RACK}"
_LEVELS = ("cloud.provider.com/topology-block", RACK, "kubernetes.io/hostname")

GANG = GangView(
    namespace="team-a",
    name="train",
    source="job",
    phase="waiting",
    reason=Reason.DOES_NOT_FIT,
    message=_SENTENCE,
    priority=0,
    waiting_seconds=41.5,
    pods=Pods(declared=8, there=8, planned=0, bound=0),
    needs_nodes=NeedsNodes(
        reason="busy", pods=8, level=RACK, largest=7, ask="mark", since_seconds=11.5
    ),
)
GANGS = GangPage(gangs=(GANG,))
EXPLANATION = Explanation(
    gang=GANG,
    fits_now=False,
    topology="default",
    best=Best(
        domain=f"{RACK}=b1/r7",
        pods=7,
        needed=8,
        more_nodes=1,
        short=(Shortage(resource=GPU, free=56, requested=64),),
    ),
    excluded=(Excluded(reason="cordoned", nodes=1, examples=("n70",)),),
    blockers=(Blocker(who="gang team-b/eval", pods=1, is_reserved=False),),
    relaxations=(
        Relaxation(
            kind="NodesBack", text="would fit with node n70 back (cordoned)", nodes=("n70",)
        ),
        Relaxation(
            kind="FewerPods",
            text="would fit with 7 of 8 pods of train",
            pod_sets=("train",),
            pods=7,
        ),
    ),
    attempts=(
        Attempt(
            reason=Reason.DOES_NOT_FIT,
            message=_SENTENCE,
            times=3,
            first_seconds_ago=41.0,
            last_seconds_ago=2.5,
        ),
    ),
    tries_again=ADVICE[Reason.DOES_NOT_FIT].tries_again,
    advice=ADVICE[Reason.DOES_NOT_FIT].to_do,
)
SIMULATION = Simulation(
    gangs=(
        Simulated(
            objects=("Job team-a/train",),
            verdict=Verdict.DOES_NOT_FIT,
            message=_SENTENCE,
            gang=GANG,
            explanation=EXPLANATION,
        ),
    ),
    pods=8,
)
TOPOLOGY = TopologyPage(
    name="default",
    levels=_LEVELS,
    topologies=(TopologyNames(name="default", levels=_LEVELS),),
    total=DomainUsage(
        nodes=8,
        resources=(Amount(resource=GPU, capacity=64, used=8, reserved=0, free=48),),
        free_for=(Free(shape=f"{GPU}=8", pods=6, nodes=6),),
        excluded=(Excluded(reason="cordoned", nodes=1, examples=("n70",)),),
    ),
    domains=(),
)
_MAP_GANG = MapGang(namespace="team-a", name="train", source="job")
MAP = MapPage(
    name="default",
    levels=_LEVELS,
    topologies=(TopologyNames(name="default", levels=_LEVELS),),
    resource=GPU,
    resources=("pods", "cpu", GPU),
    domains=(
        MapLevel(level=_LEVELS[0], names=("b1",), starts=(0,)),
        MapLevel(level=RACK, names=("r7", "r8"), starts=(0, 2)),
    ),
    nodes=("n70", "n71", "n80"),
    allocatable=(8, 8, 8),
    used=(0, 8, 0),
    reserved=(0, 0, 8),
    state=(1, 0, 0),
    states=("", "cordoned"),
    gangs=(_MAP_GANG,),
    shares=MapShares(node=(1, 2), gang=(0, 0), used=(8, 0), reserved=(0, 8)),
    earmarks=MapEarmarks(node=(), gang=()),
)
NODE = NodeView(
    name="n71",
    state="",
    resources=(Amount(resource=GPU, capacity=8, used=8, reserved=0, free=0),),
    pods=(
        NodePod(
            namespace="team-a", name="train-0", gang="train", is_reserved=False, amounts={GPU: 8}
        ),
    ),
)
DECISIONS = DecisionPage(
    decisions=(
        DecisionView(
            number=7,
            at=1_790_000_000.5,
            namespace="team-a",
            name="train",
            source="job",
            what="no-place",
            message=_SENTENCE,
        ),
    )
)


def shown(example: View) -> dict[int | str, dict[str, Any]]:
    """`responses` of a route that answers like this."""
    content = {"application/json": {"example": example.model_dump(mode="json")}}
    return {200: {"model": type(example), "content": content}}
