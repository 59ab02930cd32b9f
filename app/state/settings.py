"""The engine's own knobs, as plain values; `app/settings.py` says what each is for."""

from __future__ import annotations

from dataclasses import dataclass

from app.dialects.registry import DIALECTS
from app.kube.watch.events import Kind


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Units: seconds, unless the name says otherwise."""

    levels: tuple[str, ...] = ()
    scheduler_name: str = "corral"  # "" plans for any scheduler's pods
    hold_seconds: float = 60.0
    gang_bind_seconds: float = 20.0
    refusal_seconds: float = 30.0  # at most; a first refusal counts for a second
    rewake_seconds: float = 10.0
    retry_seconds: float = 1.0  # after a lost plan, doubled each time in a row
    retry_seconds_most: float = 60.0
    percentage_of_nodes_to_score: int = 0
    preferred_affinity: bool = True  # preferred node affinity decides before capacity does
    kinds: tuple[Kind, ...] = DIALECTS.kinds  # what has to be listed before anything is planned
    gather_seconds: float = 10.0  # a gang with members missing for so long is reported, once
    owed_seconds: float = 120.0  # a lost member's node is held for its replacement; 0: it is not
    node_failure_seconds: float = 30.0  # not ready for so long: the node has failed
    replace_failed_nodes: bool = True  # hold another node before the replacement pod exists
    replace_on_pod_termination: bool = True  # as soon as the pod on a node that is not ready ends
    fail_fast: bool = False  # evict a gang whose lost member has no other node
    delete_excess_pods: bool = False
    starvation_seconds: float = 300.0  # after it a blocked gang earmarks a domain
    earmarks_per_namespace: int = 1  # 0: none
    kueue_manages: bool = False  # pods that name a queue are Kueue's
    narrow_nodes: int = 32  # nodes left to a pod when it is ungated; 0: all of them
