"""A dump of a running Corral, as it comes."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from app.errors import CorralError

SECONDS = 60.0  # between two pieces
PIECE_BYTES = 2**18
MOST_ERROR_BYTES = 2**16

# A proxy for the internet has no way to a loopback address.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class NoDump(CorralError):
    """Corral refused, could not be reached, or was cut off."""


def downloaded(server: str) -> Iterator[bytes]:
    """What /v1/dump answers, in pieces. Raises: NoDump with the reason."""
    if urlsplit(server).scheme not in ("http", "https"):
        raise NoDump(f"--server {server}: no http:// or https:// address")
    try:
        with _OPENER.open(f"{server.rstrip('/')}/v1/dump", timeout=SECONDS) as answer:
            while piece := answer.read(PIECE_BYTES):
                yield piece
    except urllib.error.HTTPError as error:
        raise NoDump(f"{server}: {_detail(error)}") from error
    except urllib.error.URLError as error:
        raise NoDump(
            f"{server} does not answer: {error.reason}; in a cluster, first:"
            " kubectl port-forward -n corral-system deployment/corral 8888"
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise NoDump(f"{server}: the dump was cut short: {error!r}") from error


def _detail(error: urllib.error.HTTPError) -> str:
    """Why Corral refused, in its own words where it has any."""
    try:
        detail: Any = json.loads(error.read(MOST_ERROR_BYTES))["detail"]
    except (OSError, ValueError, KeyError, TypeError):
        return f"HTTP {error.code} {error.reason}"
    return str(detail)
