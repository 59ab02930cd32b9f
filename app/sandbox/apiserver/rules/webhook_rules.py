"""What the API server fills in and refuses in a webhook configuration, mutating or validating.

Source: kubernetes 1.36 apis/admissionregistration v1 defaults.go, validation/validation.go.
"""

from __future__ import annotations

from app.sandbox.apiserver.storage.failures import invalid
from app.sandbox.apiserver.storage.kinds import MUTATING, Kind, Object

_Causes = list[tuple[str, str, str]]  # (field, type, message)
_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_LONGEST_SECONDS = 30


def with_defaults(kind: Kind, configuration: Object) -> Object:
    """The configuration with all that its webhooks leave to the API server."""
    webhooks = [_webhook(kind, each) for each in configuration.get("webhooks") or []]
    return configuration | {"webhooks": webhooks}


def _webhook(kind: Kind, webhook: Object) -> Object:
    defaults: Object = {
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "timeoutSeconds": 10,
    }
    if kind is MUTATING:
        defaults["reinvocationPolicy"] = "Never"
    rules = [{"scope": "*"} | rule for rule in webhook.get("rules") or []]
    given = {name: value for name, value in webhook.items() if value is not None}
    return defaults | given | {"rules": rules}


def check(kind: Kind, configuration: Object) -> None:
    """Raises: Refused (422) naming every field that is wrong."""
    causes: _Causes = []
    for place, webhook in enumerate(configuration["webhooks"]):
        causes += [
            (f"webhooks[{place}].{field}", type_, message)
            for field, type_, message in _causes(webhook)
        ]
    if causes:
        raise invalid(kind, configuration["metadata"]["name"], causes)


def _causes(webhook: Object) -> _Causes:
    causes: _Causes = []
    if not webhook.get("name"):
        causes.append(("name", "FieldValueRequired", "Required value"))
    effects = webhook.get("sideEffects")
    if effects is None:
        why = f"Required value: must specify one of {', '.join(_SIDE_EFFECTS)}"
        causes.append(("sideEffects", "FieldValueRequired", why))
    elif effects not in _SIDE_EFFECTS:
        values = ", ".join(f'"{each}"' for each in _SIDE_EFFECTS)
        why = f'Unsupported value: "{effects}": supported values: {values}'
        causes.append(("sideEffects", "FieldValueNotSupported", why))
    if not webhook.get("admissionReviewVersions"):
        why = "Required value: must specify one of v1, v1beta1"
        causes.append(("admissionReviewVersions", "FieldValueRequired", why))
    seconds = webhook["timeoutSeconds"]
    if not 1 <= seconds <= _LONGEST_SECONDS:
        why = f"the timeout value must be between 1 and {_LONGEST_SECONDS} seconds"
        causes.append(("timeoutSeconds", "FieldValueInvalid", f"Invalid value: {seconds}: {why}"))
    return causes + _client_causes(webhook.get("clientConfig") or {})


def _client_causes(client: Object) -> _Causes:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        why = "Required value: exactly one of url or service is required"
        return [("clientConfig", "FieldValueRequired", why)]
    if url is not None and not url.startswith("https://"):
        scheme = url.partition(":")[0]
        why = "'https' is the only allowed URL scheme; desired format: https://host[/path]"
        return [("clientConfig.url", "FieldValueInvalid", f'Invalid value: "{scheme}": {why}')]
    return []
