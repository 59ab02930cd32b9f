"""What would become of objects if they were created now: answered on a copy, nothing is written.

    body ──body.py──▶ objects ──given.py──▶ named, of a kind that is read
    these ──made.py, dialects/making──▶ objects and pods that their controllers would create
    each ──admitting.py──▶ flaws of the webhook, or what it makes of a pod
    engine ──copying.py, on the event loop──▶ Copy ──in a thread──▶ an engine of its own
    records ──simulating.py──▶ that engine ──app.explain──▶ Simulation

The copy is an engine like the one that runs: what it plans is what would be planned, by the same
code. Only the books of others are in it, not their gangs, so that nothing but what is simulated is
planned. `view.py` is what people and programs get, `notes.py` what Corral does not know of it.
"""
