"""A kubeconfig for the sandbox, as kubectl and every client library reads it."""

from __future__ import annotations

from pathlib import Path

import yaml


def write(path: Path, *, url: str, token: str) -> None:
    """Write the file, readable by its owner only: it holds the token."""
    name = "corral-sandbox"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": url}}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(content, sort_keys=False))
