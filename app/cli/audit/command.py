"""`corral audit`: its options, and what its exit code means."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.common import options

if TYPE_CHECKING:
    from app.cli.audit.verdicts import Audited
    from app.state.settings import EngineSettings

UNOBSERVABLE = 3


def audit(
    namespace: options.Namespace = "",
    all_namespaces: options.AllNamespaces = False,
    levels: Annotated[
        str | None,
        typer.Option(
            "--levels",
            metavar="KEY,KEY,…",
            help="Node labels, widest first, or a preset, for gangs that no Topology object serves",
        ),
    ] = None,
    settings: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Corral's settings: its levels, schedulers and vocabularies; none: pods of every"
            " scheduler in every vocabulary",
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit code 3 if something cannot be observed")
    ] = False,
    output: options.Written = options.Output.TABLE,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
) -> None:
    """Say of every running gang whether its pods are where its constraints say.

    MATCH: they are. VIOLATION: a pod is elsewhere, or fewer pods run than the gang takes.
    UNOBSERVABLE: it cannot be told, since a node, a label or an object is not there or may not be
    read. It reads the API server alone: Corral need not run. -o name writes the gangs with a
    violation. A gang that is just starting, or has just lost a pod, is not whole: look twice.

    \b
    Examples:
      corral audit -A
      corral audit -n team-a --levels topology.example.com/block,topology.example.com/rack
      corral audit -A --strict -o json

    \b
    Exit code 0: no violation
              1: a violation
              2: wrong options, or the API server did not answer
              3: no violation, something is unobservable, and --strict was given
    """
    from app.cli.audit.reading import Asked, audit_cluster
    from app.cli.audit.verdicts import worst

    began = time.monotonic()
    with options.failures(options.USAGE_ERROR):
        asked = Asked(
            _settings(settings, levels),
            kubeconfig,
            context,
            "" if all_namespaces else namespace or options.namespace_at(kubeconfig, context),
        )
        audited = audit_cluster(asked, options.note)
        # Also where it cannot be written: a traceback's exit code says that there is a violation.
        _write(audited, output, time.monotonic() - began)
    answer = worst(audited.verdicts)
    if answer == "VIOLATION":
        raise typer.Exit(options.FAILED)
    if strict and (answer == "UNOBSERVABLE" or audited.unread):
        raise typer.Exit(UNOBSERVABLE)


def _write(audited: Audited, output: options.Output, seconds: float) -> None:
    from app.cli.audit import rendering

    match output:
        case options.Output.TABLE:
            for line in rendering.table(audited.verdicts) if audited.verdicts else ():
                typer.echo(line)
        case options.Output.NAME:
            for name in rendering.names(audited.verdicts):
                typer.echo(name)
        case _:
            options.write(rendering.as_data(audited), output)
    for each in (*map(str, audited.unread), *audited.notes):
        options.note(each)
    read = f"{audited.pods:,} pods and {audited.nodes:,} nodes read in {seconds:.1f} s"
    options.note(f"{rendering.summary(audited)} ({read})")


def _settings(file: str | None, levels: str | None) -> EngineSettings:
    """What decides how objects are read: the settings in the file, or everything that can be.

    Raises: SettingsError; OSError for the file; typer.Exit.
    """
    from app.cli.doctor.reading.files import settings_of
    from app.cli.topology.options import given_levels
    from app.process.engine_settings import engine_settings
    from app.state.settings import EngineSettings

    keys = given_levels(levels)
    if file is None:
        return EngineSettings(scheduler_name="", native_pod_groups="on", levels=keys)
    found = engine_settings(settings_of(file).values)
    return found.model_copy(update={"levels": keys}) if keys else found
