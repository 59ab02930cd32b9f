"""Several vocabularies as one: whose word counts, and what a vocabulary does that leaves it out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from app.dialects.declared import Allowance, DisruptionBudget, TopologySpec
from app.dialects.dialect import Dialect, NamedPod, PodSetClaim, TemplateOwner
from app.dialects.flaw import Flaw
from app.dialects.registry import Dialects
from app.dialects.spec import Claim, GangKey, GangSpec, GroupSpec, LeafSpec
from app.dialects.workloads import TemplatePlace
from app.dialects.written import GangView
from app.kube.watch.resource import Resource
from app.settings import EngineOptions
from tests.records import job, pod

POD, RECORD = pod("p"), job("j", 1)
OWNER = TemplateOwner("batch", "Job", {}, ())


@dataclass(frozen=True)
class Speaker(Dialect):
    """A vocabulary that has something to say everywhere, under its own name."""

    name: str

    sources: ClassVar[frozenset[str]] = frozenset(("spoken",))

    def configured(self, options):
        return Speaker(f"{self.name}-{options.scheduler_name}")

    def resources(self, keep):
        return (Resource(self.name, f"/{self.name}/{keep('any')}", type(RECORD), lambda _: RECORD),)

    def keeps(self, key):
        return key == self.name

    def keys_named(self, record):
        return (self.name,)

    def claim(self, pod, objects=()):
        return Claim(GangKey("default", self.name, "spoken"))

    def is_managed(self, labels, annotations, gates=(), pod_group=""):
        return self.name in (*labels, *annotations, *gates, pod_group)

    def lifts_gates(self, pod):
        return pod.name == self.name

    def may_be_named(self, pod):
        return pod.name == self.name

    def pods_named(self, record):
        return (NamedPod("default", self.name),)

    def keys_of(self, record):
        return (GangKey("default", self.name, "spoken"),)

    def spec(self, key, objects, said, ended, pods):
        return GangSpec(key, GroupSpec(self.name, (LeafSpec("", 1),)), "here")

    def levels_named(self, record):
        yield self.name

    def topologies(self, record):
        return (TopologySpec(self.name, ()),)

    def allowance(self, record):
        return Allowance("default", self.name, ())

    def budget(self, record):
        return DisruptionBudget.of_all("default", self.name)

    def templates(self, group, kind):
        return (TemplatePlace(self.name, "template"),)

    def rules(self, pod, pods):
        yield Flaw(self.name, "Forbidden", "of the pod")

    def rules_together(self, owner):
        yield PodSetClaim(self.name, {}, None), Flaw(self.name, "Forbidden", "together")

    def change(self, before, after):
        yield Flaw(self.name, "Forbidden", "of a change")


A, B = Speaker("a"), Speaker("b")
SILENT = Dialects((Dialect(), Dialect()))
ORDERS = [
    pytest.param(Dialects((A, B)), "a", ["a", "b"], id="a_before_b"),
    pytest.param(Dialects((B, A)), "b", ["b", "a"], id="b_before_a"),
    pytest.param(Dialects((Dialect(), A)), "a", ["a"], id="behind_one_that_is_silent"),
    pytest.param(Dialects((A, Dialect())), "a", ["a"], id="before_one_that_is_silent"),
]


@pytest.mark.parametrize(("dialects", "first", "each"), ORDERS)
def test_of_one_answer_the_first_vocabulary_that_has_one_gives_it(dialects, first, each):
    assert dialects.claim(POD).gang.name == first
    assert dialects.allowance(RECORD).where == first
    assert dialects.budget(RECORD).name == first
    assert [place.holder for place in dialects.templates("batch", "Job")] == [first]
    key = GangKey("default", "g", "spoken")
    assert dialects.of(key).name == first
    assert dialects.spec(key, (), (), ()).root.name == first


@pytest.mark.parametrize(("dialects", "first", "each"), ORDERS)
def test_of_many_answers_each_vocabulary_gives_its_own(dialects, first, each):
    assert list(dialects.keys_named(RECORD)) == each
    assert [named.name for named in dialects.pods_named(RECORD)] == each
    assert [key.name for key in dialects.keys_of(RECORD)] == each
    assert [found.name for found in dialects.topologies(RECORD)] == each
    assert list(dialects.levels_named(RECORD)) == each
    assert [flaw.field for flaw in dialects.rules(POD, None)] == each
    assert [flaw.field for _, flaw in dialects.rules_together(OWNER)] == each
    assert [flaw.field for flaw in dialects.change(POD, POD)] == each
    assert list(dialects.kinds) == ["Node", "Pod", *each]


@pytest.mark.parametrize(("dialects", "first", "each"), ORDERS)
def test_what_one_vocabulary_says_is_so(dialects, first, each):
    assert (dialects.names_keys, dialects.names_pods) == (True, True)
    for name in each:
        assert dialects.keeps(name)
        assert dialects.may_be_named(pod(name))
        assert dialects.lifts_gates(pod(name))
        for where in (({name: ""}, {}), ({}, {name: ""}), ({}, {}, (name,)), ({}, {}, (), name)):
            assert dialects.is_managed(*where)
    assert not dialects.keeps("other")
    assert not dialects.may_be_named(pod("other"))
    assert not dialects.lifts_gates(pod("other"))
    assert not dialects.is_managed({"other": ""}, {})


def test_objects_may_name_pods_that_say_nothing_in_any_vocabulary():
    class Naming(Dialect):
        def may_name(self, pod):
            return pod.name == "named"

    assert Dialects((Naming(),)).may_be_named(pod("named"))
    assert not Dialects((Naming(),)).may_be_named(pod("other"))
    assert Dialects((Naming(),)).names_pods
    assert not Dialects((Naming(), A)).may_be_named(pod("named"))


def test_a_vocabulary_that_leaves_everything_out_says_nothing():
    assert (SILENT.names_keys, SILENT.names_pods) == (False, False)
    assert SILENT.claim(POD) is None
    assert not SILENT.is_managed({"a": ""}, {"a": ""}, ("a",), "a")
    assert not SILENT.keeps("a")
    assert not SILENT.may_be_named(POD)
    assert not SILENT.lifts_gates(POD)
    assert (SILENT.sorted_by(POD), SILENT.sorts(RECORD)) == ((), None)
    assert SILENT.kinds == ("Node", "Pod")
    assert (SILENT.allowance(RECORD), SILENT.budget(RECORD)) == (None, None)
    assert SILENT.templates("batch", "Job") == ()
    for answers in (
        SILENT.keys_named(RECORD),
        SILENT.pods_named(RECORD),
        SILENT.keys_of(RECORD),
        SILENT.topologies(RECORD),
        SILENT.rules(POD, None),
        SILENT.rules_together(OWNER),
        SILENT.change(POD, POD),
    ):
        assert list(answers) == []
    spec = A.spec(GangKey("default", "g", "spoken"), (), (), (), {})
    assert Dialect().spec(spec.key, (), (), ()) is None
    assert Dialect().status(spec, (), GangView("waiting", 1, 0, "")) is None
    assert Dialect().configured(EngineOptions()) is not None


def test_every_vocabulary_is_configured_and_reads_with_the_same_keys():
    dialects = Dialects((A, B)).configured(EngineOptions(scheduler_name="x"))
    assert [each.name for each in dialects.each] == ["a-x", "b-x"]
    assert [each.path for each in Dialects((A, B)).resources()[2:]] == ["/a/False", "/b/False"]
    kept = Dialects((A, B)).resources(lambda _key: True)
    assert [each.path for each in kept[2:]] == ["/a/True", "/b/True"]
