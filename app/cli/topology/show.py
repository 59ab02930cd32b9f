"""`corral topology show`: the tree of the cluster's domains, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.topology import options

if TYPE_CHECKING:
    from app.cli.topology.reading import Cluster
    from app.cli.topology.tree import Branch
    from app.dialects.volcano.from_labels.domains import LabelDomain, Path
    from app.state.domains.explicit import ExplicitTopology

ROOT = "cluster"


def show(
    levels: options.Levels = None,
    topograph: options.Topograph = False,
    hypernodes: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="HyperNodes from a file, - for stdin"),
    ] = None,
    nodes: options.NodesFile = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
) -> None:
    """Show the tree of HyperNodes, or of labels of nodes if levels are given.

    \b
    Examples:
      corral topology show
      corral topology show --levels example.com/block,example.com/rack --nodes nodes.json

    \b
    Exit code 0: it was shown, with what is wrong with it
              1: there is nothing to be shown, what was read is not valid, or the API server
                 did not answer
              2: wrong options, or a file that cannot be read
    """
    from app.cli.topology.reading import read_cluster, read_with_hyper_nodes
    from app.cli.topology.tree import lines_of

    if [levels is not None, topograph, hypernodes is not None].count(True) > 1:
        raise options.usage("only one of --levels, --topograph and --hypernodes can be shown")
    options.check_stdin(nodes, hypernodes)
    keys = options.given_levels(levels)
    with options.failures():
        if keys or topograph:
            cluster = read_cluster(nodes, kubeconfig, context)
            keys = keys or options.topograph_levels(cluster.nodes.values())
            tree, problems = _by_labels(cluster, keys), list[str]()
        else:
            tree, problems = _by_hyper_nodes(
                read_with_hyper_nodes(nodes, hypernodes, kubeconfig, context)
            )
        typer.echo("\n".join(lines_of(tree)))
        if problems:
            typer.echo("\n" + "\n".join(problems))


# -- labels ------------------------------------------------------------------------------------


def _by_labels(cluster: Cluster, levels: Sequence[str]) -> Branch:
    from app.cli.topology.tree import Branch
    from app.dialects.volcano.from_labels.domains import domains_of, placed_from_widest

    placed = placed_from_widest(cluster.nodes, levels)
    options.note_lacking(placed.lacking)
    domains = {domain.path: domain for domain in domains_of([(placed, levels)])}
    widest = [_label_branch(domains, path) for path in domains if len(path) == 1]
    return Branch(ROOT, "", len(cluster.nodes), widest)


def _label_branch(domains: Mapping[Path, LabelDomain], path: Path) -> Branch:
    from app.cli.topology.tree import Branch

    domain = domains[path]
    inside = [_label_branch(domains, each) for each in domain.inner]
    nodes = len(domain.nodes) + sum(each.nodes for each in inside)
    return Branch(domain.value, domain.level, nodes, inside)


# -- HyperNodes --------------------------------------------------------------------------------


def _by_hyper_nodes(cluster: Cluster) -> tuple[Branch, list[str]]:
    """Raises: DecodeError naming a HyperNode that cannot be read, or if there are none."""
    from app.cli.topology.tree import Branch
    from app.dialects.volcano.hyper_nodes import decode_hyper_node
    from app.errors import DecodeError
    from app.kube.core.objects import NodeRecord
    from app.state.domains.explicit import ExplicitTopology

    if not cluster.hyper_nodes:
        raise DecodeError(
            "there are no HyperNodes; --levels shows a tree of labels, such as"
            " --levels example.com/block,example.com/rack"
        )
    specs = [decode_hyper_node(raw).domain for _, raw in sorted(cluster.hyper_nodes.items())]
    nodes = {
        name: NodeRecord(name, "", labels, (), True, False, (), "")
        for name, labels in sorted(cluster.nodes.items())
    }
    topology = ExplicitTopology()
    topology.put_all(specs, nodes)
    inner: dict[str | None, list[str]] = {}
    for spec in specs:
        inner.setdefault(topology.parent(spec.name), []).append(spec.name)

    def branch(name: str) -> Branch:
        spec = topology.specs[name]
        tier = f"tier {spec.tier}" + (f" ({spec.tier_name})" if spec.tier_name else "")
        inside = [branch(each) for each in inner.get(name, ())]
        return Branch(name, tier, topology.view(name).nodes, inside)

    outside = sum(not topology.is_placed(name) for name in nodes)
    top = [branch(name) for name in inner.get(None, ())]
    if outside:
        top.append(Branch("(in no HyperNode)", "", outside))
    return Branch(ROOT, "", len(nodes), top), list(_problems(topology))


def _problems(topology: ExplicitTopology) -> Iterable[str]:
    """A line for each member that does not count, as the condition of its HyperNode says it."""
    for name in topology.specs:
        for flaw in topology.view(name).flaws:
            yield f"HyperNode {name}: {flaw.reason}: {flaw.text}"
