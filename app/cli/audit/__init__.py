"""`corral audit`: is every running gang where its constraints say?

    API server ──reading──▶ nodes, objects, pods ──gathering──▶ RunningGang … ──judging──▶ Verdict …
                                                    │                             │
                                       dialects: claims, specs, topologies        └── places: the
                                                                       domain of a node at a level

Nothing is asked of a running Corral, and nothing of the planner: what a gang is comes from the
vocabularies, where its pods are from the labels of nodes and from HyperNodes, and the rules by
which the two are compared are `judging.py`'s own. Of a pod of a gang some 200 bytes are kept, and
nothing of any other: so a cluster of any size can be read, page by page. `units.py` says which pods
share a constraint, `verdicts.py` is what is found, `rendering.py` shows it; `command.py` is what is
typed.
"""

from __future__ import annotations

from app.cli.audit.command import audit

__all__ = ["audit"]
