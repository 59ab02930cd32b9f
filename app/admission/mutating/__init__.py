"""What the webhook changes of a pod that is about to be created, as operations of a JSON patch.

`mutate.py` says which pods and what, `markers.py` the resources by which kube-scheduler knows a
member of a gang, and `role_hash.py` what identical pods of a gang have in common.
"""
