"""`corral replay`: a journal or a recorded cluster again.

journal ──┬─ comparing: every answer again, bit for bit
          └─ checking: was every promise kept
snapshot ─── loading: a load test over HTTP
"""
