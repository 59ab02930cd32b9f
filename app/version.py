"""Which Corral this is: the version that pyproject.toml says, and what the image was built from."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from importlib.metadata import version

COMMIT = "CORRAL_COMMIT"  # an environment variable that deploy/Dockerfile sets
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Build:
    """What is said of a program where it is asked which one it is."""

    version: str
    commit: str
    """Of git; `unknown` outside an image that was built with one."""
    python: str


def this_build() -> Build:
    """Of this process."""
    return Build(version("corral"), os.environ.get(COMMIT) or UNKNOWN, platform.python_version())
