"""Everything that an engine is made of, wired once, in storeys.

    cluster ◀─ planning ◀─ reporting ◀─ autoscaling ◀─ holding ◀─ membership ◀─ room ◀─ births
                                                                                        ◀─ answers

Each storey is a class that stands on the one below and has its parts. A part is handed what it
may change or call, so its parameters say who it depends on; that can only be what is below it or
beside it, since its storey knows no other. What happens when is `engine.py`'s.
"""
