"""A real control plane on loopback: etcd, kube-apiserver, kube-scheduler, kube-controller-manager.

    with ControlPlane(folder) as plane:                 # etcd and the API server, ready
        plane.nodes(grid(racks=4, nodes=8, gpus=8))
        plane.start_scheduler(SCHEDULER_CONFIG, extender="http://127.0.0.1:8888")
        plane.cluster("corral").list("Pod")             # as one of USERS

There is no kubelet: a pod that is bound stays Pending, a node stays as it was created. What the
processes say is in `folder`, one log each.
"""

from __future__ import annotations

import copy
import itertools
import json
import os
import re
import socket
import ssl
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.certificates import client, replace
from tests.cluster import Cluster, Object, Objects
from tests.controlplane.process import Process

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RBAC = ROOT / "deploy" / "rbac.yaml"
POLICY = ROOT / "deploy" / "policy.yaml"
SERVED = ("corral", "default-scheduler", "kai-scheduler")  # schedulers that Corral has profiles of
SCHEDULER_CONFIG = ROOT / "scheduler-config" / "1.36.yaml"

START_SECONDS = 60.0  # a process on a busy machine with cold disks; 3 s otherwise

FIRST_PORT, PORTS = 20_000, 12_768  # below those of connections
LANES = 8  # of as many workers of xdist; one that has no number is in the last

# Who may speak to the API server: user name and groups, as RBAC sees them. The service accounts are
# those of deploy/rbac.yaml, so whatever works here works with the rights that are shipped.
SERVICE_ACCOUNTS = "system:serviceaccounts,system:serviceaccounts:corral-system"
USERS = {
    "admin": ("admin", "system:masters"),
    "corral": ("system:serviceaccount:corral-system:corral", SERVICE_ACCOUNTS),
    "corral-scheduler": ("system:serviceaccount:corral-system:corral-scheduler", SERVICE_ACCOUNTS),
    "stranger": ("stranger", ""),
    "tenant": ("tenant", ""),
}

# Where the chart is installed, in the tests that install it elsewhere than the manifests are.
ELSEWHERE = "gang-scheduling"
# Whose requests the API server writes down, one line each: the identities that are shipped.
AUDITED = [
    *(USERS["corral"][0], USERS["corral-scheduler"][0]),
    *(f"system:serviceaccount:{ELSEWHERE}:{name}" for name in ("corral", "corral-scheduler")),
]
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [{"level": "Metadata", "users": AUDITED}, {"level": "None"}],
}

# No node lifecycle: without kubelets it would taint every node after 40 s.
CONTROLLERS = ",".join(
    f"{name}-controller"
    for name in (
        "job",
        "statefulset",
        "garbage-collector",
        "namespace",
        "validatingadmissionpolicy-status",  # checks the types of deploy/policy.yaml
    )
)


def ports_of(pid: int, worker: str) -> Iterator[int]:
    """The ports that a test process tries, one after the other, round and round.

    Workers that run side by side share none: where one has killed what listened there, or does not
    listen yet, another would find the port free. Other processes begin elsewhere.
    worker: its name in xdist, such as "gw0"; "": it is none.
    """
    lane, ports = int(worker[2:] or LANES - 1) % LANES, PORTS // LANES
    begin = FIRST_PORT + lane * ports
    return (begin + (pid * 97 + step) % ports for step in itertools.count())


_UPWARD = ports_of(os.getpid(), os.environ.get("PYTEST_XDIST_WORKER", ""))


class BinariesMissing(Exception):
    """The control plane is not built on this machine; says which parts, and how to build them."""


def binaries() -> Path:
    """The folder of the built binaries. Raises: BinariesMissing."""
    missing = _build_script("--missing").split()
    if missing:
        raise BinariesMissing(
            f"the real control plane is not built ({', '.join(missing)}): "
            "run `sh tests/controlplane/build.sh`, which needs Go"
        )
    return Path(_build_script("--folder").strip())


def operator(program: str) -> Path:
    """An operator of operators/table.txt, its version by its go.mod. Raises: BinariesMissing."""
    file = Path(_build_script("--program", program).strip())
    if not file.exists():
        option = "--schedulers" if program.startswith("kube-") else "--operators"
        raise BinariesMissing(
            f"{file.name} is not built: run `sh tests/controlplane/build.sh {option}`"
        )
    return file


def profiles(scheduler: str, config: Path = SCHEDULER_CONFIG) -> list[Any]:
    """Those of a shipped configuration, for pods that name this scheduler; several with commas."""
    shipped = yaml.safe_load(config.read_text(encoding="utf-8"))
    names = scheduler.split(",")
    return [{**each, "schedulerName": name} for name in names for each in shipped["profiles"]]


@dataclass(frozen=True, slots=True)
class Denial:
    """A request that the rights of deploy/rbac.yaml or a policy of deploy/policy.yaml refused."""

    user: str
    verb: str
    path: str
    why: str


class ControlPlane:
    """etcd and kube-apiserver while the `with` block lasts, and whatever is started beside them."""

    def __init__(
        self,
        folder: Path,
        *,
        has_controllers: bool = False,
        is_audited: bool = False,
        apiserver_flags: Sequence[str] = (),
        apiserver: str | Path = "kube-apiserver",
        manifests: Sequence[Object] | None = None,
    ) -> None:
        """`apiserver`: its program, such as one of another version.

        `manifests`: what is applied at the start; None: deploy/rbac.yaml and policy.yaml.
        """
        self.folder = folder
        self._binaries = binaries()
        self._has_controllers = has_controllers
        self._is_audited = is_audited  # else `denials` knows nothing; a line a request costs
        self._more_flags, self._apiserver_program = apiserver_flags, apiserver
        self._manifests = manifests
        self._stack = ExitStack()
        self._clusters: dict[str, Cluster] = {}
        self._scheduler: Process | None = None
        self._apiserver: Process | None = None
        self._flags: list[str] = []  # of the API server: it starts again as it was
        etcd, peer, secure = free_ports(3)
        self.etcd_url = f"http://127.0.0.1:{etcd}"
        self._peer_url = f"http://127.0.0.1:{peer}"
        self._port = secure
        self.url = f"https://127.0.0.1:{secure}"
        self.ca = folder / "certificates" / "apiserver.crt"
        self._audit_log = folder / "audit.log"
        self._audited = 0  # bytes of the log that `denials` has read

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def cluster(self, user: str = "admin") -> Cluster:
        """A client that is one of USERS; closed with the plane."""
        if user not in self._clusters:
            client = Cluster(self.url, token(user), self.ca)
            self._clusters[user] = self._stack.enter_context(client)
        return self._clusters[user]

    @contextmanager
    def granted(self, role: str, user: str = "corral") -> Iterator[None]:
        """While the block lasts, one of USERS has one more ClusterRole."""
        admin = self.cluster()
        group = "rbac.authorization.k8s.io"
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"{role}-{user}"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "User", "apiGroup": group, "name": USERS[user][0]}],
        }
        shipped = admin.get("ClusterRole", role)
        assert shipped, f"there is no ClusterRole {role}"
        rule, client = shipped["rules"][0], self.cluster(user)
        has_it_anyway = may(client, rule)
        admin.create(binding)
        try:
            admin.wait(lambda: may(client, rule), START_SECONDS, f"the right {role}")
            yield
        finally:
            admin.delete("ClusterRoleBinding", f"{role}-{user}")
            # The API server hears of it a moment later: the next test may be about its absence.
            admin.wait(
                lambda: has_it_anyway or not may(client, rule), START_SECONDS, f"the end of {role}"
            )

    def nodes(self, nodes: Iterable[Object]) -> Objects:
        """The nodes as stored, each with the status it came with."""
        return self.cluster().create_all(nodes)

    def kubeconfig(self, user: str = "admin") -> Path:
        """A file with which any Kubernetes client is that user here."""
        path = self.folder / f"{user}.kubeconfig"
        server = {"server": self.url, "certificate-authority": str(self.ca)}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "plane", "cluster": server}],
            "users": [{"name": user, "user": {"token": token(user)}}],
            "contexts": [{"name": "plane", "context": {"cluster": "plane", "user": user}}],
            "current-context": "plane",
        }
        replace(path, yaml.safe_dump(content).encode())  # what has started before may be reading it
        return path

    def start_scheduler(
        self,
        config: Path = SCHEDULER_CONFIG,
        extender: str | None = None,
        tls: Mapping[str, Path] | None = None,
        flags: Sequence[str] = (),
        program: str | Path = "kube-scheduler",
        **replace: Any,
    ) -> None:
        """Starts kube-scheduler with a configuration file, and returns when it schedules.

        Only what a test machine needs is replaced: the kubeconfig, the extender's address (without
        one there is no extender at all) and, with `tls`, the files of its tlsConfig, no leader
        election. `replace` sets further top-level fields: mappings are merged into the file's,
        anything else takes its place.
        """
        if self._scheduler is not None:
            raise RuntimeError("a kube-scheduler runs already: stop_scheduler first")
        settings = yaml.safe_load(config.read_text(encoding="utf-8"))
        here: dict[str, Any] = {"urlPrefix": extender}
        if tls is not None:
            here["tlsConfig"] = {name: str(file) for name, file in tls.items()}
        settings["extenders"] = (
            [{**one, **here} for one in settings.get("extenders", [])] if extender else []
        )
        settings = merged(
            settings,
            {
                "clientConnection": {"kubeconfig": str(self.kubeconfig("corral-scheduler"))},
                "leaderElection": {"leaderElect": False},
                **replace,
            },
        )
        path = self.folder / "kube-scheduler.yaml"
        path.write_text(yaml.safe_dump(settings), encoding="utf-8")
        (port,) = free_ports(1)
        self._scheduler = self._run(
            program,
            f"--config={path}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            "-v=2",
            *flags,
        )
        try:
            wait_ready(self._scheduler, f"https://127.0.0.1:{port}/readyz")
        except BaseException:
            self.stop_scheduler()
            raise

    def stop_scheduler(self) -> None:
        """Stops kube-scheduler, if one runs; the cluster stays as it is."""
        if self._scheduler is not None:
            self._scheduler.stop()
            self._scheduler = None

    def start_apiserver(self) -> None:
        """Starts kube-apiserver on the data there is, and returns when it is ready."""
        self._apiserver = self._run(self._apiserver_program, *self._flags)
        wait_ready(self._apiserver, f"{self.url}/readyz", token("admin"))

    def stop_apiserver(self) -> None:
        """Stops kube-apiserver; what it has stored stays."""
        if self._apiserver is not None:
            self._apiserver.stop()
            self._apiserver = None

    @contextmanager
    def scheduler(self, name: str, extender: str, **replace: Any) -> Iterator[Process]:
        """One more kube-scheduler while the block lasts, on a host of this name.

        It elects its leader with the others by the Lease of the shipped configuration.
        """
        settings = yaml.safe_load(SCHEDULER_CONFIG.read_text(encoding="utf-8"))
        for one in settings["extenders"]:
            one["urlPrefix"] = extender
        kubeconfig = {"kubeconfig": str(self.kubeconfig("corral-scheduler"))}
        settings = merged(settings, {"clientConnection": kubeconfig, **replace})
        path = self.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(settings), encoding="utf-8")
        (port,) = free_ports(1)
        own_host = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', name]
        flags = [f"--config={path}", "--bind-address=127.0.0.1", f"--secure-port={port}"]
        command = [*own_host, self._binaries / "kube-scheduler", *flags, "-v=2"]
        process = Process(command, self.folder / f"{name}.log")
        try:
            wait_ready(process, f"https://127.0.0.1:{port}/healthz")
            yield process
        finally:
            process.stop()

    @contextmanager
    def controller(self, name: str, *flags: str) -> Iterator[None]:
        """One more controller while the block lasts, such as "resourcequota-controller"."""
        flags = (*self._controller_flags(name), *flags)
        command = [self._binaries / "kube-controller-manager", *flags]
        process = Process(command, self.folder / f"{name}.log")
        try:
            yield
        finally:
            process.stop()

    @property
    def scheduler_log(self) -> str:
        """What every kube-scheduler of this plane has said so far, one after the other."""
        log = self.folder / "kube-scheduler.log"
        return log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""

    def denials(self) -> list[Denial]:
        """What the API server has denied the shipped identities since the last call."""
        if not self._audit_log.exists():
            return []
        with self._audit_log.open("rb") as log:
            log.seek(self._audited)
            lines = log.read().rpartition(b"\n")[0].splitlines(keepends=True)
        self._audited += sum(map(len, lines)) + bool(lines)  # the last one has lost its newline
        return [found for line in lines if (found := _denial(json.loads(line)))]

    def apiserver_metrics(self) -> dict[str, float]:
        """The API server's metrics now: `name{label="value",…}` as it prints them -> value."""
        text = self.cluster().request("GET", "/metrics").text
        samples = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, value in samples}

    def _start(self) -> None:
        etcd = self._run(
            "etcd",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={self.etcd_url}",
            f"--advertise-client-urls={self.etcd_url}",
            f"--listen-peer-urls={self._peer_url}",
            f"--initial-advertise-peer-urls={self._peer_url}",
            f"--initial-cluster=default={self._peer_url}",
            "--unsafe-no-fsync",  # a crash of the machine may lose a test's cluster
        )
        wait_ready(etcd, f"{self.etcd_url}/readyz")
        self._flags = [*self._apiserver_flags(), *self._audit_flags(), *self._more_flags]
        self.start_apiserver()
        admin = self.cluster()
        admin.wait(lambda: admin.get("Namespace", "default"), START_SECONDS, "namespace default")
        for document in shipped_rights() if self._manifests is None else self._manifests:
            admin.apply(document)
        if self._has_controllers:
            self._run("kube-controller-manager", *self._controller_flags(CONTROLLERS))

    def _controller_flags(self, controllers: str) -> list[str]:
        return [
            f"--kubeconfig={self.kubeconfig('admin')}",
            f"--controllers={controllers}",
            "--leader-elect=false",
            "--secure-port=0",
        ]

    def _apiserver_flags(self) -> list[str]:
        key = self.folder / "service-account.key"
        key.write_bytes(_private_key())
        tokens = self.folder / "tokens.csv"
        tokens.write_text(
            "".join(
                f'{token(user)},{name},{user},"{groups}"\n'
                for user, (name, groups) in USERS.items()
            ),
            encoding="utf-8",
        )
        return [
            f"--etcd-servers={self.etcd_url}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self._port}",
            f"--cert-dir={self.ca.parent}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--authorization-mode=RBAC",
            f"--token-auth-file={tokens}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--endpoint-reconciler-type=none",
            # Pods need no token here, and new nodes are not to wait for a kubelet's first word.
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
            f"--admission-control-config-file={self._webhook_client()}",
            "--max-requests-inflight=2000",
            "--max-mutating-requests-inflight=1000",
        ]

    def _webhook_client(self) -> Path:
        """A file that has the API server show webhooks a certificate of `pair("apiservers")`."""
        certificate, key = client("apiserver", by="apiservers").write(self.folder, "webhook-client")
        user = {"client-certificate": str(certificate), "client-key": str(key)}
        kubeconfig = self.folder / "webhook-client.kubeconfig"
        content: Object = {"apiVersion": "v1", "kind": "Config"}
        content["users"] = [{"name": "*", "user": user}]
        kubeconfig.write_text(yaml.safe_dump(content), encoding="utf-8")
        path = self.folder / "admission-configuration.yaml"
        plugin = {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "WebhookAdmissionConfiguration",
            "kubeConfigFile": str(kubeconfig),
        }
        content = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration"}
        content["plugins"] = [
            {"name": f"{kind}AdmissionWebhook", "configuration": plugin}
            for kind in ("Mutating", "Validating")
        ]
        path.write_text(yaml.safe_dump(content), encoding="utf-8")
        return path

    def _audit_flags(self) -> list[str]:
        if not self._is_audited:
            return []
        policy = self.folder / "audit-policy.yaml"
        policy.write_text(yaml.safe_dump(AUDIT_POLICY), encoding="utf-8")
        return [f"--audit-policy-file={policy}", f"--audit-log-path={self._audit_log}"]

    def _run(self, program: str | Path, *flags: str) -> Process:
        file = self._binaries / program
        log = re.sub(r"-\d.*", "", file.name)  # without a version
        process = Process([file, *flags], self.folder / f"{log}.log")
        self._stack.callback(process.stop)
        return process


def shipped_rights() -> Iterator[Object]:
    """What deploy/rbac.yaml and deploy/policy.yaml say, the latter for all schedulers of tests."""
    ours = "schedulerName.orValue('') "
    for file in (RBAC, POLICY):
        text = file.read_text(encoding="utf-8")
        text = text.replace(f"{ours}== 'corral'", f"{ours}in {[*SERVED]}")
        yield from yaml.safe_load_all(text)


def may(user: Cluster, rule: Mapping[str, Any]) -> bool:
    """Whether the user has the right that a rule of a ClusterRole begins with."""
    resource, _, subresource = rule["resources"][0].partition("/")
    asked = {
        "verb": rule["verbs"][0],
        "group": rule["apiGroups"][0],
        "resource": resource,
        "subresource": subresource,
        "namespace": rule.get("namespace", ""),
        "name": rule.get("resourceNames", [""])[0],
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": asked},
    }
    return bool(user.create(review)["status"]["allowed"])


def _denial(event: Mapping[str, Any]) -> Denial | None:
    """What an event of the audit log says of a request that was denied, None of any other."""
    answer = event.get("responseStatus", {})
    why = answer.get("message", "")
    is_forbidden = event.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid"
    if not is_forbidden and "ValidatingAdmissionPolicy" not in why:
        return None
    return Denial(event["user"]["username"], event["verb"], event["requestURI"], why)


def _private_key() -> bytes:
    """A new RSA key as PEM, with which the API server signs and checks service account tokens."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def token(user: str) -> str:
    """The bearer token of one of USERS."""
    if user not in USERS:
        raise ValueError(f"no user {user!r}; there are {', '.join(USERS)}")
    return f"token-of-{user}"


def merged(settings: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with the changes laid over them, mapping by mapping; neither is touched."""
    result = copy.deepcopy(dict(settings))
    for name, change in changes.items():
        before = result.get(name)
        if isinstance(before, dict) and isinstance(change, dict):
            result[name] = merged(before, change)
        else:
            result[name] = change
    return result


def free_ports(ports: int) -> list[int]:
    """That many loopback ports that nobody has now, and none is given twice in a row.

    They are below those that Linux gives to connections (ip_local_port_range): one of those may be
    taken between this answer and the moment when a process listens there.
    """
    free: list[int] = []
    while len(free) < ports:
        port = next(_UPWARD)
        with socket.socket() as one, suppress(OSError):  # somebody has it
            one.bind(("127.0.0.1", port))
            free.append(port)
    return free


def wait_ready(process: Process, url: str, bearer: str = "") -> None:
    """Returns when the URL answers 200. Raises: ProcessEnded; TimeoutError after START_SECONDS.

    Certificates are not checked: until it is ready there is none to check against.
    """
    trusting = ssl.create_default_context()
    trusting.check_hostname = False
    trusting.verify_mode = ssl.CERT_NONE
    headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
    deadline = time.monotonic() + START_SECONDS
    last = "no answer"
    with httpx.Client(verify=trusting, headers=headers, timeout=5.0, trust_env=False) as client:
        while time.monotonic() < deadline:
            process.check()
            try:
                answer = client.get(url)
            except httpx.HTTPError as error:
                last = str(error)
            else:
                if answer.status_code == 200:
                    return
                last = f"{answer.status_code} {answer.text}"
            time.sleep(0.05)
    raise TimeoutError(
        f"{process.name} is not ready after {START_SECONDS:g} s; {url}: {last[-1000:]}; "
        f"its log is {process.log}"
    )


def _build_script(*flags: str) -> str:
    command = ["sh", HERE / "build.sh", *flags]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    return ran.stdout
