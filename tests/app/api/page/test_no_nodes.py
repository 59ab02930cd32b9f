"""The page of a cluster whose node groups are all scaled to zero, until nodes come."""

from __future__ import annotations

import pytest
from playwright.sync_api import Route, expect

from app.explain.topology.map import copied, drawn
from tests.app.api.page.conftest import Cluster, Watched
from tests.app.simulate.clusters import engine_of

pytestmark = [pytest.mark.slow, pytest.mark.browser]


def empty() -> str:
    """What /v1/map says of a cluster without nodes."""
    *_, known = copied(engine_of([]), "")
    assert known is not None
    return drawn(known, "", lambda _: True).model_dump_json()


def test_a_cluster_without_nodes_is_shown_and_so_are_the_nodes_that_come(
    watched: Watched, cluster: Cluster
) -> None:
    page, is_empty = watched.page, True

    def answered(route: Route) -> None:
        if is_empty:
            route.fulfill(body=empty(), content_type="application/json")
        else:
            route.continue_()

    page.route("**/v1/map*", answered)
    page.goto(f"{cluster.corral}/")
    expect(page.get_by_role("status")).to_have_text("Live")
    expect(page.locator("#summary")).to_contain_text("0 nodes")
    expect(page.locator("#problem")).to_be_hidden()
    canvas = page.locator("#map canvas").first
    canvas.focus()
    for key in ("ArrowDown", "PageDown", "End", "Enter", "d"):
        canvas.press(key)
    page.get_by_label("View").select_option("table")
    expect(page.locator("#table-caption")).to_have_text("cpu of 0 nodes")
    page.get_by_label("View").select_option("map")
    is_empty = False
    cluster.cordon("node-00008")  # the page looks again
    expect(page.locator("#summary")).to_contain_text("1,523 nodes")
    canvas.focus()
    canvas.press("Home")
    expect(page.locator("#readout")).to_contain_text("node-00000")
