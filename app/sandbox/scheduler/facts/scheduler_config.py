"""What a KubeSchedulerConfiguration says about profiles, sampling, back-off and extenders.

The same file starts the real kube-scheduler: field names, defaults and the rules that make it
refuse to start are those of kubescheduler.config.k8s.io/v1.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import msgspec
import yaml

DEFAULT_SCHEDULER = "default-scheduler"
DEFAULT_HTTP_TIMEOUT = 5.0  # seconds; DefaultExtenderTimeout
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(h|ms|us|ns|m|s)")
_UNIT_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


class InvalidConfig(ValueError):
    """A configuration the real kube-scheduler would refuse."""


class _ManagedResource(msgspec.Struct, rename="camel"):
    name: str
    ignored_by_scheduler: bool = False


class _Extender(msgspec.Struct, rename="camel"):
    """One entry of `extenders:`, as it is written."""

    url_prefix: str
    filter_verb: str = ""
    prioritize_verb: str = ""
    preempt_verb: str = ""
    bind_verb: str = ""
    weight: int = 0
    node_cache_capable: bool = False
    ignorable: bool = False
    http_timeout: str | None = None
    managed_resources: list[_ManagedResource] | None = None
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    tls_config: dict[str, Any] | None = None


class _Plugin(msgspec.Struct):
    name: str = ""
    args: dict[str, Any] | None = None


class _Profile(msgspec.Struct, rename="camel"):
    scheduler_name: str = DEFAULT_SCHEDULER
    percentage_of_nodes_to_score: int | None = None
    plugin_config: list[_Plugin] | None = None


class _File(msgspec.Struct, rename="camel"):
    """A KubeSchedulerConfiguration, the part of it that is read."""

    profiles: list[_Profile] | None = None
    percentage_of_nodes_to_score: int | None = None
    pod_initial_backoff_seconds: int | None = None
    pod_max_backoff_seconds: int | None = None
    extenders: list[_Extender] | None = None


@dataclass(frozen=True, slots=True)
class ExtenderConfig:
    """One entry of `extenders:`; an empty verb is not called.

    Units: http_timeout in seconds.
    """

    url: str
    filter_verb: str = ""
    prioritize_verb: str = ""
    preempt_verb: str = ""
    bind_verb: str = ""
    weight: int = 0
    node_cache_capable: bool = False
    ignorable: bool = False
    http_timeout: float = DEFAULT_HTTP_TIMEOUT
    managed_resources: frozenset[str] = frozenset()
    ignored_resources: frozenset[str] = frozenset()
    enable_https: bool = False
    tls: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @classmethod
    def _of(cls, entry: _Extender) -> Self:
        managed = entry.managed_resources or []
        return cls(
            url=entry.url_prefix,
            filter_verb=entry.filter_verb,
            prioritize_verb=entry.prioritize_verb,
            preempt_verb=entry.preempt_verb,
            bind_verb=entry.bind_verb,
            weight=entry.weight,
            node_cache_capable=entry.node_cache_capable,
            ignorable=entry.ignorable,
            http_timeout=_seconds(entry.http_timeout) or DEFAULT_HTTP_TIMEOUT,
            managed_resources=frozenset(each.name for each in managed),
            ignored_resources=frozenset(each.name for each in managed if each.ignored_by_scheduler),
            enable_https=entry.enable_https,
            tls=entry.tls_config or {},
        )

    def tls_context(self) -> ssl.SSLContext | None:
        """The client side of TLS; None for plain HTTP. HTTPS without a CA trusts any server.

        Raises: InvalidConfig naming the file that cannot be used.
        """
        if not self.url.startswith("https:"):
            return None
        context = ssl.create_default_context()
        if ca_file := self.tls.get("caFile"):
            with _about(ca_file):
                context.load_verify_locations(ca_file)
        elif self.enable_https or self.tls.get("insecure"):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if cert_file := self.tls.get("certFile"):
            with _about(cert_file):
                context.load_cert_chain(cert_file, self.tls.get("keyFile"))
        return context


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    """The part of a KubeSchedulerConfiguration that an extender can notice.

    profiles: scheduler name -> percentageOfNodesToScore of the profile, None to use the global.
    percentage_of_nodes_to_score: global; 0 is the adaptive rule.
    candidate_percentages: scheduler name -> minCandidateNodesPercentage of its DefaultPreemption.
    Units: seconds.
    """

    profiles: Mapping[str, int | None] = field(default_factory=lambda: {DEFAULT_SCHEDULER: None})
    percentage_of_nodes_to_score: int = 0
    candidate_percentages: Mapping[str, int] = field(default_factory=dict)
    initial_backoff: float = 1.0
    max_backoff: float = 10.0
    extenders: tuple[ExtenderConfig, ...] = ()

    def __post_init__(self) -> None:
        """Raises: InvalidConfig."""
        if sum(1 for extender in self.extenders if extender.bind_verb) > 1:
            raise InvalidConfig("extenders: at most one extender may have a bindVerb")
        seen: set[str] = set()
        for extender in self.extenders:
            if extender.prioritize_verb and extender.weight <= 0:
                raise InvalidConfig(
                    f"extender {extender.url}: weight {extender.weight} must be positive"
                    " when prioritizeVerb is set"
                )
            if twice := seen & extender.managed_resources:
                raise InvalidConfig(f"extender {extender.url}: {sorted(twice)} is managed twice")
            seen |= extender.managed_resources

    @property
    def ignored_resources(self) -> frozenset[str]:
        """What no profile counts: whatever extender says so, it holds for all."""
        return frozenset().union(*(each.ignored_resources for each in self.extenders))

    @classmethod
    def read(cls, path: Path) -> Self:
        """Raises: InvalidConfig naming the file and the field; OSError."""
        try:
            return cls._of(_content(path))
        except InvalidConfig as error:
            raise InvalidConfig(f"{path}: {error}") from error

    @classmethod
    def _of(cls, file: _File) -> Self:
        profiles = file.profiles or [_Profile()]
        return cls(
            profiles={each.scheduler_name: each.percentage_of_nodes_to_score for each in profiles},
            candidate_percentages={
                each.scheduler_name: args["minCandidateNodesPercentage"]
                for each in profiles
                for plugin in each.plugin_config or ()
                if plugin.name == "DefaultPreemption"
                and "minCandidateNodesPercentage" in (args := plugin.args or {})
            },
            percentage_of_nodes_to_score=file.percentage_of_nodes_to_score or 0,
            initial_backoff=float(file.pod_initial_backoff_seconds or 1),
            max_backoff=float(file.pod_max_backoff_seconds or 10),
            extenders=tuple(ExtenderConfig._of(each) for each in file.extenders or ()),
        )


def _content(path: Path) -> _File:
    """Raises: InvalidConfig, OSError."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InvalidConfig(f"not YAML: {error}") from error
    if not isinstance(content, dict) or content.get("kind") != "KubeSchedulerConfiguration":
        raise InvalidConfig("kind is not KubeSchedulerConfiguration")
    try:
        return msgspec.convert(content, _File)
    except msgspec.ValidationError as error:
        raise InvalidConfig(str(error)) from error


@contextmanager
def _about(file: str) -> Iterator[None]:
    """Name the file, which OpenSSL's errors do not. Raises: InvalidConfig."""
    try:
        yield
    except OSError as error:
        raise InvalidConfig(f"{file}: {error.strerror or error}") from error


def _seconds(text: str | None) -> float:
    """A metav1.Duration such as `2s` or `1m30s`; 0 for none."""
    if not text:
        return 0.0
    parts = _DURATION.findall(text)
    if "".join(number + unit for number, unit in parts) != text:
        raise InvalidConfig(f"httpTimeout: {text!r} is not a duration")
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in parts)
