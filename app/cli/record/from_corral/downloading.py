"""A dump of a running Corral, as it comes."""

from __future__ import annotations

import http.client
from collections.abc import Iterator

from app.cli.gangs.server import NoAnswer, opened
from app.cli.reach.way import Corral

SECONDS = 60.0  # between two pieces
PIECE_BYTES = 2**18


def downloaded(corral: Corral) -> Iterator[bytes]:
    """What /v1/dump answers, in pieces. Raises: NoAnswer with the reason; NoWay."""
    with opened(corral, ("dump",), {}, seconds=SECONDS) as answer:
        try:
            while piece := answer.read(PIECE_BYTES):
                yield piece
        except (OSError, http.client.HTTPException) as error:
            raise NoAnswer(f"{corral.named}: the dump was cut short: {error!r}") from error
