"""Any history of pods and of the objects that name them: who is a member in the end, by an oracle.

The oracle looks at the pods and bands that exist at the end, and at nothing that came before.
"""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from app.kube.watch.events import Listed
from app.state.effects import Bind, BindFailed
from app.state.filter_result import Pinned
from tests.app.dialects import toy
from tests.app.state.bands import BandWorld, band, player
from tests.records import node, pod

NODES = [node(f"b{r // 2}/r{r}/n{r}{i}", gpus=8) for r in range(3) for i in range(2)]
NAMES = ("a", "b", "c", "d")
BANDS = ("first", "second")
SECTIONS = ("", "horns", "drums")

name = st.sampled_from(NAMES)
named = st.dictionaries(name, st.sampled_from(SECTIONS), max_size=3)
some_band = st.tuples(st.sampled_from(BANDS), named, st.sampled_from(("", "1", "2")))
step = st.one_of(
    st.tuples(st.just("band"), some_band),
    st.tuples(st.just("status"), st.sampled_from(BANDS)),
    st.tuples(st.just("no band"), st.sampled_from(BANDS)),
    st.tuples(st.just("bands"), st.lists(some_band, max_size=2)),
    st.tuples(st.just("create"), st.tuples(name, st.sampled_from(SECTIONS))),
    st.tuples(st.just("delete"), name),
    st.tuples(st.just("recreate"), name),
    st.tuples(st.just("relabel"), st.tuples(name, st.sampled_from(SECTIONS))),
    st.tuples(st.just("repeat"), name),
    st.tuples(st.just("finish"), name),
    st.tuples(st.just("foreign"), st.tuples(name, st.integers(0, len(NODES) - 1))),
    st.tuples(st.just("filter"), name),
    st.tuples(st.just("bind"), name),
    st.tuples(st.just("confirm"), st.none()),
    st.tuples(st.just("fail"), st.none()),
    st.tuples(st.just("lose pods"), st.sets(name)),
    st.tuples(st.just("tick"), st.sampled_from([0.1, 1.0, 61.0])),
)


class Stage:
    """What exists in the API, and the Corral that watches it."""

    def __init__(self) -> None:
        self.world = BandWorld(NODES)
        self.bands: dict[str, toy.Band] = {}
        self.binds: list[Bind] = []
        self.made = 0

    def pod(self, name: str):
        return next((each for each in self.world.pods.values() if each.name == name), None)

    def play(self, kind: str, about) -> None:
        """One step; one that makes no sense at that moment does nothing."""
        known = self.pod(about) if isinstance(about, str) else None
        match kind:
            case "band":
                self.world.put(self.band(*about))
            case "status" if about in self.bands:
                self.made += 1
                changed = {"version": str(self.made), "status": {"seated": self.made}}
                self.bands[about] = msgspec.structs.replace(self.bands[about], **changed)
                self.world.put(self.bands[about])
            case "no band" if about in self.bands:
                self.world.delete(self.bands.pop(about))
            case "bands":
                self.bands.clear()
                for each in about:
                    self.band(*each)
                self.world.apply(Listed("Band", tuple(self.bands.values())))
            case "create" if self.pod(about[0]) is None:
                self.create(*about)
            case "delete" if known:
                self.world.delete(known)
            case "recreate" if known:
                self.world.delete(known)
                self.create(about, known.labels.get(toy.SECTION, ""))
            case "relabel" if (changed := self.pod(about[0])) is not None:
                labels = player(*about).labels
                self.world.put(msgspec.structs.replace(changed, labels=labels))
            case "repeat" if known:
                self.made += 1
                self.world.put(msgspec.structs.replace(known, version=str(self.made)))
            case "finish" if known and known.node:
                self.world.put(msgspec.structs.replace(known, phase="Succeeded"))
            case "foreign" if (taken := self.pod(about[0])) is not None and not taken.node:
                self.world.put(msgspec.structs.replace(taken, node=NODES[about[1]].name))
            case "filter" | "bind" if known and not known.node:
                answer = self.world.filter(known)
                free = [each for each in NODES if each.name not in self.world.engine.books.held_on]
                on = answer.node if isinstance(answer, Pinned) else free[0].name if free else ""
                if kind == "bind" and on:
                    effects = self.world.bind(known, on)
                    self.binds += [each for each in effects if isinstance(each, Bind)]
            case "confirm" if self.binds:
                self.world.confirm([self.binds.pop(0)])
            case "fail" if self.binds:
                uid = self.binds.pop(0).uid
                if uid in self.world.pods and not self.world.pods[uid].node:
                    outcome = BindFailed("503")
                    self.world._take(self.world.engine.bind_finished(uid, outcome, self.world.now))
            case "lose pods":
                for each in about:
                    if (lost := self.pod(each)) is not None:
                        del self.world.pods[lost.uid]
                self.world.apply(Listed("Pod", tuple(self.world.pods.values())))
            case "tick":
                self.world.tick(about)

    def create(self, name: str, section: str) -> None:
        self.made += 1
        self.world.put(player(name, section, uid=f"{name}-{self.made}"))

    def band(self, name: str, named: dict[str, str], again: str) -> toy.Band:
        made = band(name, {"horns": 1, "drums": 1}, named, uid=f"uid-{name}{again}")
        old = self.bands.get(name)
        if old is not None and old.uid != made.uid:
            self.world.delete(old)
        self.bands[name] = made
        return made

    def expected(self) -> dict[str, str]:
        """Who is in which section of which band, by what exists now."""
        found = {}
        for each in self.world.pods.values():
            for made in sorted(self.bands.values(), key=lambda band: band.name):
                said = {one.pod: one.section for one in made.spec.named}
                if each.name in said:
                    section = said[each.name] or each.labels.get(toy.SECTION, "")
                    found[each.name] = f"{made.name}/{section}"
                    break
        return found


@given(st.lists(step, max_size=40))
def test_any_history_ends_with_the_members_that_the_objects_name(steps):
    stage = Stage()
    for kind, about in steps:
        stage.play(kind, about)
        if not stage.binds:
            stage.world.tick(0.1)
            assert stage.world.section_of() == stage.expected()
    for uid in [bind.uid for bind in stage.binds]:
        stage.world.engine.bind_finished(uid, BindFailed("503"), stage.world.now)
    stage.world.tick(61.0)
    assert stage.world.section_of() == stage.expected()
    unclaimed = {each.name for each in stage.world.engine.named_pods.unclaimed.values()}
    assert unclaimed == {each.name for each in stage.world.pods.values()} - stage.expected().keys()


@given(st.lists(step, max_size=30))
def test_a_restart_at_any_moment_finds_the_same_members(steps):
    stage = Stage()
    for kind, about in steps:
        stage.play(kind, about)
    again = BandWorld(NODES, stage.world.pods.values(), stage.bands.values())
    assert again.section_of() == stage.expected()


@given(st.lists(step, max_size=30))
def test_the_same_history_gives_the_same_effects(steps):
    one, other = Stage(), Stage()
    for stage in (one, other):
        for kind, about in steps:
            stage.play(kind, about)
    assert one.world.effects == other.world.effects


@given(st.lists(step, max_size=30))
def test_whatever_happened_a_band_that_is_named_then_is_placed_as_it_says(steps):
    stage = Stage()
    for kind, about in steps:
        stage.play(kind, about)
    stage.world.delete(*list(stage.world.pods.values()))
    for made in stage.bands.values():
        stage.world.delete(made)
    horns = band("late", {"horns": 2, "drums": 1}, {"a": "horns", "b": "horns", "c": "drums"})
    stage.world.put(player("a"), player("b"), pod("x", gpus=1), player("c"), horns)
    for _ in range(20):
        stage.world.tick(5.0)
        waiting = [each for each in map(stage.pod, "abc") if not each.node]
        if not waiting:
            break
        stage.world.schedule(*waiting)
    on = {each: stage.pod(each).node for each in "abc"}
    assert on["a"][:2] == on["b"][:2] != ""
    assert on["c"]
    stage.world.tick()
    assert stage.world.held == {}
