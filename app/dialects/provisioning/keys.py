"""What the words around ProvisioningRequests are, and how ours are called.

A request's name follows from its gang and says which attempt it is: making it twice is one request.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import blake2b

from app.dialects import corral
from app.dialects.spec import GangKey

GROUP = "autoscaling.x-k8s.io"
API_VERSION = f"{GROUP}/v1"
KIND = "ProvisioningRequest"
PLURAL = "provisioningrequests"
PATH = f"/apis/{API_VERSION}/{PLURAL}"
TEMPLATE_KIND = "PodTemplate"
TEMPLATE_PATH = "/api/v1/podtemplates"

CLASS = corral.PREFIX + "provisioning-class"  # annotation of pods: the class their gang asks in
GANG_UID = corral.PREFIX + "gang-uid"  # label of what we make: the gang it is for
# On a pod: that it gets the nodes of this request. cluster-autoscaler reads the first one, and adds
# no node for such a pod; GKE wants both.
CONSUME = f"{GROUP}/consume-provisioning-request"
CONSUME_CLASS = f"{GROUP}/provisioning-class-name"
CONSUMED = (CONSUME, CONSUME_CLASS)
KEPT = (CLASS, CONSUME)

ANY_CLASS = "*"  # the setting: that which the pods name, and none of those that name none
NAME = "corral-"  # how the names of what we make begin; deploy/policy.yaml knows it
QUEUED_PROVISIONING = "queued-provisioning.gke.io"
MOST_POD_SETS = 32  # of one request, by its CRD
ONE_POD_SET = frozenset((QUEUED_PROVISIONING,))  # classes that take no more than one
ATTEMPTS = frozenset("123456789")  # as names have them; more than are ever made
TEMPLATES = frozenset(map(str, range(MOST_POD_SETS)))
LONGEST_CLASS = 253  # characters, by its CRD
_CLASS = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_UID_BYTES = 8


def is_class(name: str) -> bool:
    """Whether this may be a provisioningClassName: a DNS subdomain."""
    return len(name) <= LONGEST_CLASS and _CLASS.fullmatch(name) is not None


def most_pod_sets(class_name: str) -> int:
    """How many kinds of pods a request of this class may be for."""
    return 1 if class_name in ONE_POD_SET else MOST_POD_SETS


def gang_uid(key: GangKey) -> str:
    """A gang in a label: the same in every process, and another one for its next epoch."""
    text = "\0".join((key.namespace, key.name, key.source, key.epoch))
    return blake2b(text.encode(), digest_size=_UID_BYTES).hexdigest()


def request_name(uid: str, attempt: int) -> str:
    """What the request of a gang is called; attempts count from 1."""
    return f"{NAME}{uid}-{attempt}"


def attempt_of(name: str, uid: str) -> int:
    """Which attempt a request of this name is; 0: it is none of ours.

    There are few such names for a gang: no user can make more of them than are read with ease.
    """
    number = name.removeprefix(f"{NAME}{uid}-")
    return int(number) if uid and number != name and number in ATTEMPTS else 0


def template_name(request: str, index: int) -> str:
    """What a request's PodTemplate is called."""
    return f"{request}-{index}"


def is_template(name: str, uid: str) -> bool:
    """Whether a PodTemplate of this name may be one of ours for this gang."""
    request, _, index = name.rpartition("-")
    return bool(attempt_of(request, uid)) and index in TEMPLATES


def request_of(template: str) -> str:
    """The request that a PodTemplate of ours is for."""
    return template.rpartition("-")[0]


def consuming(request: str, class_name: str) -> Iterator[tuple[str, str]]:
    """The annotations of a pod that gets the nodes of a request."""
    yield CONSUME, request
    yield CONSUME_CLASS, class_name


def class_of(annotations: Mapping[str, str], default: str, uid: str) -> str:
    """The class that a pod's gang asks in; "": none. `uid`: of the gang.

    Pods whose owner has made a request already are left to that request.
    """
    request = annotations.get(CONSUME)
    if request is not None and not attempt_of(request, uid):
        return ""
    return annotations.get(CLASS, "" if default == ANY_CLASS else default)
