"""`corral simulate`: what would become of objects if they were created now.

`command.py` sends them to a running Corral, `rendering.py` writes what it answers.
"""
