"""The four verbs in kube-scheduler's words: `models.py` reads them, `encode.py` writes them.

`routes.py` joins both to `app.verbs`; `guard.py` bounds what a connection may cost. Every field of
the extender JSON is spelled in the first two files and nowhere else. `server.py` is a port, of
whatever routes, and `health.py` what probes ask on each.
"""
