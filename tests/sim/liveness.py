"""What must have come about when all faults are over: L1 to L4, and empty books at the very end.

A gang that has a place by `oracle.py`, beside all that runs, and still waits has been forgotten.
Holds do not count, but for the places of pods that a gang expects, which last: in a world that is
quiet again no other may be held for long without being bound.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any

import msgspec

from app.dialects import corral as own
from app.dialects.spec import Claim, GangKey
from app.dialects.workloads.job import JOB
from app.kube.core.objects import Amounts, PodRecord
from app.state.born.giving_back import REFUSED_SECONDS
from app.state.gang.gang import Phase
from app.state.gang.members.member import member_of
from app.state.gang.parts import Placeholder
from tests.sim.absent import AbsentPlaces
from tests.sim.api import NATIVE_GROUP, POD_GANG, ApiServer, Refused
from tests.sim.clock import Clock
from tests.sim.corral import Corral
from tests.sim.dialects import DIALECTS
from tests.sim.kube_scheduler import SCHEDULER
from tests.sim.node_filters import counts
from tests.sim.oracle import Cluster, Taken, first_fit, is_each_led, place, to_come, wanted
from tests.sim.owners import declared_by
from tests.sim.preemption import Nominated
from tests.sim.queue import MOST_BACKOFF
from tests.sim.shadow import shadow
from tests.sim.told import (
    OWNERS,
    claim_of,
    gang_of,
    is_known,
    is_live,
    life_of,
    named_by,
    outermost,
)
from tests.sim.violation import Violation, require

_NAMED = Claim(GangKey("default", "", "grove"))  # of a pod that a PodGang names: it says no more
WaitsInVain = Callable[[str, Collection[PodRecord], Taken], str]
"""Where the waiting pods of a gang of this name have a place; "": they have none for certain."""

WithNewNodes = Callable[[list[PodRecord], bool], Cluster | None]
"""The cluster that an autoscaler would make for these pods, which are all of them or not.

None: it cannot be told."""


def check_nobody_is_forgotten(
    api: ApiServer,
    corrals: Iterable[Corral],
    absent: AbsentPlaces,
    is_hopeless: Callable[[PodRecord], bool],
    nominated: Collection[Nominated],
    of_vocabulary: Mapping[str, WaitsInVain],
    with_new_nodes: WithNewNodes | None = None,
) -> None:
    """L1, L2, I3: no gang and no pod waits that has a place.

    Nor, G3, one that has a place `with_new_nodes`, where an autoscaler makes such nodes.

    A gang has none that would have more held for pods to come than its namespace may.
    What is kept for a pod with a nominated node is not for others of no higher priority.
    What is earmarked for a gang that starves, or kept for one that asked for nodes before it came,
    is not for others; a gang that waits for what
    kube-scheduler alone knows of has no place, but now and then a hold on one. When that ends,
    those that get the place have the time that kube-scheduler takes to try their pods again.
    A gang that ends as a whole waits for as long as a budget keeps one of its pods.
    Gangs of some sources are judged by their vocabulary: `of_vocabulary`.
    Raises: Violation.
    """
    corrals = list(corrals)
    marks = [
        mark
        for engine in (corral.engine for corral in corrals)
        for mark in (*engine.starvation.of.items(), *engine.new_nodes.of.items())
    ]
    in_vain = _held_in_vain(corrals, is_hopeless)
    # A hold in vain ends when its time is up, which may be just before this is asked.
    leaders = [life_of(corral) for corral in corrals if corral.is_leading]
    just_now = _just_planned(corrals)
    if not any(map(is_hopeless, api.list("Pod"))):
        # So may the pods of another gang come, and with them what is held for them go, of which
        # the namespace may have more only then.
        just_now &= {of for life in leaders for of, _ in absent.held(life).values()}
    just_now |= _on_their_way(corrals)
    # Of what had ended and went just then a Corral that started again may not know.
    is_unsure = any(corral.incarnation > 1 for corral in corrals)
    for key, members in gangs(api).items():
        if any(map(is_hopeless, members)) or key in just_now:
            continue
        if _is_kept_from_ending(api, corrals, key, members):
            continue
        closed = in_vain.union(*(mark.nodes for of, mark in marks if of != key))
        may_hold = partial(absent.has_room, leaders, key)
        kept = kept_from(members, nominated)
        taken = Taken(closed, (*_expected(corrals, key, just_now), *kept))
        if key.source in of_vocabulary:
            why = of_vocabulary[key.source](key.name, members, taken)
            require(not why, f"L1: gang {key} waits and fits: {why}")
            continue
        why = waits_in_vain(api, key, members, taken, may_hold)
        if why and is_unsure and key in api.succeeded_and_gone:
            why = waits_in_vain(api, key, members, taken, may_hold, counts_gone=False)
        require(not why, f"L1: gang {key} waits and fits: {why}")
        is_whole = sum(map(is_live, members)) >= declared(api, key, members)
        grown = None if with_new_nodes is None else with_new_nodes(members, is_whole)
        if grown is not None:
            why = waits_in_vain(api, key, members, taken, may_hold, grown)
            require(not why, f"G3: gang {key} waits, and nodes that it fits on may be made: {why}")
        free = as_gated(members, also_later=_gives_back_later(corrals))
        if free is not members and not is_kept_narrowed(corrals, key, members):
            why = waits_in_vain(api, key, free, taken, may_hold)
            require(not why, f"L5: gang {key} waits where it is narrowed to, and fits: {why}")
    closed = in_vain.union(*(mark.nodes for _, mark in marks))
    expected = _expected(corrals, None, just_now)
    for pod in ordinary(api):
        node = first_fit(api, pod, Taken(closed, (*expected, *kept_from([pod], nominated))))
        require(not node, f"L1: pod {pod.name} waits and fits on {node}")


def as_gated(members: list[PodRecord], *, also_later: bool) -> list[PodRecord]:
    """The same pods, narrowed to no nodes where that is taken back; if any is."""
    goes = partial(goes_back, also_later=also_later)
    if not any(map(goes, members)):
        return members
    return [
        msgspec.structs.replace(pod, shape=own.own_shape(pod)[0]) if goes(pod) else pod
        for pod in members
    ]


def goes_back(pod: PodRecord, *, also_later: bool) -> bool:
    """Whether the pod was narrowed at its creation, and has no node.

    `also_later`: or as its gate was taken off.
    """
    is_ours = own.is_narrowed(pod) and (also_later or own.NARROWED not in pod.annotations)
    return is_ours and not pod.node


def _gives_back_later(corrals: Iterable[Corral]) -> bool:
    return all(corral.settings.narrowed_pods_given_back for corral in corrals)


def is_kept_narrowed(
    corrals: Collection[Corral], key: GangKey, members: Collection[PodRecord]
) -> bool:
    """Whether a gang that cannot start where it is narrowed to may not be given back.

    Some pod of it has a node, or would not be made again, or others of it were given back before
    and it has not run since; or the API server has forbidden it, and it is not tried for a while. A
    Job's are made again, whatever it may lose.
    """
    if any(pod.node for pod in members):
        return True
    leaders = [corral for corral in corrals if corral.is_leading]
    refused_at = [(each.now, life_of(each).refused_at.get(key, -math.inf)) for each in leaders]
    if any(now < at + REFUSED_SECONDS for now, at in refused_at):
        return True
    also_later = _gives_back_later(corrals)
    going = [pod for pod in members if goes_back(pod, also_later=also_later) and is_live(pod)]
    if any(pod.owner is None for pod in going):
        return True
    before = [life_of(leader).given_back.get(key) for leader in leaders]
    if any(uids is not None and any(pod.uid not in uids for pod in going) for uids in before):
        return True
    if key.source == JOB.source:
        return False
    for engine in (leader.engine for leader in leaders):
        gang = engine.gangs.by_key.get(key)
        its = (
            []
            if gang is None
            else [gang.members[pod.uid] for pod in going if pod.uid in gang.members]
        )
        if gang is not None and engine.owners.give_up(gang, its):
            return True
    return False


def _is_kept_from_ending(
    api: ApiServer, corrals: Iterable[Corral], key: GangKey, members: Iterable[PodRecord]
) -> bool:
    """Whether whoever leads evicts the gang as a whole, and a budget forbids it for a pod."""
    gangs_of = (corral.engine.gangs.by_key for corral in corrals if corral.is_leading)
    if not any(key in by_key and by_key[key].ending for by_key in gangs_of):
        return False
    return any(_is_refused(api, pod) for pod in members if pod.node and not pod.is_finished)


def _is_refused(api: ApiServer, pod: PodRecord) -> bool:
    try:
        api.check_eviction(pod.name, pod.uid, counts=False)
    except Refused:
        return True
    return False


def kept_from(
    pods: Collection[PodRecord], nominated: Iterable[Nominated]
) -> list[tuple[str, Amounts]]:
    """What others are nominated for that these pods give way to, by node."""
    priority = min(pod.priority for pod in pods)
    own = {pod.uid for pod in pods}
    return [
        (each.node, each.request)
        for each in nominated
        if each.priority >= priority and each.uid not in own
    ]


def _just_planned(corrals: Iterable[Corral]) -> set[GangKey]:
    """Gangs whose pods kube-scheduler may not have brought yet: it has tried them before."""
    return {
        gang.key
        for corral in corrals
        if corral.is_leading
        for gang in corral.engine.gangs.by_key.values()
        if gang.phase is Phase.PLACED and corral.now < gang.binding.moved_at + MOST_BACKOFF
    }


def _on_their_way(corrals: Iterable[Corral]) -> set[GangKey]:
    """Gangs of which some pods are bound, and the others keep their nodes until they come again."""
    return {
        gang.key
        for corral in corrals
        if corral.is_leading
        for gang in corral.engine.gangs.by_key.values()
        if gang.has_started
        and gang.plan.nodes
        and corral.now < gang.binding.moved_at + MOST_BACKOFF
    }


def _held_in_vain(
    corrals: Iterable[Corral], is_hopeless: Callable[[PodRecord], bool]
) -> frozenset[str]:
    return frozenset(
        node
        for corral in corrals
        for gang in corral.engine.gangs.by_key.values()
        if any(is_hopeless(member.pod) for member in gang.members.values())
        for node in gang.plan.nodes.values()
    )


def _expected(
    corrals: Iterable[Corral], key: GangKey | None, just_now: Collection[GangKey]
) -> tuple[tuple[str, tuple[tuple[str, int], ...]], ...]:
    """What is held for pods that gangs other than this one expect, by whoever leads.

    So is what is held for gangs that were planned just now: those pods are on their way.
    """
    return tuple(
        (booking.node, booking.request)
        for corral in corrals
        if corral.is_leading
        for gang in corral.engine.gangs.by_key.values()
        if gang.key != key
        for uid in (*gang.placeholders, *(gang.plan.nodes if gang.key in just_now else ()))
        if (booking := corral.engine.books.held.get(uid)) is not None
    )


def _is_behind_others(pod: PodRecord) -> bool:
    return not pod.node and any(gate != own.GATE for gate in pod.gates)


def check_expected(api: ApiServer, corrals: Iterable[Corral]) -> None:
    """I7: places are kept for as many pods as are missing, and for the spares that are asked for.

    Raises: Violation.
    """
    everyone = gangs(api)
    for corral in corrals:
        for gang in corral.engine.gangs.by_key.values():
            if gang.ending:
                continue  # nothing is held for it, and its roll is called once it has ended
            members = everyone.get(gang.key, [])
            live = [pod for pod in members if not pod.is_finished and not pod.is_terminating]
            spares = sum(each.is_spare for each in gang.placeholders.values())
            asked = max((_claim(pod).said.spares for pod in live), default=0)
            require(spares <= asked, f"I7: {gang.key} has {spares} spares, it asks for {asked}")
            kept = Counter(
                each.member.pod_set
                for each in gang.placeholders.values()
                if not (each.is_spare or _is_unknown_to_be_given_up(corral, each))
            )
            excess = _in_excess(api, gang.key, members, live)
            # The place of a pod behind another's gate is kept until that gate is taken off.
            behind = sum(_is_behind_others(pod) and pod.uid not in gang.plan.nodes for pod in live)
            lacks = len(excess) + behind - len(live)
            lacks = lacks + declared(api, gang.key, members) if kept else 0
            require(
                kept.total() <= lacks,
                f"I7: {kept.total()} places are kept for {gang.key}, it lacks {lacks}",
            )
            waiting = Counter(
                _set_of(pod) for pod in live if not pod.node and pod.uid not in excess
            )
            for pod_set, places in _places_by_set(members, Counter()).items():
                lacks = places - waiting[pod_set]
                require(
                    kept[pod_set] <= max(lacks, 0),
                    f"I7: {kept[pod_set]} places are kept for pod set {pod_set} of {gang.key},"
                    f" it lacks {lacks}",
                )


def _is_unknown_to_be_given_up(corral: Corral, place: Placeholder) -> bool:
    """Whether another Corral may have evicted this pod: that one keeps no place for it."""
    return not corral.is_leading and bool(place.instead_of) and corral.now < place.until


def check_books(api: ApiServer, corrals: Iterable[Corral], clock: Clock) -> None:
    """L4: every Corral knows what the API server has."""
    bound = {pod.uid: pod.node for pod in api.pods.values() if counts(pod)}
    for corral in corrals:
        if corral.life is None:
            raise Violation(f"L4: {corral.name} is not up")
        ours = {uid: each.node for uid, each in corral.engine.books.bound.items()}
        require(ours == bound, f"L4: {corral.name} has {ours} on its books, not {bound}")
        shadow(corral.life, corral.now, is_dated=not clock.wall_went_back)


def check_empty(corrals: Iterable[Corral]) -> None:
    """I7: with every pod gone nothing is left of any of them."""
    for corral in corrals:
        engine = corral.engine
        left = {
            "held": engine.books.held,
            "bound": engine.books.bound,
            "gangs": engine.gangs.by_key,
            "members": engine.gangs.key_of,
            "jobs": engine.objects.by_gang,
            "refusals": engine.refusals._until,
            "grants": engine.grants.of,
            "nominations": engine.nominations._by_uid,
            "room": engine.room_plans.of,
            "victims": engine.room_plans.victims.of,
            "births": engine.births._open,
            "unseen": engine.unseen._until,
            "given back": engine.giving_back._sent,
            "kept for those": engine.giving_back.kept_places._of,
            "looked at": engine.giving_back._narrowed | engine.giving_back._looks,
            "withdrawn evictions": engine.room_plans.victims.withdrawn,
            "stuck pods": engine.room_plans.left_alone.stuck,
        }
        for name, rest in left.items():
            require(not rest, f"I7: {corral.name} still has {name}: {rest}")
        for topology in engine.books.topologies.values():
            for books in (topology.capacity.used, topology.capacity.held):
                require(not books.any(), f"I7: {corral.name}: books are not empty: {books}")


# -- who waits ---------------------------------------------------------------------------------


def gangs(api: ApiServer) -> dict[GangKey, list[PodRecord]]:
    """Every gang's pods, ended ones too."""
    found: dict[GangKey, list[PodRecord]] = {}
    named = named_by(api.objects[POD_GANG].values())
    for pod in api.list("Pod"):
        key = gang_of(pod, named) if pod.scheduler == SCHEDULER else None
        if key is not None:
            key = outermost(key, pod, api.objects[NATIVE_GROUP])
            found.setdefault(key, []).append(pod)
    return found


def ordinary(api: ApiServer) -> list[PodRecord]:
    """Pods of no gang that wait for a node."""
    named = named_by(api.objects[POD_GANG].values())
    return [
        pod
        for pod in api.list("Pod")
        if pod.scheduler == SCHEDULER
        and DIALECTS.claim(pod) is None
        and pod.name not in named
        and not pod.gates
        and not pod.node
        and not pod.is_terminating
    ]


def waits_in_vain(
    api: ApiServer,
    key: GangKey,
    members: list[PodRecord],
    taken: Taken,
    may_hold: Callable[[Collection[Amounts]], bool],
    among: Cluster | None = None,
    *,
    counts_gone: bool = True,
) -> str:
    """Where the gang's waiting members would fit; "" if they do not, or must not start.

    `among`: the nodes, and the pods that count; None: all. `counts_gone`: whether pods that
    succeeded and are gone have done their part.
    """
    live = [pod for pod in members if not pod.is_finished and not pod.is_terminating]
    bound = [pod for pod in live if pod.node]
    excess = _in_excess(api, key, members, live)
    live = [pod for pod in live if pod.uid not in excess]
    waiting = [pod for pod in live if not pod.node and _is_ready(pod)]
    # At most: what ended and went while no Corral looked is not known, and a pod that ends while
    # it is deleted was stopped, unless that is how a Corral that starts finds it.
    gone = api.succeeded_and_gone.get(key, Counter()) if counts_gone else Counter()
    places = declared(api, key, members) - len(bound) - gone.total()
    is_unclear = _disagree(live) or _has_excess(members, gone) or key in api.stopped
    if places <= 0 or not waiting or len(waiting) > places or is_unclear:
        return ""  # which of them are in excess is the engine's own choice
    claims = [_claim(pod) for pod in live]
    if bound and any(claim.said.slices for claim in claims):
        return ""  # how slices are filled up is the core's business
    asked = [wanted(pod) for pod in waiting]
    if not bound and len(waiting) < places:
        if not is_early(api, key, claims) or len(waiting) + len(bound) < len(live):
            return ""
        done = [pod for pod in members if pod.phase == "Succeeded"]
        absent = to_come(claims, waiting + done * bool(claims[0].leaf), places - len(waiting))
        if not may_hold([each.pod.request for each in absent]):
            return ""
        asked += absent
    has_begun = bound or gone or any(pod.phase == "Succeeded" for pod in members)
    if not has_begun and not is_each_led(asked):
        return ""
    placement = place(among or api, key, asked, bound, taken)
    return str([(one.pod_set, one.domains) for one in placement.pod_sets]) if placement else ""


def is_early(api: ApiServer, key: GangKey, claims: Iterable[Claim]) -> bool:
    """Whether the gang may start before all its pods are there."""
    if any(claim.said.reserves_all or claim.said.leaves for claim in claims):
        return True
    return any(each.is_gradual for each in _owners(api, key))


def _is_ready(pod: PodRecord) -> bool:
    """Nothing but us keeps it back."""
    return all(gate == own.GATE for gate in pod.gates)


def _claim(pod: PodRecord) -> Claim:
    return claim_of(pod) or _NAMED


def _disagree(live: list[PodRecord]) -> bool:
    totals = {_claim(pod).said.pods for pod in live}
    return len(totals - {None}) > 1


def _has_excess(members: list[PodRecord], gone: Counter[str]) -> bool:
    """Whether a set that a driver declares has more pods than that, those that succeeded included.

    A controller makes another driver for one that succeeded and was deleted.
    """
    found = next((said for pod in members if (said := _claim(pod).said).leaves), None)
    if found is None:
        return False
    there = gone + Counter(
        _claim(pod).leaf
        for pod in members
        if pod.phase == "Succeeded" or not (pod.is_finished or pod.is_terminating)
    )
    return any(there[leaf.name] > leaf.pods for leaf in found.leaves)


def _in_excess(
    api: ApiServer, key: GangKey, members: list[PodRecord], live: list[PodRecord]
) -> set[str]:
    """The live ones that wait though of their pod set all run that the gang started with; uids."""
    places = _places_by_set(members, api.succeeded_and_gone.get(key, Counter()))
    return {pod.uid for pod in live if not pod.node and places.get(_set_of(pod), 1) <= 0}


def _places_by_set(members: list[PodRecord], gone: Mapping[str, int]) -> dict[str, int]:
    """How many more pods of each set may run in a gang that remembers what it started with.

    `gone`: those that have succeeded and were deleted since. Empty where the gang does not
    remember it, or has been resized: then any pod may be of it.
    """
    texts = {pod.annotations.get(own.POD_SETS, "") for pod in members} - {""}
    size = next((pods for pod in members if (pods := _claim(pod).said.pods) is not None), 0)
    places = Counter(dict(own.pod_sets_from_text(texts.pop()))) if len(texts) == 1 else Counter()
    if not places or places.total() != size:
        return {}
    for pod in members:
        runs = pod.node and not pod.is_finished and not pod.is_terminating
        if (runs or pod.phase == "Succeeded") and _set_of(pod) in places:
            places[_set_of(pod)] -= 1
    return {pod_set: pods - gone.get(pod_set, 0) for pod_set, pods in places.items()}


def _set_of(pod: PodRecord) -> str:
    return member_of(pod, _claim(pod)).pod_set


def _owners(api: ApiServer, key: GangKey) -> list[Any]:
    return [
        record
        for kind in OWNERS
        for record in api.objects[kind].values()
        if key in DIALECTS.keys_of(record)
    ]


def declared(api: ApiServer, key: GangKey, members: list[PodRecord]) -> int:
    """How many members run or are to run; 0: nobody knows."""
    if key.source in ("job", "jobset", "statefulset"):
        made = _owners(api, key)
        return declared_by(made) if is_known(key, made) else 0
    # Of a driver that is done nobody goes on with what it declared.
    heard = [pod for pod in members if not pod.is_terminating and pod.phase != "Succeeded"]
    total = next((pods for pod in heard if (pods := _claim(pod).said.pods) is not None), None)
    if total is None:
        return 0
    return total - sum(pod.phase == "Succeeded" for pod in members)
