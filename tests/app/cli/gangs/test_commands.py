"""`corral gangs` and `corral explain` against a Corral's port, as a user runs them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest
import yaml
from fastapi import FastAPI
from typer.testing import CliRunner, Result

from app.api.following.stream import Stream
from app.api.routes import people
from app.api.standing import Standing
from app.cli import main
from app.cli.gangs.explaining import lines_of
from app.cli.gangs.options import span
from app.explain.changes import Changes
from app.explain.view import Explanation
from tests.app.cli.served import served
from tests.app.state.world import World, four_racks, members
from tests.records import RACK, group, node, pod


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Where a Corral answers that knows a gang which runs, and one that is short by a pod."""
    world = World([*four_racks(), node("b0/r0/closed", is_cordoned=True)])
    runs = members("runs", 2)
    world.put(*runs)
    assert len(world.schedule(*runs)) == 2
    world.put(*[pod(f"large{at}", annotations=group("large", 5, RACK)) for at in range(5)])
    world.put(pod("half0", annotations=group("half", 2)))
    world.tick()
    with serving(world) as url:
        yield url


@contextmanager
def serving(world: World) -> Iterator[str]:
    """Where a Corral with this engine answers people."""
    stream = Stream(Changes(world.engine), seconds=0.01)
    loops: list[asyncio.AbstractEventLoop] = []

    @asynccontextmanager
    async def streaming(_app: FastAPI) -> AsyncIterator[None]:
        loops.append(asyncio.get_running_loop())
        task = asyncio.create_task(stream.run())
        yield
        task.cancel()

    app = FastAPI(lifespan=streaming)
    app.include_router(people(world.engine, Standing(lambda: "", stream=stream)))
    with served(app, lifespan="on") as url:
        yield url
        loops[0].call_soon_threadsafe(stream.close, "the test is over")


def run(server: str, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments], env={"CORRAL_SERVER": server})


def test_gangs_are_a_table_with_a_line_each(server: str) -> None:
    ran = run(server, "gangs")
    assert ran.exit_code == 0
    header, *lines = ran.stdout.splitlines()
    assert header.split() == [
        "NAMESPACE", "NAME", "SOURCE", "PHASE", "REASON", "PODS", "BOUND", "WAITING", "DOMAINS",
    ]  # fmt: skip
    assert [line.split()[:6] for line in lines] == [
        ["default", "half", "group", "gathering", "Incomplete", "1/2"],
        ["default", "large", "group", "waiting", "DoesNotFit", "5/5"],
        ["default", "runs", "group", "running", "Running", "2/2"],
    ]


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("--phase", "waiting"), ["default/large"]),
        (("--reason", "Running"), ["default/runs"]),
        (("-A",), ["default/half", "default/large", "default/runs"]),
        (("-n", "other"), []),
    ],
)
def test_gangs_by_name_are_those_asked_for(
    server: str, arguments: tuple[str, ...], names: list[str]
) -> None:
    ran = run(server, "gangs", *arguments, "-o", "name")
    assert (ran.exit_code, ran.stdout.split()) == (0, names)


@pytest.mark.parametrize(("output", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_programs_get_what_v1_answers(server: str, output: str, read: object) -> None:
    assert callable(read)
    gangs = read(run(server, "gangs", "-o", output).stdout)
    assert [each["name"] for each in gangs] == ["half", "large", "runs"]
    explained = Explanation.model_validate(
        read(run(server, "explain", "large", "-o", output).stdout)
    )
    assert explained.gang.name == "large"
    assert explained.best is not None


def test_a_name_that_a_tenant_has_chosen_does_nothing_to_the_terminal() -> None:
    name = "e\x1b[2Jvil"
    world = World(four_racks())
    world.put(pod("p0", annotations=group(name, 2)))
    world.tick()
    with serving(world) as url:
        for ran in (run(url, "gangs"), run(url, "explain", "p0")):
            assert ran.exit_code == 0
            assert "e [2Jvil" in ran.stdout
            assert "\x1b" not in ran.stdout
        (told,) = json.loads(run(url, "gangs", "-o", "json").stdout)
        assert told["name"] == name


def test_no_gangs_are_no_error(server: str) -> None:
    ran = run(server, "gangs", "-n", "other")
    said = "No gangs found in namespace other.\n"
    assert (ran.exit_code, ran.stdout, ran.stderr) == (0, "", said)
    nowhere = run(server, "gangs", "-A", "--reason", "Quota")
    assert (nowhere.exit_code, nowhere.stderr) == (0, "No gangs found.\n")


def test_an_explanation_says_in_words_what_v1_says(server: str) -> None:
    explained = json.loads(run(server, "explain", "large2", "-o", "json").stdout)
    ran = run(server, "explain", "large2")
    assert ran.exit_code == 0
    text = ran.stdout
    assert "default/large (group)" in text
    assert explained["gang"]["message"] in text
    assert explained["best"]["domain"] in text
    for each in explained["relaxations"]:
        assert each["text"] in text
    assert "1 node: cordoned (closed)" in text
    assert explained["advice"] in text


def test_of_a_gang_that_runs_is_told_where(server: str) -> None:
    lines = run(server, "explain", "runs").stdout.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["Gang", "Is", "Message", "Runs"]
    assert [line.removeprefix("Runs on").strip() for line in lines[3:]] == [
        f"{RACK}=b0/r0",
        "2 nodes: n00, n01",
    ]


def test_that_a_gang_is_in_more_domains_than_are_shown_is_told() -> None:
    racks = 10
    world = World([node(f"b0/r{at}/n{at}") for at in range(racks)])
    preferred = {"kueue.x-k8s.io/podset-preferred-topology": RACK}
    wide = [pod(f"w{at}", annotations=group("wide", racks, **preferred)) for at in range(racks)]
    few = [pod(f"f{at}", gpus=0, annotations=group("few", 2, **preferred)) for at in range(2)]
    world.put(*wide, *few)
    assert len(world.schedule(*wide, *few)) == racks + 2
    world.tick()
    with serving(world) as url:
        _, narrow, line = run(url, "gangs").stdout.splitlines()
        explained, of_few = (run(url, "explain", each).stdout for each in ("wide", "few"))
    assert line.count(f"{RACK}=") == 4
    assert line.endswith(", …")
    assert "…" not in narrow
    assert explained.count(f"{RACK}=") == 8
    assert "and 2 more domains" in explained
    assert "more domain" not in of_few


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("explain", "none"), "default/none"),
        (("explain", "none"), "corral gangs -n default lists"),
        (("explain", "none"), "known once one of its pods exists"),
        (("explain", "other/large"), "corral gangs -n other lists"),
        (("explain", "job/large"), "before the / stands a namespace, not a kind"),
        (("explain", "large", "-n", "other"), "other/large"),
        (("explain", "large", "-n", "other"), "corral gangs -n other lists"),
    ],
)
def test_what_cannot_be_answered_is_one_sentence_and_exit_code_1(
    server: str, arguments: tuple[str, ...], named: str
) -> None:
    ran = run(server, *arguments)
    assert (ran.exit_code, ran.stdout) == (1, "")
    (sentence,) = ran.stderr.splitlines()
    assert sentence.startswith("corral: ")
    assert named in sentence


def test_a_name_that_the_list_has_written_is_explained(server: str) -> None:
    for name in run(server, "gangs", "-A", "-o", "name").stdout.split():
        ran = run(server, "explain", name, "-o", "name")
        assert (ran.exit_code, ran.stdout.split()) == (0, [name])


@pytest.mark.parametrize(
    "arguments",
    [
        ("",),
        ("a/b/c",),
        ("/x",),
        ("x/",),
        ("default/large", "-n", "other"),
        ("o/x", "-n", "default"),
    ],
)
def test_what_is_no_name_is_a_wrong_option(server: str, arguments: tuple[str, ...]) -> None:
    ran = run(server, "explain", *arguments)
    assert (ran.exit_code, ran.stdout, len(ran.stderr.splitlines())) == (2, "", 1)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--phase", "asleep"), "'asleep' is not one of 'gathering', 'waiting', "),
        (("--phase", "asleep", "-w"), "'asleep' is not one of 'gathering', 'waiting', "),
        (("--reason", "doesnotfit"), "'doesnotfit' is not one of 'Incomplete', "),
    ],
)
def test_a_word_that_no_gang_can_have_is_a_wrong_option(
    server: str, arguments: tuple[str, ...], named: str
) -> None:
    ran = run(server, "gangs", *arguments)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert named in " ".join(ran.stderr.split())
    assert arguments[0] in ran.stderr


def test_where_nothing_listens_the_way_to_it_is_told() -> None:
    ran = run("http://127.0.0.1:1", "gangs")
    assert ran.exit_code == 1
    assert "kubectl port-forward" in ran.stderr


def test_a_proxy_for_the_internet_is_not_asked(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert run(server, "gangs").exit_code == 0


def test_a_pause_and_a_place_found_are_told() -> None:
    explained = {
        "gang": {
            "namespace": "a", "name": "g", "source": "group", "phase": "waiting",
            "reason": "BackingOff", "message": "m", "waiting_seconds": 90.0,
        },
        "fits_now": True, "best": None, "blockers": (), "excluded": (), "relaxations": (),
        "tries_again": "the pause is over", "advice": "see", "retry_seconds": 12.0,
    }  # fmt: skip
    text = "\n".join(lines_of(explained))
    assert "waiting for 1m: BackingOff" in text
    assert "Fits now" in text
    assert "not before 12s from now" in text


@pytest.mark.parametrize(
    ("reason", "once"),
    [
        ("Queued", "in its next turn"),
        ("BackingOff", "when its pause is over"),
        ("RefusedByScheduler", "once kube-scheduler brings"),
        ("NamespaceBudget", "once its namespace may hold"),
        ("Quota", "once the quota leaves enough"),
    ],
)
def test_of_a_place_that_is_found_it_is_told_what_else_the_gang_waits_for(
    reason: str, once: str
) -> None:
    explained = {
        "gang": {
            "namespace": "a", "name": "g", "source": "group", "phase": "waiting",
            "reason": reason, "message": "m", "waiting_seconds": 90.0,
        },
        "fits_now": True, "best": None, "blockers": (), "excluded": (), "relaxations": (),
        "tries_again": "it may", "advice": "", "retry_seconds": None,
    }  # fmt: skip
    (line,) = [each for each in lines_of(explained) if each.startswith("Fits now")]
    assert once in line


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0s"), (59.9, "59s"), (60, "1m"), (3_599, "59m"), (7_200, "2h"), (200_000, "2d")],
)
def test_a_span_is_written_as_kubectl_does(seconds: float, text: str) -> None:
    assert span(seconds) == text
