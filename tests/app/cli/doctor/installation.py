"""A right installation as `corral doctor` would read it: what deploy/ and scheduler-config/ ship.

edited(CONFIG, ("extenders", 0, "ignorable"), True)   the document with one value changed
found(replace(right(), config=…))                     what is wrong with it, by check
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import yaml

from app.cli.doctor import checks, shipped
from app.cli.doctor.configuration import config_in
from app.cli.doctor.findings import Finding, worst
from app.cli.doctor.seen import Seen

ROOT = Path(__file__).resolve().parents[4]
CONFIG = yaml.safe_load((ROOT / "scheduler-config" / "1.36.yaml").read_text(encoding="utf-8"))
BESIDE = yaml.safe_load((ROOT / "scheduler-config" / "1.36-mtls.yaml").read_text(encoding="utf-8"))
ABSENT = object()


def edited(document: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """The document with another value at a path, or without it."""
    changed = copy.deepcopy(document)
    inner = changed
    for step in path[:-1]:
        inner = inner[step]
    if value is ABSENT:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return changed


def config_from(document: Any) -> Any:
    """As it is read."""
    return config_in(yaml.safe_dump(document), "the configuration")


def right() -> Seen:
    """Everything as it is shipped."""
    return Seen(config=config_from(CONFIG), shipped=shipped.minors())


def findings(seen: Seen) -> list[Finding]:
    """Those that are not ok, and were made."""
    return [each for each in checks.run(seen) if each.level in ("warning", "error")]


def found(seen: Seen) -> dict[str, str]:
    """Check -> the most serious level of what it has found."""
    levels: dict[str, list[Finding]] = {}
    for each in findings(seen):
        levels.setdefault(each.check, []).append(each)
    return {check: worst(each) for check, each in levels.items()}
