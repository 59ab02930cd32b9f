"""`corral explain`: why a gang waits, and what would change that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.common.columns import on_one_line
from app.cli.gangs import options
from app.cli.reach.options import reaching

if TYPE_CHECKING:
    from app.cli.reach.way import Corral

WAITS = ("gathering", "waiting", "repairing")
NOT_FOUND = 404
WIDTH = 12  # of the words in front
NO_NODES = {  # why node autoscalers make none
    "fragmented": "the pods fit on free nodes, but not together",
    "gradual": "the pods that exist fit on free nodes",
}
NEVER = "Never"  # the kind of a relaxation that is none


@reaching
def explain(
    corral: Corral,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A gang, a pod of one, or an owner; or NAMESPACE/NAME of it",
        ),
    ],
    namespace: options.Namespace = "",
    source: Annotated[
        str, typer.Option(help="Of several gangs of this name, the one that this declares")
    ] = "",
    output: options.Written = options.Output.TABLE,
) -> None:
    """Say why a gang waits, what is short, and what would fit.

    \b
    Examples:
      corral explain training-job
      corral explain training-job-0 -n team-a -o yaml
      corral explain training-job --server https://corral-api.corral-system.svc --token-file token

    \b
    Exit code 0: it was answered
              1: there is no such gang, or Corral could not be reached
              2: wrong options
    """
    from app.cli.gangs.server import Refused, ask

    said = namespace
    within, name = _named(name, namespace)
    namespace = within or corral.namespace
    try:
        path = "gangs", namespace, name, "explanation"
        found = ask(corral, *path, has="gang", source=source)
    except Refused as error:
        if error.status != NOT_FOUND:
            raise
        lists = f"corral gangs -n {namespace} lists those of this namespace, -A all"
        hint = f"a gang is known once one of its pods exists; {lists}"
        if within and not said:
            hint += "; before the / stands a namespace, not a kind"
        raise Refused(error.status, f"{error}; {hint}") from error
    match output:
        case options.Output.TABLE:
            for line in lines_of(found):
                typer.echo(on_one_line(line))
        case options.Output.NAME:
            typer.echo(options.name_of(found["gang"]))
        case _:
            options.write(found, output)


def _named(name: str, namespace: str) -> tuple[str, str]:
    """Namespace, "" if none is said, and name. Raises: Exit for what names no gang."""
    within, slash, its = name.rpartition("/")
    if slash and namespace not in ("", within):
        raise options.usage(f"{name} is not in namespace {namespace}, which -n names")
    if not its or "/" in within or (slash and not within):
        raise options.usage(f"{name!r} is no name: it is NAME, or NAMESPACE/NAME")
    return within or namespace, its


def lines_of(explanation: dict[str, Any]) -> Iterator[str]:
    """An explanation in words, a fact a line."""
    gang = explanation["gang"]
    waiting = gang["waiting_seconds"]
    since = "" if waiting is None else f" for {options.span(waiting)}"
    yield _line("Gang", f"{options.name_of(gang)} ({gang['source']})")
    yield _line("Is", f"{gang['phase']}{since}: {gang['reason']}")
    yield _line("Message", gang["message"])
    if explanation.get("finds_now"):
        yield _line("By now", explanation["finds_now"])
    yield from _block("Runs on", _runs_on(explanation.get("runs_on")))
    if explanation["fits_now"]:
        yield _line("Fits now", f"yes: {_once(gang['reason'])}")
    yield from _block("Awaited", (f"pod {each}" for each in explanation.get("awaited", ())))
    yield from _block("Best place", _best(explanation["best"]))
    yield from _block("Needs nodes", _needs_nodes(gang.get("needs_nodes"), explanation["best"]))
    yield from _block("Taken by", map(_blocker, explanation["blockers"]))
    yield from _block("Excluded", map(_excluded, explanation["excluded"]))
    changes = explanation["relaxations"]
    yield from _block("What helps", (each["text"] for each in changes if each["kind"] != NEVER))
    yield from _block("Otherwise", (each["text"] for each in changes if each["kind"] == NEVER))
    yield from _block("Tried", map(_attempt, explanation.get("attempts", ())[1:]))
    if gang["phase"] in WAITS:
        yield _line("Next try", f"when {explanation['tries_again']}{_pause(explanation)}")
    if explanation["advice"]:
        yield _line("To do", explanation["advice"])


def _line(word: str, text: str) -> str:
    return f"{word:{WIDTH}}{text}".rstrip()


def _block(word: str, lines: Any) -> Iterator[str]:
    for line in lines:
        yield _line(word, line)
        word = ""


def _runs_on(found: dict[str, Any] | None) -> Iterator[str]:
    if found is None:
        return
    yield from found["domains"]
    others = found.get("more_domains", 0)
    if others:
        yield f"and {others} more domain{'s' if others > 1 else ''}"
    examples = found["examples"]
    more = ", …" if found["nodes"] > len(examples) else ""
    nodes = "1 node" if found["nodes"] == 1 else f"{found['nodes']} nodes"
    yield f"{nodes}: {', '.join(examples)}{more}"


def _best(best: dict[str, Any] | None) -> Iterator[str]:
    if best is None:
        return
    where = best["domain"] or "all nodes together"
    yield f"{where}: {best['pods']} of {best['needed']} pods fit"
    for each in best["short"]:
        yield f"{each['resource']}: {each['free']:g} free there, {each['requested']:g} requested"


def _needs_nodes(needs: dict[str, Any] | None, best: dict[str, Any] | None) -> Iterator[str]:
    more = None if best is None else best.get("more_nodes")
    if more:
        nodes = "1 more node" if more == 1 else f"{more} more nodes"
        where = f" in one {needs['level']}" if needs and needs["level"] else ""
        yield f"{nodes}{where} would do, each as large as the largest there is"
    if needs is None:
        return
    since = options.span(needs["since_seconds"])
    if needs.get("ask") == "request":
        yield f"asked of node autoscalers for {since}, {_by_request(needs)}"
        if needs["message"]:
            yield needs["message"]
        return
    yield f"asked of node autoscalers for {since}, by marks on pods"
    if needs["reason"] in NO_NODES:
        yield f"they will make none: {NO_NODES[needs['reason']]}"


def _by_request(needs: dict[str, Any]) -> str:
    name = needs["request"]
    return f"by ProvisioningRequest {name}" if name else "by a ProvisioningRequest"


def _blocker(each: dict[str, Any]) -> str:
    pods = "1 pod" if each["pods"] == 1 else f"{each['pods']} pods"
    return f"{each['who']}, {pods}{' to come' if each['is_reserved'] else ''}"


def _excluded(each: dict[str, Any]) -> str:
    nodes = "1 node" if each["nodes"] == 1 else f"{each['nodes']} nodes"
    examples = each["examples"]
    more = ", …" if each["nodes"] > len(examples) else ""
    return f"{nodes}: {each['reason']}" + (f" ({', '.join(examples)}{more})" if examples else "")


def _once(reason: str) -> str:
    """When a gang is planned that would fit now."""
    match reason:
        case "RefusedByScheduler":
            return "Corral plans it once kube-scheduler brings the pods that it awaits"
        case "BackingOff":
            return "Corral plans it when its pause is over"
        case "NamespaceBudget":
            return "Corral plans it once its namespace may hold the places of pods to come"
        case "Quota":
            return "Corral plans it once the quota leaves enough for pods to come"
    return "Corral plans it in its next turn"


def _attempt(each: dict[str, Any]) -> str:
    ago = options.span(each["last_seconds_ago"])
    times = "" if each["times"] == 1 else f", {each['times']} times"
    return f"{ago} ago{times}: {each['message']}"


def _pause(explanation: dict[str, Any]) -> str:
    seconds = explanation["retry_seconds"]
    return f", not before {options.span(seconds)} from now" if seconds is not None else ""
