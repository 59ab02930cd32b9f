"""Log lines as one JSON object each, on stderr; stdout stays free for a command's own output."""

from __future__ import annotations

import logging
import sys

import orjson
import structlog


def log_to_stderr(level: str) -> None:
    """Set up structlog, and send what libraries log through the standard module there too."""
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            # Never the locals of a frame: they hold tokens, and pods of other people.
            structlog.processors.ExceptionRenderer(
                structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
            ),
            structlog.processors.JSONRenderer(serializer=_dumped),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(level=max(number, logging.WARNING), stream=sys.stderr, force=True)


def _dumped(line: object, **_: object) -> str:
    # Text from users may hold what UTF-8 cannot say; a log line must never fail.
    return orjson.dumps(line, default=repr).decode()
