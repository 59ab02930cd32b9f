"""What gates and checks pods: the webhook, the policies, or both of them.

    with in_effect("both", plane, tmp_path) as admission:
        assert gates_of(admission.cluster.create(member("red", 0, 2))) == [GATE]

A test of all of them has the fixture `admission_of_all`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.controlplane.admission import Admission
from tests.controlplane.plane import ControlPlane
from tests.controlplane.policies import applied, installed_policies
from tests.controlplane.webhook import installed

WAYS = ("webhook", "policies", "both")


@contextmanager
def in_effect(way: str, plane: ControlPlane, folder: Path) -> Iterator[Admission]:
    """A Corral, and one of the WAYS while the block lasts."""
    if way == "policies":
        with installed_policies(plane, folder) as admission:
            yield admission
    elif way == "both":
        with applied(plane), installed(plane, folder) as admission:
            yield replace(admission, is_gated_by_corral=False)
    else:
        with installed(plane, folder) as admission:
            yield admission


@pytest.fixture(scope="module", params=WAYS)
def admission_of_all(
    request: pytest.FixtureRequest,
    plane: ControlPlane,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Admission]:
    """One of the WAYS, with the Corral that all tests of a module share."""
    with in_effect(request.param, plane, tmp_path_factory.mktemp("admitted")) as admission:
        yield admission
        assert admission.corral.bugs() == {}
