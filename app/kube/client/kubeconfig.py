"""What is read of kubeconfig files beside what their loader does: which ones, and where a user is.

Source: kubernetes staging/src/k8s.io/client-go/tools/clientcmd/loader.go (v1.36).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml


def files_of(path: str) -> list[str]:
    """The files that a path or a list of paths names; of a list those that exist, as kubectl does.

    Raises: FileNotFoundError if there is none; ValueError for one that is no kubeconfig.
    """
    named = [each for each in path.split(os.pathsep) if each]
    files = [each for each in named if Path(each).expanduser().is_file()]
    if not files:
        are_folders = any(Path(each).expanduser().exists() for each in named)
        raise FileNotFoundError("not a file" if are_folders else "no such file")
    for each in files:
        if not isinstance(_content(each), dict):
            which = f"{each}: " if len(named) > 1 else ""
            raise ValueError(f"{which}it has no clusters, contexts and users")
    return files


def current_context(files: list[str]) -> str | None:
    """That of the first file which names one, as in kubectl; its loader takes the last one's."""
    found = (_content(each).get("current-context") for each in files)
    return next((each for each in found if each), None)


def namespace_of(path: str, context: str | None = None) -> str:
    """The namespace that a context names, None: the current one; "" where there is none to read.

    What is wrong with a file is said where the rest of it is read.
    """
    try:
        files = files_of(path)
        name = context or current_context(files)
        for file in files:
            for each in _content(file).get("contexts") or ():
                if each["name"] == name:
                    return str((each.get("context") or {}).get("namespace") or "")
    except (OSError, ValueError, LookupError, TypeError, AttributeError, yaml.YAMLError):
        return ""
    return ""


def _content(file: str) -> Any:
    return yaml.safe_load(Path(file).expanduser().read_bytes())
