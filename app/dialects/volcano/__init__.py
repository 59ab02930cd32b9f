"""Volcano's vocabulary: HyperNodes, which name the nodes that are close together.

`hyper_nodes.py` reads them and says what is written back.
"""

from app.dialects.volcano.dialect import VolcanoDialect

DIALECT = VolcanoDialect()

__all__ = ["DIALECT"]
