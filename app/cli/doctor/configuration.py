"""A KubeSchedulerConfiguration, as far as it matters to Corral; all else in it is not read.

    scheduler:                       a KubeSchedulerConfiguration, or the ConfigMap around one
      extenders: [{urlPrefix: …}]    ──▶ SchedulerConfig

What is left out or null has the default of kube-scheduler.
Source: kubernetes staging/src/k8s.io/kube-scheduler/config/v1/types.go (v1.36).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import msgspec
import yaml

from app.errors import DecodeError

KIND = "KubeSchedulerConfiguration"
API_VERSION = "kubescheduler.config.k8s.io/v1"
DEFAULT_TIMEOUT = 5.0  # seconds of an extender without httpTimeout
LOOPBACK = re.compile(r"127(\.\d{1,3}){3}|::1|localhost", re.ASCII)
_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)", re.ASCII)
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


class Tls(msgspec.Struct, rename="camel", frozen=True):
    """How the extender's certificate is checked, and which one is shown."""

    insecure: bool = False
    ca_file: str = ""
    ca_data: str = ""
    cert_file: str = ""
    cert_data: str = ""

    @property
    def has_ca(self) -> bool:
        return bool(self.ca_file or self.ca_data)

    @property
    def has_certificate(self) -> bool:
        return bool(self.cert_file or self.cert_data)


class ManagedResource(msgspec.Struct, rename="camel", frozen=True):
    """A resource whose pods alone the extender is asked about."""

    name: str = ""
    ignored_by_scheduler: bool = False


class Extender(msgspec.Struct, rename="camel", frozen=True):
    """One line of `extenders`."""

    url_prefix: str = ""
    filter_verb: str = ""
    prioritize_verb: str = ""
    preempt_verb: str = ""
    bind_verb: str = ""
    weight: int = 0
    enable_https: bool = msgspec.field(name="enableHTTPS", default=False)
    tls_config: Tls = Tls()
    http_timeout: str = ""
    node_cache_capable: bool = False
    managed_resources: list[ManagedResource] = []
    ignorable: bool = False

    @property
    def timeout(self) -> float:
        """How long kube-scheduler waits for one answer. Units: seconds."""
        return seconds(self.http_timeout) or DEFAULT_TIMEOUT

    @property
    def address(self) -> tuple[str, int | None]:
        """Host and port; the port is None where the URL names none that is a number."""
        try:
            url = urlsplit(self.url_prefix)
            return url.hostname or "", url.port or {"http": 80, "https": 443}.get(url.scheme)
        except ValueError:
            return "", None

    @property
    def is_tls(self) -> bool:
        return self.url_prefix.startswith("https:")

    @property
    def is_on_loopback(self) -> bool:
        return LOOPBACK.fullmatch(self.address[0]) is not None


class PluginConfig(msgspec.Struct, frozen=True):
    """The arguments of one plugin."""

    name: str = ""
    args: dict[str, Any] = {}


class Profile(msgspec.Struct, rename="camel", frozen=True):
    """One line of `profiles`."""

    scheduler_name: str = "default-scheduler"
    percentage_of_nodes_to_score: int | None = None
    plugin_config: list[PluginConfig] = []

    def argument(self, plugin: str, name: str) -> Any:
        """An argument of a plugin; None if it is not set."""
        found = (each.args for each in self.plugin_config if each.name == plugin)
        return next(found, {}).get(name)


class LeaderElection(msgspec.Struct, rename="camel", frozen=True):
    """The Lease that kube-scheduler holds while it leads."""

    leader_elect: bool = True
    resource_namespace: str = "kube-system"
    resource_name: str = "kube-scheduler"

    @property
    def lease(self) -> str:
        return f"{self.resource_namespace}/{self.resource_name}"


class Content(msgspec.Struct, rename="camel", frozen=True):
    """The whole of it."""

    api_version: str = ""
    kind: str = ""
    leader_election: LeaderElection = LeaderElection()
    percentage_of_nodes_to_score: int | None = None
    profiles: list[Profile] = msgspec.field(default_factory=lambda: [Profile()])
    extenders: list[Extender] = []


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    """A configuration, and how messages name it."""

    where: str
    content: Content

    def extenders(self) -> Iterator[tuple[str, Extender]]:
        """Those that are Corral, each with its field: all that share an address with the binder.

        Corral binds, and one extender may; without any every extender is taken for Corral.
        """
        every = self.content.extenders
        binders = {each.address for each in every if each.bind_verb}
        for at, each in enumerate(every):
            if not binders or each.address in binders:
                yield f"extenders[{at}]", each

    def filtering(self) -> Iterator[tuple[str, Extender]]:
        """Those of Corral that filter."""
        return ((field, each) for field, each in self.extenders() if each.filter_verb)

    def percentage(self, profile: Profile) -> int:
        """Of how many nodes a profile looks for; 0: as kube-scheduler likes."""
        own = profile.percentage_of_nodes_to_score
        return (self.content.percentage_of_nodes_to_score if own is None else own) or 0


def config_in(text: str | bytes, where: str) -> SchedulerConfig:
    """The configuration in YAML or JSON: the only document of its kind, or in a ConfigMap.

    Raises: DecodeError naming the source, and the field that cannot be read.
    """
    documents = [each for each in _documents(text, where) if isinstance(each, dict)]
    for each in documents:
        if each.get("kind") == "ConfigMap":
            data = each.get("data")
            inside = [t for t in data.values() if f"kind: {KIND}" in str(t)] if data else []
            if inside:
                return config_in(str(inside[0]), where)
    # What calls itself by another name is read too, so that its name can be found wrong.
    likely = [each for each in documents if each.get("kind") == KIND or "extenders" in each]
    if not likely:
        raise DecodeError(f"{where}: there is no {KIND} in it")
    try:
        return SchedulerConfig(where, msgspec.convert(_without_null(likely[0]), Content))
    except msgspec.ValidationError as wrong:
        what, _, path = str(wrong).partition(" - at ")
        field = path.strip("`").removeprefix("$.") or "it"
        raise DecodeError(f"{where}: {field}: {what}") from wrong


def seconds(duration: str) -> float:
    """A duration as Go writes it, such as "1m30s"; 0 for one that is none, or is not set."""
    parts = _DURATION.findall(duration)
    if "".join(number + unit for number, unit in parts) != duration:
        return 0.0
    return float(sum(float(number) * _UNITS[unit] for number, unit in parts))


def _documents(text: str | bytes, where: str) -> list[Any]:
    try:
        return list(yaml.safe_load_all(text))
    except (yaml.YAMLError, ValueError, RecursionError) as wrong:
        raise DecodeError(f"{where}: {' '.join(str(wrong).split())}") from wrong


def _without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_null(each) for key, each in value.items() if each is not None}
    return [_without_null(each) for each in value] if isinstance(value, list) else value
