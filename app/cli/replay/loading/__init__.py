"""`corral replay --load`: the pods of a recorded cluster come at a set rate, answered or not.

    snapshot ─▶ work ─▶ a sandboxed cluster ──watch──▶ Corral ◀─/filter /prioritize /bind─ driving
                        (a process)                    (a process)                            │
                                                                                 figures ◀────┘

The loop is open: a late answer does not put off the next pod, and what a pod waits before it is
sent counts, or a server that stalls would be asked less and look better than it is. In flight and
in time it is bounded, and what is over the bound is counted.
"""
