"""The shell: reads the cluster, answers kube-scheduler, writes what was decided."""
