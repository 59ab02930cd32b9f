"""The page follows the cluster: a gang goes from pending to bound on it, and says why it waits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.sync_api import Page, Route, expect

from app.cli.showcase import BLOCK, RACK, TOO_BIG, Showpiece
from tests.app.api.page.conftest import Cluster, Watched

pytestmark = [pytest.mark.slow, pytest.mark.browser]


def row(page: Page, name: str):  # type: ignore[no-untyped-def]
    return page.locator("#gang-list li").filter(has_text=f"default/{name}")


def test_a_gang_is_followed_from_pending_to_bound_and_explained_in_one_click(
    page: Page, cluster: Cluster
) -> None:
    page.evaluate("window.isTheSame = true")
    cluster.create(TOO_BIG)
    waits = row(page, TOO_BIG.name)
    expect(waits.locator(".phase")).to_contain_text("waiting")
    expect(waits).to_contain_text("DoesNotFit")

    waits.get_by_role("button").click()
    detail = page.get_by_role("article")
    expect(detail.locator(".verdict")).to_contain_text("cannot be placed")
    expect(detail.locator(".helps li").first).to_contain_text(f"in one {BLOCK}")
    for term in ("Best place", "Short", "Taken by", "Excluded", "To do", "Next try"):
        expect(detail.locator("dt").filter(has_text=term)).to_have_count(1)

    cluster.delete_job(TOO_BIG.name)
    expect(waits).to_have_count(0)
    cluster.create(replace(TOO_BIG, level=BLOCK))
    expect(detail.locator(".phase").first).to_have_text("running")
    expect(detail.locator(".verdict")).to_contain_text("runs with 20 pods")
    assert page.evaluate("window.isTheSame")

    page.get_by_role("button", name="Back").click()
    expect(row(page, TOO_BIG.name).locator(".phase")).to_have_text("running")


def test_what_was_decided_is_listed_newest_first(page: Page, cluster: Cluster) -> None:
    cluster.create(Showpiece("told", 2, 1, 1, "required", RACK))
    page.get_by_role("tab", name="Decisions").click()
    its = page.locator("#decision-list li").filter(has_text="default/told")
    expect(its.first.locator(".phase")).to_have_text("running")
    whats = its.locator(".phase").all_inner_texts()
    assert whats[:4] == ["running", "binding", "placed", "complete"]
    its.first.get_by_role("button").click()
    expect(page.get_by_role("article").locator("h3")).to_have_text("default/told")


def test_of_a_gang_in_many_domains_it_says_how_many_are_not_named(
    page: Page, cluster: Cluster
) -> None:
    def answered(route: Route) -> None:
        found = route.fetch().json()
        found["runs_on"]["more_domains"] = 3
        route.fulfill(json=found)

    cluster.create(Showpiece("wide", 2, 1, 1, "required", RACK))
    runs = row(page, "wide")
    expect(runs.locator(".phase")).to_have_text("running")
    page.route("**/explanation*", answered)
    runs.get_by_role("button").click()
    expect(page.get_by_role("article")).to_contain_text("and 3 more domains")


def test_a_node_that_is_closed_is_shown_without_reload(page: Page, cluster: Cluster) -> None:
    cluster.cordon("node-00007")
    expect(page.locator("#summary")).to_contain_text("1 closed")


def test_another_resource_is_shown_and_the_first_again(page: Page) -> None:
    caption = page.locator("#table-caption")
    page.get_by_label("View").select_option("table")
    for resource in ("cpu", "nvidia.com/gpu", "cpu"):
        page.get_by_label("Resource").select_option(resource)
        expect(caption).to_have_text(f"{resource} of 1,523 nodes")


def test_a_row_keeps_the_focus_when_others_come_and_go(page: Page, cluster: Cluster) -> None:
    cluster.create(replace(TOO_BIG, name="stays", pods=19))
    button = row(page, "stays").get_by_role("button")
    button.focus()
    cluster.create(replace(TOO_BIG, name="before", pods=18))
    expect(row(page, "before").locator(".phase")).to_contain_text("waiting")
    expect(button).to_be_focused()
    cluster.delete_job("before")
    expect(row(page, "before")).to_have_count(0)
    expect(button).to_be_focused()
    cluster.delete_job("stays")


def test_the_list_is_narrowed_by_text_and_phase(page: Page, cluster: Cluster) -> None:
    cluster.create(Showpiece("narrow", 2, 1, 1, "required", RACK))
    expect(row(page, "narrow").locator(".phase")).to_have_text("running")
    page.get_by_label("Find").fill("narr")
    expect(page.locator("#gang-list li")).to_have_count(1)
    page.get_by_label("Phase").select_option("waiting")
    expect(page.locator("#gang-list li")).to_have_count(0)
    page.get_by_label("Find").fill("")
    page.get_by_label("Phase").select_option("")
    expect(row(page, "narrow")).to_have_count(1)


def test_objects_are_simulated_and_nothing_is_created(
    watched: Watched, page: Page, cluster: Cluster
) -> None:
    page.get_by_role("tab", name="Simulate").click()
    page.get_by_label("Objects").fill(
        f"""
apiVersion: batch/v1
kind: Job
metadata: {{name: only-tried}}
spec:
  parallelism: 4
  completions: 4
  template:
    metadata: {{annotations: {{kueue.x-k8s.io/podset-required-topology: {RACK}}}}}
    spec:
      schedulerName: corral
      containers: [{{name: a, image: a, resources: {{limits: {{nvidia.com/gpu: 8}}}}}}]
"""
    )
    page.get_by_role("button", name="Simulate").click()
    result = page.locator("#simulated")
    expect(result).to_contain_text("Job default/only-tried")
    expect(result.locator(".phase")).to_have_text("fits")
    page.get_by_label("Objects").fill("kind: Nonsense")
    page.get_by_role("button", name="Simulate").click()
    expect(result).to_contain_text("Nonsense")
    page.get_by_role("tab", name="Gangs").click()
    expect(row(page, "only-tried")).to_have_count(0)
    (refused,) = watched.errors  # the browser itself says that a request was refused
    assert "422" in refused
    watched.errors.clear()


def test_a_connection_that_is_lost_is_told_and_taken_up_again(
    watched: Watched, cluster: Cluster
) -> None:
    page = watched.page
    page.route("**/v1/events**", lambda route: route.abort())
    page.goto(f"{cluster.corral}/ui/")
    expect(page.get_by_role("status")).to_contain_text("Not connected")
    page.unroute("**/v1/events**")
    expect(page.get_by_role("status")).to_have_text("Live")
    watched.errors.clear()  # the browser itself says that a request failed


def test_a_page_that_nobody_sees_asks_nothing(page: Page) -> None:
    asked: list[str] = []
    page.evaluate(
        "Object.defineProperty(document, 'hidden', {value: true, configurable: true});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(6_000)  # more than two questions about the map
    assert asked == []
    page.evaluate(
        "Object.defineProperty(document, 'hidden', {value: false, configurable: true});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    page.wait_for_timeout(1_000)
    assert any("/v1/events" in url for url in asked)
