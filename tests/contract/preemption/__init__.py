"""Who goes for whom: the scenarios of preemption as data, played with the shipped Corral.

    table.py ──▶ play.py ──▶ cluster.py: the sandbox, Corral behind HTTP, kubelets, owners
                                 └── virtual_time.py: minutes pass in milliseconds

Read in this order: `table.py`, `play.py`, `cluster.py`, `virtual_time.py`. Apart from them stands
`choices.py`: what a kube-scheduler without Corral does, the sandbox's or the real one.
"""
