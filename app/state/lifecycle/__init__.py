"""What changes a gang, from the pods that join it to the last binding.

    claims ──▶ members ──▶ roll_call ──▶ (reserve/) ──▶ permit
                               ▲
                            passes

`members.py` follows the pods that the watch shows. `roll_call.py` sorts a gang's members out again
and drops what no longer stands; `passes.py` tries the gangs that wait. `permit.py` holds planned
members at /bind until each has arrived. `claims.py` has pods join and leave when objects name them,
or name them no longer. `disruption.py` ends gangs as a whole that lose a pod to one of higher
priority. `succession.py` says which gangs a Corral plans that follows another one, and which have
their turn first when it begins to lead.
"""
