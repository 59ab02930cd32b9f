"""`corral audit` on a real API server: what it reads there, as whom, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from app.cli import main
from tests.cluster import BLOCK, RACK, Cluster, Object, grid
from tests.controlplane.plane import ControlPlane
from tests.workloads import asking, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

RBAC = "rbac.authorization.k8s.io"
LEVELS = ("--levels", f"{BLOCK},{RACK}")


def audit(kubeconfig: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["audit", "--kubeconfig", str(kubeconfig), *options])


def verdicts(ran: Result) -> dict[tuple[str, str], dict[str, Any]]:
    found = json.loads(ran.stdout)["verdicts"]
    return {(each["name"], each["constraint"]): each for each in found}


@pytest.fixture
def gangs(plane: ControlPlane, cluster: Cluster) -> Iterator[None]:
    """One gang in one rack, one in two: bound by hand, as no Corral would."""
    plane.nodes(grid(racks=2, nodes=2, gpus=8))
    for name, nodes in (("near", "00"), ("far", "01")):
        for each in members(name, 2, annotations=asking(required=RACK)):
            cluster.create(each)
        for at, rack in enumerate(nodes):
            cluster.bind(f"{name}-{at}", f"b0-r{rack}-n{at}")
    yield
    cluster.delete_all("Pod")


@pytest.mark.usefixtures("gangs")
def test_without_a_corral_a_gang_in_two_racks_is_found(plane: ControlPlane) -> None:
    for options in (("-A",), ("-n", "default"), ("-A", *LEVELS)):
        ran = audit(plane.kubeconfig("admin"), *options, "-o", "json")
        assert ran.exit_code == 1, ran.output
        found = verdicts(ran)
        assert found["near", "pod set"]["verdict"] == "MATCH"
        far = found["far", "pod set"]
        assert (far["verdict"], far["pod"], far["node"]) == ("VIOLATION", "far-1", "b0-r1-n1")
        assert far["values"] == ["b0-r1", "b0-r0"]
    assert audit(plane.kubeconfig("admin"), "-n", "kube-system").exit_code == 0


@pytest.mark.usefixtures("gangs")
def test_who_may_read_pods_alone_is_told_what_else_it_takes(
    plane: ControlPlane, cluster: Cluster
) -> None:
    stranger = plane.kubeconfig("stranger")
    refused = audit(stranger, "-n", "default")
    assert refused.exit_code == 2
    assert 'cannot list resource "pods"' in refused.stderr
    with ExitStack() as removals:
        for each in may_read_pods():
            cluster.create(each)
            removals.callback(cluster.delete, each["kind"], "reads-pods", "default")
        ran = audit(stranger, "-n", "default", "-o", "json", "--strict")
    assert ran.exit_code == 3, ran.output
    far = verdicts(ran)["far", "pod set"]
    assert far["verdict"] == "UNOBSERVABLE"
    assert 'cannot list resource "nodes"' in far["text"]


def may_read_pods() -> Iterator[Object]:
    metadata = {"name": "reads-pods", "namespace": "default"}
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
    yield {
        "apiVersion": f"{RBAC}/v1",
        "kind": "Role",
        "metadata": metadata,
        "rules": [rule],
    }
    yield {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "reads-pods"},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "stranger"}],
    }
