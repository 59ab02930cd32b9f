"""Whether a webhook is called for a write, and with which version of its resource.

Source: kubernetes 1.36 apiserver admission/plugin/webhook (generic/webhook.go, predicates).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from app.sandbox.apiserver.admission.attributes import Attributes
from app.sandbox.apiserver.storage.kinds import NAMESPACE, Kind, Object
from app.sandbox.apiserver.storage.selectors import matches_labels

_ANY = "*"


def kind_to_send(
    webhook: Object,
    attributes: Attributes,
    kinds: Iterable[Kind],
    labels_of: Callable[[str], Object],
) -> Kind | None:
    """The version in which the object is sent to this webhook; None if it is not called.

    kinds: all that is served; by the match policy `Equivalent` a rule about another version of the
    resource counts too. labels_of: the labels of a namespace.
    """
    if not _selects(webhook, attributes, labels_of):
        return None
    candidates = [attributes.kind]
    if webhook["matchPolicy"] == "Equivalent":
        candidates += [each for each in kinds if each.home == attributes.kind.home]
    for kind in candidates:
        if any(_rule_holds(rule, kind, attributes) for rule in webhook["rules"]):
            return kind
    return None


def _selects(webhook: Object, attributes: Attributes, labels_of: Callable[[str], Object]) -> bool:
    objects = [attributes.after, *([attributes.before] if attributes.before else ())]
    if not any(matches_labels(webhook["objectSelector"], labels_in(each)) for each in objects):
        return False
    if attributes.kind is NAMESPACE:
        return matches_labels(webhook["namespaceSelector"], labels_in(attributes.after))
    if not attributes.namespace:
        return True
    return matches_labels(webhook["namespaceSelector"], labels_of(attributes.namespace))


def labels_in(body: Object) -> Object:
    """The labels of an object; none at all is an empty object."""
    labels: Object = body["metadata"].get("labels") or {}
    return labels


def _rule_holds(rule: Object, kind: Kind, attributes: Attributes) -> bool:
    scope = rule["scope"]
    return (
        _names(rule.get("operations"), attributes.operation)
        and _names(rule.get("apiGroups"), kind.group)
        and _names(rule.get("apiVersions"), kind.version)
        and scope in (_ANY, "Namespaced" if kind.is_namespaced else "Cluster")
        and any(
            _is_resource(each, kind.plural, attributes.subresource)
            for each in rule.get("resources") or ()
        )
    )


def _names(allowed: Iterable[str] | None, asked: str) -> bool:
    return any(each in (_ANY, asked) for each in allowed or ())


def _is_resource(allowed: str, plural: str, subresource: str) -> bool:
    """`pods` means no subresource, `pods/*` pods and all of them, `*/status` any status."""
    resource, _, below = allowed.partition("/")
    return resource in (_ANY, plural) and below in (_ANY, subresource)
