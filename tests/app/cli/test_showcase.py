"""The gangs that the demo shows, and the levels that it gives a cluster without any."""

from __future__ import annotations

import pytest

from app.cli.showcase import (
    NODES_PER_RACK,
    PLANNED,
    RACK,
    RACKS_PER_BLOCK,
    SHOWPIECES,
    Showpiece,
    with_levels,
)

GPU = "nvidia.com/gpu"
KUEUE = "kueue.x-k8s.io/"


@pytest.mark.parametrize("piece", [*SHOWPIECES, PLANNED], ids=lambda piece: piece.name)
def test_a_piece_has_as_many_pods_as_it_says_and_all_of_them_request_the_same(piece):
    things = piece.objects("demo")
    if piece.is_job:
        (job,) = things
        assert (job["kind"], job["metadata"]["name"]) == ("Job", piece.name)
        assert job["spec"]["parallelism"] == job["spec"]["completions"] == piece.pods
        templates = [job["spec"]["template"]]
        said = {}
    else:
        assert [each["kind"] for each in things] == ["Pod"] * piece.pods
        assert len({each["metadata"]["name"] for each in things}) == piece.pods
        templates = things
        group = {"pod-group-name": piece.name, "pod-group-total-count": str(piece.pods)}
        said = {f"{KUEUE}{key}": value for key, value in group.items()}
    said[f"{KUEUE}podset-{piece.mode}-topology"] = piece.level or "true"
    for each in templates:
        assert each["metadata"]["annotations"] == said
        assert each["metadata"]["labels"] == {"corral-demo": piece.name}
        assert each["spec"]["schedulerName"] == "demo"
        (container,) = each["spec"]["containers"]
        amounts = container["resources"]["requests"]
        assert amounts == container["resources"]["limits"]
        assert amounts["cpu"] == str(piece.cpu)
        assert amounts.get(GPU, "0") == str(piece.gpus)


def test_the_constraint_of_a_piece_is_in_two_words_or_one():
    assert Showpiece("a", 1, 1, 1, "required", RACK).constraint == "required rack"
    assert Showpiece("a", 1, 1, 1, "unconstrained").constraint == "unconstrained"


def nodes(number: int, **labels: str) -> dict[str, list[dict[str, object]]]:
    made = [{"metadata": {"name": f"n{at:05}", "labels": labels or None}} for at in range(number)]
    return {"nodes": made[::-1]}


def test_racks_and_blocks_are_filled_in_the_order_of_names():
    per_block = NODES_PER_RACK * RACKS_PER_BLOCK
    levels = with_levels(nodes(per_block + 1))
    assert len(levels) == per_block + 1
    assert levels[f"n{NODES_PER_RACK - 1:05}"] == ("block-0", "rack-0")
    assert levels[f"n{NODES_PER_RACK:05}"] == ("block-0", "rack-1")
    assert levels[f"n{per_block - 1:05}"] == ("block-0", f"rack-{RACKS_PER_BLOCK - 1}")
    assert levels[f"n{per_block:05}"] == ("block-1", f"rack-{RACKS_PER_BLOCK}")


def test_a_cluster_with_racks_keeps_them_though_some_nodes_have_none():
    snapshot = nodes(3)
    assert with_levels(snapshot) is not None
    snapshot["nodes"][1]["metadata"]["labels"] = {RACK: "r"}
    assert with_levels(snapshot) is None
    assert with_levels({"nodes": []}) == {}
