"""What a gang may keep from others.

Places for pods that do not exist (`absent_pods.py`) or are lost (`owed_places.py`), and nodes that
are kept free because it has waited too long: `starvation.py` gives and ends such an `earmark.py`,
of nodes that would be enough for the gang (`enough_nodes.py`). Which of them are likely to be free
first is in `expected_room.py`, by what gets free when (`endings.py`), and that by how long pods are
likely to run (`run_times.py`).
"""
