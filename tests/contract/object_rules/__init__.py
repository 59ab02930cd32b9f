"""What an API server does with the objects by which nodes are asked for: the same rules on both.

rules: one function each, of a client; played by test_object_rules on the sandbox, and on
kube-apiserver by tests/controlplane/test_requests_for_nodes.
"""
