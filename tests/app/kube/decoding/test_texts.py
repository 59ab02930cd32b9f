"""What is kept of a text that a tenant writes."""

from __future__ import annotations

import json
import sys

from app.dialects import corral
from app.dialects.kueue import driver_sets, pod_groups
from app.dialects.registry import DIALECTS
from app.kube.decoding import texts
from app.kube.decoding.decode import decode_pod
from app.kube.decoding.texts import LONG, MOST_LONG_TEXT, MOST_TEXT, cut, kept_text, shared

KIB = 1024


def test_a_short_text_is_kept_as_it_is():
    assert cut("x" * MOST_TEXT) == "x" * MOST_TEXT


def test_a_text_that_is_cut_is_short_unlike_others_and_stays_as_it_is():
    one, other = (cut("x" * 250 * KIB + end) for end in ("a", "b"))
    assert len(one) == len(other) == MOST_TEXT
    assert one != other
    assert one.startswith("x" * 4 * KIB)
    assert cut(one) == one


def test_a_text_that_no_encoding_has_is_cut_too():
    assert len(cut("\ud800" * 2 * MOST_TEXT)) == MOST_TEXT


def test_what_is_longer_than_what_is_read_of_it_is_still_so_when_it_is_cut():
    read_of = {
        driver_sets.SETS: driver_sets.MOST_TEXT,
        corral.ROOM: corral.MOST_ROOM_TEXT,
        corral.SUCCEEDED: corral.MOST_SUCCEEDED_TEXT,
    }
    assert read_of.keys() == LONG
    for key, most in read_of.items():
        assert most < len(kept_text(key, "x" * 250 * KIB)) <= MOST_LONG_TEXT
    assert max(corral.MOST_POD_SETS_TEXT, 16 * 317 + 15) < MOST_TEXT


def pod_of(annotations: dict[str, str], **spec: object) -> bytes:
    metadata = {"name": "p", "namespace": "team", "uid": "u", "annotations": annotations}
    return json.dumps({"metadata": metadata, "spec": spec}).encode()


def test_a_group_whose_name_is_too_long_is_refused_by_name_and_its_gang_has_a_short_one():
    claims = []
    for end in ("a", "b"):
        name = "x" * 250 * KIB + end
        said = {pod_groups.GROUP_NAME: name, pod_groups.TOTAL_COUNT: "2"}
        record = decode_pod(pod_of(said, schedulerName="y" * 250 * KIB), DIALECTS.keeps)
        assert len(record.annotations[pod_groups.GROUP_NAME]) == MOST_TEXT
        assert len(record.scheduler) == MOST_TEXT
        claims.append(DIALECTS.claim(record))
    one, other = claims
    assert "must be a lowercase RFC 1123 subdomain" in one.flaw
    assert one.gang != other.gang
    assert len(one.gang.name) == MOST_TEXT


def test_values_of_affinity_are_shared_and_not_in_the_table_that_never_shrinks():
    texts._shared.cache_clear()
    values = [f"host-{at}" for at in range(400)]
    term = {"matchExpressions": [{"key": "k", "operator": "NotIn", "values": values}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    affinity = {"nodeAffinity": required}
    one, other = (
        decode_pod(pod_of({}, affinity=affinity, nodeName=node), DIALECTS.keeps)
        for node in ("n1", "n2")
    )
    first, second = (each.shape.terms[0].expressions[0].values for each in (one, other))
    assert all(mine is yours for mine, yours in zip(first, second, strict=True))
    interned = sys.intern("".join(["host-", "399"]))  # the first of its kind, if none is there yet
    assert interned is not first[-1]


def test_texts_that_are_shared_are_few_and_short():
    long = "x" * (texts.LONGEST_SHARED + 1)
    texts._shared.cache_clear()
    shared(long)
    for at in range(texts.SHARED + 10):
        shared(str(at))
    assert texts._shared.cache_info().currsize == texts.SHARED
    assert texts._shared.cache_info().misses == texts.SHARED + 10
