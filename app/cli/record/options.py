"""What `corral record` may be told, beside what every command has."""

from __future__ import annotations

from typing import Annotated

import typer

Output = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Where it is written, gzipped if it ends in .gz; -: stdout. Example: -o prod.json.gz",
    ),
]
Server = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Record what the Corral knows that answers there, with its journal beside FILE."
        " Example: --server http://127.0.0.1:8888",
    ),
]
FromCorral = Annotated[
    bool,
    typer.Option(
        "--from-corral", help="The same of the cluster's own Corral, by `kubectl port-forward`"
    ),
]
Levels = Annotated[
    str | None,
    typer.Option(
        metavar="KEY,KEY,…",
        help="Labels of nodes to keep beside those that something names."
        " Example: --levels example.com/block,example.com/rack",
    ),
]
Anonymise = Annotated[
    bool,
    typer.Option("--anonymise", help="Give namespaces, nodes, pods and workloads other names"),
]
