"""`corral gangs -w`: what changes is shown once, over as many streams as it takes."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from app.cli import main
from app.cli.gangs import following
from app.cli.gangs.following import PAUSES, Rows, follow
from app.cli.gangs.server import NoAnswer, Refused, ask
from app.cli.reach.way import Asked, Corral
from app.dialects.spec import GangKey
from tests.app.cli.gangs.test_commands import serving
from tests.app.state.world import World, four_racks, members

ROOT = Path(__file__).resolve().parents[4]


def gang(name: str, phase: str = "waiting", **more: Any) -> dict[str, Any]:
    return {
        "namespace": "a", "name": name, "source": "job", "phase": phase, "reason": "DoesNotFit",
        "message": "m", "waiting_seconds": 1.0, "domains": [],
        "pods": {"declared": 2, "there": 2, "planned": 0, "bound": 0}, **more,
    }  # fmt: skip


def event(kind: str, **data: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n".encode()


SYNCED = event("synced", gangs=1)
NAME = {"namespace": "a", "name": "x", "source": "job"}


class Ended(Exception):
    """The test has seen enough."""


class Streams(ThreadingHTTPServer):
    """Answers each request with the next of these: the bytes of a stream, or an HTTP status."""

    def __init__(self, answers: Sequence[bytes | int]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = list(answers)
        self.asked: list[str] = []
        self.refusal = b'{"detail": "why not"}'

    @property
    def corral(self) -> Corral:
        return Corral(Asked(f"http://127.0.0.1:{self.server_port}"))


class _Handler(BaseHTTPRequestHandler):
    server: Streams

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        answer = self.server.answers.pop(0)
        if isinstance(answer, int):
            self.send_response(answer)
            self.end_headers()
            self.wfile.write(self.server.refusal)
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(answer)

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def streams(*answers: bytes | int) -> Iterator[Streams]:
    with Streams(answers) as found:
        thread = threading.Thread(target=found.serve_forever, daemon=True)
        thread.start()
        yield found
        found.shutdown()
        thread.join(5.0)


def followed(
    *answers: bytes | int, is_wanted: Callable[[Any], bool] = lambda _gang: True, pauses: int = 99
) -> tuple[list[tuple[str, str]], list[float], Exception | None]:
    """What is shown of such streams, the pauses between them, and what ended it."""
    shown, slept = list[tuple[str, str]](), list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if not server.answers or len(slept) == pauses:
            raise Ended

    with streams(*answers) as server:
        try:
            follow(
                server.corral, "a", Rows(is_wanted),
                lambda each: shown.append((each["name"], each["phase"])), lambda: None, sleep=sleep,
            )  # fmt: skip
        except (Ended, NoAnswer) as error:
            return shown, slept, error
    raise AssertionError


def test_each_gang_is_shown_as_it_is_and_when_it_changes() -> None:
    told = [
        event("gang", **gang("x")), event("gang", **gang("y")), SYNCED, b": nothing new\n\n",
        event("gang", **gang("x", "placed")), event("gone", **{**NAME, "name": "y"}),
    ]  # fmt: skip
    shown, _, _ = followed(b"retry: 2000\n\n" + b"".join(told))
    assert shown == [("x", "waiting"), ("y", "waiting"), ("x", "placed"), ("y", "gone")]


def test_another_stream_repeats_nothing_and_tells_what_is_gone() -> None:
    first = event("gang", **gang("x")) + event("gang", **gang("y")) + SYNCED
    second = event("gang", **gang("x", waiting_seconds=99.0)) + event("gang", **gang("z")) + SYNCED
    shown, slept, _ = followed(first, second, b"")
    assert shown == [("x", "waiting"), ("y", "waiting"), ("z", "waiting"), ("y", "gone")]
    assert slept[:2] == [PAUSES[0]] * 2


def test_a_stream_that_breaks_before_all_have_come_takes_nobody_for_gone() -> None:
    first = event("gang", **gang("x")) + event("gang", **gang("y")) + SYNCED
    shown, _, _ = followed(first, event("gang", **gang("x")), first)
    assert shown == [("x", "waiting"), ("y", "waiting")]


def test_what_is_not_asked_for_is_shown_when_it_was_before() -> None:
    told = [
        event("gang", **gang("x")), event("gang", **gang("y", "running")), SYNCED,
        event("gang", **gang("x", "running")), event("gang", **gang("x", "running", priority=1)),
        event("gone", **NAME),
    ]  # fmt: skip
    shown, _, _ = followed(b"".join(told), is_wanted=lambda each: each["phase"] == "waiting")
    assert shown == [("x", "waiting"), ("x", "running")]


def test_the_last_event_says_why_and_it_is_asked_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    followed(SYNCED + event("end", reason="too\x1b slow"), SYNCED)
    assert "corral: too  slow; asking again" in capsys.readouterr().err


def test_pauses_grow_and_have_an_end() -> None:
    failing = [503] * (len(PAUSES) + 2)
    _, slept, error = followed(SYNCED, *failing)
    assert slept == [PAUSES[0], *PAUSES[1:]]
    assert isinstance(error, Refused)
    assert error.status == 503
    assert sorted(slept) == slept


def test_after_a_stream_that_begins_pauses_are_short_again() -> None:
    _, slept, _ = followed(SYNCED, 503, 503, SYNCED, 503, SYNCED)
    assert slept == [1.0, 2.0, 4.0, 1.0, 2.0, 1.0]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_refusal_that_stays_ends_it(status: int) -> None:
    for before in ([], [SYNCED]):
        _, slept, error = followed(*before, status, SYNCED)
        assert isinstance(error, Refused)
        assert (error.status, str(error)) == (status, "why not")
        assert len(slept) == len(before)


def test_what_never_began_is_not_asked_again() -> None:
    _, slept, error = followed(503, SYNCED)
    assert (slept, str(error)) == ([], "why not")


@pytest.mark.parametrize(
    "broken", [b"event: gang\ndata: {no json\n\n", b"data: " + b"x" * 5_000, b"event: \xff\n\n"]
)
def test_a_stream_that_cannot_be_read_is_asked_again(
    broken: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "LONGEST_LINE", 4_000)
    _, slept, error = followed(SYNCED + broken, SYNCED)
    assert isinstance(error, Ended)
    assert slept == [1.0, 1.0]


# -- as a user runs it -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def world() -> World:
    world = World(four_racks())
    world.put(*members("train", 2))
    world.tick()
    return world


@pytest.fixture(scope="module")
def server(world: World) -> Iterator[str]:
    with serving(world) as url:
        yield url


@contextmanager
def watching(server: str, *arguments: str) -> Iterator[Iterator[str]]:
    """The lines of a command that does not end by itself."""
    with subprocess.Popen(
        [sys.executable, "-m", "app", "gangs", "-w", "--server", server, *arguments],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as program:  # fmt: skip
        assert program.stdout is not None
        yield iter(program.stdout)
        program.terminate()


@pytest.mark.slow
def test_rows_are_printed_below_each_other_as_they_change(world: World, server: str) -> None:
    with watching(server) as lines:
        header, first = next(lines), next(lines)
        assert header.split()[:4] == ["NAMESPACE", "NAME", "SOURCE", "PHASE"]
        assert first.split()[:4] == ["default", "train", "group", "placed"]
        key = GangKey("default", "late", "group")
        added = world.engine.gangs.add(key)
        row = next(lines)
        assert row.split()[:4] == ["default", "late", "group", "gathering"]
        assert row.index("group") == first.index("group") == header.index("SOURCE")
        world.engine.gangs.remove(added)
        assert next(lines).split()[:4] == ["default", "late", "group", "gone"]


@pytest.mark.slow
def test_programs_get_an_object_a_line(world: World, server: str) -> None:
    with watching(server, "-A", "-o", "json") as lines:
        assert json.loads(next(lines))["name"] == "train"
        added = world.engine.gangs.add(GangKey("other", "more", "group"))
        found = json.loads(next(lines))
        assert (found["namespace"], found["name"]) == ("other", "more")
        world.engine.gangs.remove(added)
        assert json.loads(next(lines))["phase"] == "gone"
    with watching(server, "-o", "yaml") as lines:
        assert next(lines) == "---\n"
        text = "".join(line for line, _ in zip(lines, range(6), strict=False))
        assert yaml.safe_load(text)["name"] == "train"


@pytest.mark.slow
def test_a_reader_who_has_enough_is_no_error(world: World, server: str) -> None:
    command = f"{sys.executable} -m app gangs -w -o name --server {server} | head -1"
    with subprocess.Popen(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as shell:  # fmt: skip
        assert shell.stdout is not None
        assert shell.stdout.readline() == "default/train\n"
        deadline = time.monotonic() + 20.0
        at = 0
        while shell.poll() is None:  # it notices with the next row
            assert time.monotonic() < deadline
            gangs = world.engine.gangs
            gangs.remove(gangs.add(GangKey("default", f"more-{at}", "group")))
            added = gangs.add(GangKey("default", f"stays-{at}", "group"))
            time.sleep(0.1)
            gangs.remove(added)
            at += 1
        assert shell.returncode == 0
        assert shell.stderr is not None
        assert shell.stderr.read() == ""


def test_a_stream_that_ends_within_a_line_is_not_said_to_be_too_long() -> None:
    first = event("gang", **gang("x")) + SYNCED
    shown, slept, error = followed(first + b'event: gang\ndata: {"na', b"", pauses=1)
    assert (shown, slept) == ([("x", "waiting")], [PAUSES[0]])
    assert isinstance(error, Ended)
    with (
        streams(b"<html>who are you?</html>") as server,
        pytest.raises(NoAnswer, match="the stream was cut short"),
    ):
        list(following.events(server.corral, ""))


@pytest.mark.parametrize(
    ("command", "field"),
    [
        (["gangs"], "gangs"),
        (["explain", "x"], "gang"),
        (["topology", "usage"], "domains"),
        (["simulate", "-f", "/dev/null"], "gangs"),
    ],
)
@pytest.mark.parametrize("answer", [b"null", b"[]", b'{"kind":"Status"}'])
def test_a_server_that_is_no_corral_is_named(command: list[str], field: str, answer: bytes) -> None:
    with streams(answer) as server:
        ran = CliRunner().invoke(main, [*command, "--server", server.corral.named])
    assert ran.exit_code == 1
    assert ran.stderr == (
        f"corral: {server.corral.named} is no Corral, or another version of it:"
        f" it answers without `{field}`\n"
    )


def test_a_refusal_without_words_names_the_server() -> None:
    with streams(502) as server:
        server.refusal = b"<html>Bad gateway</html>"
        with pytest.raises(Refused, match=f"^{server.corral.named} answers HTTP 502 Bad Gateway$"):
            ask(server.corral, "gangs", has="gangs")
