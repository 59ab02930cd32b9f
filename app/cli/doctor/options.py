"""What `corral doctor` may be told, beside what every command has."""

from __future__ import annotations

from typing import Annotated

import typer

Config = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="kube-scheduler's configuration, or a ConfigMap that has it; -: stdin; none: that of"
        " the Deployment. Example: --config /etc/kubernetes/scheduler-config.yaml",
    ),
]
SettingsFile = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Corral's settings; none: those of the Deployment."
        " Example: --settings corral-settings.yaml",
    ),
]
Namespace = Annotated[
    str,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAMESPACE",
        help="Where Corral is installed. Example: -n gang-scheduling",
    ),
]
Cluster = Annotated[
    bool,
    typer.Option(help="Read the cluster, not the files alone. Example: --no-cluster --config FILE"),
]
Canary = Annotated[
    bool,
    typer.Option(
        help="Have the API server try a pod of a gang, which is not stored (dryRun=All)."
        " Example: --canary --canary-namespace team-a"
    ),
]
CanaryNamespace = Annotated[
    str,
    typer.Option(
        metavar="NAMESPACE", help="Of that pod. Example: --canary --canary-namespace team-a"
    ),
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Exit code 1 for warnings, too. Example: --strict -o json"),
]
WriteConfig = Annotated[
    str | None,
    typer.Option(
        metavar="MINOR",
        help="Write a right KubeSchedulerConfiguration for this kube-scheduler, and check nothing."
        " Example: --write-config 1.36 > config.yaml",
    ),
]
Mode = Annotated[
    str | None,
    typer.Option(
        metavar="sidecar|beside|marker|beside-marker",
        help="With --write-config: Corral is in kube-scheduler's pod [sidecar], or reached over"
        " TLS; the last two are these, asked about members alone."
        " Example: --write-config 1.36 --mode beside",
    ),
]
