"""Where pods belong by what a journal has shown of objects, also where an object sorts them."""

from __future__ import annotations

import msgspec

from app.dialects.registry import DIALECTS
from app.dialects.spec import GangKey
from app.dialects.volcano.pod_groups import decode_pod_group
from app.kube.watch.events import Applied, Deleted
from app.state.journal.checking.belonging import Belonging
from app.state.settings import EngineSettings
from tests.app.dialects.volcano.workloads import GROUP_NAME, TASK, pod_group
from tests.records import pod

KEY = GangKey("default", "pg", "volcano")


def test_the_task_of_a_pod_is_that_of_its_pod_group_while_that_is_there() -> None:
    settings = EngineSettings()
    belonging = Belonging(settings, DIALECTS.configured(settings))
    said = pod_group("pg", 2, tasks={"worker": 2})
    said["metadata"] |= {"uid": "uid-pg", "resourceVersion": "7"}
    group = decode_pod_group(msgspec.json.encode(said))
    one = pod("a", labels={TASK: "worker"}, annotations={GROUP_NAME: "pg"})

    belonging.hear(Applied(group))
    belonging.hear(Applied(one))
    claim = belonging.claims[one.uid]
    assert (claim.gang, claim.leaf) == (KEY, "worker")

    belonging.hear(Deleted(group))
    assert belonging.claims[one.uid].leaf == ""
