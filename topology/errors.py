"""Everything the placement core raises.

* TopologyError
  - InvalidTopology     the level list or the nodes' values contradict themselves
  - InvalidRequest      the gang's request contradicts itself, or contains
                        something that is not enforced
  - BrokenInvariant     our bug; names what disagrees

A gang that does not fit is not here: it is an answer (`answer.NoFit`). A caller's
bug inside one call (a vector of the wrong length, an empty request) is a plain
ValueError.
"""

from __future__ import annotations


class TopologyError(Exception):
    """Anything the placement core raises on purpose."""


class InvalidTopology(TopologyError):
    """The operator's levels or node values contradict themselves."""


class InvalidRequest(TopologyError):
    """The user's gang is invalid, or contains something that is not enforced."""


class BrokenInvariant(TopologyError):
    """Our own books disagree with themselves; never the user's fault."""
