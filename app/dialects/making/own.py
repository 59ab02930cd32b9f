"""Objects that are what is read, and a gang in Corral's own words, which no API server has.

    kind: Gang
    apiVersion: corral.dev/v1
    metadata: {name: trainer}
    spec:
      required: cloud.provider.com/topology-block       of all pods together
      podSets:
      - {name: workers, pods: 8, requests: {nvidia.com/gpu: 8}, required: …, preferred: …,
         slices: [{pods: 4, level: …}], nodeSelector: …, tolerations: …}

It is read as a pod group of as many pods.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from app.dialects import corral
from app.dialects.kueue import annotations as topology
from app.dialects.kueue import pod_groups
from app.dialects.making.parts import (
    Misfit,
    Object,
    Part,
    listed,
    mapping,
    name_of,
    number,
    numbered,
    text,
    texts,
)

GROUP, KIND = "corral.dev", "Gang"
_SPEC = ("required", "preferred", "podSets", "priority", "schedulerName")
_POD_SET = (
    "name", "pods", "requests", "required", "preferred", "slices", "nodeSelector", "tolerations",
    "affinity",
)  # fmt: skip
_SLICE = ("pods", "level")


def itself(of: Object) -> Iterator[Part]:
    """The object as it is: a pod, or one that pods name."""
    yield Part(of)


def gang(of: Object) -> Iterator[Part]:
    """The pods of a gang spec."""
    spec = mapping(of, "spec")
    _check(spec, _SPEC, "spec.")
    sets = list(numbered(listed(spec, "podSets", "spec."), "spec.podSets"))
    if not sets:
        raise Misfit("spec.podSets", [], "must have one pod set at least")
    total = sum(number(each, "pods", 1, where) for where, each in sets)
    together = {
        corral.WORKLOAD_REQUIRED: text(spec, "required", "spec."),
        corral.WORKLOAD_PREFERRED: text(spec, "preferred", "spec."),
    }
    for at, (where, each) in enumerate(sets):
        _check(each, _POD_SET, where)
        name = text(each, "name", where) or f"set{at}"
        said = {
            **{key: level for key, level in together.items() if level},
            **_constraint(each, where),
            pod_groups.GROUP_NAME: name_of(of),
            pod_groups.TOTAL_COUNT: str(total),
            topology.ROLE_HASH: name,
        }
        container = {"name": "main", "resources": {"requests": mapping(each, "requests", where)}}
        made: Object = {"containers": [container], "priority": spec.get("priority", 0)}
        for key in ("nodeSelector", "tolerations", "affinity"):
            if key in each:
                made[key] = each[key]
        if scheduler := text(spec, "schedulerName", "spec."):
            made["schedulerName"] = scheduler
        for index in range(number(each, "pods", 1, where)):
            metadata = {**mapping(of, "metadata"), "name": f"{name_of(of)}-{name}-{index}"}
            metadata["uid"] = f"{metadata.get('uid', '')}/{name}/{index}"
            metadata["annotations"] = {**texts(of, "metadata.annotations"), **said}
            content = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": made}
            yield Part(content)


def _constraint(pod_set: Object, where: str) -> dict[str, str]:
    said = {
        topology.REQUIRED: text(pod_set, "required", where),
        topology.PREFERRED: text(pod_set, "preferred", where),
    }
    found = {key: level for key, level in said.items() if level}
    slices = list(numbered(listed(pod_set, "slices", where), f"{where}slices"))
    for inside, each in slices:
        _check(each, _SLICE, inside)
    if slices:
        layers = [
            {"topology": text(each, "level", inside), "size": number(each, "pods", 0, inside)}
            for inside, each in slices
        ]
        found[topology.SLICE_LAYERS] = json.dumps(layers)
    return found


def _check(thing: Object, known: tuple[str, ...], where: str) -> None:
    """Raises: Misfit for a field that is none."""
    for key in thing:
        if key not in known:
            raise Misfit(f"{where}{key}", thing[key], f"expected one of {', '.join(known)}")
