"""All memory that changes: plain functions over plain objects, no I/O, no clock, no await.

    inputs ──▶ engine ──▶ cache ──▶ gang ──▶ plan ──▶ lifecycle ──▶ report ──▶ effects

Read in this order: `engine.py` (what happens when), then the rooms. `cache/` is the books of the
cluster: nodes, pods, capacity, objects of the vocabularies. `gang/` says who belongs to a gang,
`plan/` asks the placement core and assigns nodes, `lifecycle/` moves a gang on and throws it back,
`report/` says what must be told or written, `journal/` records inputs and plays them again.
`filtering.py` answers /filter for members with `filter_result.py`; `effects.py` is what goes out.
"""
