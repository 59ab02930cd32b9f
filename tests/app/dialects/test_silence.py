from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from app.dialects.dialect import Dialect
from app.dialects.registry import DIALECTS, Dialects
from app.dialects.silence import MOST_KIND_BYTES, MOST_KINDS, Silence
from app.kube.core.objects import Owner
from app.settings import EngineOptions
from tests.records import RACK, group, pod


@dataclass(frozen=True)
class Counting(Dialect):
    """Says nothing, and counts how often it is asked."""

    asked: list[str] = field(default_factory=list)

    def is_silent(self, pod):
        self.asked.append(pod.name)
        return True


def test_a_vocabulary_is_asked_once_of_pods_that_are_alike():
    dialect = Counting()
    dialects = Dialects((dialect,))
    for number in range(1_000):
        assert dialects.claim(pod(f"a-{number}")) is None
    assert dialect.asked == ["a-0"]


def test_a_vocabulary_that_may_name_pods_by_anything_is_never_silent():
    class Naming(Dialect):
        def may_be_named(self, pod):
            return pod.name == "named"

    dialects = Dialects((Naming(),))
    assert not dialects.may_be_named(pod("other"))
    assert dialects.may_be_named(pod("named"))


def test_what_is_remembered_of_labels_is_bounded():
    silence = Silence()
    for number in range(2 * MOST_KINDS):
        assert silence.of(pod("a", labels={"x": str(number)}), (Dialect(),))
    assert 0 < len(silence.found) <= MOST_KINDS
    silence.found.clear()
    assert silence.of(pod("a", labels={"x": "y" * MOST_KIND_BYTES}), (Dialect(),))
    assert not silence.found


def test_kinds_that_a_vocabulary_may_speak_of_are_not_remembered():
    class Speaking(Dialect):
        def is_silent(self, pod):
            return False

    silence = Silence()
    assert not silence.of(pod("a"), (Speaking(),))
    assert not silence.found


KEYS = (
    *("kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/pod-group-name", RACK),
    *("kueue.x-k8s.io/podset-required-topology", "kueue.x-k8s.io/pod-group-total-count"),
    *("scheduling.k8s.io/group-name", "pod-group-name", "kai.scheduler/subgroup-name"),
    *("grove.io/podgang", "apps.kubernetes.io/pod-index", "kai.scheduler/topology"),
    *("jobset.sigs.k8s.io/jobset-name", "leaderworkerset.sigs.k8s.io/name"),
)
TEXTS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(("", "a", "3")), max_size=3)
OWNERS = st.sampled_from(
    (
        None,
        *(Owner("apps/v1", kind, "a", "u") for kind in ("StatefulSet", "ReplicaSet", "DaemonSet")),
        *(Owner("batch/v1", "Job", "a", "u"), Owner("ray.io/v1", "RayCluster", "a", "u")),
    )
)
CONFIGURED = (DIALECTS, DIALECTS.configured(EngineOptions(native_pod_groups="on")))


@pytest.mark.parametrize(
    "dialects", [pytest.param(each, id=str(at)) for at, each in enumerate(CONFIGURED)]
)
@given(
    labels=TEXTS,
    annotations=TEXTS,
    owner=OWNERS,
    pod_group=st.sampled_from(("", "g")),
    name=st.sampled_from(("a-3", "b")),
)
def test_of_a_silent_kind_no_pod_is_claimed_or_sorted(
    dialects, labels, annotations, owner, pod_group, name
):
    asked = replace(pod("x"), labels=labels, annotations=annotations, owner=owner)
    asked = replace(asked, pod_group=pod_group)
    other = replace(asked, name=name, uid="other", namespace="b")
    for each in dialects.each:
        if each.is_silent(asked):
            assert each.claim(other) is None
            assert each.sorted_by(other) is None


def test_a_member_is_claimed_though_ordinary_pods_of_its_owner_are_silent():
    ordinary = pod("a")
    assert DIALECTS.claim(ordinary) is None
    claim = DIALECTS.claim(replace(ordinary, annotations=group("g", 2, RACK)))
    assert claim is not None
    assert claim.gang.name == "g"
