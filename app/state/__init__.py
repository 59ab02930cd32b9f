"""All memory that changes: plain functions over plain objects, no I/O, no clock, no await.

    inputs ──▶ engine ──▶ lifecycle ──▶ reserve ──▶ plan ──▶ gang ──▶ cache
                 └────────────┴────────────┴──▶ report ──▶ effects

Read in this order: `engine.py` (what is asked), `watched.py` (what the watch shows), `ticks.py`
(what is due), `wiring/` (the parts of all three), the rooms. `cache/` is the books of the cluster:
nodes, pods, capacity; `objects/` is what objects of the vocabularies say, `domains/` the topologies
among that. `pods/` is what is remembered of single pods beside the books, `claims/` says which gang
a pod belongs to by what is said of it. `gang/` holds the gangs and says which pods belong to each,
`turns/` whose turn it is, `plan/` asks the placement core and assigns nodes, `fairness/` bounds
what a gang keeps from others, `reserve/` holds what was planned. `lifecycle/` changes gangs from
their first pod to their last, `preempt/` has others go for them, `nodes/` follows nodes that change
or fail, `answers/` says what kube-scheduler hears, `born/` what the webhook hears, `autoscaling/`
has nodes made and kept, `queueing/` moves pods in kube-scheduler's queue, `report/` is what goes
out to people, `audit/` compares the books with the records, and `journal/` records inputs and plays
them again. `inputs.py` is all that may change an engine, `effects.py` what has to be written, and
`filter_result.py` what /filter answers. `settings.py` is what the operator has set, `isolation.py`
confines a bug to the gang it is about, and `pauses.py` says when to try again.
"""
