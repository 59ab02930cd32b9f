"""Grove's objects in a simulated world: what makes them, and what must hold of their pods.

    PodCliqueSet ──▶ operator ──▶ pods behind its gate ──▶ PodGang ──▶ gates lifted, pod by pod
                        │            (labels)              (JSON)
    ClusterTopology ────┘                                  │  ▲ phase, Scheduled: Corral
                                                           ▼
                                  reading ──▶ checks, every step · rest, when all is quiet

Order to read: pod_clique_set, drawn, operator, reading, checks, rest, life.
`reading` understands the JSON by itself: a bug of `app/dialects/grove` or of `topology` is not
repeated by what judges it.
"""
