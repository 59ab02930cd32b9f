"""Lives of JobSets and LeaderWorkerSets: what their own controllers do, and where the gang is then.

Two racks, each with room for one group of a LeaderWorkerSet or one Job of four pods.
"""

from __future__ import annotations

from collections.abc import Collection

import pytest

from tests.cluster import GPU, RACK, Cluster, Object, Objects, grid
from tests.controlplane.jobset_lws import LEADER_WORKER_SETS
from tests.controlplane.kinds import job_set, leader_worker_set
from tests.controlplane.kubelet import end_deleted_pods, report, start_bound_pods
from tests.controlplane.plane import ControlPlane
from tests.controlplane.seen import START_SECONDS, racks_of
from tests.corral_process import CorralProcess
from tests.workloads import asking

AGAIN_SECONDS = 3 * START_SECONDS  # the operators' own queues pause before they make pods anew
pytestmark = [pytest.mark.e2e, pytest.mark.slow]

HALF_A_NODE = {GPU: "4"}
IN_RACK = asking(required=RACK)
JOB_IN_RACK = {
    "kueue.x-k8s.io/podset-slice-required-topology": RACK,
    "kueue.x-k8s.io/podset-slice-size": "4",
}
BOTH_RACKS = {"b0-r0", "b0-r1"}
ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
JOB_INDEX = "jobset.sigs.k8s.io/job-index"
REPLICATED_JOB = "jobset.sigs.k8s.io/replicatedjob-name"
ALONE_IN_RACK = {"alpha.jobset.sigs.k8s.io/exclusive-topology": RACK}
GROUP_INDEX = "leaderworkerset.sigs.k8s.io/group-index"
ALONE_WITH_ITS_GROUP = {"leaderworkerset.sigs.k8s.io/exclusive-topology": RACK}


@pytest.fixture(autouse=True)
def racks(plane: ControlPlane, job_sets: None, corral: CorralProcess) -> None:
    plane.nodes(grid(racks=2, nodes=2, gpus=8))


# -- JobSet ------------------------------------------------------------------------------------


def test_a_job_set_that_restarts_is_whole_in_one_rack_again(cluster: Cluster) -> None:
    thing = job_set("js", IN_RACK, HALF_A_NODE, driver=IN_RACK, jobs=2)
    workers = thing["spec"]["replicatedJobs"][1]
    workers["template"]["spec"]["backoffLimit"] = 0  # the first pod that fails ends its Job
    cluster.create(thing)
    before = running(cluster, 5)
    report(cluster, workers_of(before)[0], {"phase": "Failed"})
    after = running(cluster, 5, without=before)
    assert {label_of(one, ATTEMPT) for one in after} == {"1"}
    assert len(racks_of(cluster)) == 1


def test_a_job_that_depends_on_another_is_in_its_rack(cluster: Cluster) -> None:
    thing = job_set("js", IN_RACK, HALF_A_NODE, driver=IN_RACK, jobs=2)
    del thing["spec"]["startupPolicy"]
    thing["spec"]["replicatedJobs"][1]["dependsOn"] = [{"name": "driver", "status": "Ready"}]
    cluster.create(thing)
    running(cluster, 5)
    assert len(racks_of(cluster)) == 1


@pytest.mark.parametrize("jobs", [1, 2])
def test_jobs_that_are_to_be_alone_in_a_rack_have_one_each(cluster: Cluster, jobs: int) -> None:
    thing = job_set("js", JOB_IN_RACK, HALF_A_NODE, driver={}, jobs=jobs, pods=4)
    workers = thing["spec"]["replicatedJobs"][1]
    workers["template"]["metadata"] = {"annotations": ALONE_IN_RACK}
    thing["spec"] |= {"replicatedJobs": [workers], "successPolicy": {"operator": "All"}}
    cluster.create(thing)
    by_job = racks_by(JOB_INDEX, running(cluster, 4 * jobs))
    assert len(set(by_job.values())) == jobs


# -- LeaderWorkerSet ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lost", "startup"),
    [
        pytest.param("lws-0", "LeaderCreated", id="leader"),
        pytest.param("lws-0-2", "LeaderCreated", id="worker"),
        pytest.param("lws-0-2", "LeaderReady", id="worker_that_came_later"),
    ],
)
def test_a_group_that_loses_a_pod_is_whole_in_one_rack_again(
    cluster: Cluster, lost: str, startup: str
) -> None:
    cluster.create(leader_worker_set("lws", IN_RACK, HALF_A_NODE, groups=2, startup=startup))
    before = running(cluster, 8)
    lose(cluster, lost, leader="lws-0")
    ended = [one for one in before if label_of(one, GROUP_INDEX) == "0"]
    after = running(cluster, 8, without=ended)
    assert racks_by(GROUP_INDEX, after) == racks_by(GROUP_INDEX, before)
    assert len(uids(after) & uids(before)) == 4, "the other group runs on"


@pytest.mark.parametrize(
    ("gpus", "leader"),
    [
        pytest.param("4", None, id="room_for_one"),
        pytest.param("2", None, id="room_for_two"),
        pytest.param("2", IN_RACK, id="room_for_two_of_two_templates"),
    ],
)
def test_groups_that_are_to_be_alone_in_a_rack_have_one_each(
    cluster: Cluster, gpus: str, leader: dict[str, str] | None
) -> None:
    thing = leader_worker_set("lws", IN_RACK, {GPU: gpus}, groups=2, leader=leader)
    thing["metadata"]["annotations"] = ALONE_WITH_ITS_GROUP
    cluster.create(thing)
    assert set(racks_by(GROUP_INDEX, running(cluster, 8)).values()) == BOTH_RACKS


def test_a_new_template_moves_through_the_groups_one_by_one(cluster: Cluster) -> None:
    cluster.create(leader_worker_set("lws", IN_RACK, HALF_A_NODE, groups=2))
    before = running(cluster, 8)
    image = "/spec/leaderWorkerTemplate/workerTemplate/spec/containers/0/image"
    change(cluster, [{"op": "replace", "path": image, "value": "example.invalid/next"}])
    after = running(cluster, 8, without=before)
    assert set(racks_by(GROUP_INDEX, after).values()) == BOTH_RACKS


def test_a_group_that_is_added_has_the_rack_that_is_left(cluster: Cluster) -> None:
    cluster.create(leader_worker_set("lws", IN_RACK, HALF_A_NODE, groups=1))
    first = racks_by(GROUP_INDEX, running(cluster, 4))
    change(cluster, [{"op": "replace", "path": "/spec/replicas", "value": 2}])
    both = racks_by(GROUP_INDEX, running(cluster, 8))
    assert both["0"] == first["0"]
    assert set(both.values()) == BOTH_RACKS


def lose(cluster: Cluster, name: str, leader: str) -> None:
    """Deletes a pod, which ends once its group does.

    One that is gone and made anew between two looks of the controller is no loss to it.
    """
    known = cluster.get("Pod", leader)["metadata"]["uid"]
    path = f"/api/v1/namespaces/default/pods/{name}"
    cluster.request("DELETE", path, body={"gracePeriodSeconds": int(AGAIN_SECONDS)})

    def ends() -> bool:
        now = cluster.get("Pod", leader)
        return not now or now["metadata"]["uid"] != known or "deletionTimestamp" in now["metadata"]

    cluster.wait(ends, AGAIN_SECONDS, "the group to be ended by its controller")
    end_deleted_pods(cluster)


def change(cluster: Cluster, operations: Objects) -> None:
    """Changes the LeaderWorkerSet, whatever its controller writes meanwhile."""
    path, patch = f"{LEADER_WORKER_SETS}/lws", "application/json-patch+json"
    cluster.request("PATCH", path, body=operations, content_type=patch)


# -- what is seen of it ------------------------------------------------------------------------


def running(cluster: Cluster, pods: int, *, without: Collection[Object] = ()) -> Objects:
    """All pods once that many run and none of these; until then each bound one is started."""
    ended = uids(without)

    def all_run() -> Objects:
        start_bound_pods(cluster)
        run = [one for one in cluster.list("Pod", "default") if one["status"]["phase"] == "Running"]
        return run if len(run) == pods and not uids(run) & ended else []

    return cluster.wait(all_run, AGAIN_SECONDS, f"{pods} pods that run")


def uids(pods: Collection[Object]) -> set[str]:
    return {one["metadata"]["uid"] for one in pods}


def label_of(pod: Object, label: str) -> str:
    return str(pod["metadata"]["labels"][label])


def workers_of(pods: Objects) -> Objects:
    return [one for one in pods if label_of(one, REPLICATED_JOB) == "w"]


def racks_by(label: str, pods: Objects) -> dict[str, str]:
    """The one rack of the pods that have each value of that label."""
    found: dict[str, set[str]] = {}
    for one in pods:
        rack = one["spec"]["nodeName"].rsplit("-", 1)[0]
        found.setdefault(label_of(one, label), set()).add(rack)
    assert all(len(racks) == 1 for racks in found.values()), found
    return {value: racks.pop() for value, racks in found.items()}
