"""What `corral audit` keeps of a cluster: nothing of ordinary pods, and little of members."""

from __future__ import annotations

import tracemalloc

import msgspec

from app.cli.audit.gathering import Gathering
from app.kube.core.objects import PodRecord
from app.state.settings import EngineSettings
from tests.cluster import RACK, pod
from tests.workloads import asking, members

PODS = 2_000
KEPT_BYTES = 500  # of a member: 200 and its part of the list and the gang
NOTHING = 20_000  # bytes: caches of decoders


def kept_of(names: bytes, *, is_member: bool) -> float:
    """How many bytes are kept of so many pods, once the first have filled the caches."""
    gathering = Gathering(EngineSettings(scheduler_name=""))
    _, resource, _ = gathering.resources()
    gang = members("gang", 4, annotations=asking(required=RACK), nodeName="n1")
    written = msgspec.json.encode(gang[0] if is_member else pod("gang-0", nodeName="n1"))

    def put(at: int) -> None:
        raw = written.replace(b'"gang"', b'"g%05d"' % (at // 4))
        raw = raw.replace(b'"gang-0"', b'"%s-%05d-%d"' % (names, at // 4, at % 4))
        record = resource.decode(raw)
        assert isinstance(record, PodRecord)
        gathering.put_pods((record,))

    for at in range(200):
        put(at)
    tracemalloc.start()
    for at in range(200, 200 + PODS):
        put(at)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert gathering.ordinary == (0 if is_member else PODS + 200)
    return kept


def test_of_ordinary_pods_nothing_is_kept():
    assert kept_of(b"o", is_member=False) < NOTHING


def test_of_a_member_some_hundred_bytes_are_kept():
    assert kept_of(b"m", is_member=True) / PODS < KEPT_BYTES
