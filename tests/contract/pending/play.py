"""Plays a situation: it is made, explained, and then what the explanation says is done."""

from __future__ import annotations

from collections.abc import Callable

from app.cli.gangs.server import NoAnswer, ask
from tests.cluster import Cluster, Object
from tests.contract.pending.situations import Situation
from tests.contract.play import told

Explain = Callable[[str, str], Object]  # a server and a name -> an explanation

SECONDS = 30.0
LONGEST_SENTENCE = 512  # bytes


def explained(url: str, name: str) -> Object:
    """What `corral explain` is answered; {} while nothing of that name is known."""
    try:
        found: Object = ask(url, "gangs", "default", name, "explanation", has="gang")
    except NoAnswer:
        return {}
    return found


def play(situation: Situation, cluster: Cluster, url: str, explain: Explain = explained) -> None:
    """Raises: AssertionError, TimeoutError."""
    said: Object = {}

    def reason() -> str:
        nonlocal said
        said = explain(url, situation.ask)
        return str(said["gang"]["reason"]) if said else ""

    def is_explained() -> bool:
        return reason() == situation.reason and situation.told in said["gang"]["message"]

    cluster.create_all(situation.nodes)
    situation.make(cluster)
    if situation.then is not None:
        cluster.wait(lambda: reason() == situation.first, SECONDS, situation.first)
        situation.then(cluster)
    try:
        cluster.wait(is_explained, SECONDS, situation.reason)
    except TimeoutError as late:
        raise AssertionError(f"{situation}: {said.get('gang')}") from late
    assert len(said["gang"]["message"].encode()) < LONGEST_SENTENCE
    assert said["tries_again"]
    if situation.is_told:
        cluster.wait(lambda: bool(reason()) and _is_told(cluster, said), SECONDS, "being told")
    situation.remedy(cluster, said)
    cluster.wait(lambda: _bound(cluster) == situation.pods, SECONDS, "the gang")
    cluster.wait(lambda: reason() == "Running", 1.0, "the verdict to be gone within a second")


def _is_told(cluster: Cluster, said: Object) -> bool:
    """Whether a pod that waits, or an event about the gang, says what explain says."""
    texts = [told(each) for each in _pods(cluster) if not each["spec"].get("nodeName")]
    texts += [each["message"] for each in cluster.list("Event", "default")]
    return any(said["gang"]["message"] in each for each in texts)


def _pods(cluster: Cluster) -> list[Object]:
    every = cluster.list("Pod", "default")
    return [each for each in every if each["metadata"]["name"].startswith("g-")]


def _bound(cluster: Cluster) -> int:
    return sum(bool(each["spec"].get("nodeName")) for each in _pods(cluster))
