"""What moves pods in kube-scheduler's queue; `outbox.py` is the list of all that goes out.

`ungating.py` decides which gates are removed and what each pod is narrowed to, `nominating.py` says
at which node kube-scheduler looks first, and `requeue.py` makes it look at a pod again.
`stray_gates.py` takes our gate off pods that are in no gang.
"""
