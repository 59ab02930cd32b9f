"""In front of every kind of write: what waits for its turn, and what is not tried for a while.

Read in this order: `work_queue.py` (turns, workers, tries), `one_try.py` (a queue whose writes are
tried once each) with `refusals.py` (namespaces where the API server forbids them), and
`problems.py` (what the log says of writes that fail).
"""
