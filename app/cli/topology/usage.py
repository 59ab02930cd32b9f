"""`corral topology usage`: what a running Corral has counted in each domain, and what is free."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.common.columns import on_one_line
from app.cli.gangs import options as common
from app.cli.reach.options import reaching

if TYPE_CHECKING:
    from app.cli.reach.way import Corral
    from app.cli.topology.tree import Branch

BAR = 10  # characters: # used, + reserved, . free, x on nodes that take no pods
MOST_PAGES = 1_000
OPTIONS = {
    "name": "--topology",
    "level": "--level",
    "under": "--under",
    "free_for": "--free-for",
}  # by the names that /v1 has for them


@reaching
def usage(
    corral: Corral,
    name: Annotated[
        str, typer.Option("--topology", metavar="NAME", help="None: the first that is in use")
    ] = "",
    level: Annotated[
        str, typer.Option(metavar="KEY", help="The narrowest shown; none: the one above nodes")
    ] = "",
    under: Annotated[
        str, typer.Option(metavar="PATH", help="Only this domain, such as b1/r7, and those inside")
    ] = "",
    free_for: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SHAPE",
            help="Count places for pods such as cpu=4,nvidia.com/gpu=1, or for those of a gang",
        ),
    ] = None,
    resource: Annotated[
        str, typer.Option(metavar="NAME", help="Of the bars; none: the first of a device, or cpu")
    ] = "",
    output: common.Written = common.Output.TABLE,
) -> None:
    """Show a bar for each domain, #: used, +: reserved, .: free, and the places for a shape.

    \b
    Examples:
      corral topology usage --free-for nvidia.com/gpu=8
      corral topology usage --under b1 --level kubernetes.io/hostname --free-for team-a/trainer

    \b
    Exit code 0: shown
              1: Corral does not answer, or refuses to
              2: an option cannot be used
    """
    from app.cli.topology.tree import lines_of

    found = _whole(corral, free_for or [], name=name, level=level, under=under)
    match output:
        case common.Output.TABLE:
            shown = _checked(resource, found["total"]) or _resource(found["total"])
            header = _header(found["total"], shown)
            for line in lines_of(_tree(found, shown), header):
                typer.echo(on_one_line(line))
            for line in _excluded(found["total"]):
                typer.echo(on_one_line(line))
        case common.Output.NAME:
            for each in found["domains"]:
                typer.echo(on_one_line(each["domain"]))
        case _:
            common.write(found, output)


def _whole(corral: Corral, free_for: Sequence[str], **query: str) -> dict[str, Any]:
    """All pages of the answer as one. Raises: NoAnswer."""
    from app.cli.gangs.server import INVALID, NoAnswer, Refused, ask

    found: dict[str, Any] = {}
    domains: list[dict[str, Any]] = []
    after = ""
    for _ in range(MOST_PAGES):
        try:
            page = ask(corral, "topology", has="domains", after=after, free_for=free_for, **query)
        except Refused as error:
            field, colon, problem = str(error).partition(": ")
            if error.status != INVALID or field not in OPTIONS:
                raise
            raise common.usage(f"{OPTIONS[field]}{colon}{problem}") from error
        found = found or page
        domains += page["domains"]
        after = page["next"]
        if not after:
            return {**found, "domains": domains, "next": ""}
    raise NoAnswer(f"{corral.named}: over {MOST_PAGES} pages: --under or --level shows a part")


def _checked(resource: str, total: dict[str, Any]) -> str:
    names = [each["resource"] for each in total["resources"]]
    if resource and resource not in names:
        has = f"there is {', '.join(names)}" if names else "there are no nodes"
        raise common.usage(f"--resource: {resource}: no node has it; {has}")
    return resource


def _resource(total: dict[str, Any]) -> str:
    """What the bars are of: a device, where there is any."""
    names = [each["resource"] for each in total["resources"] if each["capacity"]]
    return next((name for name in names if "/" in name), "cpu")


def _header(total: dict[str, Any], resource: str) -> tuple[str, ...]:
    shapes = [f"FREE FOR {each['shape']}" for each in total["free_for"]]
    return (f"{resource} USED+RESERVED", "FREE", *shapes)


def _tree(page: dict[str, Any], resource: str) -> Branch:
    """The domains, each inside the one before it that it is a part of."""
    from app.cli.topology.tree import Branch

    depth_of = {level: depth for depth, level in enumerate(page["levels"])}
    top: list[Branch] = []
    inside: list[tuple[int, list[Branch]]] = [(-1, top)]
    for each in page["domains"]:
        depth = depth_of[each["level"]]
        while inside[-1][0] >= depth:
            inside.pop()
        branches: list[Branch] = []
        name = each["domain"].rpartition("/")[2]
        cells = tuple(_cells(each, resource))
        inside[-1][1].append(Branch(name, each["level"], each["nodes"], branches, cells))
        inside.append((depth, branches))
    total = page["total"]
    return Branch(page["name"], "", total["nodes"], top, tuple(_cells(total, resource)))


def _cells(domain: dict[str, Any], resource: str) -> Iterator[str]:
    amount = next((e for e in domain["resources"] if e["resource"] == resource), None)
    if amount is None or not amount["capacity"]:
        yield "-"
        yield "-"
    else:
        yield f"{bar(amount)} {amount['used'] + amount['reserved']:g}/{amount['capacity']:g}"
        yield f"{amount['free']:g}"
    for each in domain["free_for"]:
        yield str(each["pods"])


def bar(amount: dict[str, Any]) -> str:
    """How much of a resource is used, reserved, free, and on nodes that take no pods."""
    whole, drawn = amount["capacity"], list[int]()
    for part in ("used", "reserved", "free"):
        drawn.append(min(round(BAR * amount[part] / whole), BAR - sum(drawn)))
    used, reserved, free = drawn
    return "#" * used + "+" * reserved + "." * free + "x" * (BAR - used - reserved - free)


def _excluded(total: dict[str, Any]) -> Iterator[str]:
    for each in total["excluded"]:
        nodes = "1 node takes" if each["nodes"] == 1 else f"{each['nodes']} nodes take"
        yield f"{nodes} no pods: {each['reason']} ({', '.join(each['examples'])})"
