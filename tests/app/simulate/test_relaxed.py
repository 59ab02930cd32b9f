"""Each relaxation that a simulation offers, applied to objects and nodes, makes the gang fit.

Some of the random cases here; `python -m tests.app.simulate` has all of them.
"""

from __future__ import annotations

import re
from collections import Counter
from copy import deepcopy
from random import Random
from typing import Any

import msgspec
import pytest

from app.explain.view import Relaxation
from app.kube.watch.events import Applied, Deleted
from app.simulate.body import objects_in
from app.simulate.copying import Copy
from app.simulate.given import all_given
from app.simulate.simulating import simulate
from app.simulate.view import Simulated
from app.state.engine import Engine
from tests.app.simulate import bodies, clusters
from tests.app.simulate.clusters import NOW
from tests.app.simulate.test_as_created import AT, RULES, created
from tests.records import BLOCK, GPU, PREFERRED, RACK, REQUIRED, SLICE_LEVEL, SLICE_SIZE, pod

FAST = 120
LEVELS = (BLOCK, RACK)
HEAVY = ((1, 2), (1, 2, 2, 3))
KINDS = ("pods", "job", "statefulset", "lws", "training")


def thing(kind: str, said: dict[str, str], size: int, spec: dict[str, Any]) -> list[bodies.Object]:
    """One gang of alike pods, in one of several vocabularies."""
    template = {"metadata": {"annotations": said}, "spec": spec}
    metadata: dict[str, Any] = {"name": "g"}
    match kind:
        case "pods":
            own = {**said, bodies.GROUP: "g", bodies.TOTAL: str(size)}
            return [
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": f"g-{at}", "annotations": own},
                    "spec": spec,
                }
                for at in range(size)
            ]
        case "job":
            body: dict[str, Any] = {"parallelism": size, "template": template}
            api, name = "batch/v1", "Job"
        case "statefulset":
            body = {"replicas": size, "podManagementPolicy": "Parallel", "template": template}
            api, name = "apps/v1", "StatefulSet"
        case "lws":
            body = {"leaderWorkerTemplate": {"size": size, "workerTemplate": template}}
            body["replicas"] = 1
            api, name = "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"
        case _:
            body = {"pytorchReplicaSpecs": {"Worker": {"replicas": size, "template": template}}}
            api, name = "kubeflow.org/v1", "PyTorchJob"
    return [{"apiVersion": api, "kind": name, "metadata": metadata, "spec": body}]


def case(seed: int) -> tuple[Engine, str, dict[str, str], int, dict[str, Any]]:
    rng = Random(seed)
    engine = clusters.drawn(rng, rng.choice(HEAVY))
    size = rng.randint(2, 8)
    kind = rng.choice(KINDS)
    return engine, kind, bodies.wishes(rng, size), size, bodies.pod_spec(rng, rng.choice((2, 4, 8)))


def simulated(engine: Engine, things: list[bodies.Object]) -> Simulated:
    given = all_given(objects_in(bodies.text(things)), "default")
    (found,) = simulate(given, Copy.of(engine, AT), RULES).gangs
    return found


def relaxed(
    engine: Engine, found: Relaxation, said: dict[str, str], size: int
) -> tuple[dict[str, str], int]:
    """The change made: to the cluster, or to what the gang's template and count are."""
    said = dict(said)
    match found.kind:
        case "WiderLevel" if "slice" in found.text:
            if found.level:
                said[SLICE_LEVEL] = found.level
            else:
                del said[SLICE_LEVEL], said[SLICE_SIZE]
        case "WiderLevel":
            level = said.pop(REQUIRED)
            said[REQUIRED if found.level else PREFERRED] = found.level or level
        case "FewerPods":
            assert found.pods is not None
            assert 0 < found.pods < size
            size = found.pods
        case "NodesBack":
            for name in found.nodes:
                node = engine.books.nodes[name]
                back = msgspec.structs.replace(node, is_unschedulable=False, is_ready=True)
                engine.apply(Applied(back), NOW)
        case "PodsGone":
            names = re.findall(r"default/([\w-]+)", found.text.partition("lower priority")[2])
            assert names
            uids = {uid for uid, name in engine.occupants.names.items() if name in names}
            for gang in engine.gangs.by_key.values():
                if gang.key.name in names:
                    uids |= set(gang.running)
            assert len(uids) == found.pods
            for uid in sorted(uids):
                gone = pod(engine.occupants.names[uid], uid=uid)
                engine.apply(Deleted(gone), NOW)
    engine.tick(NOW)
    return said, size


def check(seed: int) -> Counter[str]:
    """Every relaxation of one case; what kinds there were."""
    engine, kind, said, size, spec = case(seed)
    found = simulated(engine, thing(kind, said, size, deepcopy(spec)))
    kinds = Counter[str]()
    if found.explanation is None:
        return kinds
    for each in found.explanation.relaxations:
        kinds[each.kind] += 1
        if each.kind == "Never" or (each.kind == "PodsGone" and " more" in each.text):
            continue  # nothing helps; not all of them are named
        engine, _, _, _, _ = case(seed)
        wanted, pods = relaxed(engine, each, said, size)
        things = thing(kind, wanted, pods, deepcopy(spec))
        after = simulated(engine, things)
        assert after.verdict == "Fits", f"seed {seed}: {each}: {after.message}: {things}"
        (fate,) = created(engine, things)[0].values()
        assert fate[0] == "Fits", f"seed {seed}: {each}: {fate}"
    return kinds


def several(rng: Random) -> bodies.Object:
    """A gang of two or three pod sets, each with a level of its own or without one."""
    pod_sets: list[dict[str, Any]] = []
    for at in range(rng.choice((2, 2, 3))):
        requests = {GPU: rng.choice((2, 4, 8))}
        made = {"name": f"s{at}", "pods": rng.randint(1, 6), "requests": requests}
        mode, level = rng.choice(("required", "required", "preferred", "")), rng.choice(LEVELS)
        pod_sets.append({**made, mode: level} if mode else made)
    metadata, spec = {"name": "g"}, {"podSets": pod_sets}
    return {"apiVersion": "corral.dev/v1", "kind": "Gang", "metadata": metadata, "spec": spec}


def check_several(seed: int) -> Counter[str]:
    """Every change of a pod set that is offered to a gang of several; what kinds there were."""
    rng = Random(seed)
    engine = clusters.drawn(rng, rng.choice(HEAVY))
    whole = several(rng)
    found = simulated(engine, [whole])
    kinds = Counter[str]()
    for each in () if found.explanation is None else found.explanation.relaxations:
        if each.kind not in ("WiderLevel", "FewerPods"):
            continue
        kinds[each.kind] += 1
        wanted = deepcopy(whole)
        changed = [its for its in wanted["spec"]["podSets"] if its["name"] in each.pod_sets]
        assert len(changed) == len(each.pod_sets)
        for its in changed:
            if each.kind == "FewerPods":
                its["pods"] = each.pods
            else:
                level = its.pop("required")
                its |= {"required": each.level} if each.level else {"preferred": level}
        after = simulated(engine, [wanted])
        assert after.verdict == "Fits", f"seed {seed}: {each}: {after.message}: {whole}"
    return kinds


@pytest.mark.slow
def test_each_change_of_a_pod_set_makes_a_gang_of_several_fit() -> None:
    kinds = sum((check_several(seed) for seed in range(FAST)), Counter[str]())
    assert {"WiderLevel", "FewerPods"} <= kinds.keys()


@pytest.mark.slow
def test_each_relaxation_applied_makes_the_gang_fit() -> None:
    kinds = sum((check(seed) for seed in range(FAST)), Counter[str]())
    assert {"WiderLevel", "FewerPods", "NodesBack", "PodsGone", "Never"} <= kinds.keys()
