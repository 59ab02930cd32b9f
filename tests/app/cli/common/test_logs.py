"""What a log line may not hold."""

from __future__ import annotations

import json
import subprocess
import sys

PROGRAM = """
import structlog
from app.cli.common.logs import log_to_stderr

log_to_stderr("info")

def fails():
    token = "Bearer of-a-secret"
    raise ValueError("no such thing")

try:
    fails()
except ValueError:
    structlog.get_logger().exception("verb", verb="filter")
"""


def test_an_exception_is_logged_without_the_locals_of_its_frames():
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=30, check=True
    )
    line = json.loads(ran.stderr)
    assert (line["event"], line["verb"], line["level"]) == ("verb", "filter", "error")
    assert line["exception"][0]["exc_value"] == "no such thing"
    assert "of-a-secret" not in ran.stderr
