"""What changes a gang, from the pods that join it to the last binding.

    members ──▶ roll_call ──▶ plans ──▶ reservations ──▶ permit
                    ▲           ▲
                 passes ────────┘

`members.py` follows the pods that the watch shows. `roll_call.py` sorts a gang's members out again
and drops what no longer stands; `plans.py` makes and loses plans; `reservations.py` holds their
capacity; `passes.py` tries the gangs that wait. `permit.py` holds planned members at /bind until
each has arrived; `binding.py` remembers how far each has come. `placeholders.py` and
`replacements.py` reserve capacity for pods that do not exist. `claims.py` has pods join and leave
when objects name them, or name them no longer.
"""
