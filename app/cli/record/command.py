"""`corral record`: what it does, and what its exit code means."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

import typer

from app.cli.common import options
from app.cli.record import options as its

if TYPE_CHECKING:
    from app.cli.reach.way import Asked
    from app.cli.record.from_corral.dumped import Journal
    from app.cli.record.recording import Recording
    from app.cli.record.renaming import Names

FILE = "cluster-snapshot.json.gz"
RECORDED = "recorded"  # what a cluster is called whose name is not known, or not to be said


def record(
    given: typer.Context,
    file: its.Output = FILE,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
    server: its.Server = None,
    from_corral: its.FromCorral = False,
    levels: its.Levels = None,
    anonymise: its.Anonymise = False,
) -> None:
    """Record a cluster as a cluster-snapshot/v1, with nothing that scheduling does not need.

    Without --server or --from-corral the API server alone is asked. README lists what is in the
    file, which `corral sandbox --snapshot` opens.

    \b
    Examples:
      corral record -o cluster.json.gz --context prod
      corral record -o incident.json.gz --server http://127.0.0.1:8888 --anonymise

    \b
    Exit code 0: it is recorded
              1: the cluster, or Corral, did not answer
              2: wrong options, or a file that cannot be written
    """
    import tempfile

    from app.cli.common.options import failures, note, usage
    from app.cli.reach.way import Asked
    from app.cli.record.recording import STDOUT, is_device, require_place, write
    from app.cli.record.renaming import names_in, renaming
    from app.cli.topology.options import given_levels

    if server is not None and (context is not None or from_corral):
        other = "--context" if context is not None else "--from-corral"
        raise usage(f"--server and {other} both name where to read")
    keys = given_levels(levels)
    with failures(), tempfile.TemporaryFile() as dump:
        require_place(file)
        if server is None and not from_corral:
            recording, journal = _from_cluster(kubeconfig, context), None
            names = names_in(recording) if anonymise else None
            if anonymise:
                recording.name = RECORDED
        else:
            # $KUBECONFIG is kubectl's to read; a token of it is for no address of --server.
            is_flag = options.is_flag(given, "kubeconfig")
            asked = Asked(server or "", context or "", (is_flag and kubeconfig) or "")
            recording, journal, names = _from_corral(asked, dump)
        recording.select(keys)
        renamed = names.renamed() if anonymise and names else None
        write(file, recording.pieces(renaming(renamed) if renamed else None))
        counts = f"{len(recording.nodes)} nodes, {len(recording.pods)} pods"
        if journal is None:
            note(f"{file}: {counts}, {len(recording.objects)} objects")
            return
        # A Corral keeps what it has read of an object, not the object.
        note(f"{file}: {counts}; Jobs, PodGroups and other objects are in the journal alone")
        if file != STDOUT and not is_device(file):
            where = journal_beside(file)
            write(where, journal(renamed))
            note(f"{where}: for corral replay")


def journal_beside(file: str) -> str:
    """Where the journal of a recording is written."""
    stem = file.removesuffix(".gz").removesuffix(".json")
    return f"{stem}.journal{'.gz' if file.endswith('.gz') else ''}"


def _from_cluster(kubeconfig: str | None, context: str | None) -> Recording:
    """Raises: ApiError, DecodeError, SettingsError."""
    import asyncio

    from app.cli.common.api_server import connected
    from app.cli.common.options import note
    from app.cli.record.reading import record

    async def read() -> Recording:
        transport = await connected(kubeconfig, context)
        try:
            return await record(transport, context or RECORDED, note)
        finally:
            await transport.close()

    return asyncio.run(read())


def _from_corral(asked: Asked, dump: IO[bytes]) -> tuple[Recording, Journal, Names]:
    """Raises: NoAnswer, NoWay, DecodeError, OSError, SettingsError."""
    from app.cli.common.options import note
    from app.cli.reach.way import Corral
    from app.cli.record.from_corral.downloading import downloaded
    from app.cli.record.from_corral.dumped import recorded
    from app.cli.record.renaming import Names

    corral = Corral(asked)
    try:
        for piece in downloaded(corral):
            dump.write(piece)
    finally:
        corral.close()
    names = Names()
    return *recorded(dump, "dumped", names, note), names
