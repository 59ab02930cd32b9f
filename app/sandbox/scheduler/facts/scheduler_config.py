"""What a KubeSchedulerConfiguration says about profiles, sampling, back-off and extenders.

The same file starts the real kube-scheduler: field names, defaults and the rules that make it
refuse to start are those of kubescheduler.config.k8s.io/v1.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import yaml

DEFAULT_SCHEDULER = "default-scheduler"
DEFAULT_HTTP_TIMEOUT = 5.0  # seconds; DefaultExtenderTimeout
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(h|ms|us|ns|m|s)")
_UNIT_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


class InvalidConfig(ValueError):
    """A configuration the real kube-scheduler would refuse."""


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
    def from_yaml(cls, entry: Mapping[str, Any]) -> Self:
        return cls(
            url=entry["urlPrefix"],
            filter_verb=entry.get("filterVerb", ""),
            prioritize_verb=entry.get("prioritizeVerb", ""),
            preempt_verb=entry.get("preemptVerb", ""),
            bind_verb=entry.get("bindVerb", ""),
            weight=entry.get("weight", 0),
            node_cache_capable=entry.get("nodeCacheCapable", False),
            ignorable=entry.get("ignorable", False),
            http_timeout=_seconds(entry.get("httpTimeout")) or DEFAULT_HTTP_TIMEOUT,
            managed_resources=frozenset(
                each["name"] for each in entry.get("managedResources") or []
            ),
            ignored_resources=frozenset(
                each["name"]
                for each in entry.get("managedResources") or []
                if each.get("ignoredByScheduler")
            ),
            enable_https=entry.get("enableHTTPS", False),
            tls=entry.get("tlsConfig") or {},
        )

    def tls_context(self) -> ssl.SSLContext | None:
        """The client side of TLS; None for plain HTTP. HTTPS without a CA trusts any server."""
        if not self.url.startswith("https:"):
            return None
        context = ssl.create_default_context()
        if ca_file := self.tls.get("caFile"):
            context.load_verify_locations(ca_file)
        elif self.enable_https or self.tls.get("insecure"):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if cert_file := self.tls.get("certFile"):
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
        """Raises: InvalidConfig, OSError."""
        content = yaml.safe_load(path.read_text())
        if not isinstance(content, dict) or content.get("kind") != "KubeSchedulerConfiguration":
            raise InvalidConfig(f"{path}: kind is not KubeSchedulerConfiguration")
        profiles = {
            profile.get("schedulerName", DEFAULT_SCHEDULER): profile.get("percentageOfNodesToScore")
            for profile in content.get("profiles") or [{}]
        }
        return cls(
            profiles=profiles,
            candidate_percentages={
                profile.get("schedulerName", DEFAULT_SCHEDULER): args["minCandidateNodesPercentage"]
                for profile in content.get("profiles") or ()
                for plugin in profile.get("pluginConfig") or ()
                if plugin.get("name") == "DefaultPreemption"
                and "minCandidateNodesPercentage" in (args := plugin.get("args") or {})
            },
            percentage_of_nodes_to_score=content.get("percentageOfNodesToScore") or 0,
            initial_backoff=float(content.get("podInitialBackoffSeconds") or 1),
            max_backoff=float(content.get("podMaxBackoffSeconds") or 10),
            extenders=tuple(
                ExtenderConfig.from_yaml(entry) for entry in content.get("extenders") or []
            ),
        )


def _seconds(text: str | None) -> float:
    """A metav1.Duration such as `2s` or `1m30s`; 0 for none."""
    if not text:
        return 0.0
    parts = _DURATION.findall(text)
    if "".join(number + unit for number, unit in parts) != text:
        raise InvalidConfig(f"httpTimeout: {text!r} is not a duration")
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in parts)
