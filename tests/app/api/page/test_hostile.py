"""What tenants write is text on the page, whatever it looks like."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from app.cli.showcase import Showpiece
from tests.app.api.page.conftest import Cluster, Watched

pytestmark = [pytest.mark.slow, pytest.mark.browser]

EVIL = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'


def test_an_annotation_is_text(page: Page, cluster: Cluster) -> None:
    cluster.create(Showpiece("evil", 2, 1, 1, "required", EVIL))
    row = page.locator("#gang-list li").filter(has_text="default/evil")
    expect(row).to_contain_text("<img src=x")
    row.get_by_role("button").click()
    expect(page.get_by_role("article").locator(".verdict")).to_contain_text("<img src=x")
    assert page.locator("main img, main script").count() == 0
    assert page.evaluate("window.hacked") is None


def test_every_text_of_an_answer_is_text(watched: Watched, cluster: Cluster) -> None:
    """Each string that /v1 sends is replaced, but for words that the page itself compares."""
    page = watched.page
    kept = {"waiting", "running", "default", "no-place", "placed", "complete", "binding"}

    def spoiled(value: Any) -> Any:
        if isinstance(value, str):
            return value if value in kept else f"{EVIL}{value}"
        if isinstance(value, list):
            return [spoiled(each) for each in value]
        if isinstance(value, dict):
            return {key: spoiled(each) for key, each in value.items()}
        return value

    def spoil(route: Route) -> None:
        answer = route.fetch()
        if answer.status == 200:
            route.fulfill(response=answer, body=json.dumps(spoiled(answer.json())))
        else:
            route.fulfill(response=answer)

    def spoil_events(route: Route) -> None:
        gang = {
            "namespace": EVIL, "name": EVIL, "source": EVIL, "phase": "waiting", "reason": EVIL,
            "message": EVIL, "priority": 0, "waiting_seconds": 1.0, "domains": [EVIL],
            "pods": {"declared": 1, "there": 1, "planned": 0, "bound": 0}, "needs_nodes": None,
        }  # fmt: skip
        body = f'event: gang\ndata: {json.dumps(gang)}\n\nevent: synced\ndata: {{"gangs":1}}\n\n'
        route.fulfill(body=body, content_type="text/event-stream")

    for path in ("map", "decisions", "nodes/**", "topology"):
        page.route(f"**/v1/{path}**", spoil)
    page.route("**/v1/events**", spoil_events)
    page.goto(f"{cluster.corral}/ui/")
    expect(page.locator("#summary")).to_contain_text("1,523 nodes")
    expect(page.locator("#gang-list li").first).to_contain_text("<img")
    page.get_by_label("View").select_option("table")
    expect(page.locator("#table tbody tr").first).to_contain_text("<img")
    page.get_by_label("View").select_option("map")
    page.locator("#canvas").focus()
    expect(page.locator("#readout")).to_contain_text("<img")
    page.get_by_role("tab", name="Decisions").click()
    page.keyboard.press("Tab")
    assert page.locator("main img, main script").count() == 0
    assert page.evaluate("window.hacked") is None
