"""What the API server checks, fills in and refuses before an object is stored.

Every write becomes a `Write`, a change that all rules allow, and is committed as such. The rules of
one kind have a file each: pods, jobs, definitions of custom resources, webhook configurations.

Read in this order: `registry.py` (all reads and writes), `metadata.py`, `pod_rules.py` and
`pod_actions.py` (binding, eviction), then `job_rules.py`, `custom_resources.py` and
`webhook_rules.py`; `quantity.py` reads amounts.
"""
