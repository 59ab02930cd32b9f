"""KEP-976 pod groups: membership by group name, size by total count or by the pod sets of a driver.

The group's name may be a label or an annotation; current Kueue prefers the annotation.
Source: KEP-976 "Groups of Pods created beforehand", "Groups of pods where driver generates
workers", "Retrying Failed Pods"; kueue pkg/controller/jobs/pod (v0.16) for the annotations that
came after it.
"""

from __future__ import annotations

from collections.abc import Mapping

from app.dialects import corral
from app.dialects.kueue.annotations import PREFIX
from app.dialects.kueue.driver_sets import MOST_SETS, SETS, is_drivers
from app.dialects.rules import whole_number
from app.dialects.spec import Index, LeafSpec
from app.dialects.workloads.job import completion_index
from app.kube.core.objects import PodRecord
from app.settings import RoleRules

SOURCE = "group"  # of the keys of pod groups
GROUP_NAME = PREFIX + "pod-group-name"
TOTAL_COUNT = PREFIX + "pod-group-total-count"
POD_INDEX = PREFIX + "pod-group-pod-index"
INDEX_LABEL = PREFIX + "pod-group-pod-index-label"  # annotation: names the label with the index
RETRIABLE = PREFIX + "retriable-in-group"
SERVING = PREFIX + "pod-group-serving"
FAST = PREFIX + "pod-group-fast-admission"
ROLE = PREFIX + "pod-group-role"
SPARES = corral.PREFIX + "spare-pods"
ABSENT_SECONDS = corral.PREFIX + "absent-seconds"
FLAGS = (RETRIABLE, SERVING, FAST)
KEPT = (
    *(GROUP_NAME, TOTAL_COUNT, POD_INDEX, INDEX_LABEL, *FLAGS, SETS, ROLE),
    *(SPARES, ABSENT_SECONDS),
)

# Roles of one group by whose rules it is read; of more Kueue makes no Workload, and we no gang.
# Source: kueue pkg/controller/jobframework/constants.go (v0.19), MaxPodSets: 8 until v0.17, 10 in
# v0.18; KEP-976 "Groups of Pods created beforehand", Caveats.
MOST_ROLES: Mapping[RoleRules, int] = {"kueue": MOST_SETS, "kep": 8}
MOST_SPARES = 100  # of one gang: each is searched for by itself, and others go without it
MOST_ABSENT_SECONDS = 86_400

Strings = Mapping[str, str]


def group_names(labels: Strings, annotations: Strings) -> tuple[str, ...]:
    """The names that a pod gives its group; one, or none for a pod of no group, if it is valid."""
    names = (where[GROUP_NAME] for where in (annotations, labels) if GROUP_NAME in where)
    return tuple(dict.fromkeys(names))


def index(pod: PodRecord) -> Index | None:
    """The pod's number in its group, which all roles of the group share.

    Of a label that the pod names, Kueue's webhook makes a copy, or ours, whatever that said before;
    it is read itself, for there may be neither. Where the group is not numbered, the number of the
    pod in its Job will do.
    """
    named = pod.annotations.get(INDEX_LABEL)
    number = None if named is None else whole_number(pod.labels.get(named))
    if number is None:
        number = whole_number(pod.labels.get(POD_INDEX))
    if number is None:
        number = completion_index(pod)
    return None if number is None else Index(number, is_across=True)


def said_role(labels: Strings, annotations: Strings) -> str:
    """The pod set that a pod names, of those that a driver declares; "" if it names none."""
    return labels.get(ROLE) or annotations.get(ROLE, "")


def role(pod: PodRecord, sets: tuple[LeafSpec, ...]) -> str:
    """The pod set a pod belongs to, of those that a driver declares; "" if it names none.

    A driver that does not say is of the set that is made of pods like it.
    """
    said = said_role(pod.labels, pod.annotations)
    if said or not sets:
        return said
    return next((each for each in sets if is_drivers(each, pod)), sets[0]).name
