"""What a gang may keep from others: places for pods that do not exist (`absent_pods.py`), and nodes
that are kept free because it has waited too long (`starvation.py`).
"""
