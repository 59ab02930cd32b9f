"""From the demo's words to the same gang bound, with what the terminal and the page say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.app.api.page.conftest import SECONDS
from tests.app.cli.common.test_next_steps import Terminal, programs, staying, typed

pytestmark = [pytest.mark.slow, pytest.mark.browser]

PAGE = re.compile(r"a click on (\S+) says why it waits: (\S+)")


def row(page: Page, name: str):  # type: ignore[no-untyped-def]
    return page.locator("#gang-list li").filter(has_text=f"/{name}")


def test_the_pending_gang_of_the_demo_is_understood_in_two_clicks_and_bound_by_its_relaxation(
    browser: Browser, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    path = programs(tmp_path / "bin")
    terminal = Terminal(path, tmp_path)
    with staying(tmp_path, path) as printed:
        told = PAGE.search(printed)
        assert told
        gang, address = told.groups()
        page = browser.new_page()
        page.set_default_timeout(SECONDS * 1000)
        page.goto(address)

        row(page, gang).get_by_role("button").click()  # the first click
        detail = page.get_by_role("article")
        expect(detail.locator(".verdict")).to_contain_text("cannot be placed")
        helps = re.search(r"in one (\S+)$", detail.locator(".helps li").first.inner_text())
        assert helps
        expect(detail.locator(".helps")).not_to_contain_text("never")
        detail.locator("dd button").first.click()  # the second: the place that is best
        expect(page.get_by_role("article").locator("h3")).to_contain_text("rack")
        page.get_by_role("button", name="Back").click()
        row(page, gang).get_by_role("button").click()

        # What the terminal says to type makes the change that the page has named first.
        lines = typed(printed)
        (difference,) = (terminal.type(line) for line in lines if line.startswith("diff "))
        (changed,) = (line for line in difference.splitlines() if line.startswith(">"))
        assert f'"{helps[1]}"' in changed
        for line in lines:
            if line.startswith("export ") or " -X DELETE " in line:
                terminal.type(line)
        (create,) = (line for line in lines if " -d @" in line and "/jobs" in line)
        terminal.type(create)

        expect(detail.locator(".phase").first).to_have_text("running")
        expect(detail).to_contain_text(f"runs with {pods_of(detail.inner_text())} pods")
        domain = f"{helps[1].rpartition('-')[2]} block-"
        expect(detail.locator("dt").filter(has_text="Runs on")).to_have_count(1)
        expect(detail).to_contain_text(domain)
        page.close()


def pods_of(said: str) -> str:
    """How many pods the gang has, as the page says."""
    found = re.search(r"(\d+) pods: \1 there, 0 planned, \1 bound", said)
    assert found, said
    return found[1]
