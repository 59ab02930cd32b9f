"""What goes out to people and to kube-scheduler; `outbox.py` is the list of it.

`reports.py` (events) writes with the sentences of `messages.py` and repeats what is in `lost.py`,
`statuses.py` writes back what a vocabulary expects on its own objects, `notes.py` what a gang has
to remember on its pods, `requeue.py` makes kube-scheduler look at a pod again, `nominating.py`
says at which node first, `ungating.py` decides which gates are removed and what each pod is
narrowed to. `decisions.py` is what people read of all that.
"""
