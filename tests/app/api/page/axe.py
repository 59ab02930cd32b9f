"""axe-core, fetched from npm once, finds faults of accessibility; too large for the repository.

python -m tests.app.api.page.axe      fetches it, and prints where it is
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

VERSION = "4.14.1"
SHA512 = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "corral"
FILE = CACHE / f"axe-core-{VERSION}.min.js"
SECONDS = 60


class NotFetched(Exception):
    """It is not here, and could not be fetched; the message says why."""


def axe() -> str:
    """Its source. Raises: NotFetched."""
    if not FILE.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        partial = FILE.with_suffix(f".{os.getpid()}")
        partial.write_bytes(_fetched())
        partial.replace(FILE)  # two workers may fetch it at once
    return FILE.read_text(encoding="utf-8")


def _fetched() -> bytes:
    npm = shutil.which("npm")
    if npm is None:
        raise NotFetched("axe-core is fetched by npm, which is not installed")
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "pack", "--silent", f"axe-core@{VERSION}"]
        try:
            subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=SECONDS)
        except (subprocess.SubprocessError, OSError) as error:
            raise NotFetched(f"npm does not fetch axe-core: {error}") from error
        (file,) = Path(folder).glob("axe-core-*.tgz")
        packed = file.read_bytes()
    found = base64.b64encode(hashlib.sha512(packed).digest()).decode()
    if found != SHA512:
        raise ValueError(f"axe-core {VERSION} has the hash {found}, and not {SHA512}")
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        member = archive.extractfile("package/axe.min.js")
        assert member is not None
        return member.read()


if __name__ == "__main__":
    axe()
    print(FILE)
