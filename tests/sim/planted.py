"""Bugs of one line, planted in a copy of app/; the simulator has to find each of them.

    python -m tests.sim.planted            all of them, up to 500 seeds each
    python -m tests.sim.planted 3 17       some, by number
    python -m tests.sim.planted --list

A bug counts as found by a seed that is clean without it: each catch is played once more unmutated.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_SEEDS = 500
PLAY_SECONDS = 1800.0  # for one planted bug; bounds a mutation that makes the engine loop
FOUND = re.compile(r"^seed (\d+), step \d+, [0-9.]+ s: (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Planted:
    """One line, what is put in its place, and what that breaks.

    `file` is one of app/state, or with its folder one of app.
    """

    file: str
    line: str
    instead: str
    breaks: str
    is_quick: bool = False  # found within a few seeds: also planted by the tests


PLANTED = (
    Planted(
        "engine.py",
        "if is_new and pod.node in self.cluster.held_on:",
        "if False:",
        "a foreign binding eats what is held for a gang, and nobody notices",
    ),
    Planted(
        "engine.py",
        "if not is_open(node):",
        "if False:",
        "plans stay on nodes that take no pods any more",
    ),
    Planted(
        "engine.py",
        'self.upsets.lose_plans_on(name, f"node {name} has gone", now)',
        "pass",
        "plans stay on nodes that are gone",
    ),
    Planted(
        "engine.py",
        "self.holds.capacity_grew([booking.node])",
        "self.holds.freed_nodes[booking.node] = None",
        "gangs do not hear of room that pods leave behind",
    ),
    Planted(
        "engine.py",
        "if gang.plan.get(uid) == node:",
        "if uid in gang.plan:",
        "a pod is bound to the planned node, whatever kube-scheduler named",
    ),
    Planted(
        "engine.py",
        "known = [*self.cluster.bound, *self.ledger.gang_of]",
        "known = [*self.cluster.bound]",
        "members that went while the watch was down are still counted",
    ),
    Planted(
        "filtering.py",
        "gang.rejected[pod.uid] = answer.sentence",
        "pass",
        "nobody remembers whom to wake when a plan comes",
    ),
    Planted(
        "barrier.py",
        "elif gang.has_started or (len(gang.arrived) == gang.awaited and not gang.unplanned()):",
        "elif True:",
        "the first member at /bind starts alone",
        is_quick=True,
    ),
    Planted(
        "barrier.py",
        "if now >= first + self.settings.gang_bind_seconds:",
        "if False:",
        "held /bind requests wait for ever",
    ),
    Planted(
        "barrier.py",
        "first = min(gang.arrived.values(), default=math.inf)",
        "first = min(gang.arrived.values(), default=math.inf) - self.settings.hold_seconds",
        "held /bind requests are refused too early",
    ),
    Planted(
        "barrier.py",
        "elif not gang.has_started and now >= gang.moved_at + self.settings.hold_seconds:",
        "elif False:",
        "a plan that kube-scheduler never fetches holds its room for ever",
    ),
    Planted(
        "holds.py",
        "booking = self.cluster.release(uid)",
        "booking = None",
        "the hold of a lost plan stays on the books",
        is_quick=True,
    ),
    Planted(
        "ledger.py",
        "for uid in [uid for uid in gang.plan if uid not in gang.posted]:",
        "for uid in list(gang.plan):",
        "a plan is given up though a binding by it is under way",
    ),
    Planted(
        "barrier.py",
        "gang.posted.discard(uid)",
        "pass",
        "a binding that failed counts as under way",
    ),
    Planted(
        "voice.py",
        "for uid in sorted(gang.rejected.keys() & gang.plan.keys()):",
        "for uid in sorted(gang.rejected.keys() & gang.plan.keys())[1:]:",
        "one rejected member of each gang is not woken",
    ),
    Planted(
        "ledger.py",
        "self._retry_at = min(self._retry_at, gang.not_before)",
        "pass",
        "a gang whose plan was lost is not tried again after its back-off",
    ),
    Planted(
        "gangs.py",
        "return bool(self.roll.bound or self.posted)",
        "return bool(self.roll.bound)",
        "a gang whose bindings are under way counts as not started",
    ),
    Planted(
        "members.py",
        "places = declared.members - len(bound)",
        "places = declared.members - 1 if not bound else declared.members - len(bound)",
        "a gang starts with one member too few",
    ),
    Planted(
        "planner.py",
        "self._unfit.clear()",
        "pass",
        "what did not fit once never fits again",
        is_quick=True,
    ),
    Planted(
        "placing.py",
        "narrowed[pin.stop :] = False",
        "pass",
        "a late member may leave the domain of those that run",
    ),
    Planted(
        "reservations.py",
        "if node in self.cluster.held_on and not self.cluster.fits(node, request):",
        "if False:",
        "an ordinary pod is let onto room held for a gang",
    ),
    Planted(
        "reservations.py",
        "self._expires_at[uid] = now + IN_FLIGHT_SECONDS",
        "pass",
        "the hold of an ordinary pod is never ended",
        is_quick=True,
    ),
    Planted(
        "reservations.py",
        "return self.cluster.release(uid) is not None",
        "return True",
        "the hold of an ordinary pod stays when its time is over",
    ),
    Planted(
        "cluster.py",
        "self.release(uid)",
        "pass",
        "a pod that is bound still holds the room planned for it",
    ),
    Planted(
        "turned_away.py",
        "if fits[request]:",
        "if False:",
        "ordinary pods turned away for a hold are never woken",
    ),
    Planted(
        "upsets.py",
        "if not self.cluster.is_overcommitted(node):",
        "if False:",
        "a gang loses its plan to a binding of another one that leaves room for both",
    ),
    Planted(
        "filtering.py",
        "self.ledger.review_now(gang, now)  # also of a newcomer: in excess, or a replacement",
        "self.ledger.review_all(now)",
        "a request about one gang plans others",
    ),
    Planted(
        "planner.py",
        'return NoPlan(f"{FAULT}, {type(error).__name__}", is_fault=True)',
        "raise",
        "a search that fails is everybody's failure",
    ),
    Planted(
        "planner.py",
        "nodes for key, (nodes, its) in self.earmarked.items() if key != gang.key and its < rank",
        "nodes for key, (nodes, its) in self.earmarked.items() if key != gang.key and its > rank",
        "nodes kept for a gang that starves are given to those behind it",
    ),
    Planted(
        "earmarks.py",
        "return any(resource in self.scarce for resource, _ in pod.request)",
        "return False",
        "ordinary pods are let onto nodes kept for a gang that starves",
        is_quick=True,
    ),
    Planted(
        "earmarks.py",
        "limit = now - self.settings.starvation_seconds",
        "limit = now - 1e9",
        "small gangs may pass a large one for ever",
        is_quick=True,
    ),
    Planted(
        "absent.py",
        "elif life.is_fast and present:",
        "elif False:",
        "the first pod of a gang starts without places for those to come",
        is_quick=True,
    ),
    Planted(
        "absent.py",
        "if life.templates:",
        "if False:",
        "a driver starts without places for its workers",
        is_quick=True,
    ),
    Planted(
        "absent.py",
        "known = sum(each.is_spare for each in gang.absent.values())",
        "known = 0",
        "a gang gets more spares with each roll call",
        is_quick=True,
    ),
    Planted(
        "dialects/stateful_sets.py",
        "return Declared(record.parallelism, where, needed=1, are_alike=True)",
        "return Declared(record.parallelism, where, needed=1)",
        "the first pod of a StatefulSet starts without places for the others",
        is_quick=True,
    ),
    Planted(
        "dialects/job_sets.py",
        "if len(made) >= expected:",
        "if made:",
        "a JobSet starts before all its Jobs are known",
    ),
    Planted(
        "barrier.py",
        "elif gang.has_started or (len(gang.arrived) == gang.awaited and not gang.unplanned()):",
        "elif gang.has_started or len(gang.arrived) == gang.awaited and now > gang.complete_at+9:",
        "a gang's first attempt is in vain, the next one succeeds",
        is_quick=True,
    ),
)


def path_of(planted: Planted, root: Path) -> Path:
    """The file a bug is planted in."""
    return root / "app" / ("" if "/" in planted.file else "state") / planted.file


def lines_like(planted: Planted, root: Path = ROOT) -> int:
    """How often the line stands in its file: once, or the bug has to be written anew."""
    lines = path_of(planted, root).read_text().splitlines()
    return sum(line.strip() == planted.line for line in lines)


def plant(planted: Planted, root: Path) -> None:
    """Replace the line in a copy.

    Raises: ValueError where it does not stand there exactly once.
    """
    if lines_like(planted, root) != 1:
        raise ValueError(f"{planted.file}: {planted.line!r} is there {lines_like(planted, root)} ×")
    path = path_of(planted, root)
    changed = [
        line.replace(planted.line, planted.instead) if line.strip() == planted.line else line
        for line in path.read_text().splitlines()
    ]
    path.write_text("\n".join(changed) + "\n")


def catch(planted: Planted, *, seeds: int = MOST_SEEDS, jobs: int = 2) -> tuple[int, str] | None:
    """The first seed that finds the bug and what it says; None if none of them does."""
    with tempfile.TemporaryDirectory(prefix="planted-") as directory:
        copy = Path(directory)
        for package in ("app", "topology", "tests"):
            shutil.copytree(
                ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__", "*.so")
            )
        plant(planted, copy)
        first = 1
        while first <= seeds:
            found = _first_violation(copy, first, seeds - first + 1, jobs)
            if found is None:
                return None
            if _first_violation(ROOT, found[0], 1, 1) is None:
                return found
            first = found[0] + 1
    return None


def _first_violation(root: Path, first: int, seeds: int, jobs: int) -> tuple[int, str] | None:
    command = [sys.executable, "-m", "tests.sim", "--stop"]
    command += ["--first", str(first), "--seeds", str(seeds), "--jobs", str(jobs)]
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command,
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PLAY_SECONDS,
        check=False,
    )
    found = FOUND.search(done.stdout)
    if found is None and not done.stdout.rstrip().splitlines()[-1:]:
        raise RuntimeError(f"the simulator did not run: {done.stderr[-500:]}")
    return (int(found[1]), found[2]) if found else None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.planted", description=__doc__)
    parser.add_argument("numbers", nargs="*", type=int, help="which; none: all")
    parser.add_argument("--list", action="store_true", help="say what they are and stop")
    parser.add_argument("--seeds", type=int, default=MOST_SEEDS)
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    missed = 0
    for number, planted in enumerate(PLANTED):
        if asked.numbers and number not in asked.numbers:
            continue
        print(f"{number:2} {planted.file}: {planted.breaks}", flush=True)
        if asked.list:
            continue
        found = catch(planted, seeds=asked.seeds, jobs=asked.jobs)
        missed += found is None
        print(f"     {'NOT FOUND' if found is None else f'seed {found[0]}: {found[1][:120]}'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
