"""How a command finds Corral: by kubectl, by an address, and to whom a token is shown."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from app.admission.scope import Scope
from app.api.standing import Standing
from app.cli import main
from app.cli.reach import forward
from app.cli.reach.forward import place_in
from app.cli.reach.way import LEADER_TRIES, Asked, Corral
from app.dialects.spec import GangKey
from app.errors import SettingsError
from app.simulate.simulating import Rules
from tests.app.api.test_simulating import job
from tests.app.cli.gangs.test_commands import serving
from tests.app.cli.reach.kubectl import Kubectl
from tests.app.cli.served import corral
from tests.app.simulate.clusters import engine_of
from tests.app.state.world import World, four_racks, members
from tests.certificates import Pair, pair

ROOT = Path(__file__).resolve().parents[4]
SECRET = "a-token-of-somebody"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Where a Corral answers that knows one gang."""
    world = World(four_racks())
    world.put(*members("train", 2))
    world.tick()
    with serving(world) as url:
        yield url


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder without a kubeconfig, and PATH without kubectl."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    for name in ("KUBECONFIG", "CORRAL_SERVER", "CORRAL_AT"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def kubectl(home: Path, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kubectl:
    """On PATH, with a kubeconfig at home; it leads to the server."""
    (home / ".kube").mkdir()
    (home / ".kube" / "config").write_text("# kubectl's own; it is not read here\n")
    found = Kubectl(tmp_path / "bin", int(server.rpartition(":")[2]))
    monkeypatch.setenv("PATH", str(found.folder))
    return found


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments])


# -- kubectl port-forward --------------------------------------------------------------------------


def test_in_a_cluster_gangs_are_listed_without_any_setup(kubectl: Kubectl) -> None:
    ran = run("gangs", "-o", "name")
    assert (ran.exit_code, ran.stdout) == (0, "default/train\n"), ran.stderr
    assert kubectl.calls == [
        [
            "port-forward", "--namespace=corral-system", "--address=127.0.0.1",
            "deployment/corral", ":8888",
        ]
    ]  # fmt: skip
    assert kubectl.running() == []


def test_the_context_the_kubeconfig_and_the_place_are_kubectls(
    kubectl: Kubectl, tmp_path: Path
) -> None:
    flags = ["--context", "prod", "--kubeconfig", "x.conf", "--at", "gangs/pod/corral-0:9999"]
    ran = run("explain", "train", *flags, "-o", "json")
    assert ran.exit_code == 0, ran.stderr
    assert json.loads(ran.stdout)["gang"]["name"] == "train"
    (call,) = kubectl.calls
    assert call == [
        "--kubeconfig=x.conf", "--context=prod", "port-forward", "--namespace=gangs",
        "--address=127.0.0.1", "pod/corral-0", ":9999",
    ]  # fmt: skip


@pytest.fixture
def elsewhere(home: Path, kubectl: Kubectl) -> Kubectl:
    """A kubeconfig whose current context is in a namespace without gangs, and another in none."""
    contexts = [
        {"name": "here", "context": {"cluster": "c", "namespace": "empty"}},
        {"name": "there", "context": {"cluster": "c"}},
    ]
    content = {"current-context": "here", "contexts": contexts}
    (home / ".kube" / "config").write_text(yaml.safe_dump(content))
    return kubectl


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ((), []),
        (("-A",), ["default/train"]),
        (("-n", "default"), ["default/train"]),
        (("--context", "there"), ["default/train"]),
    ],
)
def test_gangs_are_those_of_the_contexts_namespace_as_for_kubectl(
    elsewhere: Kubectl, arguments: tuple[str, ...], names: list[str]
) -> None:
    ran = run("gangs", "-o", "name", *arguments)
    assert (ran.exit_code, ran.stdout.split()) == (0, names), ran.stderr


def test_a_gang_is_explained_there(elsewhere: Kubectl) -> None:
    assert "empty/train is known" in run("explain", "train").stderr
    assert run("explain", "default/train", "-o", "name").stdout == "default/train\n"


def test_objects_are_simulated_there(elsewhere: Kubectl, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(job("t", 1)))
    with corral(engine_of(four_racks()), Standing(lambda: "", rules=Rules(Scope("corral")))) as url:
        elsewhere.set(port=int(url.rpartition(":")[2]))
        assert "Job empty/t " in run("simulate", "-f", str(file)).stdout


def test_with_a_server_the_kubeconfigs_namespace_does_not_count(
    elsewhere: Kubectl, server: str
) -> None:
    assert run("gangs", "-o", "name", "--server", server).stdout == "default/train\n"


def test_with_a_server_kubectl_is_not_run(kubectl: Kubectl, server: str) -> None:
    assert run("gangs", "--server", server).exit_code == 0
    assert kubectl.calls == []


def test_kubeconfig_in_the_environment_is_enough(
    home: Path, kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / ".kube" / "config").unlink()
    monkeypatch.setenv("KUBECONFIG", "/some/where:/else")
    assert run("gangs").exit_code == 0
    assert len(kubectl.calls) == 1


def test_what_kubectls_libraries_log_is_no_reason_beside_its_own_words(kubectl: Kubectl) -> None:
    logged = 'E1128 21:35:59.600192   19574 memcache.go:265] "Unhandled Error" err="refused"'
    said = "The connection to the server localhost:8080 was refused"
    kubectl.set(fails="\n".join([*[logged] * 5, said]))
    ran = run("gangs")
    assert ran.exit_code == 1
    assert ran.stderr.endswith(f":8888`: {said}\n")
    kubectl.set(fails=logged)
    assert "Unhandled Error" in run("gangs").stderr


def test_kubectls_own_words_are_the_reason_when_it_fails(kubectl: Kubectl) -> None:
    said = 'Error from server (Forbidden): pods "corral-7" is forbidden:\n cannot portforward'
    kubectl.set(fails=said + "\x1b[31m")
    ran = run("gangs")
    assert (ran.exit_code, ran.stdout) == (1, "")
    (sentence,) = ran.stderr.splitlines()
    assert " ".join(said.split()) in sentence
    assert "kubectl port-forward --namespace=corral-system" in sentence
    assert "\x1b" not in ran.stderr


def test_a_kubectl_that_opens_nothing_is_not_waited_for_for_ever(
    kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forward, "OPEN_SECONDS", 0.3)
    kubectl.set(late=60)
    began = time.monotonic()
    ran = run("gangs")
    assert time.monotonic() - began < 5.0
    assert (ran.exit_code, "0.3 s" in ran.stderr) == (1, True)
    assert kubectl.running() == []


def test_a_kubectl_that_does_not_end_is_killed(
    kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forward, "STOP_SECONDS", 0.2)
    kubectl.set(ignores_sigterm=True)
    assert run("gangs").exit_code == 0
    assert kubectl.running() == []


def test_without_kubectl_it_is_said_what_it_is_for(
    kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nothing")
    ran = run("gangs")
    assert ran.exit_code == 1
    assert "kubectl is not on PATH" in ran.stderr
    assert "--server" in ran.stderr


def test_without_a_kubeconfig_corral_on_this_machine_is_asked(home: Path) -> None:
    """In its own pod, or beside `corral serve`; nothing listens there now, or another Corral."""
    ran = run("gangs")
    assert "kubectl is not on PATH" not in ran.stderr
    assert ran.exit_code == 0 or "http://127.0.0.1:8888" in ran.stderr


@pytest.mark.parametrize(
    "text",
    ["", "corral", "deployment/corral", "a/b/c/d", "a/deployment/corral:x", "-n/deployment/c",
     "a/deployment/corral:0", "a/deployment/corral:70000", "a//c"],
)  # fmt: skip
def test_a_place_that_is_none_is_a_wrong_option(text: str, kubectl: Kubectl) -> None:
    with pytest.raises(SettingsError, match="NAMESPACE/KIND/NAME"):
        place_in(text)
    if text:
        assert run("gangs", "--at", text).exit_code == 2
        assert kubectl.calls == []


# As in a terminal: what runs these tests may ignore signals, as `nohup` and `cmd &` have it.
WITH_SIGNALS = """
import os, signal, sys
for each in (signal.SIGINT, signal.SIGHUP):
    signal.signal(each, signal.SIG_DFL)
os.execv(sys.executable, [sys.executable, "-m", "app", "gangs", "-w", "-o", "name"])
"""


@contextmanager
def watching(**environment: str) -> Iterator[subprocess.Popen[str]]:
    """`corral gangs -w`, which does not outlive the test."""
    with subprocess.Popen(
        [sys.executable, "-c", WITH_SIGNALS],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, **environment},
    ) as program:  # fmt: skip
        try:
            yield program
        finally:
            program.kill()


@pytest.mark.slow
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_kubectl_ends_with_a_command_that_a_signal_ends(kubectl: Kubectl, signum: int) -> None:
    with watching() as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "default/train\n"
        assert len(kubectl.running()) == 1
        program.send_signal(signum)
        assert program.wait(10.0) == 128 + signum
    assert kubectl.running() == []


@pytest.mark.slow
def test_who_watches_gets_another_way_when_the_pod_behind_it_ends(kubectl: Kubectl) -> None:
    world = World(four_racks())
    world.put(*members("train", 2))
    world.tick()
    with (
        serving(world) as url,
        watching(PATH=str(_set_port(kubectl, url))) as program,
    ):
        assert program.stdout is not None
        assert program.stdout.readline() == "default/train\n"
        (first,) = kubectl.running()
        os.kill(first, signal.SIGKILL)
        world.engine.gangs.add(GangKey("default", "late", "group"))
        assert program.stdout.readline() == "default/late\n"
        (second,) = kubectl.running()
        assert second != first
        program.send_signal(signal.SIGINT)
        assert program.wait(10.0) == 130
    assert kubectl.running() == []
    assert len(kubectl.calls) == 2


def _set_port(kubectl: Kubectl, url: str) -> Path:
    kubectl.set(port=int(url.rpartition(":")[2]))
    return kubectl.folder


# -- an address, and a token -----------------------------------------------------------------------


class Listening(ThreadingHTTPServer):
    """Notes who asks with which headers, and answers no gangs, or sends elsewhere."""

    def __init__(self, certificate: Pair | None, folder: Path, elsewhere: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen: list[dict[str, str]] = []
        self.elsewhere = elsewhere
        self.refuses: tuple[str, ...] = ()
        """Leaders that it names with 503, and no answer."""
        self.leaders: list[str] = []
        """Of each answer, the pod that it names; of those after them, none."""
        scheme = "http"
        if certificate is not None:
            scheme = "https"
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate.write(folder, f"served-{self.server_port}"))
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.url = f"{scheme}://127.0.0.1:{self.server_port}"

    def handle_error(self, *_: Any) -> None:
        """A client that does not trust us goes away."""


class _Handler(BaseHTTPRequestHandler):
    server: Listening

    def do_GET(self) -> None:
        self.server.seen.append({name.lower(): value for name, value in self.headers.items()})
        if self.server.elsewhere:
            self.send_response(302)
            self.send_header("Location", self.server.elsewhere)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        leader = self.server.leaders.pop(0) if self.server.leaders else ""
        is_refused = leader in self.server.refuses
        body = b'{"detail": "not I"}' if is_refused else b'{"gangs": [], "next": ""}'
        self.send_response(503 if is_refused else 200)
        self.send_header("Content-Length", str(len(body)))
        if leader:
            self.send_header("Corral-Leader", leader)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def listening(
    folder: Path, certificate: Pair | None = None, elsewhere: str = ""
) -> Iterator[Listening]:
    with Listening(certificate, folder, elsewhere) as found:
        thread = threading.Thread(target=found.serve_forever, daemon=True)
        thread.start()
        yield found
        found.shutdown()
        thread.join(5.0)


@pytest.fixture
def token(tmp_path: Path) -> str:
    file = tmp_path / "token"
    file.write_text(f"{SECRET}\n")
    return str(file)


@pytest.fixture
def authority(tmp_path: Path) -> str:
    return str(pair("first").write(tmp_path, "ca")[0])


def kubeconfig(folder: Path, **user: str) -> str:
    """A kubeconfig with two contexts; the second one's user has `user`."""
    ca = str(pair("first").write(folder, "cluster")[0])
    server = {"server": "https://api.invalid", "certificate-authority": ca}
    users = [{"name": "one", "user": {"token": "of-one"}}, {"name": "two", "user": user}]
    content = {
        "apiVersion": "v1", "kind": "Config", "current-context": "one", "users": users,
        "clusters": [{"name": "c", "cluster": server}],
        "contexts": [
            {"name": name, "context": {"cluster": "c", "user": name}} for name in ("one", "two")
        ],
    }  # fmt: skip
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(content))
    return str(file)


def test_a_token_is_shown_to_an_https_server_that_is_named(
    home: Path, tmp_path: Path, token: str, authority: str
) -> None:
    with listening(tmp_path, pair("first")) as corral:
        flags = ["--server", corral.url, "--certificate-authority", authority]
        assert run("gangs", *flags, "--token-file", token).exit_code == 0
        assert run("gangs", *flags).exit_code == 0
    assert [each.get("authorization") for each in corral.seen] == [f"Bearer {SECRET}", None]


def test_the_kubeconfigs_token_and_authority_count_where_it_is_given(
    home: Path, tmp_path: Path, token: str
) -> None:
    file = kubeconfig(tmp_path, token="of-two")
    with listening(tmp_path, pair("first")) as corral:
        for more in ([], ["--context", "two"], ["--token-file", token]):
            ran = run("gangs", "--server", corral.url, "--kubeconfig", file, *more)
            assert ran.exit_code == 0, ran.stderr
    shown = [each.get("authorization") for each in corral.seen]
    assert shown == ["Bearer of-one", "Bearer of-two", f"Bearer {SECRET}"]


def test_a_kubeconfig_that_is_not_named_shows_nobody_a_token(
    home: Path, tmp_path: Path, authority: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", kubeconfig(tmp_path, token="of-two"))
    with listening(tmp_path, pair("first")) as corral:
        flags = ["--server", corral.url, "--certificate-authority", authority]
        assert run("gangs", *flags).exit_code == 0
        assert run("gangs", *flags, "--context", "two").exit_code == 0
    assert [each.get("authorization") for each in corral.seen] == [None, "Bearer of-two"]


def test_who_has_a_certificate_and_no_token_is_told_so(home: Path, tmp_path: Path) -> None:
    with listening(tmp_path, pair("first")) as corral:
        file = kubeconfig(tmp_path)
        ran = run("gangs", "--server", corral.url, "--kubeconfig", file, "--context", "two")
    assert (ran.exit_code, "--token-file" in ran.stderr) == (2, True)
    assert corral.seen == []


def test_a_server_of_another_authority_gets_no_token(
    home: Path, tmp_path: Path, token: str, authority: str
) -> None:
    with listening(tmp_path, pair("second")) as other:
        for more in (["--certificate-authority", authority], []):
            ran = run("gangs", "--server", other.url, "--token-file", token, *more)
            assert ran.exit_code == 1
            assert "certificate" in ran.stderr
            assert SECRET not in ran.stderr
    assert other.seen == []


def test_a_token_does_not_follow_a_redirect(
    home: Path, tmp_path: Path, token: str, authority: str
) -> None:
    with (
        listening(tmp_path, pair("first")) as thief,
        listening(tmp_path, pair("first"), f"{thief.url}/v1/gangs") as corral,
    ):
        flags = ["--certificate-authority", authority, "--token-file", token]
        ran = run("gangs", "--server", corral.url, *flags)
    assert ran.exit_code == 1
    assert len(corral.seen) == 1
    assert thief.seen == []


@pytest.mark.parametrize(
    "flags",
    [("--token-file", "token"), ("--certificate-authority", "ca"), ("--context", "prod"),
     ("--kubeconfig", "k")],
)  # fmt: skip
def test_over_plain_http_nobody_is_shown_anything(
    home: Path, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    with listening(tmp_path) as plain:
        ran = run("gangs", "--server", plain.url, *flags)
    assert (ran.exit_code, plain.seen) == (2, [])
    assert flags[0] in ran.stderr
    assert "https" in ran.stderr


def test_through_kubectl_no_token_is_shown(kubectl: Kubectl, tmp_path: Path, token: str) -> None:
    with listening(tmp_path) as corral:
        kubectl.set(port=corral.server_port)
        ran = run("gangs", "--kubeconfig", kubeconfig(tmp_path, token="of-two"))
        assert ran.exit_code == 0, ran.stderr
        assert run("gangs", "--token-file", token).exit_code == 2
    assert [each.get("authorization") for each in corral.seen] == [None]


@pytest.mark.parametrize("content", ["", "\n", "two words", "x" * 70_000, "t\u00f6ken"])
def test_a_file_that_has_no_token_is_named(
    home: Path, tmp_path: Path, authority: str, content: str
) -> None:
    file = tmp_path / "broken"
    file.write_text(content)
    with listening(tmp_path, pair("first")) as corral:
        for name in (str(file), str(tmp_path / "absent")):
            ran = run("gangs", "--server", corral.url, "--token-file", name)
            assert (ran.exit_code, name in ran.stderr) == (2, True)
    assert corral.seen == []


@pytest.mark.parametrize("url", ["ftp://127.0.0.1", "127.0.0.1:8888", "file:///etc/passwd"])
def test_an_address_that_is_none_is_a_wrong_option(home: Path, url: str) -> None:
    ran = run("gangs", "--server", url)
    assert (ran.exit_code, url in ran.stderr) == (2, True)


# -- the Corral that leads -------------------------------------------------------------------------


def test_the_pod_that_leads_is_asked_where_another_one_says_so(
    kubectl: Kubectl, tmp_path: Path
) -> None:
    with listening(tmp_path) as corral:
        kubectl.set(port=corral.server_port)
        corral.leaders = ["corral-7"]
        assert run("gangs", "--context", "prod").exit_code == 0
        assert len(corral.seen) == 2
    first, second = kubectl.calls
    assert "deployment/corral" in first
    assert second == [each.replace("deployment/corral", "pod/corral-7") for each in first]
    assert kubectl.running() == []


@pytest.mark.parametrize(("others", "code"), [(1, 0), (2, 1)])
def test_the_pod_that_leads_is_asked_where_another_one_refuses(
    kubectl: Kubectl, tmp_path: Path, others: int, code: int
) -> None:
    with listening(tmp_path) as corral:
        kubectl.set(port=corral.server_port)
        corral.leaders, corral.refuses = ["corral-7"] * others, ("corral-7",)
        ran = run("gangs")
    assert [call[-2] for call in kubectl.calls] == ["deployment/corral", "pod/corral-7"]
    assert (ran.exit_code, "not I" in ran.stderr) == (code, code == 1)


def test_kubectl_ends_by_a_signal_also_where_it_leads_to_the_leader(
    kubectl: Kubectl, tmp_path: Path
) -> None:
    with listening(tmp_path) as found:
        kubectl.set(port=found.server_port)
        found.leaders = ["corral-7"]
        corral = Corral(Asked())
        corral.open("/v1/gangs", timeout=5.0).close()
        assert len(kubectl.calls) == 2
        with pytest.raises(SystemExit):
            signal.raise_signal(signal.SIGTERM)
        corral.close()
    assert kubectl.running() == []
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_leader_that_may_not_be_reached_is_not_asked(kubectl: Kubectl, tmp_path: Path) -> None:
    with listening(tmp_path) as corral:
        kubectl.set(port=corral.server_port, refuses="pod/")
        corral.leaders = ["corral-7", "corral-7", "corral-7"]
        assert run("gangs").exit_code == 0
    assert [call[-2] for call in kubectl.calls] == [
        "deployment/corral", "pod/corral-7", "deployment/corral",
    ]  # fmt: skip


def test_a_leader_that_does_not_lead_any_more_is_not_chased(
    kubectl: Kubectl, tmp_path: Path
) -> None:
    with listening(tmp_path) as corral:
        kubectl.set(port=corral.server_port)
        corral.leaders = ["corral-7", "corral-8", "corral-9"]
        assert run("gangs").exit_code == 0
    assert len(kubectl.calls) == 2


@pytest.mark.parametrize("name", ["--flag", "a/b", "A", "a b", "x" * 300])
def test_what_is_no_name_of_a_pod_is_not_given_to_kubectl(
    kubectl: Kubectl, tmp_path: Path, name: str
) -> None:
    with listening(tmp_path) as corral:
        kubectl.set(port=corral.server_port)
        corral.leaders = [name]
        assert run("gangs").exit_code == 0
    assert len(kubectl.calls) == 1


def test_a_pod_that_the_user_has_named_is_asked_itself(kubectl: Kubectl, tmp_path: Path) -> None:
    with listening(tmp_path) as corral:
        kubectl.set(port=corral.server_port)
        corral.leaders = ["corral-7"]
        assert run("gangs", "--at", "corral-system/pod/corral-0").exit_code == 0
    assert len(kubectl.calls) == 1


def test_behind_a_service_it_is_asked_until_the_one_that_leads_answers(
    home: Path, tmp_path: Path, authority: str
) -> None:
    with listening(tmp_path, pair("first")) as service:
        flags = ["--server", service.url, "--certificate-authority", authority]
        for others, asked in ((3, 4), (100, LEADER_TRIES + 1)):
            service.leaders, service.seen[:] = ["corral-7"] * others, []
            assert run("gangs", *flags).exit_code == 0
            assert len(service.seen) == asked
