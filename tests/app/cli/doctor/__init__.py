"""`corral doctor`, over installations as data; `installation.py` has the one that is right."""
