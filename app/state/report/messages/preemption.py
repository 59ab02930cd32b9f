"""Sentences about who goes for whom: room that gangs ask for, and pods that preempt.

Those that may be of other namespaces come in words already, as `naming.py` has them.
"""

from __future__ import annotations

from collections.abc import Sequence

from app.dialects.spec import GangKey
from app.state.effects import RoomAnswer, RoomVictim

MOST_VICTIMS_SHOWN = 3  # names of up to 317 characters; an event has 1,024


def of_priority(pod: str, priority: int) -> str:
    """A pod that others give way to."""
    return f"{pod} of priority {priority}"


def gives_way(member: str, members: int, to: str, node: str, kept: int, running: int) -> str:
    """Members of a gang go for a pod of higher priority."""
    others = f" and {members - 1} more" if members > 1 else ""
    return (
        f"member {member}{others} gives way to {to} on node {node};"
        f" the gang keeps {kept} of {running} running"
    )


def room(key: GangKey, priority: int, answer: RoomAnswer, why_none: str) -> str:
    """The gang would have room if some pods went; "" as `why_none`: they are evicted."""
    where = f" in {answer.domain}" if answer.domain else ""
    whose = f"gang {key} (priority {priority})"
    if not answer.pods:
        return f"{whose} has room{where} once the pods that end now have ended"
    pods = "1 pod" if answer.pods == 1 else f"{answer.pods} pods"
    gangs = {0: "", 1: " of 1 gang"}.get(answer.gangs, f" of {answer.gangs} gangs")
    if answer.gangs and answer.gangs < answer.units:
        gangs = f", those{gangs} among them,"
    named = f"{victims(answer)}{_gives_up(answer)}"
    if not why_none:
        return f"{whose} makes room{where}: evicts {pods}{gangs.rstrip(',')}: {named}"
    fewer = " or fewer" if answer.is_cut_short else ""
    return (
        f"{whose} could start{where} if {pods}{gangs} went{fewer}, and none is evicted, as"
        f" {why_none}: {named}"
    )


def victims(answer: RoomAnswer) -> str:
    """Who would have to go: the most important few by name."""
    shown = answer.named[:MOST_VICTIMS_SHOWN]
    names = ", ".join(f"{name} (priority {its})" for name, its in shown)
    others = answer.units - len(shown)
    return f"{names} and {others} more" if others else names


def _gives_up(answer: RoomAnswer) -> str:
    """So many of those that would go would not be started again."""
    ends = answer.ends_for_good
    if not ends:
        return ""
    owners, whose, plural = ("owner", "its", "") if ends == 1 else ("owners", "their", "s")
    whom, what = f"{ends} of these", f"{whose} pods"
    if not answer.gangs:
        whom, what = f"{ends} pod{plural}", "it" if ends == 1 else "them"
    elif answer.gangs == answer.units:
        whom = f"{ends} gang{plural}"
    return f"; the {owners} of {whom} would count {what} as failed and give up"


def gives_way_whole(key: GangKey, victim: RoomVictim, to: str, priority: int) -> str:
    """A gang goes for a waiting one, `to`."""
    pods = len(victim.uids)
    all_pods = "its pod is" if pods == 1 else f"its {pods} pods are"
    end = ", and its owner gives up" if victim.ends_for_good else ""
    return (
        f"gang {key} (priority {victim.priority}) gives way to {to} (priority {priority}):"
        f" {all_pods} evicted{end}"
    )


def goes_for(namespace: str, name: str, victim: RoomVictim, to: str, priority: int) -> str:
    """A pod goes for a waiting gang, `to`."""
    end = ", and its owner gives up" if victim.ends_for_good else ""
    return (
        f"pod {namespace}/{name} (priority {victim.priority}) gives way to {to} (priority"
        f" {priority}): it is evicted{end}"
    )


def awaits_room(key: GangKey, where: str, ending: int, awaited: int, seconds: float) -> str:
    """Pods still end for a waiting gang."""
    domain = f" in {where}" if where else ""
    return (
        f"gang {key} waits for {ending} of {awaited} pods{domain} to end, {seconds:.0f} s more at"
        " most"
    )


_NOT_MADE = {
    "refused": "{who} may not be evicted",
    "unanswered": "the API server does not say whether the pods may be evicted",
    "changed": "the place, or those who would have had to go, have changed",
    "other_pods": "its pods, or what they require, have changed",
    "stuck": "{who} does not end in time",
    "taken": "{who} took what was freed",
    "lost": "what was freed is not enough any more",
}
OFTEN_IN_VAIN = "others went for it three times within an hour, and it has not started"


def stuck_twice(pods: Sequence[str]) -> str:
    """Pods of two places that were made for a gang do not end."""
    are_alike = len(pods) > 1 and len(set(pods)) == 1  # none of the two is named
    which = pods[0] if are_alike else f"one of {' and '.join(pods)}"
    return (
        f"others went for it from two places where pods do not end: it waits until {which} has"
        " ended"
    )


def room_not_made(key: GangKey, result: str, who: str, stopped: str = "") -> str:
    """A gang that made room does so no more, and has no place.

    `stopped`: why no others go for it for now; "": they may.
    """
    why = _NOT_MADE[result].format(who=who or "a pod")
    whole = f"gang {key} makes no room any more: {why}"
    return f"{whole}; no others are evicted for now, as {stopped}" if stopped else whole


def no_room(key: GangKey, priority: int, answer: RoomAnswer) -> str:
    """The gang would have no room, whichever pods went."""
    whose = f"gang {key} (priority {priority})"
    if answer.budgets:
        shown = answer.budgets[:MOST_VICTIMS_SHOWN]
        more = ", …" if len(answer.budgets) > len(shown) else ""
        return (
            f"{whose} could start only if pods went that disruption budgets keep:"
            f" {', '.join(shown)}{more}"
        )
    pods = "the pod" if answer.pods == 1 else f"the {answer.pods} pods"
    left = answer.left_alone
    alone = f"{left} pod is" if left == 1 else f"{left} pods are"
    others = f"; {alone} left alone for now" if left else ""
    if not answer.pods:
        return f"{whose} has no room: no pod of lower priority may go{others}"
    return f"{whose} has no room even without {pods} of lower priority that may go{others}"


def preemption_stopped(pod: str) -> str:
    """Pods ended for this one several times, and it did not come to run."""
    return (
        f"pod {pod} preempts no pods for some minutes: three times others ended for it, and it"
        " could not be bound to their node then"
    )
