"""What `corral replay` may be told, beside what every command has; most of it is about a load."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="A journal, of corral serve --journal or of corral record, - for stdin; with --load"
        " also a cluster-snapshot/v1",
    ),
]
Check = Annotated[
    bool, typer.Option("--check", help="Say whether the journal shows every promise kept")
]
Load = Annotated[
    float | None,
    typer.Option(
        metavar="PODS_PER_SECOND",
        min=0.1,
        max=10_000.0,
        help="Bring the pods of a cluster-snapshot/v1 at this rate, as a load test",
    ),
]
Seconds = Annotated[
    float, typer.Option(min=1.0, max=3_600.0, help="With --load: for so long at most")
]
Overlay = Annotated[
    str, typer.Option(metavar="NAME", help="With --load: topology, from the file beside FILE")
]
Levels = Annotated[
    str | None,
    typer.Option(
        metavar="KEY,KEY,…",
        help="With --load: node labels, widest first, or a preset; none: those of the journal, or"
        " those of a sandbox's nodes",
    ),
]
Gangs = Annotated[
    float,
    typer.Option(min=0.0, max=1.0, help="With --load: the share of the pods that form gangs"),
]
GangSize = Annotated[
    int, typer.Option(metavar="PODS", min=2, max=10_000, help="With --load: of such a gang")
]
InFlight = Annotated[
    int,
    typer.Option(
        metavar="PODS", min=1, max=16_000, help="With --load: more at one time are not sent"
    ),
]
Server = Annotated[
    str,
    typer.Option(
        metavar="URL", help="With --load: a Corral that runs; none: one in a sandbox of its own"
    ),
]
Bind = Annotated[
    bool,
    typer.Option("--bind", help="With --server: ask /bind too, which binds pods of the file"),
]
