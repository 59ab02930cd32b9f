"""`corral sandbox`: a cluster in one process to try things on, with kubectl as well."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def sandbox(
    nodes: Annotated[
        int, typer.Option(metavar="N", min=0, help="Make a synthetic cluster of N nodes")
    ] = 0,
    snapshot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Load a recorded cluster-snapshot/v1")
    ] = None,
    overlay: Annotated[
        str, typer.Option(metavar="NAME", help="Its topology, from the overlay file beside it")
    ] = "",
    load: Annotated[
        float | None, typer.Option(metavar="SHARE", min=0.0, max=1.0, help="How full it is")
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides names, ties and the synthetic load")] = 0,
    api_listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where the API is; port 0: any free one")
    ] = "127.0.0.1:0",
    kubeconfig: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a kubeconfig there")
    ] = None,
    extender: Annotated[
        str, typer.Option(metavar="URL", help="The scheduler calls this extender")
    ] = "",
    scheduler_config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A KubeSchedulerConfiguration instead")
    ] = None,
) -> None:
    """Run an API server and a scheduler in one process until Ctrl-C, no containers.

    \b
    Examples:
      corral sandbox --nodes 64 --kubeconfig sandbox.conf
      corral sandbox --snapshot cluster.json.gz --extender http://127.0.0.1:8888

    \b
    Exit code 0: a signal ended it
              2: wrong options, or a file that cannot be used
    """
    from app.cli.common.options import said_of, usage
    from app.cli.common.until_signal import run_until_signal
    from app.sandbox.cluster.run import InvalidOptions, RunOptions, run
    from app.sandbox.cluster.snapshot import InvalidSnapshot
    from app.sandbox.scheduler.facts.scheduler_config import InvalidConfig

    options = RunOptions(
        snapshot=snapshot,
        overlay=overlay,
        nodes=nodes,
        load=load,
        seed=seed,
        api_listen=api_listen,
        kubeconfig=kubeconfig,
        extender=extender,
        scheduler_config=scheduler_config,
    )
    try:
        run_until_signal(run(options, say=typer.echo))
    except (InvalidOptions, InvalidSnapshot, InvalidConfig) as error:
        raise usage(str(error)) from error
    except OSError as error:
        raise usage(said_of(error)) from error
