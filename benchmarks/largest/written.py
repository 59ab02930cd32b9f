"""What the largest objects are made of, as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

STORED = 1_500_000  # bytes of an object
ANNOTATIONS = 256 * 1024  # of the annotations of one object together
# Bytes of a container with two amounts, as etcd has it: 15,777 of them were stored in one pod by
# kube-apiserver 1.36, 19,890 with one amount, 25,070 with none. What would be too large with its
# managedFields is stored without them. As JSON such a pod has 3 to 4 MB.
CONTAINER = 95
RESOURCE = 53  # bytes of one in requests, in limits and twice in managedFields
DEFAULTS = {
    "image": "a",
    "terminationMessagePath": "a",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "Always",
}
Json = dict[str, Any]


def written(thing: object) -> bytes:
    """As Go writes it: without blanks."""
    return json.dumps(thing, separators=(",", ":")).encode()


def as_many(make: Callable[[int], object], room: int = STORED) -> list[Any]:
    """As many of these as there is room for."""
    found: list[object] = []
    used = 0
    while used < room:
        found.append(make(len(found)))
        used += len(written(found[-1])) + 1
    return found


def mapping(make: Callable[[int], str], room: int = STORED, value: str = "") -> Json:
    """The same as keys of a mapping."""
    return {key: value for key in as_many(make, room - 3 * room // 12)}


def a_pod(metadata: object = None, **spec: object) -> bytes:
    named = {"name": "a", "namespace": "b", "uid": "u", "resourceVersion": "1"}
    return written({"metadata": {**named, **(metadata or {})}, "spec": spec, "status": {}})


def containers(room: int, requests: Callable[[int], Json], **more: object) -> list[Json]:
    return [
        {"name": f"c{at}", "resources": {"requests": requests(at)}, **DEFAULTS, **more}
        for at in range(room // CONTAINER)
    ]


def affinity(terms: object) -> Json:
    required = {"nodeSelectorTerms": terms}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def a_template(metadata: object = None, **spec: object) -> Json:
    own = spec or {"containers": [{"name": "c", **DEFAULTS}]}
    return {"metadata": metadata or {}, "spec": own}
