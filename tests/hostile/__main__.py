"""python -m tests.hostile [--seed S] [--count N]

Gives N mutated inputs to every route and every watched kind in turn, and prints what came of it. An
input that breaks something is made small and printed with its edits; the exit code is 1 then.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import resource
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from app.cli.common.logs import log_to_stderr
from app.process.collector import Collector
from tests.hostile.mutations import Mutation, drawn, smallest
from tests.hostile.rig import MOST_STALL_SECONDS, Rig, Target, targets

SETTLE_EVERY = 200  # inputs


@dataclass(frozen=True, slots=True)
class Failure:
    """An input that breaks something, as small as it could be made."""

    target: str
    mutation: Mutation
    body: bytes
    problem: str


async def played(seed: int, count: int) -> tuple[Failure | None, Rig]:
    """The first failure of so many inputs, if there is one, and what they were given to."""
    rng, rig, known = random.Random(seed), Rig(), list(targets())
    given: list[tuple[Target, Mutation]] = []
    for number in range(count):
        given.append((known[number % len(known)], drawn(rng)))
        settles = len(given) == SETTLE_EVERY or number == count - 1
        if problem := await problem_of(rig, given[-1:], settles=settles):
            return await _made_small(given, problem), rig
        if settles:
            given.clear()
    return None, rig


async def problem_of(rig: Rig, given: Sequence[tuple[Target, Mutation]], *, settles: bool) -> str:
    """What breaks when these are given to the rig, and taken away again; "" if nothing does."""
    try:
        for target, mutation in given:
            await rig.give(target, mutation.applied(target.thing))
        if settles:
            rig.settle()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


async def _made_small(given: Sequence[tuple[Target, Mutation]], problem: str) -> Failure:
    """The first input that breaks something alone, made small; else the last one as it is."""
    for target, mutation in given:

        async def fails(mutation: Mutation, target: Target = target) -> bool:
            return bool(await problem_of(Rig(), [(target, mutation)], settles=True))

        if await fails(mutation):
            small = await smallest(mutation, fails)
            problem = await problem_of(Rig(), [(target, small)], settles=True)
            return Failure(target.name, small, small.applied(target.thing), problem)
    target, mutation = given[-1]
    problem = f"with the {len(given) - 1} inputs before it: {problem}"
    return Failure(target.name, mutation, mutation.applied(target.thing), problem)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20_000, help="how many inputs")
    asked = parser.parse_args()
    log_to_stderr("critical")
    Collector().settle()  # as `corral serve` does: what these modules are is no input's work
    failure, rig = asyncio.run(played(asked.seed, asked.count))
    if failure is not None:
        print(f"{failure.target}: {failure.problem}")
        print(f"edits {list(failure.mutation.edits)}, rough: {failure.mutation.is_rough}")
        print(failure.body[:2000].decode(errors="backslashreplace"))
        return 1
    mebibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds, name = rig.slowest
    print(
        f"{asked.count} inputs, 0 failures; {rig.stalls} kept the loop for {MOST_STALL_SECONDS} s"
    )
    print("at most {} nodes looked at for one of them ({})".format(*rig.most_visits))
    print(f"slowest {1000 * seconds:.1f} ms ({name}); at most {mebibytes:.0f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
