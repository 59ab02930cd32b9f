"""Where the parts of `Seen` come from.

`files.py` reads what the options name, `cluster.py` asks the API server, `rights.py` what it
allows Corral; `read.py` puts the parts together.
"""

from __future__ import annotations

from app.cli.doctor.reading.read import Asked, read

__all__ = ["Asked", "read"]
