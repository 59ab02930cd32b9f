"""What a healed cluster has to do within so many seconds, tried with workloads made for it.

fresh   nobody else is there: a gang that fits runs within `FRESH_SECONDS` of its last pod (L1);
        so does a workload of each vocabulary that has objects there, and a Job that takes a whole
        rack where gangs are born in place (L5)
crowd   more small pods and gangs than the cluster takes, for ever; a gang that needs a whole
        domain runs within `BYPASS_SECONDS`, whoever comes later (L3). It begins when its
        namespace may have earmarks again, after those that ended before
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.state.ticks import EARMARK_SECONDS
from tests.records import BLOCK, RACK, REQUIRED, UNCONSTRAINED
from tests.sim.born import whole_rack
from tests.sim.kinds import Template, Workload, draw
from tests.sim.places import is_ready
from tests.sim.violation import require

if TYPE_CHECKING:
    from tests.sim.vocabulary import Vocabulary
    from tests.sim.world import World

FRESH_SECONDS = 5.0  # from the last pod's creation
SAID_SECONDS = 2.0  # until a status says what has become of pods
REFUSED_SECONDS = 10.0  # longest back-off of a pod whose /bind was held for less than that
MADE_SECONDS = 2.0  # until all pods of a workload are made
STARVATION_SECONDS = 10.0  # of the seeds that have a crowd
LIFE_SECONDS = 20.0  # of one pod in the crowd, at most; kubelets take a tenth more or less
BACKOFF_SECONDS = 10.0  # kube-scheduler lets a pod rest for so long that it has often tried
BYPASS_SECONDS = (
    MADE_SECONDS
    + STARVATION_SECONDS
    + EARMARK_SECONDS
    + 1.1 * LIFE_SECONDS + 2.0  # what runs in the domain ends
    + BACKOFF_SECONDS
    + 5.0
)  # fmt: skip
ROOM_SECONDS = 12.0  # until what was deleted has gone
MOST_WAITING = 5  # small workloads
AHEAD_SECONDS = 3.0  # the crowd is there first


def crowd(world: World) -> None:
    """L3: a large gang gets its place though small ones come and go all the time.

    Raises: Violation.
    """
    world.workloads.quota_share = 0.0
    world.delete_everything()
    world.clock.run_until(world.clock.now + ROOM_SECONDS)
    world.clock.run_until(world.clock.now + _rest_seconds(world))
    world.hits.hit("L3 crowded")
    # The large gang's pods have been tried before: each comes when its own back-off is over.
    seconds = BYPASS_SECONDS + _refused_seconds(world, BACKOFF_SECONDS)
    ends = world.clock.now + AHEAD_SECONDS + seconds
    _keep_crowded(world, ends)
    world.clock.run_until(world.clock.now + AHEAD_SECONDS)
    large = _large(world)
    world.workloads.begin(large)
    began = world.clock.now
    world.clock.run_until(ends)
    _require_bound(world, large, f"L3: {large.name} waits since {began:.1f} s")


def _keep_crowded(world: World, ends: float) -> None:
    """Have small workloads wait all the time."""
    rng, began = world.rng, world.clock.now

    def more() -> None:
        if world.clock.now >= ends:
            return
        waiting = [pod for pod in world.api.pods.values() if not pod.node]
        if len(waiting) < MOST_WAITING + len(world.profile.racks):
            is_behind = world.clock.now > began + AHEAD_SECONDS + MADE_SECONDS
            world.workloads.begin(_small(world, is_behind=is_behind))
        world.clock.after(rng.uniform(0.1, 0.6), more)

    more()


def _small(world: World, *, is_behind: bool) -> Workload:
    """`is_behind`: the large gang is there already."""
    rng, gpus = world.rng, world.profile.gpus
    # Gangs that are there before come before it in the queue, one after the other.
    kind = rng.choice(("plain", "group")) if is_behind else "plain"
    return Workload(
        name=world.workloads.new_name(kind),
        kind=kind,
        templates=(Template(1, rng.choice((gpus, gpus, max(gpus // 2, 1))), 1000),),
        annotations={UNCONSTRAINED: "true"} if kind == "group" else {},
        priority=0,
        is_gated=False,
        seconds=rng.uniform(LIFE_SECONDS / 4, LIFE_SECONDS),
        declared=1,
        replaces=False,
    )


def _large(world: World) -> Workload:
    """A gang that takes all of the largest rack, or of the first block if no rack is large."""
    racks = world.profile.racks
    level, pods = (RACK, max(racks)) if max(racks) > 1 else (BLOCK, sum(racks[:2]))
    return Workload(
        name=world.workloads.new_name("group"),
        kind="group",
        templates=(Template(pods, world.profile.gpus, 1000),),
        annotations={REQUIRED: level},
        priority=0,
        is_gated=world.rng.random() < world.profile.gated_share,
        seconds=1000.0,
        declared=pods,
    )


def fresh(world: World) -> None:
    """L1: in an empty cluster where nothing goes wrong a gang that fits runs within seconds.

    Raises: Violation.
    """
    gang = draw(world.rng, 2, 1, world.profile.gated_share)
    while not gang.is_gang or gang.lacks_volume or gang.is_gradual:
        gang = draw(world.rng, 2, 1, world.profile.gated_share)
    world.workloads.quota_share = 0.0
    gang.name = world.workloads.new_name(gang.kind)
    gang.seconds = 1000.0
    _runs_soon(world, gang)


def fresh_born(world: World) -> None:
    """L5: in an empty cluster a gang that may be born in place runs within seconds.

    Raises: Violation.
    """
    world.delete_everything()
    world.clock.run_until(world.clock.now + ROOM_SECONDS)
    _runs_soon(world, whole_rack(world))


def fresh_workload(world: World, vocabulary: Vocabulary) -> None:
    """L1: in an empty cluster a workload that takes the whole of a domain runs within seconds.

    Raises: Violation.
    """
    world.delete_everything()
    world.clock.run_until(world.clock.now + ROOM_SECONDS)
    workload = vocabulary.fresh()
    workload.name = world.workloads.new_name(workload.kind)
    _runs_soon(world, workload)
    world.clock.run_until(world.clock.now + SAID_SECONDS)
    vocabulary.judge()


def _runs_soon(world: World, gang: Workload) -> None:
    """Have a gang come, and require that it runs within seconds of its last pod."""
    growing, orders = world.growing, 0
    seconds = FRESH_SECONDS + _refused_seconds(world, FRESH_SECONDS)
    if growing is not None:
        growing.confine(gang)
        seconds += growing.most_seconds + BACKOFF_SECONDS
        orders = growing.orders
    latest = world.clock.now + 10.0
    world.workloads.begin(gang)
    while world.clock.now < latest:
        pods = world.workloads.live_pods(gang)
        if len(pods) >= gang.declared and all(map(is_ready, pods)):
            break
        world.clock.run_until(world.clock.now + 0.1)
    world.clock.run_until(world.clock.now + seconds)
    _require_bound(world, gang, f"L1: {gang.name} is all there for {seconds} s")
    if growing is not None:
        growing.is_grown_for(gang, orders)


def _refused_seconds(world: World, apart: float) -> float:
    """How much later a gang runs whose members come so far apart that /bind refuses the first."""
    return REFUSED_SECONDS if dict(world.profile.settings)["gang_bind_seconds"] < apart else 0.0


def _rest_seconds(world: World) -> float:
    """How long the namespace of the workloads may have no more earmarks."""
    rests = (
        corral.engine.starvation.rests_until("default") - corral.now
        for corral in world.corrals
        if corral.life is not None
    )
    return max(0.0, *rests)


def _require_bound(world: World, workload: Workload, why: str) -> None:
    pods = world.workloads.live_pods(workload)
    waiting = [pod.name for pod in pods if not pod.node]
    require(len(pods) == workload.declared, f"{why}: only {len(pods)} pods were made")
    require(not waiting, f"{why}: {waiting} of {workload.declared} have no node")
