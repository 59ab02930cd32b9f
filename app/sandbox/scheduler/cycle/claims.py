"""The claims of a pod that do not exist: kube-scheduler asks no extender about such a pod.

Only whether a claim is there: in the sandbox every one of them is good on every node.
Source: pkg/scheduler/framework/plugins of kubernetes 1.36: volumerestrictions, PreFilter, and
dynamicresources, PreEnqueue (which emits no event; here its text is one).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from app.sandbox.apiserver.storage.kinds import DEVICE_CLAIM, VOLUME_CLAIM, Key, Kind, Object

VOLUMES, DEVICES = "VolumeBinding", "DynamicResources"
PLUGIN_OF = {VOLUME_CLAIM.home: VOLUMES, DEVICE_CLAIM.home: DEVICES}

IsThere = Callable[[Kind, Key], bool]


def absent_claims(body: Object, is_there: IsThere) -> dict[str, str]:
    """What is said of a pod's claims that are not there, by the plugin that says so."""
    namespace = body["metadata"].get("namespace", "")
    found: dict[str, str] = {}
    for kind, name in _claims(body["spec"]):
        if not is_there(kind, (namespace, name)):
            found[PLUGIN_OF[kind.home]] = f'{kind.name.lower()} "{name}" not found'
    return found


def _claims(spec: Object) -> Iterator[tuple[Kind, str]]:
    for each in spec.get("volumes") or []:
        name = (each.get("persistentVolumeClaim") or {}).get("claimName")
        if name:
            yield VOLUME_CLAIM, name
    for each in spec.get("resourceClaims") or []:
        if each.get("resourceClaimName"):
            yield DEVICE_CLAIM, each["resourceClaimName"]
