"""`corral doctor`: what is wrong with an installation, and the lines that mend it.

    files ─┐
           ├─ reading/ ──▶ Seen ── checks/ ──▶ Found … ── findings ──▶ Finding … ── rendering
 cluster ──┘   awaits       data    pure, one registry       data               prose

`command.py` has the options, `seen.py` what is read, `checks/__init__.py` every check there is,
`configuration.py` and `installed.py` what a KubeSchedulerConfiguration and a Deployment mean. A
check is a pure function of the two or three parts that it names; what could not be read is a reason
why the checks that need it were not made.
"""

from __future__ import annotations

from app.cli.doctor.command import doctor

__all__ = ["doctor"]
