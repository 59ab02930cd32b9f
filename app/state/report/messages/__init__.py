"""Every sentence a pod's owner may read, written once.

They go into FailedScheduling events and conditions through kube-scheduler, which retries a pod
whenever its text changes: no times, no attempt counters, the same words for all members.

`gangs.py` has those of a gang's life, `preemption.py` who goes for whom, `autoscaling.py` nodes
that are to be made, and `given_back.py` pods that their controllers are to make again.
"""
