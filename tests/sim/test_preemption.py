"""Whose end counts as the end of a preemptor's victim, and so keeps it from another answer."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace

import msgspec
import pytest

from app.kube.watch.events import Applied, Deleted
from app.state.filter_result import Victims
from app.state.pods.grants import UNHEARD_SECONDS
from tests.app.state.preemptor import hp
from tests.app.state.world import World
from tests.records import node, pod
from tests.sim.api import ApiServer
from tests.sim.clock import Clock, History
from tests.sim.life import Life
from tests.sim.observer import PreemptCall
from tests.sim.preemption import PreemptionChecks
from tests.sim.violation import Violation

ANSWERED = 100.0  # seconds
SOON, LATE = UNHEARD_SECONDS - 1, UNHEARD_SECONDS + 1  # after the answer


class Judged:
    """A preemptor that was given the node of two pods, and what its Corral is told after that."""

    def __init__(self) -> None:
        self.clock = Clock()
        api = ApiServer(self.clock, History(self.clock))
        self.checks = PreemptionChecks(self.clock, api, Random(1), lambda: False, lambda pod: ())
        here = node("b0/r0/n0")
        streams = {
            "Node": SimpleNamespace(mirror={"n0": here}, changed=0, pending=0),
            "Pod": SimpleNamespace(mirror={}, changed=0, pending=0),
        }
        self.life = Life(World([here]).engine, streams, 0.0, 0.0)
        self.preemptor = hp()
        self.victims = [pod(f"v{at}", gpus=4, on="n0", phase="Running") for at in range(2)]
        for each in (self.preemptor, *self.victims):
            self.tell(each)
        self.clock.run_until(ANSWERED)
        self.answer()

    def tell(self, record, **changes):
        record = msgspec.structs.replace(record, **changes)
        self.life.streams["Pod"].mirror[record.name] = record
        self.checks.heard(self.life, Applied(record))

    def tell_gone(self, record):
        self.life.streams["Pod"].mirror.pop(record.name)
        self.checks.heard(self.life, Deleted(record))

    def wait(self, seconds):
        """Until so long after the first answer."""
        self.clock.run_until(ANSWERED + seconds)

    def answer(self, node="n0"):
        """Give it a node, with those of the victims that are there."""
        there = self.life.streams["Pod"].mirror
        uids = tuple(each.uid for each in self.victims if each.name in there)
        victims = {node: Victims(uids, 0)}
        asked = PreemptCall(self.preemptor, victims, victims)
        self.checks.chose(SimpleNamespace(life=self.life), asked)


def test_what_ends_once_an_answer_was_lost_ends_for_others():
    judged = Judged()
    judged.wait(LATE)
    judged.tell(judged.victims[0], is_terminating=True)
    judged.answer()


def test_a_second_answer_while_a_victim_of_the_first_ends_is_a_violation():
    judged = Judged()
    judged.wait(SOON)
    judged.tell(judged.victims[0], is_terminating=True)
    judged.wait(LATE)
    with pytest.raises(Violation, match=r"P2: .* while \['v0'\] end for it"):
        judged.answer()


def with_a_last_victim_that_ends_late():
    judged = Judged()
    judged.wait(SOON)
    judged.tell_gone(judged.victims[0])
    judged.wait(LATE)
    judged.tell(judged.victims[1], is_terminating=True)
    return judged


def test_another_node_while_the_last_victim_ends_late_is_a_violation():
    judged = with_a_last_victim_that_ends_late()
    with pytest.raises(Violation, match=r"P2: .* while \['v1'\] end for it"):
        judged.answer("n1")


def test_the_same_node_with_a_victim_that_ends_anyway_ends_nobody():
    with_a_last_victim_that_ends_late().answer()


def test_an_answer_was_heard_if_the_preemptor_is_nominated_for_its_node():
    judged = Judged()
    judged.tell(judged.preemptor, nominated_node="n0")
    judged.wait(LATE)
    judged.tell(judged.victims[0], is_terminating=True)
    with pytest.raises(Violation, match=r"P2: .* while \['v0'\] end for it"):
        judged.answer()
