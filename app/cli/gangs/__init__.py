"""`corral gangs` and `corral explain`: what a running Corral knows of gangs, as /v1 answers it.

`server.py` asks it, `listing.py` and `explaining.py` have a command each, `options.py` what both
have in common.
"""
