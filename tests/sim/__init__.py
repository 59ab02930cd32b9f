"""A seeded world in virtual time around the real engine; `world.py` has the picture.

Order to read: clock, dialects, api, objects, watch, calls · queue, extender, cache, victims,
post_filter, kube_scheduler · life, observer, corral, writes · kinds, owners, workloads, kubelets ·
mode, faults, chaos · budgets, preemptors, evictions, born · told, starts, checks, isolation,
bypass, absent, born_checks, preemption, making_room, shadow · oracle, places, liveness, afterwards
· vocabulary, and volcano/, grove/, native/, composite/ and kai/, whose `__init__` have their own
order · node_autoscaler, growth, growth_checks, growing: of worlds whose nodes come and go ·
profile, at_rest, world, runs, planted.
"""
