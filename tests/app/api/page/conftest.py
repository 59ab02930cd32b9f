"""A Chromium and the cluster of the demo, both for all tests of a file."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from app.cli.demo import SCHEDULER, _stage
from app.cli.showcase import Showpiece
from tests.app.api.page.axe import NotFetched, axe

NAMES = ("chromium", "chromium-browser", "google-chrome")
SECONDS = 30  # of a busy machine, for anything that is waited for
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip

expect.set_options(timeout=SECONDS * 1000)


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where the demo's parts are."""

    corral: str
    api: str

    def create(self, piece: Showpiece) -> None:
        """Create a gang of the demo's kind."""
        for each in piece.objects(SCHEDULER):
            self.post(each)

    def post(self, thing: dict[str, Any]) -> None:
        """Create one object."""
        home = "/apis/batch/v1" if thing["kind"] == "Job" else "/api/v1"
        kind = f"{thing['kind'].lower()}s"
        url = f"{self.api}{home}/namespaces/{thing['metadata']['namespace']}/{kind}"
        httpx.post(url, json=thing).raise_for_status()

    def delete_job(self, name: str) -> None:
        """Delete a Job, and with it its pods."""
        url = f"{self.api}/apis/batch/v1/namespaces/default/jobs/{name}"
        httpx.delete(url).raise_for_status()

    def cordon(self, node: str) -> None:
        """Close a node."""
        httpx.patch(
            f"{self.api}/api/v1/nodes/{node}",
            json={"spec": {"unschedulable": True}},
            headers={"Content-Type": "application/merge-patch+json"},
        ).raise_for_status()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """The demo's cluster, in an event loop of its own: the browser is driven from this one."""
    found: list[Cluster] = []
    is_there, end = threading.Event(), threading.Event()

    async def staged(folder: Path) -> None:
        async with _stage(folder, None, 0.2, 0) as stage:
            found.append(Cluster(stage.corral.extender_url, stage.sandbox.url))
            is_there.set()
            await asyncio.to_thread(end.wait)

    with tempfile.TemporaryDirectory() as folder:
        thread = threading.Thread(target=lambda: asyncio.run(staged(Path(folder))))
        thread.start()
        try:
            assert is_there.wait(SECONDS), "the cluster is not ready"
            yield found[0]
        finally:
            end.set()
            thread.join(SECONDS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's own Chromium: playwright's comes from elsewhere, and is no package."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        why = "no Chromium on this machine (Debian: apt-get install chromium)"
        if os.environ.get("CORRAL_BROWSER") == "required":
            pytest.fail(why)
        pytest.skip(why)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield chromium
        chromium.close()


class Watched:
    """A page, and what its console says."""

    def __init__(self, page: Page) -> None:
        self.page, self.errors = page, list[str]()
        page.set_default_timeout(SECONDS * 1000)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on(
            "console",
            lambda said: self.errors.append(said.text) if said.type == "error" else None,
        )

    def open(self, cluster: Cluster) -> Page:
        """The page, when it follows the cluster and shows its map."""
        self.page.goto(f"{cluster.corral}/")
        expect(self.page.get_by_role("status")).to_have_text("Live")
        expect(self.page.locator("#summary")).to_contain_text("1,523 nodes")
        return self.page


@pytest.fixture
def watched(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Watched]:
    """A new tab; nothing may be said in its console. Parameters: those of a context."""
    context = browser.new_context(**getattr(request, "param", {}))
    found = Watched(context.new_page())
    yield found
    context.close()
    assert found.errors == []


@pytest.fixture
def page(watched: Watched, cluster: Cluster) -> Page:
    """The page, opened."""
    return watched.open(cluster)


@pytest.fixture(scope="session")
def axe_source() -> str:
    """What judges accessibility."""
    try:
        return axe()
    except NotFetched as error:
        if os.environ.get("CORRAL_BROWSER") == "required":
            pytest.fail(str(error))
        pytest.skip(str(error))
