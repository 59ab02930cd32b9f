"""What is to be placed, as the placement core is asked it.

`pod_sets.py` sorts a gang's unplanned members into pod sets, `pins.py` says where settled members
keep these, `group_tree.py` has the groups around them. `request.py` makes one question of it all,
with the nodes that are open to them; `parts.py` places a gang on several topologies.
"""
