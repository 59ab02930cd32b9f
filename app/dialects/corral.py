"""Our own gate and annotations: written by Corral, but for those of the whole workload.

Some are read back after a restart: what a gang was made of when it started, which of its pods have
succeeded, where others were evicted for it, and what we narrowed a pod to when we took its gate
off, which is no wish of the pod's own: `own_shape` takes it away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from app.dialects import autoscalers
from app.kube.core.cached import KIB, cached
from app.kube.core.objects import PodRecord, Shape, Term
from app.kube.decoding.shapes import FEW_TERMS

PREFIX = "corral.dev/"
GATE = PREFIX + "gang"  # the scheduling gate behind which members wait for their gang
MANAGED = PREFIX + "managed"  # label "true": the webhook has taken the pod in
GANG = PREFIX + "gang"  # in the Binding: the gang this pod started with
DOMAIN = PREFIX + "domain"  # in the Binding: the domain the gang's pod set was placed in
WAKE = PREFIX + "wake"  # changes whenever we want kube-scheduler to look at the pod again
NOMINATED = PREFIX + "nominated"  # the node that the pod is nominated for by us
POD_SETS = PREFIX + "pod-sets"  # in the Binding: pods per pod set when the gang started
AFTER = PREFIX + "started-after"  # in the Binding: when a pod that ended its gang began to end
SUCCEEDED = PREFIX + "succeeded"  # on live members: the pods of their group that have succeeded
ROOM = PREFIX + "room"  # on members that wait: the place that others were evicted from for the gang
SUSPENDED = PREFIX + "suspended"  # on a workload: by us, for as long as its pods take to be gone
WORKLOAD_REQUIRED = PREFIX + "workload-required-topology"  # of all pods of a workload together
WORKLOAD_PREFERRED = PREFIX + "workload-preferred-topology"
WORKLOAD_PREFIX = f"{PREFIX}workload-"
PREEMPTIBLE = PREFIX + "preemptible"  # label "false": the pod is never a victim
DISRUPTION = PREFIX + "disruption"  # what of the gang ends when a pod of it is preempted:
SINGLE, ALL = "single", "all"
ENDS_TOGETHER = {SINGLE: False, ALL: True}
NARROWED = PREFIX + "narrowed"  # written when ungating: NODES, or the label keys of the selector
NODES = "nodes"
BORN = PREFIX + "born"  # NODES: so narrowed when it was created. Users may say it of their own pods
MOST_POD_SETS_TEXT = 4_096  # characters; 18 pod sets with names of a DNS label are 1,300
WORKLOAD = (WORKLOAD_REQUIRED, WORKLOAD_PREFERRED)
MOST_LISTED = 1_000  # succeeded pods that are named: 9 characters each
MOST_SUCCEEDED_TEXT = 16_384  # characters: those, and 18 pod sets
MOST_STUCK = 8  # pods that are noted of one place, and places
MOST_ROOM_TEXT = 65_536  # characters: 2,000 nodes with names of 25
# What deploy/ calls Corral: a label of its Deployment, and how the names of its webhooks end.
INSTALLED = ("app.kubernetes.io/name", "corral")
WEBHOOKS = ".corral.dev"
# The annotations that only Corral writes; deploy/policy.yaml sees to it.
WRITTEN = (DOMAIN, GANG, NARROWED, NOMINATED, POD_SETS, ROOM, AFTER, SUCCEEDED, WAKE)
KEPT = (
    *(
        AFTER,
        BORN,
        DISRUPTION,
        NARROWED,
        NOMINATED,
        MANAGED,
        POD_SETS,
        PREEMPTIBLE,
        ROOM,
        SUCCEEDED,
        SUSPENDED,
    ),
    *(*WORKLOAD, *autoscalers.KEPT),
)


def own_shape(pod: PodRecord) -> tuple[Shape, frozenset[str] | None]:
    """The pod's shape without what we narrowed, and the nodes we narrowed it to, None: to none."""
    how = pod.annotations.get(NARROWED, "")
    if not how and _is_born(pod):
        how = NODES
    if not how:
        return pod.shape, None
    is_short = len(pod.shape.terms) <= FEW_TERMS
    return _without(pod.shape, how) if is_short else _long_without(pod.shape, how)


def narrowed_labels(pod: PodRecord) -> tuple[tuple[str, str], ...]:
    """The labels of a domain that we narrowed the pod to; (): to nodes by name, or to none."""
    how = pod.annotations.get(NARROWED, "")
    if how in ("", NODES):
        return ()
    keys = frozenset(how.split(","))
    return tuple(pair for pair in pod.shape.selector if pair[0] in keys)


def is_narrowed(pod: PodRecord) -> bool:
    """Whether we have narrowed the pod, at its creation or as its gate was taken off."""
    said = pod.annotations
    return GATE not in pod.gates and (NARROWED in said or _is_born(pod))


def _is_born(pod: PodRecord) -> bool:
    """Whether it was narrowed at its creation; its creator may say so of a pod that never was."""
    terms = pod.shape.terms
    return bool(pod.annotations.get(BORN) == NODES and terms and all(map(_names_a_node, terms)))


def _names_a_node(term: Term) -> bool:
    """Whether a term names a node and says nothing else, so that it is no loss to leave it out."""
    return not term.expressions and [each.key for each in term.fields] == ["metadata.name"]


@cached(256, 16 * KIB)  # the pods of a gang are narrowed alike
def _without(shape: Shape, how: str) -> tuple[Shape, frozenset[str] | None]:
    return _not_narrowed(shape, how)


@cached(4, 512 * KIB)
def _long_without(shape: Shape, how: str) -> tuple[Shape, frozenset[str] | None]:
    return _not_narrowed(shape, how)


def _not_narrowed(shape: Shape, how: str) -> tuple[Shape, frozenset[str] | None]:
    if how == NODES:
        nodes = frozenset(
            node
            for term in shape.terms
            for field in term.fields
            if field.key == "metadata.name"
            for node in field.values
        )
        return Shape(shape.selector, (), shape.tolerations, shape.preferred), nodes
    keys = frozenset(how.split(","))
    selector = tuple(pair for pair in shape.selector if pair[0] not in keys)
    return Shape(selector, shape.terms, shape.tolerations, shape.preferred), None


def pod_sets_text(pods: Mapping[str, int]) -> str:
    """How many pods of each pod set a gang has, as an annotation."""
    return ",".join(f"{name}={count}" for name, count in sorted(pods.items()))


@cached(512, 4 * KIB)  # the pods of a gang share one
def pod_sets_from_text(text: str) -> tuple[tuple[str, int], ...]:
    """The same, read back; empty if the text is not ours."""
    pods: dict[str, int] = {}
    for part in text.split(",") if len(text) <= MOST_POD_SETS_TEXT else ():
        name, _, count = part.rpartition("=")
        if not name or not _is_small(count):
            return ()
        pods[name] = int(count)
    return tuple(pods.items())


def succeeded_text(gone: Mapping[str, int], present: Mapping[str, str]) -> str:
    """The succeeded pods of a group as an annotation, "" if there are none.

    `gone`: how many of each pod set were deleted; `present`: the pod set of each of the others, by
    a digest of its uid: "driver=0/9f86d081,workers=2/1a2b3c4d.5e6f7a8b". Beyond `MOST_LISTED`
    digests are left out: those pods are counted when they are deleted.
    """
    listed: dict[str, list[str]] = {pod_set: [] for pod_set, pods in gone.items() if pods}
    for digest, pod_set in sorted(present.items())[:MOST_LISTED]:
        listed.setdefault(pod_set, []).append(digest)
    text = ",".join(
        f"{pod_set}={gone.get(pod_set, 0)}" + ("/" + ".".join(digests) if digests else "")
        for pod_set, digests in sorted(listed.items())
    )
    return text if len(text) <= MOST_SUCCEEDED_TEXT else ""  # names of pod sets come from users


def succeeded_from_text(text: str) -> tuple[dict[str, int], dict[str, str]]:
    """The same, read back; nothing if the text is not ours."""
    gone: dict[str, int] = {}
    present: dict[str, str] = {}
    for part in text.split(",") if 0 < len(text) <= MOST_SUCCEEDED_TEXT else ():
        name, _, said = part.rpartition("=")
        pods, _, digests = said.partition("/")
        if not name or not _is_small(pods):
            return {}, {}
        gone[name] = int(pods)
        present |= dict.fromkeys(digests.split(".") if digests else (), name)
    return gone, present


def room_text(
    domain: str,
    seats: Iterable[tuple[int, str, int]],
    stuck: Iterable[Sequence[str]] = (),
) -> str:
    """A gang's place as an annotation, (pod set, node, pods) each: "rack=r1;0/n1=2,0/n2=2".

    `stuck`: for each place that others have gone from before, the uids of pods that do not end:
    "rack=r1;0/n1=2,0/n2=2;uid+uid,uid"; of many such pods the first are enough. "" where that is
    too long: then nothing is known of the place after a restart.
    """
    text = f"{domain};" + ",".join(f"{pod_set}/{node}={pods}" for pod_set, node, pods in seats)
    if do_not_end := ",".join("+".join(uids[:MOST_STUCK]) for uids in stuck):
        text += f";{do_not_end}"
    return text if len(text) <= MOST_ROOM_TEXT else ""


def room_from_text(text: str) -> tuple[str, tuple[tuple[int, str, int], ...]]:
    """The place, read back; none if the text is not ours."""
    domain, _, rest = text.partition(";")
    seats = []
    for part in rest.partition(";")[0].split(",") if len(text) <= MOST_ROOM_TEXT else ():
        pod_set, _, rest = part.partition("/")
        node, _, pods = rest.rpartition("=")
        if not node or not all(_is_small(number) for number in (pod_set, pods)):
            return "", ()
        seats.append((int(pod_set), node, int(pods)))
    return domain, tuple(seats)


def stuck_from_text(text: str) -> tuple[tuple[str, ...], ...]:
    """The pods that do not end, by place, read back; none if the text is not ours."""
    said = text.split(";")
    if len(said) != 3 or len(text) > MOST_ROOM_TEXT:
        return ()
    places = (part.split("+") for part in said[2].split(",")[:MOST_STUCK])
    return tuple(tuple(filter(None, uids[:MOST_STUCK])) for uids in places)


def _is_small(number: str) -> bool:
    """Whether a text is a number of at most nine digits."""
    return number.isascii() and number.isdecimal() and len(number) <= 9
