"""Asks a running Corral over /v1."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from app.cli.reach.way import Asked, Corral
from app.errors import CorralError
from app.version import Build

SECONDS = 30.0  # an explanation may take some, and wait for others
MOST_BYTES = 64 * 1024 * 1024
MOST_PAGES = 1_000

INVALID = 422  # the HTTP status for what cannot be read
TOO_LARGE = 413

Query = Mapping[str, str | Sequence[str]]


class NoAnswer(CorralError):
    """Corral could not be reached, or refused."""


class Refused(NoAnswer):
    """Corral answered, and said no; carries the HTTP status."""

    def __init__(self, status: int, why: str) -> None:
        self.status = status
        super().__init__(why)


def ask(corral: Corral | str, *path: str, has: str, **query: str | Sequence[str]) -> Any:
    """What /v1 answers: an object that has this field. `corral`: the way, or an address.

    Raises: NoAnswer with the reason.
    """
    return _answer(corral, path, query, has)


def post(
    corral: Corral | str, *path: str, body: bytes, has: str, **query: str | Sequence[str]
) -> Any:
    """What /v1 answers to objects, YAML or JSON. Raises: NoAnswer with the reason."""
    return _answer(corral, path, query, has, body)


def version_of(corral: Corral) -> dict[str, str]:
    """Which Corral runs there. Raises: NoAnswer with the reason."""
    try:
        found = _read(corral, opened(corral, ("version",), {}, under="/", seconds=SECONDS))
        return {each.name: str(found[each.name]) for each in fields(Build)}
    except Refused as error:
        raise Refused(
            error.status, f"{corral.named} does not say its version: HTTP {error.status}"
        ) from error
    except (KeyError, TypeError) as error:
        raise NoAnswer(f"{corral.named} is no Corral: it says another kind of version") from error


def gangs(corral: Corral | str, **query: str) -> Iterator[dict[str, Any]]:
    """Every gang of a list, page by page. Raises: NoAnswer."""
    after = ""
    for _ in range(MOST_PAGES):
        page = ask(corral, "gangs", has="gangs", after=after, **query)
        yield from page["gangs"]
        after = page["next"]
        if not after:
            return


def opened(
    corral: Corral,
    path: Sequence[str],
    query: Query,
    *,
    body: bytes | None = None,
    under: str = "/v1/",
    seconds: float,
) -> http.client.HTTPResponse:
    """The answer, to be read; `seconds` is how long it may be silent. Raises: NoAnswer; NoWay."""
    where = under + "/".join(urllib.parse.quote(part, safe="") for part in path)
    asked = {key: value for key, value in query.items() if value}
    if asked:
        where = f"{where}?{urllib.parse.urlencode(asked, doseq=True)}"
    headers = {} if body is None else {"Content-Type": "application/yaml"}
    try:
        return corral.open(where, body=body, headers=headers, timeout=seconds)
    except urllib.error.HTTPError as error:
        with error:  # it holds the connection
            raise Refused(error.code, _detail(corral, error)) from error
    except urllib.error.URLError as error:
        raise NoAnswer(f"{corral.named} does not answer: {error.reason}; {corral.hint}") from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise NoAnswer(f"{corral.named}: {error}") from error


def _answer(
    corral: Corral | str, path: Sequence[str], query: Query, has: str, body: bytes | None = None
) -> Any:
    way = Corral(Asked(corral)) if isinstance(corral, str) else corral
    found = _read(way, opened(way, path, query, body=body, seconds=SECONDS))
    if not isinstance(found, dict) or has not in found:
        raise NoAnswer(
            f"{way.named} is no Corral, or another version of it: it answers without `{has}`"
        )
    return found


def _read(way: Corral, answer: http.client.HTTPResponse) -> Any:
    with answer:
        try:
            return json.loads(answer.read(MOST_BYTES))
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise NoAnswer(f"{way.named}: {error}") from error


def _detail(corral: Corral, error: urllib.error.HTTPError) -> str:
    """Why Corral refused, in its own words where it has any."""
    try:
        detail = json.loads(error.read(MOST_BYTES))["detail"]
    except (OSError, ValueError, KeyError, TypeError):
        return f"{corral.named} answers HTTP {error.code} {error.reason}"
    if isinstance(detail, str):
        return detail
    if isinstance(detail, dict):
        return f"{detail['message']} ({detail['reason']}); to do: {detail['advice']}"
    return "; ".join(f"{each['loc'][-1]}: {each['msg']}" for each in detail)
