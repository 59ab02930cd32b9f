"""What kube-scheduler's requests about pods are answered with: /filter's for members, /bind's."""
