"""One scenario, two worlds: the sandbox and the real control plane give the same placements."""
