"""`corral audit` as a user runs it, against a sandbox that has what a test puts there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from typer.testing import CliRunner, Result

from app.cli import main
from app.sandbox import Sandbox
from app.sandbox.apiserver.storage.kinds import DEFINITION
from tests.app.cli.audit.planted import definitions
from tests.cluster import Object


def put(cluster: Sandbox, objects: Iterable[Object]) -> None:
    """Store objects as they are, pods with their nodes."""
    for each in objects:
        kind = next(
            one
            for one in cluster.registry.kinds
            if (one.api_version, one.name) == (each["apiVersion"], each["kind"])
        )
        cluster.registry.adopt(kind, each)


def serve_all_kinds(cluster: Sandbox) -> None:
    """Have the API server serve the kinds of every vocabulary."""
    for each in definitions():
        cluster.registry.create(DEFINITION, "", each)


async def audit(cluster: Sandbox, folder: Path, *options: str, namespace: str = "") -> Result:
    """Run the command; it has an event loop of its own. `namespace`: that of the context."""
    kubeconfig = folder / "kubeconfig"
    cluster.write_kubeconfig(kubeconfig)
    if namespace:
        content = yaml.safe_load(kubeconfig.read_text())
        content["contexts"][0]["context"]["namespace"] = namespace
        kubeconfig.write_text(yaml.safe_dump(content))
    arguments = ["audit", "--kubeconfig", str(kubeconfig), *options]
    return await asyncio.to_thread(CliRunner().invoke, main, arguments)


async def verdicts(cluster: Sandbox, folder: Path, *options: str) -> list[dict[str, Any]]:
    """What it says with -o json."""
    ran = await audit(cluster, folder, "-A", "-o", "json", *options)
    assert ran.exit_code in (0, 1, 3), ran.output
    found: list[dict[str, Any]] = json.loads(ran.stdout)["verdicts"]
    return found
