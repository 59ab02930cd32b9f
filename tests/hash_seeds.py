"""What a script prints in two processes in which strings hash differently."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HASH_SEEDS = ("1", "2")
# Of one process. The longest script takes 7 s of CPU; a machine on which that many processes share
# a core that it takes forty times as long is not told from one that hangs.
SECONDS = 300.0

patient = pytest.mark.timeout(len(HASH_SEEDS) * SECONDS + 60.0)
"""For tests that call `printed`: pytest's own time limit is shorter."""


def printed(code: str) -> list[str]:
    """The output under each hash seed. Raises: CalledProcessError; TimeoutExpired."""
    return [
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
            timeout=SECONDS,
            check=True,
        ).stdout
        for seed in HASH_SEEDS
    ]
