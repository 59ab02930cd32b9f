"""One running Corral: its parts, the ports it serves, and what drives the engine.

Read in this order: `parts.py` (what runs, and how it ends), `ports.py` (listeners and servers) and
`tls.py` (their certificates), `driver.py` (inputs of the engine and its ticks); `journal_file.py`
and `collector.py` stand aside.
"""
