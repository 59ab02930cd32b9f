"""python -m tests.sim --seeds 500 [--first N] [--jobs J] [--twice] [--preempting] [--growing]

or --seed N [--trace] [--journal FILE] [--preempting] [--growing], or --replay FILE
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.sim.journal import show_replay
from tests.sim.mode import add_options, mode_of
from tests.sim.runs import play, play_twice, show_one


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=500, help="how many histories to play")
    parser.add_argument("--first", type=int, default=1, help="the first of them")
    parser.add_argument("--jobs", type=int, default=2, help="processes to play them in")
    parser.add_argument("--seed", type=int, help="play this one history")
    parser.add_argument("--trace", action="store_true", help="print the whole of it")
    parser.add_argument("--stop", action="store_true", help="stop at the first violation")
    parser.add_argument("--twice", action="store_true", help="again, with other string hashes")
    parser.add_argument("--journal", type=Path, help="keep the inputs of --seed's engines here")
    parser.add_argument("--replay", type=Path, help="play the engines of such a journal again")
    add_options(parser)
    asked = parser.parse_args()
    mode = mode_of(asked)
    if asked.replay is not None:
        return show_replay(asked.replay)
    if asked.journal is not None and asked.seed is None:
        parser.error("--journal needs --seed")
    if asked.seed is not None:
        return show_one(asked.seed, trace=asked.trace, journal=asked.journal, mode=mode)
    if asked.twice:
        return play_twice(asked.first, asked.seeds, jobs=asked.jobs, mode=mode)
    return play(asked.first, asked.seeds, jobs=asked.jobs, stops=asked.stop, mode=mode)


if __name__ == "__main__":
    sys.exit(main())
