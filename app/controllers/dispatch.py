"""Hands each effect to the controller of its kind. Synchronous: nothing here waits or fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from app.state.effects import (
    Annotate,
    AskNodes,
    Bind,
    Delete,
    Effect,
    EmitEvent,
    EndAsk,
    Evict,
    Mark,
    ProtectNode,
    ReadAgain,
    RejectBind,
    Requeue,
    SeekPlace,
    SeekRoom,
    Suspend,
    TryEviction,
    Ungate,
    WriteStatus,
)


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """One taker per kind of effect; a taker only queues or resolves, it never blocks."""

    wake: Callable[[Requeue], None]
    annotate: Callable[[Annotate], None]
    ungate: Callable[[Ungate], None]
    mark: Callable[[Mark], None]
    protect: Callable[[ProtectNode], None]
    ask_nodes: Callable[[AskNodes | EndAsk], None]
    remove: Callable[[Evict | Delete | Suspend], None]
    bind: Callable[[Bind], None]
    refuse: Callable[[RejectBind], None]
    report: Callable[[EmitEvent], None]
    status: Callable[[WriteStatus], None]
    read_again: Callable[[ReadAgain], None]
    seek_room: Callable[[SeekRoom], None]
    seek_place: Callable[[SeekPlace], None]
    try_eviction: Callable[[TryEviction], None]

    def feed(self, effects: Iterable[Effect]) -> None:
        """Hand over effects in order."""
        for effect in effects:
            match effect:
                case Bind():
                    self.bind(effect)
                case Requeue():
                    self.wake(effect)
                case Annotate():
                    self.annotate(effect)
                case Ungate():
                    self.ungate(effect)
                case Mark():
                    self.mark(effect)
                case ProtectNode():
                    self.protect(effect)
                case AskNodes() | EndAsk():
                    self.ask_nodes(effect)
                case Evict() | Delete() | Suspend():
                    self.remove(effect)
                case RejectBind():
                    self.refuse(effect)
                case EmitEvent():
                    self.report(effect)
                case WriteStatus():
                    self.status(effect)
                case ReadAgain():
                    self.read_again(effect)
                case SeekRoom():
                    self.seek_room(effect)
                case SeekPlace():
                    self.seek_place(effect)
                case TryEviction():
                    self.try_eviction(effect)
