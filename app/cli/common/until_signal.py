"""Runs a command that has no end of its own until SIGTERM or Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine

import uvloop


def run_until_signal(work: Coroutine[object, object, None]) -> None:
    """Run to the end, or until a signal unwinds it in good order; a second one ends it at once.

    Ctrl-C stays ignored where it was ignored for us, as for a job in the background of a script.
    Raises: whatever the work raises.
    """
    signals = [signal.SIGTERM]
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signals.append(signal.SIGINT)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_watched(work, signals))


async def _watched(work: Coroutine[object, object, None], signals: list[signal.Signals]) -> None:
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)

    def end() -> None:
        for signum in signals:
            loop.remove_signal_handler(signum)
        task.cancel()

    for signum in signals:
        loop.add_signal_handler(signum, end)
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
