"""Sentences about pods that are given back to their controllers, as their gang fits elsewhere."""

from __future__ import annotations

from app.dialects.spec import GangKey
from app.kube.core.objects import PodRecord


def given_back(why: str, pods: int, *, is_suspended: bool) -> str:
    """Pods end that are narrowed to where their gang has no place; `why`: its verdict."""
    its = "1 of its pods, which was" if pods == 1 else f"{pods} of its pods, which were"
    verb = "is" if pods == 1 else "are"
    how = "its Job is suspended until they are gone" if is_suspended else "evicted"
    return (
        f"{why}; {its} narrowed to these nodes, {verb} given back to the controller ({how}),"
        " because the gang has a place elsewhere"
    )


def goes_on() -> str:
    """A workload was suspended until its pods were gone."""
    return "its pods are made anew, as the gang has a place elsewhere"


GIVEN_BACK_ONCE = "others were, once, and it has not run since; delete them to have them made again"
NOT_MADE_AGAIN = "no controller is known to make them again; delete them and create them anew"
OWNER_GIVES_UP = (
    "their owner would count them as failed and give up (backoffLimit, policies); a"
    " podFailurePolicy of a Job whose first rule ignores the condition DisruptionTarget allows it"
)
SET_BORN_GIVEN_BACK = "the setting born_pods_given_back is off; delete them to have them made again"
SET_NARROWED_GIVEN_BACK = (
    "the setting narrowed_pods_given_back is off; delete them to have them made again"
)


def not_given_back(key: GangKey, why: str) -> str:
    """The same, but they stay."""
    return (
        f"gang {key} could start elsewhere, but its pods are narrowed to nodes where it has no"
        f" place any more, and are not given back (evicted): {why}"
    )


def keeps_narrowed(key: GangKey, pod: PodRecord | None, *, is_forbidden: bool) -> str:
    """A pod that is given back stays: the API server forbids that, or does not answer.

    None: all pods of its Job do.
    """
    role = "corral-suspend" if pod is None else "corral-evict"
    why = (
        f"forbids it: ClusterRole {role}, or a policy of the cluster"
        if is_forbidden
        else "does not answer, or not now"
    )
    if pod is None:
        what = "pods, narrowed to other nodes, are not given back (their Job is not suspended)"
    else:
        what = f"pod {pod.name}, narrowed to other nodes, is not given back (evicted)"
    return f"gang {key} could start elsewhere, but its {what}, as the API server {why}"
