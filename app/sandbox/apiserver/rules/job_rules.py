"""What the API server fills in on a new job.

Source: kubernetes 1.36 apis/batch/v1/defaults.go, registry/batch/job/strategy.go.
"""

from __future__ import annotations

from app.sandbox.apiserver.storage.kinds import Object

NAME_LABEL = "batch.kubernetes.io/job-name"
BACKOFF_LIMIT = 6  # pods that may fail, where the job does not say
UID_LABEL = "batch.kubernetes.io/controller-uid"


def with_defaults(job: Object) -> Object:
    """The job with its defaults filled in."""
    spec = job.get("spec") or {}
    defaults: Object = {
        "completionMode": "NonIndexed",
        "suspend": False,
        "backoffLimit": BACKOFF_LIMIT,
        "manualSelector": False,
        "podReplacementPolicy": "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed",
        "parallelism": 1,
    }
    if "parallelism" not in spec and "completions" not in spec:
        defaults["completions"] = 1
    return job | {"spec": defaults | spec}


def prepared(job: Object) -> Object:
    """A new job as it is stored: generated selector, its labels on the template, empty status."""
    spec, metadata = job["spec"], job["metadata"]
    template = spec.get("template") or {}
    labels = labels_of(metadata["name"], metadata["uid"])
    template_metadata = template.get("metadata") or {}
    labelled = template_metadata | {"labels": (template_metadata.get("labels") or {}) | labels}
    spec = spec | {"template": template | {"metadata": labelled}}
    spec.setdefault("selector", {"matchLabels": {UID_LABEL: metadata["uid"]}})
    own_labels = metadata.get("labels") or template_metadata.get("labels") or {}
    return job | {
        "metadata": metadata | {"labels": own_labels | labels},
        "spec": spec,
        "status": {},
    }


def labels_of(name: str, uid: str) -> dict[str, str]:
    """The labels by which a job knows its pods, under their old and their new names."""
    return {NAME_LABEL: name, "job-name": name, UID_LABEL: uid, "controller-uid": uid}
