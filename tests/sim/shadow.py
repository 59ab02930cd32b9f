"""The engine's state, compared: with itself, with its records, and with a fresh start (I8, I9)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from msgspec.structs import replace

from app.dialects import corral
from app.dialects.spec import GangKey
from app.kube.watch.events import Listed
from app.state.engine import Engine
from app.state.gang.gang import Gang
from app.state.report.notes import carriers
from tests.sim.dialects import remembering
from tests.sim.life import Life
from tests.sim.violation import require
from topology import invariants
from topology.model.tree import Tree


def state_of(engine: Engine) -> dict[str, Any]:
    """What must not change by hearing something again."""
    return {
        "nodes": dict(engine.books.nodes),
        "bound": dict(engine.books.bound),
        "held": dict(engine.books.held),
        "members": dict(engine.gangs.key_of),
        "gangs": {
            str(key) + key.epoch: (
                gang.phase,
                dict(gang.plan.nodes),
                sorted(gang.binding.arrived),
                sorted(gang.binding.at_bind.items()),
                sorted(gang.binding.posted),
                sorted(gang.binding.answered),
                sorted(gang.rejections.sentences.items()),
                gang.complete_at,
                gang.back_off.not_before,
            )
            for key, gang in engine.gangs.by_key.items()
        },
    }


def shadow(life: Life, now: float, *, is_dated: bool = True) -> None:
    """I8: an engine that reads the same from lists comes to the same books.

    `is_dated`: what is dated later is later, for the clock on the wall never went back.
    """
    engine = life.engine
    if life.read_anew is None:
        life.read_anew = remembering(engine.settings)
    fresh = Engine(engine.settings, dialects=life.read_anew)
    for kind in engine.settings.kinds:
        records = tuple(record for _, record in sorted(life.streams[kind].mirror.items()))
        fresh.apply(Listed(kind, records), now)
    fresh.tick(now)
    waiting = engine.claims.waiting
    pairs = (
        ("nodes", engine.books.nodes, fresh.books.nodes),
        ("bound", _bookings(engine), _bookings(fresh)),
        ("members", _members(engine, waiting), _members(fresh, waiting)),
        ("objects", _objects(engine), _objects(fresh)),
    )
    for name, ours, theirs in pairs:
        require(ours == theirs, f"I8: {name} differ from a fresh start: {_unequal(ours, theirs)}")
    for key, gang in engine.gangs.by_key.items():
        if key in engine.gangs.unreviewed or gang.ending:
            continue  # that its pods are being evicted is not known after a start
        if gang.birth is not None or any(uid in engine.unseen for uid in gang.members):
            continue  # nor are pods that are about to come, or that the watch has not shown
        if any(
            key in (engine.gangs.key_of.get(uid), fresh.gangs.key_of.get(uid)) for uid in waiting
        ):
            continue  # nor is that a pod was begun to be bound before an object named it
        again = fresh.gangs.by_key[key]
        if again.ending and not is_dated:
            continue  # that all its pods were made since is not known either
        is_unwritten = _is_unwritten(gang, again)
        if is_unwritten:
            again.succeeded.gone = gang.succeeded.gone.copy()
        if _tell_who_was_stopped(gang, again) or is_unwritten:
            fresh.roll_calls.review(again, now)
        ours, theirs = _roll(gang), _roll(again)
        require(ours == theirs, f"I8: roll call of {key}: {ours}, a fresh start has {theirs}")


def _members(engine: Engine, waiting: Collection[str]) -> dict[str, GangKey]:
    """The gang of each member; pods that are being bound as what they were are left out.

    So are those that the watch has not shown.
    """
    unsure = (waiting, engine.unseen)
    return {
        uid: key
        for uid, key in engine.gangs.key_of.items()
        if not any(uid in those for those in unsure)
    }


def _is_unwritten(gang: Gang, again: Gang) -> bool:
    """Whether only this process can know how many succeeded pods of the gang are gone.

    It saw them go, and its note of that shows on no pod yet: the note is written a second later
    and may be lost on its way. Once one pod has the note, a fresh start has to know as much; and
    where no pod is to carry a note, none is on its way.
    """
    text = gang.succeeded.text
    notes = [pod.annotations.get(corral.SUCCEEDED, "") for pod in carriers(gang)]
    return bool(notes) and text not in notes and again.succeeded.gone < gang.succeeded.gone


def _tell_who_was_stopped(gang: Gang, again: Gang) -> bool:
    """Tell a fresh start which pods ended well only as they were deleted; whether there are any.

    Only who saw them run until then can know.
    """
    stopped = [uid for uid, each in gang.members.items() if each.was_stopped]
    for uid in stopped:
        again.members[uid].was_stopped = True
        again.succeeded.present.pop(uid, None)
    return bool(stopped)


def check_books(life: Life) -> None:
    """I1, I7: the books are the sums of the records, and no column is what it cannot be."""
    engine = life.engine
    engine.books.refresh()
    differences = engine.differences()
    require(not differences, f"books: {differences}")
    for topology in engine.books.topologies.values():
        if life.trees.get(topology.name) is not topology.tree:
            invariants.check_tree(topology.tree)
            _close(topology.tree)
            life.trees[topology.name] = topology.tree
        invariants.check_slots_are_sorted(topology.tree)
        invariants.check_capacity(topology.tree, topology.capacity)
    _check_bounds(life)


def _close(tree: Tree) -> None:
    """Have every write to the arrays of a tree raise: it need not be checked again."""
    for array in (*tree.starts, *tree.ends, *tree.parents, *tree.domain_of):
        array.flags.writeable = False


def _check_bounds(life: Life) -> None:
    """I11: nothing is remembered of what is gone."""
    engine, gangs = life.engine, life.engine.gangs
    pods = {pod.uid for pod in life.streams["Pod"].mirror.values()}  # type: ignore[union-attr]
    unseen = engine.unseen._until.keys()
    require(gangs.key_of.keys() - unseen <= pods, "I11: members are remembered that are gone")
    require(unseen <= gangs.key_of.keys(), "I11: pods are believed in that are no members")
    require(engine.books.bound.keys() <= pods, "I11: bound pods are remembered that are gone")
    for name, uids in (
        ("grants", engine.grants.of.keys()),
        ("grants in vain", engine.grants._in_vain.keys()),
        ("nominations", engine.nominations._by_uid.keys() - engine.nominations._kept.keys()),
    ):
        require(uids <= pods, f"I11: {name} are remembered of pods that are gone")
    plans = engine.room_plans
    kept = {uid for plan in plans.of.values() for uid in plan.places}
    for place in engine.giving_back.kept_places._of.values():
        kept |= {*place.evicted, *place.others}
    require(kept == engine.nominations._kept.keys(), "P7: room is kept for no gang")
    require(engine.giving_back._sent <= pods, "I11: pods are given back that are gone")
    going = {uid for plan in plans.of.values() for uid in plan.pods}
    require(going == plans.victims.of.keys(), "I11: pods go for no gang")
    late = plans.victims.withdrawn | plans.left_alone.stuck
    require(late <= pods, "I11: evictions are remembered of no pod")
    waiting = {key for keys in gangs.plannable_in.values() for key in keys}
    for name, keys in (
        ("plannable_in", waiting),
        ("planned", gangs.planned.keys()),
        ("with_placeholders", gangs.with_placeholders.keys()),
    ):
        require(keys <= gangs.by_key.keys(), f"I11: {name} names gangs that are gone")


def _objects(engine: Engine) -> dict[str, Any]:
    """Without their versions: an update that changes nothing else is not kept."""
    return {uid: replace(each, version="") for uid, each in engine.objects.by_uid.items()}


def _bookings(engine: Engine) -> dict[str, Any]:
    bound = engine.books.bound.items()
    return {uid: (each.node, each.request) for uid, each in bound}


def _unequal(ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    keys = [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)]
    return ", ".join(f"{key}: {ours.get(key)} / {theirs.get(key)}" for key in keys[:3])


def _roll(gang: Gang) -> dict[str, Any]:
    roll = gang.membership
    return {
        "bound": sorted(member.pod.uid for member in roll.bound),
        "unbound": [member.pod.uid for member in roll.unbound],
        "excess": [member.pod.uid for member in roll.excess],
        "complete": roll.is_complete,
        "problem": roll.problem,
    }
