"""Whether a gang that could start by evictions has asked who would have to go: P11."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from app.kube.core.objects import PodRecord
from app.state.engine import Engine
from tests.sim.api import ApiServer
from tests.sim.corral import Corral
from tests.sim.liveness import gangs, kept_from, waits_in_vain
from tests.sim.node_filters import counts
from tests.sim.oracle import Cluster, Remaining, Taken
from tests.sim.preemption import Nominated
from tests.sim.told import claim_of, is_live
from tests.sim.violation import require

WaitsAmong = Callable[[str, Collection[PodRecord], Taken, Cluster], str]
"""As `liveness.WaitsInVain`, in a cluster of these nodes and pods."""
LOOK_SECONDS = 10.0  # from when a gang may ask until it has: others ask one by one before it


def check_room_is_sought(
    api: ApiServer,
    leader: Corral,
    is_hopeless: Callable[[PodRecord], bool],
    nominated: Collection[Nominated],
    of_vocabulary: Mapping[str, WaitsAmong],
) -> None:
    """P11: a gang that could start by evictions has asked who would have to go.

    What is kept for a pod with a nominated node is not for gangs of no higher priority, even where
    only kube-scheduler knows of it. Gangs of some sources are judged by their vocabulary.
    Raises: Violation.
    """
    engine = leader.engine
    of_others = [each for each in nominated if each.uid not in engine.gangs.key_of]
    held = [(each.node, each.request) for each in engine.books.held.values()]
    closed = engine.starvation.nodes() | engine.new_nodes.nodes()
    everyone = gangs(api)
    for key, members in everyone.items():
        waiting = [pod for pod in members if not pod.node and not pod.is_finished]
        if not waiting or any(map(is_hopeless, members)) or any(map(counts, members)):
            continue  # none goes for a gang of which some pods run
        if not all(pod.preempts for pod in waiting):
            continue
        priority = min(pod.priority for pod in waiting)
        lower = {
            pod.uid
            for pod in api.pods.values()
            if _may_go(engine, pod, priority) and claim_of(pod) is None
        }
        for others in everyone.values():
            run = [pod for pod in others if counts(pod)]
            if all(_may_go(engine, pod, priority) for pod in (*run, *filter(is_live, others))):
                lower.update(pod.uid for pod in run)
        left = {name: pod for name, pod in api.pods.items() if pod.uid not in lower}
        taken = Taken(closed, (*kept_from(waiting, of_others), *held))
        among = Remaining(api.nodes, left)
        if key.source in of_vocabulary:
            why = of_vocabulary[key.source](key.name, members, taken, among)
        else:
            why = waits_in_vain(api, key, members, taken, lambda _: False, among)
        gang = engine.gangs.by_key[key]
        if gang.binding.awaits_members(leader.now):
            continue  # it is not known whether it fits before kube-scheduler asks about them
        may_ask_at = gang.complete_at + engine.settings.preempt_after_seconds
        if leader.now < may_ask_at + LOOK_SECONDS:
            continue  # its last pod has come while room was made for others
        has_asked = key in engine.making_room._asked or key in engine.room_plans.of
        require(not why or has_asked, f"P11: gang {key} never asked who would have to go: {why}")


def _may_go(engine: Engine, pod: PodRecord, priority: int) -> bool:
    is_made_again = pod.owner is not None or engine.settings.bare_victims
    return pod.priority < priority and is_made_again
