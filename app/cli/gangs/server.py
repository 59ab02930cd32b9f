"""Asks a running Corral over /v1."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any

from app.errors import CorralError

SECONDS = 30.0  # an explanation may take some, and wait for others
MOST_BYTES = 64 * 1024 * 1024
MOST_PAGES = 1_000

# A proxy for the internet has no way to a loopback address.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class NoAnswer(CorralError):
    """Corral refused, or could not be reached."""


def ask(server: str, *path: str, **query: str) -> Any:
    """What /v1 answers. Raises: NoAnswer with the reason."""
    where = "/".join(urllib.parse.quote(part, safe="") for part in path)
    asked = {key: value for key, value in query.items() if value}
    url = f"{server.rstrip('/')}/v1/{where}"
    if asked:
        url = f"{url}?{urllib.parse.urlencode(asked)}"
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise NoAnswer(f"--server {server}: no http:// or https:// address")
    try:
        with _OPENER.open(url, timeout=SECONDS) as answer:
            return json.loads(answer.read(MOST_BYTES))
    except urllib.error.HTTPError as error:
        raise NoAnswer(_detail(error)) from error
    except urllib.error.URLError as error:
        raise NoAnswer(
            f"{server} does not answer: {error.reason}; in a cluster, first:"
            " kubectl port-forward -n corral-system deployment/corral 8888"
        ) from error
    except (OSError, ValueError) as error:
        raise NoAnswer(f"{server}: {error}") from error


def gangs(server: str, **query: str) -> Iterator[dict[str, Any]]:
    """Every gang of a list, page by page. Raises: NoAnswer."""
    after = ""
    for _ in range(MOST_PAGES):
        page = ask(server, "gangs", after=after, **query)
        yield from page["gangs"]
        after = page["next"]
        if not after:
            return


def _detail(error: urllib.error.HTTPError) -> str:
    """Why Corral refused, in its own words where it has any."""
    try:
        detail = json.loads(error.read(MOST_BYTES))["detail"]
    except (OSError, ValueError, KeyError, TypeError):
        return f"HTTP {error.code} {error.reason}"
    if isinstance(detail, str):
        return detail
    if isinstance(detail, dict):
        return f"{detail['message']} ({detail['reason']}); to do: {detail['advice']}"
    return "; ".join(f"{each['loc'][-1]}: {each['msg']}" for each in detail)
