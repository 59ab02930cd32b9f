"""The real control plane, and what is only true of it."""
