"""One running Corral: its parts, the ports it serves, and what drives the engine.

Read in this order: `engine_settings.py` (what the engine is told), `outside.py` (what is taken of
the world before anything is made of it), `leading.py` (which of several Corrals acts),
`taking_over.py` (when one that may act begins to), `parts.py` (what runs, and how it ends),
`driver.py` (inputs of the engine and its ticks). `serving/` has the listeners and their
certificates, `records/` what is written for later: journal and traces, `watches/` how the watches
are. `collector.py` stands aside.
"""
