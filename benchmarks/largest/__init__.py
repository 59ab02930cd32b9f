"""The largest objects that can be stored, each in the dearest form found.

Objects have 1.5 MB as kube-apiserver stores them: validated, with its defaults; some are just below
a bound. Containers are twice as long in what it sends. `written.py` has what all are made of,
`pods.py` pods and their annotations, `workloads.py` what owns pods, with `vocabularies.py` the
objects of each vocabulary. `benchmarks/decoding.py` has them read.
"""
