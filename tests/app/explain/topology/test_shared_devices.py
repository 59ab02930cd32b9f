"""What people read of nodes whose devices pods share: resources as nodes name them, no more."""

from __future__ import annotations

from app.explain.topology.map import copied, drawn
from app.explain.topology.node import node_view
from app.explain.topology.slots import slots_of
from app.explain.topology.usage import Books, Part, usage, wanted_of
from tests.app.state.answers.test_hypothetical import asked, template, whole
from tests.app.state.plan.test_shared_devices import PARTS, asking, worn
from tests.cluster import node
from tests.records import pod

HALF = f"{PARTS}=500"


def test_rows_of_devices_are_no_resources():
    engine = worn().engine
    page = usage(Books.of(engine, "", ()), Part())
    assert [each.resource for each in page.total.resources] == ["pods", "cpu", PARTS]
    (known,) = [each for each in copied(engine, "") if each is not None]
    assert set(drawn(known, "", lambda _: True).resources) == {"pods", "cpu", PARTS}
    view = node_view(engine, "n0", lambda _: True)
    assert [each.resource for each in view.resources] == ["pods", "cpu", PARTS]


def test_how_many_pods_fit_is_told_by_devices():
    """Two on each device of n1; of n0 0.8 are free, and no half of a device."""
    engine = worn().engine
    (found,) = slots_of(engine, (wanted_of(HALF),))
    assert found.free == 4
    (told,) = usage(Books.of(engine, "", (wanted_of(HALF),)), Part()).total.free_for
    assert (told.pods, told.nodes) == (4, 1)


def test_a_simulator_is_told_that_no_device_has_room():
    nodes = whole(template("t"), *(node(name) for name in ("n0", "n1")))
    answer = asked(worn(), asking(pod("p"), 500), nodes)
    assert answer.nodes == ("n1",)
    assert answer.why_not["n0"] == f"insufficient {PARTS} on one device (over 1/2)"
