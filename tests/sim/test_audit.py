"""`corral audit` on what seeded histories leave: gangs that Corral has placed are where they say.

The histories are judged by `checks.py` at each step; the audit knows nothing of that, and must come
to the same. (In others a PodGang's constraint is taken away and put back while its pods start: then
the audit is right to see them apart.)
"""

from __future__ import annotations

from typing import Any

import pytest

from app.cli.audit.gathering import Gathering
from app.cli.audit.reading import judged
from app.cli.audit.verdicts import Verdict
from app.state.settings import EngineSettings
from tests.records import BLOCK, RACK
from tests.sim.world import World

SETTINGS = EngineSettings(scheduler_name="", native_pod_groups="on", levels=(BLOCK, RACK))
SEEDS = range(1, 7)
LEAST = 3  # constraints of gangs with a level that are judged in each of them


class Audited(World):
    """A history that is audited wherever it is judged."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.verdicts: list[Verdict] = []

    def _judge(self) -> None:
        super()._judge()
        gathering = Gathering(SETTINGS)
        objects: dict[str, Any] = dict(self.api.objects)
        for each in objects.pop("Node").values():
            gathering.put_node(each)
        pods = objects.pop("Pod").values()
        for kind, records in objects.items():
            gathering.put_objects(kind, list(records.values()))
        gathering.put_pods(pods)
        self.verdicts += judged(gathering, len(pods)).verdicts


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_no_gang_that_corral_has_placed_is_apart(seed: int) -> None:
    world = Audited(seed)
    assert not world.run().violation
    at_levels = [each for each in world.verdicts if each.level]
    assert [each for each in at_levels if each.answer != "MATCH"] == []
    assert len(at_levels) >= LEAST
