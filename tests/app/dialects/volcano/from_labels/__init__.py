"""HyperNodes made from the labels of nodes."""
