"""`corral topology generate hypernodes`: HyperNode objects from the labels of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.topology import options

if TYPE_CHECKING:
    from collections.abc import Iterable

    from app.cli.topology.reading import Cluster
    from app.dialects.volcano.from_labels.manifests import Manifest, Members

MEMBERS = ("names", "labels")
LONGEST_PREFIX = 63


def hyper_nodes(
    levels: options.Levels = None,
    topograph: options.Topograph = False,
    discovery_config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="The configuration of Volcano's label discoverer, or its ConfigMap"
        ),
    ] = None,
    nodes: options.NodesFile = None,
    hypernodes: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="With --discovery-config: HyperNodes there are, which keep their names",
        ),
    ] = None,
    members: Annotated[
        str | None,
        typer.Option(metavar="|".join(MEMBERS), help="How nodes are named [names]"),
    ] = None,
    prefix: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What the names begin with [hypernode]"),
    ] = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
) -> None:
    """Write a HyperNode for each domain of node labels as YAML, the narrowest level as tier 1.

    \b
    Examples:
      corral topology generate hypernodes --levels example.com/block,example.com/rack
      corral topology generate hypernodes --topograph --nodes nodes.json --members labels

    \b
    Exit code 0: they were written
              1: no node has these labels, what was read is not valid, or the API server did
                 not answer
              2: wrong options, or a file that cannot be read
    """
    from app.cli.topology.reading import read_cluster, read_with_hyper_nodes

    _check(levels, topograph, discovery_config, hypernodes, members, prefix)
    options.check_stdin(nodes, hypernodes, discovery_config)
    keys = options.given_levels(levels)
    with options.failures():
        if discovery_config is not None:
            cluster = read_with_hyper_nodes(nodes, hypernodes, kubeconfig, context)
            made = _discovered(discovery_config, cluster)
        else:
            cluster = read_cluster(nodes, kubeconfig, context)
            keys = keys or options.topograph_levels(cluster.nodes.values())
            made = _made(keys, cluster, members or MEMBERS[0], prefix)
        _note_large(made)
        if not made:
            options.note("no node has these labels: there is nothing to write")
            raise typer.Exit(options.FAILED)
        typer.echo(written(made), nl=False)


def _check(
    levels: str | None,
    topograph: bool,
    discovery_config: str | None,
    hypernodes: str | None,
    members: str | None,
    prefix: str | None,
) -> None:
    """Raises: typer.Exit for options that do not go together."""
    from app.labels import is_subdomain

    if [levels is not None, topograph, discovery_config is not None].count(True) != 1:
        raise options.usage("one of --levels, --topograph and --discovery-config is required")
    if discovery_config is not None and (members, prefix) != (None, None):
        raise options.usage("--members and --prefix do not go with --discovery-config")
    if discovery_config is None and hypernodes is not None:
        raise options.usage("--hypernodes goes with --discovery-config only")
    if members not in (None, *MEMBERS):
        raise options.usage(f"--members: {members!r} is not one of {', '.join(MEMBERS)}")
    if prefix is not None and not (is_subdomain(prefix) and len(prefix) <= LONGEST_PREFIX):
        raise options.usage(f"--prefix: no object's name can begin with {prefix!r}")


def _made(
    levels: tuple[str, ...], cluster: Cluster, members: Any, prefix: str | None
) -> list[Manifest]:
    from app.dialects.volcano.from_labels.domains import domains_of, placed_from_widest
    from app.dialects.volcano.from_labels.manifests import manifests
    from app.dialects.volcano.from_labels.names import PREFIX

    how: Members = members
    placed = placed_from_widest(cluster.nodes, levels)
    options.note_lacking(placed.lacking)
    domains = domains_of([(placed, levels)])
    return list(manifests(domains, levels, how, prefix or PREFIX))


def _note_large(made: Iterable[Manifest]) -> None:
    """Say which HyperNodes have more members than Corral reads."""
    from app.dialects.volcano.hyper_nodes import MOST_MEMBERS

    for each in made:
        members = len(each["spec"]["members"])
        if members > MOST_MEMBERS:
            options.note(
                f"{each['metadata']['name']} has {members:,} members, and Corral reads no HyperNode"
                f" of more than {MOST_MEMBERS:,}: a narrower level, or --members labels"
            )


def _discovered(file: str, cluster: Cluster) -> list[Manifest]:
    """Raises: DecodeError naming the file; OSError."""
    from app.dialects.volcano.from_labels.discoverer import discovered, types_in
    from app.errors import DecodeError

    try:
        types, notes = types_in(_configuration(file))
    except DecodeError as error:
        from app.cli.topology.reading import shown

        raise DecodeError(f"{shown(file)}: {error}") from error
    found = discovered(cluster.nodes, types, cluster.hyper_node_labels)
    for each in (*notes, *found.notes):
        options.note(each)
    options.note_lacking(found.lacking)
    return list(found.hyper_nodes)


def _configuration(file: str) -> object:
    """The configuration in a file: its content, or the entry of a ConfigMap."""
    from app.cli.topology.reading import documents, read_bytes
    from app.dialects.volcano.from_labels.discoverer import CONFIG_KEY
    from app.errors import DecodeError

    (found, *more) = [*documents(read_bytes(file), "YAML")] or [None]
    if more:
        raise DecodeError("one document is required")
    if isinstance(found, dict) and found.get("kind") == "ConfigMap":
        text = (found.get("data") or {}).get(CONFIG_KEY)
        if not isinstance(text, str):
            raise DecodeError(f"ConfigMap: data[{CONFIG_KEY}]: a text is required")
        (found, *_) = [*documents(text.encode(), f"data[{CONFIG_KEY}]")] or [None]
    return found


def written(made: Iterable[Manifest]) -> str:
    """The objects as YAML documents."""
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump_all(made, Dumper=dumper, sort_keys=False, explicit_start=True)
    return text
