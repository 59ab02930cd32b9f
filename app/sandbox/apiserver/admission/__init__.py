"""Admission webhooks: others have a say in a write before it is stored.

    Attributes ─▶ matching ─▶ review (out) ─▶ https ─▶ review (in) ─▶ the object, changed or refused

The configurations are ordinary objects of the store; they hold from the next request on. As
kube-apiserver 1.36 asks webhooks, but for this: `matchConditions` are not evaluated (a webhook is
asked as if they held, so it must judge by itself), a `clientConfig.service` leads nowhere since
nothing runs in this cluster, deletions and connections ask nobody, only AdmissionReview v1 is
spoken, and warnings and audit annotations are dropped. What the scheduler, the kubelets and the
job controller write asks nobody either, except for the pods of jobs.

Read in this order: `attributes.py`, `matching.py`, `review.py`, `webhooks.py`.
"""
