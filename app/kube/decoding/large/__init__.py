"""What tenants make large is read in pieces, so that the event loop has a turn between two.

`escapes.py` shortens it as it comes in. `parts.py` leaves out what holds more than any real object
does, and `containers.py` reads all of a pod's containers, a few hundred at a time.
"""
