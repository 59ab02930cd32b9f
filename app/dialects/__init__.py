"""Vocabularies that workloads already speak, translated into one of our own. Pure.

    objects, pods ──dialect──▶ GangSpec and Claims (`spec.py`) ──▶ app.state

Every label, annotation and field name of a custom resource is spelled here and nowhere else. Read
in this order: `spec.py` (what a gang is), `declared.py` (what objects say besides), `dialect.py`
(what a vocabulary does), `registry.py` (which there are), then one of them: `kueue/` over
`workloads/`. `flaw.py` is a rule that an object breaks, `written.py` what is written back.
`rules.py` has what the rules of every vocabulary are made of, `corral.py` our own labels,
`presets.py` well-known level labels, `silence.py` the pods that none of them says anything of.
"""
