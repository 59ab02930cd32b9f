"""`corral doctor`: what it does with its options, and what its exit code means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from app.cli.common.options import (
    FAILED,
    Context,
    Kubeconfig,
    Output,
    Written,
    failures,
    usage,
    write,
)
from app.cli.doctor import options

if TYPE_CHECKING:
    from app.cli.doctor.findings import Finding

SIDECAR = "sidecar"


def doctor(
    config: options.Config = None,
    settings: options.SettingsFile = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    namespace: options.Namespace = "corral-system",
    cluster: options.Cluster = True,
    canary: options.Canary = False,
    canary_namespace: options.CanaryNamespace = "default",
    output: Written = Output.TABLE,
    strict: options.Strict = False,
    write_config: options.WriteConfig = None,
    mode: options.Mode = None,
) -> None:
    """Find what is wrong with an installation, and say what mends it. Nothing is changed.

    Warnings are said, and count with --strict alone. -o name writes the checks that found
    something.

    \b
    Examples:
      corral doctor
      corral doctor --no-cluster --config scheduler-config.yaml --settings corral-settings.yaml
      corral doctor --canary --canary-namespace team-a -o json
      corral doctor --write-config 1.36 > scheduler-config.yaml

    \b
    Exit code 0: no error
              1: an error, or the cluster cannot be read, or nothing could be checked
              2: wrong options, or a file that cannot be read
    """
    from app.cli.doctor import checks
    from app.cli.doctor.findings import worst
    from app.cli.doctor.reading import Asked, read

    if write_config is not None:
        typer.echo(_written(write_config, mode), nl=False)
        return
    if mode is not None:
        raise usage("--mode goes with --write-config only")
    if (config, settings) == ("-", "-"):
        raise usage("only one file can be stdin (-)")
    if canary and not cluster:
        raise usage("--canary needs a cluster, and --no-cluster leaves it out")
    if not (cluster or config or settings):
        raise usage("--no-cluster leaves nothing to check: --config or --settings names a file")
    try_in = canary_namespace if canary else ""
    with failures():
        seen = read(Asked(config, settings, kubeconfig, context, namespace, cluster, try_in))
    findings = list(checks.run(seen))
    _write(findings, output)
    is_checked = config or settings or any(each.level != "not checked" for each in findings)
    if not is_checked or worst(findings) in (("error", "warning") if strict else ("error",)):
        raise typer.Exit(FAILED)


def _write(findings: Sequence[Finding], output: Output) -> None:
    from app.cli.doctor import rendering

    match output:
        case Output.TABLE:
            typer.echo("\n".join([*rendering.table(findings), "", rendering.summary(findings)]))
        case Output.NAME:
            for name in rendering.names(findings):
                typer.echo(name)
        case _:
            write(rendering.as_data(findings), output)


def _written(minor: str, mode: str | None) -> str:
    """Raises: typer.Exit."""
    from app.cli.doctor import shipped

    mode = mode or SIDECAR
    if minor not in shipped.minors():
        raise usage(f"--write-config: {minor!r} is not one of {', '.join(shipped.minors())}")
    if mode not in shipped.MODES:
        raise usage(f"--mode: {mode!r} is not one of {', '.join(shipped.MODES)}")
    return shipped.scheduler_config(minor, mode)
