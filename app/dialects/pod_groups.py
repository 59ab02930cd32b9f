"""KEP-976 pod groups: membership by group name, size by total count.

Source: KEP-976 (plain pods), "Groups of Pods created beforehand"; the group's name may be a label
or an annotation, and the annotation is what current Kueue prefers.
"""

from __future__ import annotations

from app.dialects import jobs
from app.dialects.kueue import MOST_PODS, PREFIX, WrongAnnotation, whole_number
from app.dialects.membership import Declared, Number
from app.kube.core.objects import PodRecord

GROUP_NAME = PREFIX + "pod-group-name"
TOTAL_COUNT = PREFIX + "pod-group-total-count"
POD_INDEX = PREFIX + "pod-group-pod-index"
KEPT = (GROUP_NAME, TOTAL_COUNT, POD_INDEX)


def group_name(pod: PodRecord) -> str:
    """The name of the pod's group, or "" for a pod of no group.

    Raises: WrongAnnotation where label and annotation disagree, or the name is empty.
    """
    names = [where[GROUP_NAME] for where in (pod.annotations, pod.labels) if GROUP_NAME in where]
    if not names:
        return ""
    if len(set(names)) > 1:
        raise WrongAnnotation(
            f"{GROUP_NAME}: annotation says {names[0]!r} and label says {names[1]!r}"
        )
    if not names[0]:
        raise WrongAnnotation(f"{GROUP_NAME}: must not be empty")
    return names[0]


def number(pod: PodRecord) -> Number | None:
    """The pod's number in its group, which all roles of the group share.

    Source: kueue.md 3; where nobody numbers the group, what numbers the pod in its Job will do.
    """
    index = whole_number(pod.labels.get(POD_INDEX))
    if index is None:
        index = jobs.completion_index(pod)
    return None if index is None else Number(index, is_across=True)


def total_count(pod: PodRecord) -> Declared:
    """How many pods the group has, as this member says.

    Raises: WrongAnnotation where it is missing or no whole number of at least 1.
    """
    text = pod.annotations.get(TOTAL_COUNT)
    if text is None:
        raise WrongAnnotation(f"annotation {TOTAL_COUNT}: must be set beside {GROUP_NAME}")
    digits = text.isascii() and text.isdecimal() and len(text) <= 9
    if not digits or not 1 <= int(text) <= MOST_PODS:
        raise WrongAnnotation(
            f"annotation {TOTAL_COUNT}: must be a whole number from 1 to {MOST_PODS}, got {text!r}"
        )
    return Declared(int(text), f"annotation {TOTAL_COUNT}")
