"""The page is usable with the keyboard, by a screen reader, on a phone, in light and in dark."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from app.cli.showcase import RACK, TOO_BIG, Showpiece
from tests.app.api.page.conftest import Cluster, Watched

pytestmark = [pytest.mark.slow, pytest.mark.browser]

RUN = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations
  .filter((each) => ["serious", "critical"].includes(each.impact))
  .map((each) => `${each.id}: ${each.nodes.map((node) => node.html).join(" ")}`)"""
SCHEMES: list[dict[str, Any]] = [{"color_scheme": "light"}, {"color_scheme": "dark"}]


@pytest.fixture(scope="module")
def told(cluster: Cluster) -> Cluster:
    """With a gang that waits, one that runs and a node that is closed."""
    cluster.create(TOO_BIG)
    cluster.create(Showpiece("runs", 4, 8, 4, "required", RACK))
    cluster.cordon("node-00001")
    return cluster


def serious(page: Page) -> list[str]:
    found: list[str] = json.loads(json.dumps(page.evaluate(RUN)))
    return found


@pytest.mark.parametrize("watched", SCHEMES, ids=["light", "dark"], indirect=True)
def test_nothing_serious_is_found_in_any_view(
    watched: Watched, told: Cluster, axe_source: str
) -> None:
    watched.page.add_init_script(axe_source)
    page = watched.open(told)
    expect(page.locator("#gang-list li").first).to_contain_text("waiting")
    assert serious(page) == []
    page.locator("#gang-list li button").first.click()
    expect(page.get_by_role("article").locator(".helps")).to_be_visible()
    assert serious(page) == []
    page.get_by_role("button", name="Back").click()
    page.get_by_label("View").select_option("table")
    page.get_by_role("button", name="Nodes of").first.click()
    for tab in ("Decisions", "Simulate"):
        page.get_by_role("tab", name=tab).click()
        assert serious(page) == [], tab


def test_the_map_is_walked_and_opened_with_the_keyboard(page: Page, told: Cluster) -> None:
    canvas, readout = page.get_by_role("application", name="Topology"), page.locator("#readout")
    canvas.focus()
    expect(readout).to_contain_text("node-")
    first = readout.inner_text()
    page.keyboard.press("ArrowRight")
    second = readout.inner_text()
    page.keyboard.press("PageDown")
    third = readout.inner_text()
    assert len({first, second, third}) == 3
    assert third.split(": ")[0].split(" in ")[1] != first.split(": ")[0].split(" in ")[1]
    page.keyboard.press("Home")
    assert readout.inner_text() == first
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    assert readout.inner_text() == first
    page.keyboard.press("Enter")
    detail = page.get_by_role("article")
    expect(detail.locator("h3")).to_have_text(f"Node {first.split(' ')[0]}")
    expect(detail.get_by_role("table").first).to_contain_text("nvidia.com/gpu")
    page.keyboard.press("Escape")
    expect(detail).to_be_hidden()
    assert page.evaluate("document.activeElement.id") == "canvas"
    page.keyboard.press("d")
    expect(detail.locator("h3")).to_contain_text("rack ")


def test_every_control_is_reached_with_tab_and_shows_it(page: Page, told: Cluster) -> None:
    reached = set()
    for _ in range(25):
        page.keyboard.press("Tab")
        name, outline = page.evaluate(
            "[document.activeElement.id || document.activeElement.className,"
            " getComputedStyle(document.activeElement).outlineStyle]"
        )
        reached.add(name)
        assert outline != "none" or name == "", name
    assert {"resource", "colour", "view", "canvas", "tab-gangs", "text", "phase", "row"} <= reached


def test_tabs_are_chosen_with_arrows(page: Page) -> None:
    page.get_by_role("tab", name="Gangs").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tabpanel", name="Decisions")).to_be_visible()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("tabpanel", name="Gangs")).to_be_visible()


def test_the_table_has_what_the_map_has(page: Page, told: Cluster) -> None:
    page.get_by_label("View").select_option("table")
    table = page.get_by_role("table", name="nvidia.com/gpu of 1,523 nodes")
    expect(table.get_by_role("row").nth(1)).to_contain_text("block block-000")
    toggle = table.get_by_role("button", name="Nodes of").first
    toggle.press("Enter")
    expect(table.get_by_role("button", name="node-00000")).to_be_visible()
    expect(toggle).to_be_focused()
    expect(toggle).to_have_attribute("aria-expanded", "true")
    expect(table.get_by_role("row").filter(has_text="node-00001")).to_contain_text("cordoned")
    table.get_by_role("button", name="node-00000").click()
    expect(page.get_by_role("article").locator("h3")).to_have_text("Node node-00000")


@pytest.mark.parametrize(
    "watched", [{"viewport": {"width": 375, "height": 812}, "has_touch": True}], indirect=True
)
def test_it_fits_on_a_phone(watched: Watched, told: Cluster) -> None:
    page = watched.open(told)
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    page.locator("#gang-list li button").first.click()
    expect(page.get_by_role("article").locator(".helps")).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
