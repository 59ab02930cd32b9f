"""What a healed world waits for before it is judged, and what it is judged by then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.dialects import corral as own
from app.state.born.suspended import AGAIN_SECONDS, LONGEST_SECONDS
from tests.sim.asking import check_marks
from tests.sim.corral import Corral
from tests.sim.liveness import check_books, check_expected, check_nobody_is_forgotten
from tests.sim.preemption import check_nothing_stays, nominated_by
from tests.sim.queue import MOST_BACKOFF
from tests.sim.room_sought import check_room_is_sought
from tests.sim.told import life_of
from tests.sim.violation import require

if TYPE_CHECKING:
    from tests.sim.world import World

# How long the cluster has until it is judged, beside `owed_seconds`: what a lost member owns is not
# for others until then. That nothing takes as long where nothing went wrong is for `fresh`.
SETTLE_SECONDS = (
    80.0  # after faults: 60 s back-off of lost plans, 10 s in the queue; and `hold_seconds`
)
REST_SECONDS = 15.0  # from when room is made for no gang any more until all have their nodes
MOST_REST = 1200.0  # until then
MOST_SUSPENDED = LONGEST_SECONDS + 2 * AGAIN_SECONDS  # until a Job goes on
NOMINATED_SECONDS = 2.0  # from when a nominated pod is tried again until it is bound
MOST_TICKS = 8  # that are waited for before the cluster is judged


def judge(world: World) -> None:
    """Wait until nothing is under way, then judge what has come about. Raises: Violation."""
    _await_taken_in(world)
    _await_rest(world)
    if world.growing is not None:
        world.growing.await_rest(SETTLE_SECONDS + world.held_seconds)
        _await_rest(world)
    _await_resumed(world)
    _await_nominated(world)
    _await_taken_in(world)
    world.history.say("judged")
    check_books(world.api, world.corrals, world.clock)
    check_expected(world.api, world.corrals)
    is_hopeless = world.workloads.is_hopeless
    in_memory = world.scheduler.cache.nominated.values()
    nominated = nominated_by(world.api, in_memory, world.corrals)
    check_nobody_is_forgotten(
        world.api,
        world.corrals,
        world.checks.absent,
        is_hopeless,
        nominated,
        {each.source: each.waits_in_vain for each in world.vocabularies},
        world.growing.with_new_nodes if world.growing is not None else None,
    )
    check_marks(world.api, is_hopeless)
    for each in world.vocabularies:
        each.judge()
    if world.evictions is not None:
        leader = next(each for each in world.corrals if each.is_leading)
        of_vocabulary = {each.source: each.waits_in_vain for each in world.contested}
        check_room_is_sought(world.api, leader, is_hopeless, nominated, of_vocabulary)
    check_nothing_stays(world.api, world.corrals)


def _await_taken_in(world: World) -> None:
    """Let every Corral hear what has just come about, and take it in by its next tick."""
    for _ in range(MOST_TICKS):
        owing = [each for each in world.corrals if each.life and _owes(each)]
        if not owing:
            break
        world.clock.run_until(world.clock.now + max(each.tick_seconds for each in owing))


def _owes(corral: Corral) -> bool:
    life = life_of(corral)
    is_behind = any(each.pending for each in life.streams.values())
    return is_behind or bool(corral.engine.gangs.unreviewed or life.statuses)


def _await_rest(world: World) -> None:
    """P11: let gangs get the room that is made for them; with no new pods that has an end."""
    if world.evictions is None:
        return
    began = quiet_since = world.clock.now
    while True:
        leading = [each for each in world.corrals if each.life and each.is_leading]
        if any(corral.engine.room_plans.of for corral in leading):
            quiet_since = world.clock.now + 1.0
        if world.clock.now >= quiet_since + REST_SECONDS:
            break
        require(world.clock.now < began + MOST_REST, "P11: room is made without end")
        world.clock.run_until(world.clock.now + 1.0)


def _await_resumed(world: World) -> None:
    """B7: let the Jobs go on that are suspended so that their pods are made anew."""
    ends = world.clock.now + MOST_SUSPENDED
    while any(own.SUSPENDED in each.annotations for each in world.api.list("Job")):
        require(world.clock.now < ends, "B7: a Job stays suspended")
        world.clock.run_until(world.clock.now + 1.0)


def _await_nominated(world: World) -> None:
    """Let kube-scheduler try the pods that others have just ended for."""
    ends = world.clock.now + 2 * MOST_BACKOFF
    while world.scheduler.puts_off_nominated and world.clock.now < ends:
        world.clock.run_until(world.clock.now + NOMINATED_SECONDS)
