"""LeaderWorkerSets: of each group the leader, and its workers where they do not wait for it.

Source: lws pkg/controllers and pkg/webhooks/pod_webhook.go (v0.9).
"""

from __future__ import annotations

from collections.abc import Iterator

from app.dialects.making.parts import (
    Object,
    Part,
    made,
    mapping,
    name_of,
    number,
    pod,
    text,
    texts,
)
from app.dialects.workloads import leader_worker_set as keys

_OWNER = ("apps/v1", "StatefulSet")
_INSIDE = "spec.leaderWorkerTemplate"


def leader_worker_set(of: Object) -> Iterator[Part]:
    """A LeaderWorkerSet and its pods, group by group."""
    yield Part(of)
    name, size = name_of(of), number(of, f"{_INSIDE}.size", 1)
    said = texts(of, "metadata.annotations")
    is_gradual = text(of, "spec.startupPolicy") == "LeaderReady" or keys.EXCLUSIVE in said
    exclusive = {keys.EXCLUSIVE: said[keys.EXCLUSIVE]} if keys.EXCLUSIVE in said else {}
    workers = mapping(of, f"{_INSIDE}.workerTemplate")
    leader = mapping(of, f"{_INSIDE}.leaderTemplate")
    groups = number(of, "spec.replicas", 1) if size else 0
    for group in range(groups):
        for at in range(1 if is_gradual else size):
            is_leader = at == 0
            template = leader if is_leader and leader else workers
            its = f"{name}-{group}"
            labels = {
                keys.NAME: name,
                keys.GROUP_INDEX: str(group),
                keys.WORKER_INDEX: str(at),
            }
            annotations = {keys.SIZE: str(size), **exclusive}
            where = "leaderTemplate" if template is leader else "workerTemplate"
            owner = made(of, _OWNER, name if is_leader else its, {})
            pod_name = its if is_leader else f"{its}-{at}"
            yield pod(owner, template, pod_name, labels, annotations, f"{_INSIDE}.{where}.")
