"""What is read of kubeconfig files beside what their loader does: which ones, and where a user is.

Source: kubernetes staging/src/k8s.io/client-go/tools/clientcmd/loader.go (v1.36).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

Contents = Mapping[str, dict[str, Any]]
"""By file, in their order."""


def contents_of(path: str) -> Contents:
    """What the files of a path, or of a list of paths, say: of a list those that exist.

    Raises: FileNotFoundError if there is none; ValueError for one that is no kubeconfig.
    """
    named = [each for each in path.split(os.pathsep) if each]
    files = [each for each in named if Path(each).expanduser().is_file()]
    if not files:
        are_folders = any(Path(each).expanduser().exists() for each in named)
        raise FileNotFoundError("not a file" if are_folders else "no such file")
    contents = dict[str, dict[str, Any]]()
    for each in files:
        content = yaml.safe_load(Path(each).expanduser().read_bytes())
        if not isinstance(content, dict):
            which = f"{each}: " if len(named) > 1 else ""
            raise ValueError(f"{which}it has no clusters, contexts and users")
        contents[each] = content
    return contents


def current_context(contents: Contents) -> str | None:
    """That of the first file which names one, as in kubectl; its loader takes the last one's."""
    found = (each.get("current-context") for each in contents.values())
    return next((each for each in found if each), None)


def namespace_of(path: str, context: str | None = None) -> str:
    """The namespace that a context names, None: the current one; "" where there is none to read.

    What is wrong with a file is said where the rest of it is read.
    """
    try:
        contents = contents_of(path)
        name = context or current_context(contents)
        for content in contents.values():
            for each in content.get("contexts") or ():
                if each["name"] == name:
                    return str((each.get("context") or {}).get("namespace") or "")
    except (OSError, ValueError, LookupError, TypeError, AttributeError, yaml.YAMLError):
        return ""
    return ""
