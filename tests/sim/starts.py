"""Which gangs of a vocabulary start with some bindings: what all its pods need has to be there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from app.kube.core.objects import PodRecord
from app.state.effects import Bind, Effect
from app.state.gang.gang import Gang
from tests.sim.arrivals import arrived_of
from tests.sim.life import Life
from tests.sim.told import is_live, key_of, members_of
from tests.sim.violation import require


def starts(
    life: Life, effects: Iterable[Effect], source: str
) -> Iterator[tuple[Gang, Sequence[PodRecord]]]:
    """The gangs that these bindings start, none of whose pods ran before, and their pods."""
    binds = [effect.uid for effect in effects if isinstance(effect, Bind)]
    for key in dict.fromkeys(key_of(life, uid) for uid in binds):
        if key is None or key.source != source:
            continue
        members = members_of(life, key)
        has_node = {pod.uid for pod in members if pod.node}
        if not {uid for uid in binds if key_of(life, uid) == key} - has_node:
            continue
        if not any(is_live(pod) and (pod.node or pod.uid in life.posted) for pod in members):
            yield life.engine.gangs.by_key[key], members


def placed_whole(
    life: Life,
    gang: Gang,
    members: Sequence[PodRecord],
    is_whole: Callable[[Sequence[PodRecord]], bool],
    rule: str,
) -> list[PodRecord]:
    """The pods of a gang that starts which have places: these, and those that came, are enough.

    Raises: Violation.
    """
    done = [pod for pod in members if pod.phase == "Succeeded"]
    live = {pod.uid: pod for pod in members if is_live(pod)}
    for what, uids in (("places", gang.plan.nodes), ("members", arrived_of(life, gang))):
        those = [live[uid] for uid in uids if uid in live]
        require(
            is_whole([*those, *done]),
            f"{rule}: {gang.key} starts with {what} for {sorted(pod.name for pod in those)}",
        )
    return [live[uid] for uid in gang.plan.nodes if uid in live]
