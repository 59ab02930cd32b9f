"""Admission webhooks: configured HTTPS servers change or refuse a write before it is stored.

    Attributes ─▶ matching ─▶ review (out) ─▶ https ─▶ review (in) ─▶ the object, changed or refused

A configuration takes effect with the next request. Webhooks are called as kube-apiserver 1.36 calls
them, with these exceptions. `matchConditions` are not evaluated: there is no CEL here, so a webhook
is called as if they were true and must decide by itself. A `clientConfig.service` is never found,
since no pod runs here. Deletions, bindings and evictions call no webhook, nor do the writes of the
scheduler, the kubelets and the job controller, except for the pods of jobs. AdmissionReview v1
only; warnings and audit annotations are dropped.

Read in this order: `attributes.py`, `matching.py`, `review.py`, `webhooks.py`.
"""
