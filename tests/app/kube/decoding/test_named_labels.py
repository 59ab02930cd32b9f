"""Labels that a pod's own annotations name are kept of it, as far as they are numbers."""

from __future__ import annotations

import json

import pytest

from app.dialects.kueue import pod_groups
from app.kube.decoding.decode import decode_pod, with_kept
from app.kube.decoding.named_labels import MOST_DIGITS, NAMING, named_labels

(KEY,) = NAMING


def keeps(key: str) -> bool:
    return key == KEY


def test_the_annotations_are_those_that_a_vocabulary_reads() -> None:
    assert set(NAMING) == {pod_groups.INDEX_LABEL}
    assert set(NAMING) <= set(pod_groups.KEPT)


@pytest.mark.parametrize(
    ("labels", "named", "kept"),
    [
        pytest.param({"rank": "3", "team": "a"}, "rank", {"rank": "3"}, id="number"),
        pytest.param({"rank": "9" * MOST_DIGITS}, "rank", {"rank": "9" * 20}, id="long_number"),
        pytest.param({"rank": "9" * 21}, "rank", {}, id="too_long"),
        pytest.param({"team": "a"}, "team", {}, id="no_number"),
        pytest.param({"rank": "\u0663"}, "rank", {}, id="digits_of_another_script"),
        pytest.param({"rank": ""}, "rank", {}, id="empty"),
        pytest.param({"rank": None}, "rank", {}, id="null"),
        pytest.param({"team": "3"}, "rank", {}, id="not_there"),
        pytest.param({"r" * 318: "3"}, "r" * 318, {}, id="no_labels_key"),
        pytest.param(None, "rank", {}, id="no_labels"),
        pytest.param({"rank": "3"}, None, {}, id="none_named"),
    ],
)
def test_what_is_kept(
    labels: dict[str, str | None] | None, named: str | None, kept: dict[str, str]
) -> None:
    said = {} if named is None else {KEY: named}
    assert named_labels(labels, said) == kept
    metadata = {"name": "p", "labels": labels, "annotations": said}
    pod = decode_pod(json.dumps({"metadata": metadata}).encode(), keeps)
    assert (pod.labels, pod.annotations) == (kept, said)
    assert with_kept(pod, keeps) == pod


def test_nothing_is_kept_by_an_annotation_that_is_not() -> None:
    metadata = {"name": "p", "labels": {"rank": "3"}, "annotations": {KEY: "rank"}}
    assert decode_pod(json.dumps({"metadata": metadata}).encode(), lambda _: False).labels == {}
