"""All memory that changes: plain functions over plain objects, no I/O, no clock, no await.

Read in this order. What is known: `engine.py` (what happens when), `gangs.py` (who waits for whom),
`members.py` (who belongs), `ledger.py` (what changes a gang), `cluster.py` (the books).

Where to: `planner.py` (whom to try next), `roles.py` (what is asked for), `placing.py` (the
search) and `eligibility.py` (which nodes allow it), `seating.py` (who gets which node).

What is held and said: `holds.py`, `places.py` on `absent.py` (for pods that do not exist),
`voice.py` with `sentences.py` and `gates.py` (what goes out), as values of `effects.py`.

What moves a gang on: `filtering.py` with `answers.py` and `offers.py`, `barrier.py`; what throws it
back: `upsets.py`, `repair.py`. Around it: `earmarks.py`, `reservations.py` and `turned_away.py`
(ordinary pods), `topologies.py`, `audit.py`, `journal.py` with `replay.py` (inputs recorded and
played again), `settings.py`.
"""
