"""The sources of the release before this one, out of the history of this checkout.

tree = release_before(folder)       # `python -m app` there is that release
"""

from __future__ import annotations

import os
import subprocess
import tarfile
from io import BytesIO
from pathlib import Path

from tests.controlplane.plane import ROOT

GIVEN = "CORRAL_PREVIOUS"  # an environment variable: a commit to take instead
RUNS = ("app", "topology")  # what of a release runs; what it imports beside that is installed
GIT_SECONDS = 60


class NoHistory(Exception):
    """There is no release before this one to be had here; says why."""


def release_before(folder: Path) -> Path:
    """`folder`, with the sources of the release before this one in it. Raises: NoHistory."""
    archive = _git("archive", "--format=tar", commit_before(), *RUNS)
    with tarfile.open(fileobj=BytesIO(archive)) as packed:
        packed.extractall(folder, filter="data")
    return folder


def commit_before() -> str:
    """Which commit that is. Raises: NoHistory.

    The last tag. Until there is one: the last commit that wrote other annotations to pods than
    those that followed it, as these are what one Corral leaves to the next.
    """
    if given := os.environ.get(GIVEN):
        return given
    try:
        return _git("describe", "--tags", "--abbrev=0", "HEAD^").decode().strip()
    except NoHistory:
        pass
    query = ("log", "-1", "--format=%P", "-G", "^WRITTEN = ", "--", "app/dialects/corral.py")
    commit = _git(*query).decode().strip()
    if not commit:
        raise NoHistory("no commit is known before the one that last changed what is written")
    return commit


def _git(*arguments: str) -> bytes:
    """What git says of this checkout. Raises: NoHistory."""
    # The checkout may be another user's, which git asks about.
    command = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), *arguments]
    try:
        ran = subprocess.run(command, capture_output=True, timeout=GIT_SECONDS)
    except FileNotFoundError as error:
        raise NoHistory("git is not installed") from error
    if ran.returncode != 0:
        raise NoHistory(ran.stderr.decode(errors="replace").strip())
    return ran.stdout
