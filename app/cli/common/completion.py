"""Completes `kubectl corral …` for kubectl, which runs `kubectl_complete-corral` for it.

    kubectl corral explain --na<TAB> ──▶ kubectl_complete-corral explain --na ──▶ --namespace
                                                                                  :4

A value a line, then what the shell is to do: 4 means no names of files beside them. The values are
those that typer answers the shell with for `corral` itself.
Source: kubernetes staging/src/k8s.io/kubectl/pkg/cmd/plugin/plugin_completion.go (v1.36).
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Sequence

NO_FILES, FILES = ":4", ":0"
FILE_OPTIONS = ("--kubeconfig", "--settings", "--config", "-f", "--filename", "--snapshot")


def kubectl() -> None:
    """The program `kubectl_complete-corral`: its last argument is the word that is completed."""
    from app.cli import main

    words = ["corral", *(sys.argv[1:] or [""])]
    os.environ |= asking(words)
    with contextlib.suppress(SystemExit):  # typer ends the program once it has answered
        main(prog_name="corral")
    print(FILES if len(words) > 2 and words[-2] in FILE_OPTIONS else NO_FILES)


def asking(words: Sequence[str]) -> dict[str, str]:
    """What a shell sets to have the last of these words completed."""
    return {
        "_CORRAL_COMPLETE": "complete_bash",
        "COMP_WORDS": shlex.join(words[:-1]) + f" {words[-1]}",
        "COMP_CWORD": str(len(words) - 1),
    }
