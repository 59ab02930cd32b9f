"""The page at /ui/: the topology, the gangs, and why one of them waits, in a browser.

The files hold no data: all of it comes from /v1, by the rules of /v1. `page.js` says how they hang
together. Nothing is built and nothing is loaded from elsewhere; the headers below hold the browser
to that, whatever names tenants give to their gangs.
"""

from __future__ import annotations

from importlib.resources import files

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from app.api.http.tagged import Tagged, answer

AT = "/ui/"
MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}
INDEX = "index.html"


def page() -> APIRouter:
    """The routes: the files, and `/` that leads to them."""
    router = APIRouter(include_in_schema=False)
    known = {
        file.name: Tagged.of(file.read_bytes(), MEDIA_TYPES[suffix])
        for file in files(__name__).iterdir()
        if (suffix := f".{file.name.rpartition('.')[2]}") in MEDIA_TYPES
    }

    @router.get("/")
    @router.get(AT.rstrip("/"))
    async def elsewhere() -> Response:
        # Relative to either, so that it is right behind a proxy's prefix as well.
        return RedirectResponse(AT.lstrip("/"))

    @router.get(AT + "{name:path}")
    async def one(request: Request, name: str) -> Response:
        file = known.get(name or INDEX)
        if file is None:
            return Response("no such file", 404, HEADERS, "text/plain")
        found = answer(request, file)
        found.headers.update(HEADERS)
        return found

    return router
