"""The peers whose cases are recorded, by the name of their folder."""

from __future__ import annotations

from tests.parity.kai import peer as kai
from tests.parity.kueue import peer as kueue
from tests.parity.tally import Peer
from tests.parity.volcano import peer as volcano

PEERS: dict[str, Peer] = {"kueue": kueue.PEER, "kai": kai.PEER, "volcano": volcano.PEER}
