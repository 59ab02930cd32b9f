"""What `corral demo` tells the reader to type next: from a gang that waits to the same gang bound.

    which gangs wait ─▶ why this one does ─▶ would the change do? ─▶ make it ─▶ it runs

The change is one that Corral's own explanation names. Every line works as it is printed.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app.cli.showcase import Showpiece

INDENT = "    "  # of every line to type, and of no other


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the demo's parts are; `folder` holds the files that its lines name."""

    corral: str
    api: str
    kubeconfig: Path
    folder: Path


@dataclass(frozen=True, slots=True)
class Change:
    """A showpiece made so that it fits, and what is different about it."""

    piece: Showpiece
    words: str


def change_for(piece: Showpiece, relaxations: Sequence[Mapping[str, Any]]) -> Change | None:
    """The piece as the first of these would have it; None: none of them is about its manifest."""
    for each in relaxations:
        match each["kind"]:
            case "WiderLevel" if each["level"]:
                wider = replace(piece, level=each["level"])
                return Change(wider, f"requires one {each['level']}")
            case "WiderLevel":
                return Change(replace(piece, mode="unconstrained", level=""), "requires no level")
            case "FewerPods" if each["pods"]:
                return Change(replace(piece, pods=each["pods"]), f"has {each['pods']} pods")
    return None


def lines(
    at: Addresses, piece: Showpiece, explanation: Mapping[str, Any] | None, scheduler: str
) -> Iterator[str]:
    """The steps, with the lines to type indented; the manifests that they name are written.

    `explanation`: what Corral says of the piece; None: it does not wait.
    """
    waits = "" if explanation is None else f", where a click on {piece.name} says why it waits"
    yield f"The cluster stays up until Ctrl-C here. Its page{waits}: {at.corral}/ui/"
    yield ""
    yield "Type in another terminal:"
    yield ""
    if not _is_on_path():
        yield f'{INDENT}export PATH={shlex.quote(str(_programs()))}:"$PATH"'
    yield f"{INDENT}export CORRAL_SERVER={at.corral}"
    yield ""
    if explanation is None:
        yield f"{INDENT}corral gangs"
        return
    yield f'1. Which gangs wait, why {piece.name} does, and what would let it start ("What helps"):'
    yield ""
    yield f"{INDENT}corral gangs --phase waiting"
    yield f"{INDENT}corral explain {piece.name}"
    yield ""
    change = change_for(piece, explanation["relaxations"])
    if change is None:
        yield "No change of its manifest helps in a cluster this full: try a smaller --load."
        return
    yield from _changing(at, piece, change, scheduler)
    yield ""
    yield "3. It runs, and where its pods are:"
    yield ""
    yield f"{INDENT}corral explain {piece.name}"
    yield f"{INDENT}{_get_pods(at, piece)}"


def _changing(at: Addresses, piece: Showpiece, change: Change, scheduler: str) -> Iterator[str]:
    before = _written(at.folder / f"{piece.name}.json", piece, scheduler)
    after = _written(at.folder / f"{piece.name}-changed.json", change.piece, scheduler)
    yield f"2. Make one of these changes: in {after.name} the Job {change.words}."
    yield "   See the difference, ask whether it would fit, and replace the Job:"
    yield ""
    yield f"{INDENT}diff {_quoted(before)} {_quoted(after)}"
    yield f"{INDENT}corral simulate -f {_quoted(after)}"
    for line in _replacing(at, piece, after):
        yield f"{INDENT}{line}"


def _written(file: Path, piece: Showpiece, scheduler: str) -> Path:
    (job,) = piece.objects(scheduler)
    file.write_text(json.dumps(job, indent=2) + "\n", encoding="utf-8")
    return file


def _replacing(at: Addresses, piece: Showpiece, manifest: Path) -> Iterator[str]:
    if _has_kubectl():
        # The sandbox serves no OpenAPI to validate against.
        yield f"{_kubectl(at)} replace --force --validate=false -f {_quoted(manifest)}"
        return
    jobs = f"{at.api}/apis/batch/v1/namespaces/default/jobs"
    shown = "curl -sS -o /dev/null -w '%{http_code}\\n'"
    yield f"{shown} -X DELETE {jobs}/{piece.name}"
    yield f"{shown} -H 'Content-Type: application/json' -d @{_quoted(manifest)} {jobs}"


def _get_pods(at: Addresses, piece: Showpiece) -> str:
    if _has_kubectl():
        columns = "custom-columns=POD:.metadata.name,NODE:.spec.nodeName"
        return f"{_kubectl(at)} get pods -l corral-demo={piece.name} -o {columns}"
    pods = f"{at.api}/api/v1/namespaces/default/pods?labelSelector=corral-demo={piece.name}"
    return f'curl -sS {shlex.quote(pods)} | grep -o \'"nodeName":"[^"]*"\''


def _kubectl(at: Addresses) -> str:
    return f"kubectl --kubeconfig {_quoted(at.kubeconfig)}"


def _has_kubectl() -> bool:
    return shutil.which("kubectl") is not None


def _programs() -> Path:
    """Where this environment has its programs; `deploy/demo.sh` makes one that is on no PATH."""
    return Path(sys.executable).parent


def _is_on_path() -> bool:
    found = shutil.which("corral")
    return found is not None and Path(found).parent == _programs()


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
