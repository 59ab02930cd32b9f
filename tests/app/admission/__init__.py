"""The webhook: what it changes, what it refuses, and its port."""
