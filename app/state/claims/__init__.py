"""Which gang a pod claims to belong to.

`claim_reader.py` puts together what the pod says and what objects say of it, `named_pods.py` has
the pods that objects name or may name, `unseen.py` those that the watch has not shown yet.
"""
