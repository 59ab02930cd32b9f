"""CompositePodGroups in a simulated world: PodGroups that start together, and what must hold.

    a user ──▶ CompositePodGroup and its PodGroups, in any order ◀── the conditions, from Corral
       └─────▶ pods that name the PodGroups

They are in worlds of their own, whose API server has them: not in those of `tests/sim/native`.
Order to read: tree, drawn, controller, checks, rest, life.
"""
