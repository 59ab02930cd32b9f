"""What stands in the KubeSchedulerConfiguration, whatever Corral's settings are.

Source: kubernetes pkg/scheduler/extender.go, apis/config/validation/validation.go (v1.36).
"""

from __future__ import annotations

from collections.abc import Iterator

from app.cli.doctor.configuration import API_VERSION, KIND, SchedulerConfig
from app.cli.doctor.findings import Check, Problem, error, lines, warning
from app.kube.decoding.requests import MARKERS

VERBS = ("filter", "prioritize", "preempt", "bind")
WHOLE_PERCENTAGE = 100
# Seconds. The scheduling of all pods stands still while kube-scheduler waits for /filter.
LONGEST_FILTER = 60.0


def kind(config: SchedulerConfig) -> Iterator[Problem]:
    """Whether kube-scheduler takes it for its configuration."""
    content = config.content
    pairs = (("apiVersion", content.api_version, API_VERSION), ("kind", content.kind, KIND))
    for field, value, wanted in pairs:
        if value != wanted:
            yield error(
                config.where,
                "kube-scheduler does not start with it",
                f"{field}: {wanted}",
                field=field,
                value=value or None,
            )


def verbs(config: SchedulerConfig) -> Iterator[Problem]:
    """Whether Corral is asked all that it answers, under the names that it serves."""
    extenders = list(config.extenders())
    if not extenders:
        yield error(
            config.where,
            "kube-scheduler never asks Corral",
            "corral doctor --write-config MINOR",
            field="extenders",
        )
        return
    for verb in VERBS:
        key = f"{verb}Verb"
        names = [(field, getattr(each, f"{verb}_verb")) for field, each in extenders]
        given = [(field, name) for field, name in names if name]
        for field, name in given:
            if name != verb:
                yield error(
                    config.where,
                    f"Corral serves /{verb}, and every request ends with code 404",
                    f"{key}: {verb}",
                    field=f"{field}.{key}",
                    value=name,
                )
        if not given and verb != "prioritize":
            yield _without_verb(config, key, verb)


def _without_verb(config: SchedulerConfig, key: str, verb: str) -> Problem:
    said, why = {
        "filter": (error, "pods are not kept to the nodes of their gang's plan"),
        "bind": (error, "members are bound one by one, and a gang may start in part"),
        "preempt": (warning, "kube-scheduler evicts pods of gangs without asking Corral"),
    }[verb]
    return said(config.where, why, f"{key}: {verb}", field=f"extenders[*].{key}")


def bind_once(config: SchedulerConfig) -> Iterator[Problem]:
    """Whether one extender binds at most."""
    binders = [at for at, each in enumerate(config.content.extenders) if each.bind_verb]
    for at in binders[1:]:
        yield error(
            config.where,
            f"extenders[{binders[0]}] has one too, and kube-scheduler does not start with two",
            f"leave extenders[{at}].bindVerb out",
            field=f"extenders[{at}].bindVerb",
            value=config.content.extenders[at].bind_verb,
        )


def weight(config: SchedulerConfig) -> Iterator[Problem]:
    """Whether the points of /prioritize count."""
    for field, each in config.extenders():
        if each.prioritize_verb and each.weight <= 0:
            yield error(
                config.where,
                "an extender with a prioritizeVerb needs one, or kube-scheduler does not start",
                "weight: 15",
                field=f"{field}.weight",
                value=each.weight or None,
            )


def node_cache_capable(config: SchedulerConfig) -> Iterator[Problem]:
    """Whether names of nodes are sent, and scores are made of real nodes."""
    for field, each in config.filtering():
        if not each.node_cache_capable:
            yield error(
                config.where,
                "kube-scheduler sends whole nodes, and scores each of those that are left as if it"
                " were idle",
                "nodeCacheCapable: true",
                field=f"{field}.nodeCacheCapable",
                value=False,
            )


def ignorable(config: SchedulerConfig) -> Iterator[Problem]:
    """Whether kube-scheduler goes on without Corral."""
    for field, each in config.extenders():
        if each.ignorable and (each.filter_verb or each.bind_verb):
            verb = "places pods" if each.filter_verb else "binds members one by one"
            yield error(
                config.where,
                f"while Corral does not answer, kube-scheduler {verb} without it",
                "ignorable: false",
                field=f"{field}.ignorable",
                value=True,
            )


def tls(config: SchedulerConfig) -> Iterator[Problem]:
    """Whether kube-scheduler knows whom it asks."""
    for field, each in config.extenders():
        mend = lines("tlsConfig:", "  caFile: /etc/corral/tls/server-ca.crt")
        if each.tls_config.insecure:
            yield error(
                config.where,
                "kube-scheduler checks no certificate",
                mend,
                field=f"{field}.tlsConfig.insecure",
                value=True,
            )
        elif each.enable_https and not each.tls_config.has_ca and each.is_tls:
            yield error(
                config.where,
                "with enableHTTPS and without it kube-scheduler checks no certificate, and says"
                " nothing",
                mend,
                field=f"{field}.tlsConfig.caFile",
            )
        elif each.enable_https and not each.is_tls:
            yield warning(
                config.where,
                f"the scheme of urlPrefix alone decides, and {each.url_prefix} is not encrypted",
                "enableHTTPS: false",
                field=f"{field}.enableHTTPS",
                value=True,
            )


def client_certificate(config: SchedulerConfig) -> Iterator[Problem]:
    """Whether Corral can know who asks it over the network."""
    for field, each in config.extenders():
        if not each.address[0]:
            yield error(
                config.where,
                "it names no address",
                "urlPrefix: http://127.0.0.1:8888",
                field=f"{field}.urlPrefix",
                value=each.url_prefix or None,
            )
        elif not each.is_on_loopback and not each.is_tls:
            yield error(
                config.where,
                "beyond loopback Corral answers over TLS alone",
                "corral doctor --write-config MINOR --mode beside",
                field=f"{field}.urlPrefix",
                value=each.url_prefix,
            )
        elif not each.is_on_loopback and not each.tls_config.has_certificate:
            yield error(
                config.where,
                f"{each.url_prefix} is not on loopback, where Corral answers no client without a"
                " certificate of its extender_client_ca",
                lines(
                    "tlsConfig:",
                    "  certFile: /etc/corral/tls/scheduler.crt",
                    "  keyFile: /etc/corral/tls/scheduler.key",
                ),
                field=f"{field}.tlsConfig.certFile",
            )


def filter_timeout(config: SchedulerConfig) -> Iterator[Problem]:
    """Whether one answer that does not come holds up all pods."""
    for field, each in config.filtering():
        if each.timeout > LONGEST_FILTER:
            why = "kube-scheduler schedules no pod while it waits so long for one /filter"
            if each.bind_verb:
                why += "; /bind, which is held for minutes, needs an extender of its own"
            yield warning(
                config.where,
                why,
                "httpTimeout: 30s",
                field=f"{field}.httpTimeout",
                value=each.http_timeout,
            )


def managed_resources(config: SchedulerConfig) -> Iterator[Problem]:
    """Whether some pods of a gang never come to Corral."""
    for field, each in config.extenders():
        for at, resource in enumerate(each.managed_resources):
            where = f"{field}.managedResources[{at}]"
            if resource.name in MARKERS:
                if not resource.ignored_by_scheduler:
                    yield error(
                        config.where,
                        f"no node offers {resource.name}, and members that request it fit on none",
                        "ignoredByScheduler: true",
                        field=f"{where}.ignoredByScheduler",
                        value=False,
                    )
            elif resource.ignored_by_scheduler:
                yield error(
                    config.where,
                    f"kube-scheduler stops counting {resource.name} on every node",
                    "ignoredByScheduler: false",
                    field=f"{where}.ignoredByScheduler",
                    value=True,
                )
    with_any = [(field, each) for field, each in config.extenders() if each.managed_resources]
    for field, each in with_any:
        names = ", ".join(resource.name for resource in each.managed_resources)
        if any(resource.name in MARKERS for resource in each.managed_resources):
            continue
        yield warning(
            config.where,
            "members whose containers request none of these are placed and bound without Corral",
            "leave managedResources out, or have every member of a gang request one of them",
            field=f"{field}.managedResources",
            value=names,
        )


def preemption_sample(config: SchedulerConfig) -> Iterator[Problem]:
    """Whether Corral chooses victims among all nodes."""
    plugin, name = "DefaultPreemption", "minCandidateNodesPercentage"
    if not any(each.preempt_verb for _, each in config.extenders()):
        return
    for at, profile in enumerate(config.content.profiles):
        value = profile.argument(plugin, name)
        if value != WHOLE_PERCENTAGE:
            yield warning(
                config.where,
                "kube-scheduler stops looking at a tenth of the nodes, and Corral chooses the least"
                " harm among those alone",
                lines(
                    "pluginConfig:", f"- name: {plugin}", f"  args: {{{name}: {WHOLE_PERCENTAGE}}}"
                ),
                field=f"profiles[{at}].pluginConfig.{plugin}.{name}",
                value=value,
            )


def ignored_resources(config: SchedulerConfig) -> Iterator[Problem]:
    """Whether kube-scheduler counts the resources that Corral counts."""
    plugin = "NodeResourcesFit"
    for at, profile in enumerate(config.content.profiles):
        for name in ("ignoredResources", "ignoredResourceGroups"):
            if value := profile.argument(plugin, name):
                yield warning(
                    config.where,
                    "Corral counts these: a gang that requests one which no node offers waits for"
                    " ever",
                    f"leave {name} out",
                    field=f"profiles[{at}].pluginConfig.{plugin}.{name}",
                    value=value,
                )


CHECKS = (
    Check("config-kind", "kube-scheduler takes the configuration", ("config",), kind),
    Check("extender-verbs", "Corral is asked to filter, preempt and bind", ("config",), verbs),
    Check("bind-once", "one extender binds", ("config",), bind_once),
    Check("weight", "Corral's points count", ("config",), weight),
    Check(
        "node-cache-capable",
        "names of nodes are sent, not whole nodes",
        ("config",),
        node_cache_capable,
    ),
    Check("ignorable", "kube-scheduler does not go on without Corral", ("config",), ignorable),
    Check("extender-tls", "kube-scheduler checks whom it asks", ("config",), tls),
    Check("client-certificate", "Corral can know who asks", ("config",), client_certificate),
    Check("filter-timeout", "no pod waits long for one answer", ("config",), filter_timeout),
    Check("managed-resources", "every member comes to Corral", ("config",), managed_resources),
    Check("preemption-sample", "victims are chosen of all nodes", ("config",), preemption_sample),
    Check("ignored-resources", "both count the same resources", ("config",), ignored_resources),
)
