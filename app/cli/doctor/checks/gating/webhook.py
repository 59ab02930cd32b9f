"""Whether the API server calls Corral's webhook, and gets an answer."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from app.admission.namespaces import METADATA_NAME
from app.cli.doctor.findings import Check, Found, NotChecked, Problem, error, warning
from app.cli.doctor.installed import called, is_corrals, webhooks_of
from app.cli.doctor.seen import Handshake, Object, OwnSettings, Unread, Webhooks
from app.labels import LabelSelector, requirement_of

GATING = "gate.corral.dev"  # the webhook for new pods
KUEUES = "kueue"  # what the names of Kueue's configurations begin with
SYSTEM = "kube-system"
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.DOTALL)
_SCHEDULERS = re.compile(r"schedulerName\.orValue\(''\) (?:== '([^']*)'|in \[([^\]]*)\])")


def there(
    webhooks: Webhooks,
    settings: OwnSettings,
    gating: tuple[Object, ...],
) -> Iterator[Problem]:
    """Whether the port and the configuration are there together."""
    is_open = settings.values.admission_listen is not None
    mutates = any(is_corrals(each) for each in webhooks.mutating)
    name = "the MutatingWebhookConfiguration of deploy/webhook.yaml"
    without = "" if gating else " without the gate,"
    if is_open and not mutates and settings.values.marker_resource:
        yield error(
            name,
            "it is not there, and no member gets its marker: kube-scheduler starts gangs without"
            " Corral",
            "kubectl apply -f deploy/webhook.yaml",
        )
    elif is_open and not mutates and not gating:
        yield warning(
            name,
            "it is not there, and pods of gangs are created without the gate",
            "kubectl apply -f deploy/webhook.yaml",
        )
    elif mutates and not is_open:
        yield error(
            settings.where,
            f"{name} is there, and Corral has no port for it: every pod of a gang is created"
            f"{without} after a call that fails",
            "kubectl -n corral-system rollout restart deployment corral",
            field="admission_listen",
        )


def service(webhooks: Webhooks) -> Iterator[Found]:
    """Whether some pod is behind the address that is called."""
    for where, webhook in each_of(webhooks):
        called = webhook["clientConfig"].get("service")
        if not called:
            continue
        name = f"{called['namespace']}/{called['name']}"
        behind = webhooks.services.get(name, Unread(f"Service {name} was not read"))
        if isinstance(behind, Unread):
            yield NotChecked(behind.why)
            return
        port = called.get("port", 443)
        if not behind.exists:
            why, mend = "it does not exist", "kubectl apply -f deploy/webhook.yaml"
        elif port not in behind.ports:
            why, mend = f"it has no port {port}, which {where} calls", "kubectl edit service"
        elif not behind.ready:
            why = "no ready pod is behind it, and pods of gangs are created without the gate"
            mend = f"kubectl -n {called['namespace']} get endpointslices,pods"
        else:
            continue
        yield error(f"Service {name}", why, mend)
        return


def authority(webhooks: Webhooks) -> Iterator[Problem]:
    """Whether the API server knows whom to trust there."""
    for where, webhook in each_of(webhooks):
        bundle = webhook["clientConfig"].get("caBundle") or ""
        if _certificates(_text(bundle)):
            continue
        yield error(
            f"{where}: {webhook['name']}",
            "the API server trusts no certificate of Corral's, and every call fails"
            if not bundle
            else "there is no certificate in it",
            "the lines at the top of deploy/webhook.yaml, or cert-manager",
            field="clientConfig.caBundle",
            value=bundle or None,
        )


def trusted(
    webhooks: Webhooks, handshakes: Mapping[tuple[str, str], Handshake]
) -> Iterator[Problem]:
    """Whether the certificate that is served is one that the API server trusts."""
    for where, webhook in each_of(webhooks):
        client = webhook["clientConfig"]
        tried = handshakes.get((called(webhook), client.get("caBundle") or ""))
        if tried is not None and tried.problem:
            yield error(
                f"{where}: {webhook['name']}",
                f"it does not fit what {tried.address} serves, and every call fails:"
                f" {tried.problem}",
                "the lines at the top of deploy/webhook.yaml",
                field="clientConfig.caBundle",
                value=f"{len(_certificates(_text(client['caBundle'])))} certificates",
            )


def policy(webhooks: Webhooks, settings: OwnSettings) -> Iterator[Problem]:
    """Whether the cluster goes on without Corral, but for members of gangs that need a marker."""
    for where, webhook in each_of(webhooks):
        # The API server stores the default, Fail, where a manifest says nothing.
        written = webhook.get("failurePolicy", "Fail")
        if settings.values.marker_resource and webhook["name"] == GATING:
            if written != "Fail":
                yield warning(
                    f"{where}: {webhook['name']}",
                    "members that are created while Corral does not answer have no marker, and"
                    " kube-scheduler starts them without Corral, one by one",
                    "failurePolicy: Fail",
                    field="failurePolicy",
                    value=written,
                )
        elif written != "Ignore":
            yield warning(
                f"{where}: {webhook['name']}",
                "while Corral does not answer, nothing that it is asked about is created",
                "failurePolicy: Ignore",
                field="failurePolicy",
                value=written,
            )


def order(webhooks: Webhooks) -> Iterator[Problem]:
    """Whether Kueue has taken a pod in before Corral looks at it."""
    ours = [each["metadata"]["name"] for each in webhooks.mutating if is_corrals(each)]
    for name in ours:
        for each in webhooks.mutating:
            kueues = each["metadata"]["name"]
            if kueues.startswith(KUEUES) and kueues > name:
                yield warning(
                    f"MutatingWebhookConfiguration {kueues}",
                    f"configurations are called in the order of their names, and {name} comes"
                    " before it: pods that Kueue takes in get Corral's gate first",
                    f"give {name} a name that comes after {kueues}",
                )


def namespaces(webhooks: Webhooks, settings: OwnSettings) -> Iterator[Problem]:
    """Whether the API server sends what the settings select, and never what Corral waits for."""
    wanted = settings.values.admission_namespace_selector
    for where, webhook in each_of(webhooks):
        thing = f"{where}: {webhook['name']}"
        selector = selector_of(webhook.get("namespaceSelector") or {})
        if selector is None:
            continue
        if selector.matches({METADATA_NAME: SYSTEM}):
            yield error(
                thing,
                f"{SYSTEM} is sent as well, and what the cluster itself starts waits for Corral",
                f"- {{key: {METADATA_NAME}, operator: NotIn, values: [{SYSTEM}, corral-system]}}",
                field="namespaceSelector",
                value=webhook.get("namespaceSelector") or None,
            )
        more = [each for each in selector.requirements if each not in wanted.requirements]
        if more and selector != wanted and not selector.matches({METADATA_NAME: SYSTEM}):
            keys = ", ".join(each.key for each in more)
            yield warning(
                thing,
                f"admission_namespace_selector of {settings.where} says something else of {keys},"
                " and what is not sent here no setting brings back",
                "admission_namespace_selector as the namespaceSelector, or the other way round",
                field="namespaceSelector",
                value=webhook.get("namespaceSelector") or None,
            )


def schedulers(webhooks: Webhooks, settings: OwnSettings) -> Iterator[Problem]:
    """Whether pods of every scheduler_name are sent."""
    for where, webhook in each_of(webhooks):
        sent = schedulers_in(webhook)
        missing = [name for name in settings.schedulers if name not in sent]
        if sent and missing:
            names = ", ".join(f"'{name}'" for name in settings.schedulers)
            say, what = warning, "have neither gate nor checks"
            if settings.values.marker_resource and webhook["name"] == GATING:
                say, what = error, "get no marker: kube-scheduler starts their gangs without Corral"
            yield say(
                f"{where}: {webhook['name']}",
                f"pods of {', '.join(missing)} are not sent, and {what}",
                f"object.spec.?schedulerName.orValue('') in [{names}]",
                field="matchConditions",
                value=", ".join(sorted(sent)),
            )


def schedulers_in(rule: Object) -> set[str]:
    """The schedulers that the matchConditions of a webhook, or of a policy, name."""
    return schedulers_named(rule.get("matchConditions") or [])


def schedulers_named(conditions: Iterable[Object]) -> set[str]:
    """The schedulers that expressions name."""
    text = " ".join(str(each.get("expression", "")) for each in conditions)
    return {
        name.strip(" '")
        for one, several in _SCHEDULERS.findall(text)
        for name in (one, *several.split(","))
        if name
    }


def each_of(webhooks: Webhooks) -> Iterator[tuple[str, dict[str, Any]]]:
    """Corral's webhooks, each with the configuration that it is in."""
    for kind, every in (("Mutating", webhooks.mutating), ("Validating", webhooks.validating)):
        for configuration in every:
            for each in webhooks_of(configuration):
                yield f"{kind}WebhookConfiguration {configuration['metadata']['name']}", each


def none(webhooks: Webhooks, *_: object) -> str:
    """Says that there is no webhook of Corral's; "" if there is one."""
    return "" if any(each_of(webhooks)) else "no webhook of Corral's is there"


def selector_of(written: Object) -> LabelSelector | None:
    """A selector as the API server has it; None for one that it would not take."""
    found = [requirement_of(k, "In", [v]) for k, v in (written.get("matchLabels") or {}).items()]
    found += [
        requirement_of(each["key"], each["operator"], each.get("values") or [])
        for each in written.get("matchExpressions") or []
    ]
    known = [each for each in found if each is not None]
    return LabelSelector(tuple(known)) if len(known) == len(found) else None


def _certificates(text: str) -> list[str]:
    """The certificates in PEM, without the line ends."""
    return ["".join(body.split()) for body in _PEM.findall(text)]


def _text(base64_text: str) -> str:
    try:
        return base64.b64decode(base64_text).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""


_BOTH = ("webhooks", "settings")
_GATES = (*_BOTH, "gating_policies")
_WEBHOOKS = ("webhooks",)
_HANDSHAKES = ("webhooks", "handshakes")
CHECKS = (
    Check("webhook", "the webhook has its port, and the port its webhook", _GATES, there),
    Check(
        "webhook-service", "ready pods are behind the webhook's Service", _WEBHOOKS, service, none
    ),
    Check("webhook-authority", "each webhook has a caBundle", _WEBHOOKS, authority, none),
    Check("webhook-certificate", "the caBundle is of what is served", _HANDSHAKES, trusted, none),
    Check("webhook-policy", "pods are created while Corral is away", _BOTH, policy, none),
    Check("webhook-order", "Kueue's webhook is called first", _WEBHOOKS, order, none),
    Check(
        "webhook-namespaces", "the namespaces are those of the settings", _BOTH, namespaces, none
    ),
    Check("webhook-schedulers", "pods of every scheduler_name are sent", _BOTH, schedulers, none),
)
