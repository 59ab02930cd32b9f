"""Each kind of workload is a list of its own: what one leaves out says nothing of the others."""

from __future__ import annotations

from app.dialects.registry import DIALECTS
from app.kube.watch.events import Listed
from app.metrics import Metrics
from app.state.engine import Engine
from app.state.settings import EngineSettings
from tests.app.state.world import World, four_racks
from tests.records import RACK, job
from tests.workload_pods import stateful_pods, workload


def test_a_relist_of_one_kind_keeps_the_workloads_of_another():
    one, other = workload("StatefulSet", "a", {"": 2}), workload("StatefulSet", "b", {"": 2})
    world = World(four_racks(), jobs=[job("j", 2), one, other])
    world.apply(Listed("StatefulSet", (other,)))
    assert {record.name for record in world.engine.objects.by_uid.values()} == {"j", "b"}
    world.apply(Listed("Job", ()))
    assert {record.name for record in world.engine.objects.by_uid.values()} == {"b"}


def test_nothing_is_planned_before_every_watched_kind_is_listed():
    engine = Engine(EngineSettings(levels=(RACK,)))
    engine.apply(Listed("Node", tuple(four_racks())), 0.0)
    engine.apply(Listed("Pod", tuple(stateful_pods("db", 2, RACK))), 0.0)
    for kind in [kind for kind in DIALECTS.kinds if kind not in ("Node", "Pod", "StatefulSet")]:
        engine.apply(Listed(kind, ()), 0.0)
        engine.tick(0.0)
    assert not engine.is_synced
    assert engine.books.held == {}
    engine.apply(Listed("StatefulSet", (workload("StatefulSet", "db", {"": 2}),)), 0.0)
    engine.tick(0.1)
    assert engine.is_synced
    assert len(engine.books.held) == 2


def test_every_watched_kind_has_a_counter_from_the_start():
    exposition = Metrics(DIALECTS.kinds).exposition().decode()
    for kind in DIALECTS.kinds:
        assert f'corral_watch_problems_total{{kind="{kind}"}} 0.0' in exposition


def test_only_what_every_api_server_has_must_be_served():
    needed = {each.kind for each in DIALECTS.resources() if not each.is_optional}
    assert needed == {"Node", "Pod", "Job", "ResourceQuota"}
