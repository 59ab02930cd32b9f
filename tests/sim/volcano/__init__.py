"""Volcano's objects in a simulated world: what makes them, and what must hold of their pods.

    hyper_nodes ──HyperNode──▶ objects ◀──vcjob, PodGroup── controller ──▶ pods, once Inqueue
                               (JSON)  ◀──phase, counts──── Corral
                                  │
                                  ▼
                     reading ──▶ checks, every step · rest, when all is quiet

Order to read: hyper_nodes, drawn, controller, reading, checks, rest, life.
`reading` understands the JSON by itself: a bug of `app/dialects/volcano` or of `topology` is not
repeated by what judges it.
"""
