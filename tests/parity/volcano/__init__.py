"""Volcano: what its network topology plugin decides, as its unit and end-to-end tests record it."""
