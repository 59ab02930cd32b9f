"""Native PodGroups in a simulated world: what makes them, and what must hold of their pods.

    a user ──▶ PodGroup, before its pods or after them ◀── the condition, from Corral
       └─────▶ pods that name it in spec.schedulingGroup

Order to read: pod_group, drawn, controller, checks, rest, life.
What the JSON means is read in `pod_group` apart from `app/dialects/native` and `topology`.
"""
