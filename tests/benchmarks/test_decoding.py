"""What benchmarks/decoding.py has read is what it says it is."""

from __future__ import annotations

import json
from functools import partial

import pytest

from app.dialects.registry import DIALECTS
from app.errors import DecodeError
from app.kube.decoding.decode import decode_pod
from app.kube.decoding.large.parts import LARGE
from benchmarks.decoding import DECODERS, claimed
from benchmarks.largest.pods import annotations, pods
from benchmarks.largest.workloads import workloads
from benchmarks.largest.written import STORED

decoded = partial(decode_pod, keep=DIALECTS.keeps)


@pytest.mark.slow
def test_pods_have_the_size_of_the_largest_or_as_much_as_their_part_may_have():
    for name, raw in pods(STORED):
        stored = len(raw.replace(b"\\u003c", b"<").replace(b"\\u0001", b"."))
        # Containers have names of fields in JSON, and none in etcd.
        assert stored < (2.4 if "containers" in name or "sidecars" in name else 1.4) * STORED, name
        assert stored > STORED / 4, name


def test_pods_of_ordinary_size_are_read_whole_whatever_they_have_most_of():
    for name, raw in pods(LARGE * 3 // 4):
        record = decoded(raw)
        is_over = name == "one container, resources in the amount of 1"
        assert is_over or not record.problem, name


def test_every_annotation_is_one_that_is_read():
    for name, raw in annotations():
        (long, *_) = sorted(json.loads(raw)["metadata"]["annotations"].items(), key=_longest)
        assert DIALECTS.keeps(long[0]), name
        claimed(raw)


def _longest(pair: tuple[str, str]) -> int:
    return -len(pair[1])


def _refusal(kind: str, raw: bytes) -> str:
    """Why an object is not read; "" if it is."""
    try:
        DECODERS[kind](raw)
    except DecodeError as error:
        return str(error)
    return ""


@pytest.mark.slow
def test_workloads_are_read_or_refused_for_their_size():
    told = {(kind, name): _refusal(kind, raw) for kind, name, raw in workloads()}
    assert {sentence for sentence in told.values() if "not read" not in sentence} == {""}
    assert told["Job", "10,000 containers"] == ""
    assert "metadata.labels" in told["Job", "labels"]


def test_every_kind_that_is_read_has_its_largest_object():
    """Pods and nodes have cases of their own; Kubeflow's other jobs are read as PyTorchJobs are."""
    measured = {kind for kind, _, _ in workloads()}
    alike = {"XGBoostJob", "TFJob", "PaddleJob", "JAXJob"}
    assert measured == DECODERS.keys() - {"Pod", "Node", *alike}


@pytest.mark.slow
def test_requests_for_nodes_are_read_as_ours():
    """Of others hardly anything is."""
    for kind, name, raw in workloads():
        if kind in ("ProvisioningRequest", "PodTemplate") and not _refusal(kind, raw):
            assert DECODERS[kind](raw).gang_uid, name
