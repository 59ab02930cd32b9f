"""Signing in and out: who asks, and that nobody sees what the one before him saw."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from playwright.sync_api import Error, Page, Route, expect

from app.cli.showcase import RACK, TOO_BIG, Showpiece
from tests.app.api.page.conftest import Cluster, Watched

pytestmark = [pytest.mark.slow, pytest.mark.browser]

SECRET = "of-the-first-user"
BLANK = """() => {
  const { width, height } = document.getElementById("canvas");
  return !width || !height || document.getElementById("canvas").getContext("2d")
    .getImageData(0, 0, width, height).data.every((each) => each === 0);
}"""
OPEN = """() => document.getElementById("signing-in").open
  || document.getElementById("sign-in").click()"""
OF_A_CLUSTER = ("default/", "node-0", "block-0", "rack-0", "nvidia.com/gpu", "1,523", SECRET)


def signed_in(page: Page, token: str, namespace: str = "") -> None:
    """Open the dialog, unless it is, and send it."""
    dialog, button = page.get_by_role("dialog"), page.locator("#sign-in")
    expect(dialog.or_(button).first).to_be_visible()
    # In one step: an answer that refuses opens it by itself, at any time.
    page.evaluate(OPEN)
    dialog.get_by_label("Token").fill(token)
    dialog.get_by_label("Namespace").fill(namespace)
    dialog.get_by_role("button", name="Sign in").click()


def guarded(page: Page, ways: dict[str, Callable[[Route], None]]) -> None:
    """Have /v1 answer by the token: 401 to those that are not here."""

    def guard(route: Route) -> None:
        token = route.request.headers.get("authorization", "").removeprefix("Bearer ")
        refused = {"detail": "the API server does not know this token"}
        ways.get(token, lambda each: each.fulfill(status=401, json=refused))(route)

    page.route("**/v1/**", guard)


def forbidden(route: Route) -> None:
    route.fulfill(status=403, json={"detail": "user second may not list pods"})


def seen(watched: Watched, cluster: Cluster) -> Page:
    """The page of a user who has looked at all of it."""
    page = watched.page
    page.goto(f"{cluster.corral}/ui/")
    signed_in(page, "first")
    expect(page.get_by_role("status")).to_have_text("Live")
    expect(page.locator("#summary")).to_contain_text("1,523 nodes")
    page.get_by_label("View").select_option("table")
    page.get_by_role("button", name="Nodes of").first.click()
    page.get_by_label("View").select_option("map")
    page.locator("#canvas").focus()
    expect(page.locator("#readout")).to_contain_text("node-0")
    page.locator("#namespace").select_option("default")
    page.get_by_label("Find").fill("default/")
    expect(page.locator("#gang-list li").first).to_contain_text("default/")
    page.get_by_role("tab", name="Decisions").click()
    expect(page.locator("#decision-list li").first).to_contain_text("default/")
    page.get_by_role("tab", name="Simulate").click()
    page.get_by_label("Objects").fill(f"kind: {SECRET}")
    page.get_by_role("button", name="Simulate").click()
    expect(page.locator("#simulated")).to_contain_text(SECRET)
    page.get_by_role("tab", name="Gangs").click()
    page.locator("#gang-list li button").first.click()
    expect(page.get_by_role("article").locator(".verdict")).to_be_visible()
    return page


@pytest.fixture(scope="module")
def told(cluster: Cluster) -> Cluster:
    """With a gang that waits and one that runs."""
    cluster.create(TOO_BIG)
    cluster.create(Showpiece("runs", 4, 8, 4, "required", RACK))
    return cluster


def left(page: Page) -> list[str]:
    """What the document and its fields still have of the cluster."""
    values = "[...document.querySelectorAll('input, textarea, select')].map((e) => e.value).join()"
    text = page.evaluate(f"document.documentElement.textContent + {values}")
    found = [each for each in OF_A_CLUSTER if each in text]
    return found if page.evaluate(BLANK) else [*found, "the map"]


def test_another_user_sees_nothing_of_what_the_one_before_him_saw(
    watched: Watched, told: Cluster
) -> None:
    guarded(watched.page, {"first": Route.continue_, "second": forbidden})
    page = seen(watched, told)
    signed_in(page, "second", "team-b")
    expect(page.get_by_role("alert")).to_contain_text("user second may not list pods")
    expect(page.get_by_role("article")).to_be_hidden()
    assert left(page) == []
    expect(page.get_by_role("status")).not_to_have_text("Live")

    signed_in(page, "first")  # and the page works as it did
    expect(page.get_by_role("status")).to_have_text("Live")
    expect(page.locator("#summary")).to_contain_text("1,523 nodes")
    expect(page.locator("#gang-list li").first).to_contain_text("default/")
    assert not page.evaluate(BLANK)
    page.locator("#gang-list li button").first.click()
    expect(page.get_by_role("article").locator(".verdict")).to_be_visible()
    watched.errors.clear()  # the browser itself says that requests were refused


def test_who_signs_out_leaves_nothing_behind(watched: Watched, told: Cluster) -> None:
    guarded(watched.page, {"first": Route.continue_})
    page = seen(watched, told)
    page.locator("#sign-in").click()
    page.get_by_role("dialog").get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("dialog")).to_contain_text("does not know this token")
    expect(page.get_by_role("button", name="Sign out")).to_be_hidden()
    assert left(page) == []
    assert page.evaluate("sessionStorage.getItem('corral-token')") == ""
    watched.errors.clear()


def test_an_answer_to_the_user_before_is_not_shown_to_the_next_one(
    watched: Watched, told: Cluster
) -> None:
    page, late = watched.page, list[Route]()

    def first(route: Route) -> None:
        if "/explanation" in route.request.url:
            late.append(route)  # not yet
        else:
            route.continue_()

    guarded(page, {"first": first, "second": Route.continue_})
    page.goto(f"{told.corral}/ui/")
    signed_in(page, "first")
    row = page.locator("#gang-list li").filter(has_text=f"default/{TOO_BIG.name}")
    row.get_by_role("button").click()
    expect(page.get_by_role("article")).to_contain_text("Asking")
    signed_in(page, "second")
    row.get_by_role("button").click()
    expect(page.get_by_role("article").locator(".verdict")).to_be_visible()
    for route in late:
        with suppress(Error):  # the page does not wait for it any more
            route.fulfill(status=403, json={"detail": SECRET})
    page.wait_for_timeout(500)
    expect(page.get_by_role("article")).not_to_contain_text(SECRET)
    watched.errors.clear()


def test_a_token_is_asked_for_and_stays_in_the_tab(watched: Watched, cluster: Cluster) -> None:
    page, said = watched.page, list[str]()

    def guard(route: Route) -> None:
        header = route.request.headers.get("authorization", "")
        said.append(header)
        if header != "Bearer right":
            route.fulfill(status=401, json={"detail": "the API server does not know this token"})
        else:
            route.continue_()

    page.route("**/v1/**", guard)
    page.goto(f"{cluster.corral}/ui/")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("does not know this token")
    for token in ("wrong", "right"):
        dialog.get_by_label("Token").fill(token)
        dialog.get_by_role("button", name="Sign in").click()
        if token == "wrong":
            expect(dialog).to_be_visible()
    expect(page.get_by_role("status")).to_have_text("Live")
    assert {"Bearer wrong", "Bearer right"} <= set(said)
    assert page.evaluate("localStorage.length") == 0
    assert page.evaluate("document.cookie") == ""
    assert "right" not in page.url
    watched.errors.clear()  # the browser itself says that requests were refused
