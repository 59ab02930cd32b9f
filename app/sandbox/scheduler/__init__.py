"""kube-scheduler as an extender sees it: the queue, the cycle with its calls, and the bindings.

    store ─▶ queue ─▶ cycle (one pod at a time) ─▶ binding (in the background) ─▶ store

What an extender can notice is reproduced: which pod comes when, with which nodes, what an answer
leads to, and when a rejected pod is tried again. Left out are the plugins that no test needs:
ports, volumes, topology spread, pod affinity and resource claims.

Read in this order: `scheduler.py` (the loop), `queue.py` and `cluster_events.py` (who is next),
`cycle` (the search for a node), `preempting.py` (its victims are deleted), `facts` (what it knows
of pods and nodes), `recorder.py`.
"""
