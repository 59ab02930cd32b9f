"""Effects reach who carries them out, in order."""

from __future__ import annotations

from app.controllers.dispatch import Dispatcher
from app.dialects.spec import GangKey
from app.state.effects import (
    Annotate,
    AskNodes,
    Bind,
    Delete,
    EmitEvent,
    EndAsk,
    Evict,
    Mark,
    ObjectRef,
    ProtectNode,
    ReadAgain,
    RejectBind,
    Requeue,
    SeekPlace,
    SeekRoom,
    TryEviction,
    Ungate,
    WriteStatus,
)

GANG = GangKey("team", "train", "job")
EFFECTS = [
    Requeue("team", "a", "u1"),
    Bind("team", "a", "u1", "n1"),
    RejectBind("u2", "no"),
    EmitEvent(GANG, ObjectRef("v1", "Pod", "team", "a", "u1"), "NoFit", "full", is_warning=True),
    Requeue("team", "b", "u3"),
    Ungate("team", "b", "u3", "corral.dev/gang"),
    Evict("team", "c", "u4", "its node is gone"),
    Delete(GANG, "team", "d", "u5", "one too many"),
    WriteStatus(GANG, "/apis/toys/v1/bands/trio", "u6", {"phase": "placed"}),
    Annotate("team", "e", "u7", (("corral.dev/succeeded", "w=1"),)),
    ReadAgain("Pod"),
    SeekRoom(GANG),
    TryEviction("team", "f", "u8"),
    Mark("team", "g", "u9", "7", "needs nodes"),
    ProtectNode("n1", "u10", "7", True, (("karpenter.sh/do-not-disrupt", "true"),)),
    AskNodes(GANG, "corral-1f-1", "1f", "class", (), ()),
    EndAsk("team", "corral-1f-1", "u10"),
    SeekPlace(GANG),
]


def test_each_kind_goes_to_its_taker_in_order():
    taken = {
        "wake": [],
        "annotate": [],
        "ungate": [],
        "remove": [],
        "bind": [],
        "refuse": [],
        "report": [],
        "status": [],
        "read_again": [],
        "seek_room": [],
        "seek_place": [],
        "try_eviction": [],
        "mark": [],
        "protect": [],
        "ask_nodes": [],
    }
    Dispatcher(**{kind: effects.append for kind, effects in taken.items()}).feed(EFFECTS)
    assert taken == {
        "wake": [EFFECTS[0], EFFECTS[4]],
        "annotate": [EFFECTS[9]],
        "ungate": [EFFECTS[5]],
        "remove": [EFFECTS[6], EFFECTS[7]],
        "bind": [EFFECTS[1]],
        "refuse": [EFFECTS[2]],
        "report": [EFFECTS[3]],
        "status": [EFFECTS[8]],
        "read_again": [EFFECTS[10]],
        "seek_room": [EFFECTS[11]],
        "seek_place": [EFFECTS[-1]],
        "try_eviction": [EFFECTS[12]],
        "mark": [EFFECTS[13]],
        "protect": [EFFECTS[14]],
        "ask_nodes": EFFECTS[15:-1],
    }
