"""Measurements: each module prints one table, or with --json a list of rows."""
