"""A Corral, and what gates and checks pods for it in kube-apiserver: its webhook, or policies.

`webhook.py` and `policies.py` install the two; what holds of both is asked through this.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.cluster import Cluster, Object, Refused, collection, job, pod
from tests.corral_process import CorralProcess
from tests.workloads import GATE, REQUIRED, gates_of, member

EFFECTIVE_SECONDS = 20.0  # until an API server heeds what it was told of; 0.1 s, of policies 1 s
GATED = "corral_pods_gated_total"
BROKEN = {REQUIRED: "my rack"}  # no topology level is called that, in any cluster


@dataclass
class Admission:
    """A Corral whose pods are gated and checked when they are created."""

    corral: CorralProcess
    cluster: Cluster
    validates: bool = True
    is_gated_by_corral: bool = True
    """Whether the gate comes from the webhook, and so is counted."""
    hashes_roles: bool = True
    """Whether pods of groups get a role hash, which no policy can make."""
    gated_before: int = 0
    """How many pods of other tests Corral has gated."""

    def wait_effective(self) -> None:
        """Returns when the API server heeds all that is installed. Raises: TimeoutError."""
        wait_effective(self.cluster, validates=self.validates)

    def is_refused(self, thing: Object) -> bool:
        """Whether the object would not be let in."""
        return is_refused(self.cluster, thing)

    def tried(self, thing: Object) -> Object:
        """The object as it would be stored."""
        return tried(self.cluster, thing)

    def refusal(self, ask: Callable[[], object]) -> Refused:
        """How a request is refused; it must be."""
        with pytest.raises(Refused) as refused:
            ask()
        return refused.value

    def pods_gated(self) -> int:
        """How many pods Corral says it has gated."""
        return int(self.corral.metric(GATED)) - self.gated_before


def wait_effective(cluster: Cluster, *, gates: bool = True, validates: bool = True) -> None:
    """Returns when pods of gangs are gated, and mistakes refused, or not. Raises: TimeoutError."""

    def is_effective() -> bool:
        gated = GATE in gates_of(tried(cluster, member("probe", 0, 2)))
        pods = is_refused(cluster, pod("probe", annotations=BROKEN))
        jobs = is_refused(cluster, job("probe", pods=1, annotations=BROKEN))
        return gated == gates and pods == jobs == validates

    cluster.wait(is_effective, EFFECTIVE_SECONDS, "what gates and checks pods")


def is_refused(cluster: Cluster, thing: Object) -> bool:
    """Whether the object would not be let in."""
    try:
        tried(cluster, thing)
    except Refused:
        return True
    return False


def tried(cluster: Cluster, thing: Object) -> Object:
    """The object as it would be stored."""
    path = collection(thing["kind"], thing["metadata"]["namespace"], thing["apiVersion"])
    answer = cluster.request("POST", path, body=thing, params={"dryRun": "All"})
    stored: Object = answer.json()
    return stored
