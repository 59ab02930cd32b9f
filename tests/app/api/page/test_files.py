"""The page's files are served as they are, and the browser is told to load nothing else."""

from __future__ import annotations

import re
from importlib.resources import files

import httpx
import pytest
from fastapi import FastAPI

from app.api.page import AT, MEDIA_TYPES, page

FILES = [
    each.name for each in files("app.api.page").iterdir() if each.name.endswith((*MEDIA_TYPES,))
]
ELSEWHERE = re.compile(r"https?:|['\"]//", re.IGNORECASE)
NAMESPACE = "http://www.w3.org/2000/svg"  # a name, which is not loaded


def client() -> httpx.AsyncClient:
    app = FastAPI()
    app.include_router(page())
    transport = httpx.ASGITransport(app=app, client=("127.0.0.1", 4711))
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")


@pytest.mark.parametrize("path", ["/", "/ui"])
async def test_the_way_to_the_page_is_short(path: str) -> None:
    async with client() as asking:
        answer = await asking.get(path, follow_redirects=True)
    assert (answer.status_code, answer.url.path) == (200, AT)
    assert "<!doctype html>" in answer.text


@pytest.mark.parametrize("name", FILES)
async def test_each_file_is_served_with_the_policy(name: str) -> None:
    async with client() as asking:
        answer = await asking.get(AT + name)
        again = await asking.get(AT + name, headers={"If-None-Match": answer.headers["ETag"]})
    assert answer.content == files("app.api.page").joinpath(name).read_bytes()
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in policy
    assert again.status_code == 304


@pytest.mark.parametrize("name", FILES)
def test_nothing_is_loaded_from_elsewhere_and_no_text_becomes_markup(name: str) -> None:
    text = files("app.api.page").joinpath(name).read_text(encoding="utf-8")
    assert not ELSEWHERE.search(text.replace(NAMESPACE, ""))
    for way in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        " style=",
    ):
        assert way not in text, way


@pytest.mark.parametrize("name", ["none.js", "../page/__init__.py", "__init__.py", "%2e%2e/x"])
async def test_nothing_but_the_files_is_served(name: str) -> None:
    async with client() as asking:
        assert (await asking.get(AT + name)).status_code == 404


def test_every_module_is_asked_for_at_once() -> None:
    index = files("app.api.page").joinpath("index.html").read_text(encoding="utf-8")
    for name in (each for each in FILES if each.endswith(".js")):
        assert index.count(f'"{name}"') == 1, name
