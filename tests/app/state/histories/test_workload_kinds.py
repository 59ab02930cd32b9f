"""Each kind of workload is a list of its own: what one leaves out says nothing of the others."""

from __future__ import annotations

from app import metrics
from app.kube.watch import reflector
from app.kube.watch.events import CORE_KINDS, KINDS, Listed
from app.state.engine import Engine
from app.state.settings import EngineSettings
from tests.app.state.world import World, four_racks
from tests.records import RACK, job
from tests.workload_pods import stateful_pods, workload


def test_a_relist_of_one_kind_keeps_the_workloads_of_another():
    one, other = workload("StatefulSet", "a", {"": 2}), workload("StatefulSet", "b", {"": 2})
    world = World(four_racks(), jobs=[job("j", 2), one, other])
    world.apply(Listed("StatefulSet", (other,)))
    assert {record.name for record in world.engine.ledger.jobs.values()} == {"j", "b"}
    world.apply(Listed("Job", ()))
    assert {record.name for record in world.engine.ledger.jobs.values()} == {"b"}


def test_nothing_is_planned_before_every_watched_kind_is_listed():
    engine = Engine(EngineSettings(levels=(RACK,), kinds=KINDS))
    engine.apply(Listed("Node", tuple(four_racks())), 0.0)
    engine.apply(Listed("Pod", tuple(stateful_pods("db", 2, RACK))), 0.0)
    for kind in [kind for kind in KINDS if kind not in ("Node", "Pod", "StatefulSet")]:
        engine.apply(Listed(kind, ()), 0.0)
        engine.tick(0.0)
    assert not engine.is_synced
    assert engine.books.held == {}
    engine.apply(Listed("StatefulSet", (workload("StatefulSet", "db", {"": 2}),)), 0.0)
    engine.tick(0.1)
    assert engine.is_synced
    assert len(engine.books.held) == 2


def test_every_kind_has_a_reflector_and_a_counter():
    resources = [
        reflector.nodes(),
        *(
            resource(lambda _key: True)
            for resource in (
                reflector.pods,
                reflector.jobs,
                reflector.stateful_sets,
                reflector.job_sets,
                reflector.leader_worker_sets,
            )
        ),
        reflector.topologies(),
        *reflector.training_jobs(lambda _key: True),
    ]
    assert sorted(resource.kind for resource in resources) == sorted(KINDS)
    assert sorted(metrics.WATCHED_KINDS) == sorted(KINDS)
    assert {resource.kind for resource in resources if not resource.is_optional} <= {*CORE_KINDS}
