"""Who may read /v1, and how much of it.

Read `callers` (who asks, and what each route takes), then `permissions` (what the API server says
of them, remembered for a moment).
"""
