"""What a running Corral knows, by its /v1/dump: a recording, and a journal with every answer.

    dump ──▶ temporary file ──┬─ mirror ─▶ Recording: nodes and pods as Corral remembers them
                              └─ thinned, renamed, played where answers are missing ─▶ journal

Of nodes a journal has all labels: those that nothing names go. What Corral remembers of pods and
objects is what it needs, but for the templates in the text of an annotation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import IO, Any

import msgspec

from app.cli.record.driver_sets import NAMED, thinned
from app.cli.record.from_corral.manifests import node_manifest, pod_manifest
from app.cli.record.recording import Recording
from app.cli.record.renaming import Names, changed, distinct
from app.state.journal.lines import decoded
from app.state.journal.mirror import mirror
from app.state.journal.rehearse import rehearse

SENTENCES = ("bind_finished", "ungate_finished")  # have messages of the API server
_ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder()

Journal = Callable[[Mapping[str, str] | None], Iterator[bytes]]


def recorded(
    file: IO[bytes], name: str, names: Names, say: Callable[[str], None]
) -> tuple[Recording, Journal]:
    """A recording of what is in a dump, and what makes its journal, renamed or not.

    `file`: the dump, read again until the journal is made. `names` learns all that are in it.
    Raises: DecodeError.
    """
    known = mirror(_lines(file), names.hear)
    recording = Recording(name)
    for node in known.nodes.values():
        recording.add_node(node_manifest(node))
    ended = 0
    for pod in known.pods.values():
        if pod.is_finished:
            ended += 1
        else:
            recording.add_pod(thinned(pod_manifest(pod)))
    recording.notes.append("objects of vocabularies: they are in the journal")
    for number, line in enumerate(_lines(file), start=1):
        said = decoded(_ANY, number, line)
        if not _told_nodes(said):  # whose labels would name themselves
            recording.note_selected(said)
    if known.settings.levels:
        recording.select(known.settings.levels)

    def journal(renamed: Mapping[str, str] | None) -> Iterator[bytes]:
        thinned = (
            _thinned(number, line, recording, renamed)
            for number, line in enumerate(_lines(file), start=1)
        )
        # Where texts are others, so may be what is told of them: the answers are given anew.
        if renamed is None and _has_answers(file) and not _has_driver_sets(file):
            return thinned
        return _answered(thinned, is_beginning=not _has_answers(file), say=say)

    return recording, journal


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    file.seek(0)
    for line in file:  # noqa: UP028 (yield from would close the file with the generator)
        yield line


def _has_answers(file: IO[bytes]) -> bool:
    return any(line.startswith(b'{"line":"out"') for line in _lines(file))


def _has_driver_sets(file: IO[bytes]) -> bool:
    return any(NAMED in line for line in _lines(file))


def _answered(
    lines: Iterable[bytes], *, is_beginning: bool, say: Callable[[str], None]
) -> Iterator[bytes]:
    """The same inputs with the answers that follow from them."""
    written: list[bytes] = []
    rehearse(lines, written.append, note=say, asks=is_beginning)
    yield from written


def _thinned(
    number: int, raw: bytes, recording: Recording, renamed: Mapping[str, str] | None
) -> bytes:
    """A line without labels of nodes that nothing names, and with other names."""
    has_driver_sets = NAMED in raw
    if renamed is None and not has_driver_sets and b'"Node"' not in raw:
        return raw
    line = decoded(_ANY, number, raw)
    if has_driver_sets:
        line = thinned(line)
    for node in _told_nodes(line):
        node["labels"] = {
            key: text for key, text in node["labels"].items() if recording.keeps_label(key)
        }
    if renamed is not None and line.get("line") == "in":
        line["args"] = changed(line["args"], distinct(renamed))
        if line["call"] in SENTENCES and isinstance(line["args"][1], dict):
            line["args"][1]["sentence"] = "…"
    return msgspec.json.encode(line) + b"\n"


def _told_nodes(line: Any) -> list[Any]:
    """The records of nodes in a line."""
    if line.get("call") != "apply" or line["args"][0][1] != "Node":
        return []
    told = line["args"][0][2]
    return told if isinstance(told, list) else [told]
