"""The files of a checkout that `corral doctor` reads: scheduler-config/, and of deploy/ two.

There is one copy of each. A wheel has them in the package, where pyproject.toml puts them; in a
checkout, also one that is installed with `pip install -e`, they are where they always are.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2]
IN_WHEEL, CHECKOUT = PACKAGE / "shipped", PACKAGE.parent
# How Corral is reached -> what the name of the file ends with.
MODES: Mapping[str, str] = {
    **{"sidecar": "", "beside": "-mtls"},
    **{"marker": "-marker", "beside-marker": "-mtls-marker"},
}


def read(file: str) -> str:
    """A file that is shipped, by its path in a checkout."""
    return _folder(file).read_text(encoding="utf-8")


def minors() -> tuple[str, ...]:
    """The minor versions there is a configuration for, such as "1.36"; oldest first."""
    files = _folder("scheduler-config").glob("*.yaml")
    found = {file.stem.partition("-")[0] for file in files}
    return tuple(sorted(found, key=lambda name: [int(part) for part in name.split(".")]))


def scheduler_config(minor: str, mode: str) -> str:
    """The KubeSchedulerConfiguration for a minor version, comments and all."""
    return read(f"scheduler-config/{minor}{MODES[mode]}.yaml")


def _folder(path: str) -> Path:
    in_wheel = IN_WHEEL / path
    return in_wheel if in_wheel.exists() else CHECKOUT / path
