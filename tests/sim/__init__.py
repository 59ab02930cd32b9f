"""A seeded world in virtual time around the real engine; `world.py` has the picture.

Order to read: clock, api, watch, calls · queue, kube_scheduler · life, corral, writes · workloads,
kubelets · faults, chaos · told, checks, shadow, liveness · world, runs, planted.
"""
