"""`corral doctor`: its options, and what its exit code means."""

from __future__ import annotations

from typing import Annotated

import typer

ERRORS = 1
USAGE_ERROR = 2
TABLE = "table"
SIDECAR = "sidecar"


def doctor(
    config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="kube-scheduler's configuration, or a ConfigMap that has it; -: stdin; none: that"
            " of the Deployment. Example: --config /etc/kubernetes/scheduler-config.yaml",
        ),
    ] = None,
    settings: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Corral's settings; none: those of the Deployment."
            " Example: --settings corral-settings.yaml",
        ),
    ] = None,
    kubeconfig: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            envvar="KUBECONFIG",
            help="How to reach the cluster; none: ~/.kube/config, else in-cluster."
            " Example: --kubeconfig admin.conf",
        ),
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Of the kubeconfig; none: its current one. Example: --context prod",
        ),
    ] = None,
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace",
            "-n",
            metavar="NAMESPACE",
            help="Where Corral is installed. Example: -n gang-scheduling",
        ),
    ] = "corral-system",
    cluster: Annotated[
        bool,
        typer.Option(
            help="Read the cluster, not the files alone. Example: --no-cluster --config FILE"
        ),
    ] = True,
    canary: Annotated[
        bool,
        typer.Option(
            help="Have the API server try a pod of a gang, which is not stored (dryRun=All)."
            " Example: --canary --canary-namespace team-a"
        ),
    ] = False,
    canary_namespace: Annotated[
        str,
        typer.Option(
            metavar="NAMESPACE", help="Of that pod. Example: --canary --canary-namespace team-a"
        ),
    ] = "default",
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="table|json|yaml", help="How it is written. Example: -o json"
        ),
    ] = TABLE,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Exit code 1 for warnings, too. Example: --strict -o json"),
    ] = False,
    write_config: Annotated[
        str | None,
        typer.Option(
            metavar="MINOR",
            help="Write a right KubeSchedulerConfiguration for this kube-scheduler, and check"
            " nothing. Example: --write-config 1.36 > config.yaml",
        ),
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            metavar="sidecar|beside",
            help="With --write-config: Corral is in kube-scheduler's pod [sidecar], or reached over"
            " TLS. Example: --write-config 1.36 --mode beside",
        ),
    ] = None,
) -> None:
    """Find what is wrong with an installation, and say what mends it. Nothing is changed.

    Exit code 0: no error; warnings are said, and count with --strict. 1: an error, or the cluster
    cannot be read. 2: wrong options, or a file that cannot be read.
    """
    from app.cli.doctor import checks, rendering
    from app.cli.doctor.findings import worst
    from app.cli.doctor.reading import Asked, read
    from app.cli.topology.options import failures, usage

    if write_config is not None:
        typer.echo(_written(write_config, mode), nl=False)
        return
    if mode is not None:
        raise usage("--mode goes with --write-config only")
    if output not in rendering.OUTPUTS:
        raise usage(f"--output: {output!r} is not one of {', '.join(rendering.OUTPUTS)}")
    if (config, settings) == ("-", "-"):
        raise usage("only one file can be stdin (-)")
    if canary and not cluster:
        raise usage("--canary needs a cluster, and --no-cluster leaves it out")
    try_in = canary_namespace if canary else ""
    asked = Asked(config, settings, kubeconfig, context, namespace, cluster, try_in)
    with failures():
        seen = read(asked)
    findings = list(checks.run(seen))
    typer.echo(rendering.rendered(findings, output))
    if worst(findings) in (("error", "warning") if strict else ("error",)):
        raise typer.Exit(ERRORS)


def _written(minor: str, mode: str | None) -> str:
    """Raises: typer.Exit."""
    from app.cli.doctor import shipped
    from app.cli.topology.options import usage

    mode = mode or SIDECAR
    if minor not in shipped.minors():
        raise usage(f"--write-config: {minor!r} is not one of {', '.join(shipped.minors())}")
    if mode not in shipped.MODES:
        raise usage(f"--mode: {mode!r} is not one of {', '.join(shipped.MODES)}")
    return shipped.scheduler_config(minor, mode)
