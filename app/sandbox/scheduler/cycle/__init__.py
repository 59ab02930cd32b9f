"""One scheduling cycle: from a pod to the name of a node, or to the reason why there is none.

    PreFilter ─▶ Filter ─▶ /filter ─▶ scores + /prioritize ─▶ node      none left ─▶ preemption

Nothing is written here; the scheduler binds, evicts and reports by the outcome.

Read in this order: `cycle.py`, `filters.py`, `extender.py` (the calls), `scores.py`,
`preemption.py`, `diagnosis.py` (the message of a pod that found no node).
"""
