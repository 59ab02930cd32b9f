"""What kube-scheduler is told: `extender.py` its configuration, `agreement.py` whether Corral's
settings say the same.
"""
