"""The sandbox put together: the API server, the controllers around it, and nodes to schedule on.

The job controller creates pods, the kubelet stand-in lets bound pods run, and nodes come from a
recorded or a synthetic snapshot. `run.py` is `corral sandbox`.

Read in this order: `sandbox.py`, `jobs.py`, `kubelet.py`, `snapshot.py`, `synthetic.py`, `run.py`,
`kubeconfig.py`.
"""
