"""What is held for a gang: the plan of its members, and places for pods that do not exist.

    plans, replacements ──▶ placeholders (which pods are absent)
             └────────────▶ reservations (their capacity) ──▶ binding (how far each has come)

`plans.py` has the planner search for a gang and gives its plan up when it no longer stands;
`reservations.py` holds capacity in the books. `binding.py` remembers how far kube-scheduler has
brought each planned member. `placeholders.py` holds places for pods that are absent,
`pods_to_come.py` says what these will be like; `replacements.py` holds those of pods that were
lost.
"""
