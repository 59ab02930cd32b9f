"""What an engine was told can be played again, and whatever then comes out different is found."""

from __future__ import annotations

import inspect
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from app.dialects.kueue.pod_groups import FAST
from app.dialects.registry import DIALECTS
from app.dialects.spec import TierPacking
from app.dialects.workloads import Template, WorkloadRecord
from app.dialects.workloads.record import FailureRule
from app.errors import DecodeError
from app.extender.models import FullNodes, NodeNames
from app.kube.core.objects import Owner, Requirement, Shape, Taint, Term, Toleration
from app.kube.watch.events import Applied, Deleted, Listed
from app.state.effects import (
    Bind,
    BindFailed,
    Bound,
    Delete,
    Evict,
    PlaceAnswer,
    ReadAgain,
    RoomAnswer,
    Ungated,
    UngateFailed,
)
from app.state.engine import Engine
from app.state.filter_result import Pinned, Victims
from app.state.inputs import Inputs
from app.state.journal.lines import settings_of
from app.state.journal.record import Recorder
from app.state.journal.replay import replay
from app.state.settings import EngineSettings
from app.state.ticks import Ticking
from app.state.watched import Watched
from tests.app.state.bands import DIALECTS as BANDS
from tests.app.state.bands import BandWorld, band, player
from tests.app.state.stories import GATED
from tests.app.state.world import Names, World, four_racks, members
from tests.records import BLOCK, GPU, RACK, group, job, node, pod, topology
from topology import NoFit
from topology.pod_set.gaps import Gaps

ONLY_READ = {
    "checks",
    *("is_synced", "gangs_by_phase", "lost_writes", "warnings", "differences"),
    "is_eviction_wanted",
}


class RecordedWorld(World):
    """A world that keeps the journal of its engine."""

    lines: list[bytes]

    def apply(self, event):
        if self.recorder is None:
            self.lines = []
            self.recorder = Recorder(self.engine, self.settings, self.lines.append)
        return super().apply(event)


def recorded(settings=None):
    """A fresh engine's recorder, and the lines of its journal."""
    lines: list[bytes] = []
    return recorder_of(Engine(settings), lines.append), lines


def recorder_of(engine, write):
    return Recorder(engine, engine.settings, write)


def gated_gang_that_loses_a_node(**settings):
    """A gated gang runs; a node of it goes; whoever replaces the lost pod takes its place."""
    world = RecordedWorld(four_racks(), **settings)
    world.put(*members("g", 3, gates=GATED))
    world.patch(world.effects)
    world.schedule(*world.pods.values())
    assert all(each.node for each in world.pods.values())
    lost = world.pods["uid-g1"]
    world.delete(world.engine.books.nodes[lost.node])
    world.delete(lost)
    world.tick()
    assert world.held
    new = pod("g9", annotations=group("g", 3, RACK))
    world.put(new)
    world.tick()
    assert world.schedule(new)["g9"] != lost.node
    world.tick(30.0)
    return world


def one_of_each():
    """An engine that was given every kind of input, some of which it makes nothing of."""
    world = RecordedWorld(four_racks(), members("g", 2), jobs=[job("j", 2)])
    engine, now = world.inputs, world.now
    names = Names(world.engine.books.nodes)
    first, second = world.pods.values()
    node_of = {each.uid: engine.filter(each, names, now)[0].node for each in (first, second)}
    engine.prioritize(pod("lonely", gpus=1), names, now)
    engine.admit(pod("unborn", annotations=group("u", 2, RACK)), "default", now)
    engine.preempt(pod("lonely", gpus=1), {"n00": Victims(("uid-nobody",), 1)}, now)
    for each in (first, second):
        engine.bind_arrived("default", each.name, each.uid, node_of[each.uid], now)
    engine.bind_finished(first.uid, Bound(), now)
    engine.bind_finished(second.uid, BindFailed("gone", is_gone=True), now)
    engine.ungate_finished(first.uid, Ungated(), now)
    engine.ungate_finished(second.uid, UngateFailed("no", is_forbidden=True), now)
    engine.write_lost(world.gang("g").key, "GangPlaced", first.uid, now)
    engine.nominating_forbidden("default", 600.0, now)
    engine.apply(Applied(pod("other", on="n10")), now)
    engine.apply(Deleted(pod("other", on="n10")), now)
    engine.apply(Listed("Topology", (topology("t", BLOCK, RACK),)), now)
    engine.room_found(world.gang("g").key, RoomAnswer(False, pods=3, budgets=("b",)), 0.5, now)
    engine.room_found(world.gang("g").key, None, 0.5, now)
    key, fits = world.gang("g").key, PlaceAnswer("t", (("0", 1, (("n00", 2), ("n01", 1))),))
    engine.place_found(key, fits, 0.5, now)
    engine.place_found(key, PlaceAnswer("t", why=NoFit("0", "", 3, 2)), 0.5, now)
    engine.place_found(key, None, 0.5, now)
    engine.eviction_tried("uid-x", "done", now)
    engine.eviction_finished("uid-x", "refused", now)
    for is_leading in (False, True):
        engine.lead(is_leading, now)
    engine.tick(now + 100.0)
    engine.heal(now + 101.0)
    engine.drain(now + 102.0)
    return world


def test_a_vocabulary_of_somebody_elses_is_replayed_with_the_editions_of_its_lists():
    class RecordedBands(RecordedWorld, BandWorld):
        pass

    world = RecordedBands(four_racks(), [player("a"), player("b")])
    world.put(band("duo", {"horns": 2}, {"a": "horns", "b": "horns"}, section_key="part"))
    for _ in range(20):
        world.tick()
    world.apply(Listed("Pod", tuple(world.pods.values()), edition=1))
    world.tick()
    assert world.schedule(*world.pods.values()).keys() == {"a", "b"}
    assert list(replay(world.lines, dialects=BANDS)) == []
    assert ReadAgain("Pod") in world.effects
    older = [re.sub(rb'("listed".*),\d+\]\]', rb"\1]]", line) for line in world.lines]
    assert older != world.lines
    assert list(replay(older, dialects=BANDS)) != []


STOREYS = (Engine, Ticking, Watched)


def _of_engines():
    """What an engine has beside its parts, by name."""
    return {name: what for storey in STOREYS for name, what in vars(storey).items()}


def timed():
    """The public methods of an engine that are inputs: they take the time."""
    return set().union(*map(inputs_of, STOREYS))


def inputs_of(kind):
    return {
        name
        for name, each in vars(kind).items()
        if not name.startswith("_")
        and inspect.isfunction(each)
        and "now" in inspect.signature(each).parameters
    }


def sentences(lines, **more):
    return [str(difference) for difference in replay(lines, **more)]


def calls(lines):
    return [json.loads(line).get("call") for line in lines[1:] if b'"line":"in"' in line]


# -- the same again --------------------------------------------------------------------------------


def test_a_gang_that_is_ungated_loses_a_node_and_is_repaired_replays_equal():
    world = gated_gang_that_loses_a_node()
    assert {type(effect).__name__ for effect in world.effects} >= {"Ungate", "Bind"}
    assert sentences(world.lines) == []


def test_a_gang_that_is_born_in_place_replays_equal():
    world = RecordedWorld(four_racks(), born_seconds=10.0)
    fast = group("g", 3, RACK) | {FAST: "true"}
    pods = [pod(f"g{number}", annotations=fast) for number in range(3)]
    world.tick()
    answers = [world.inputs.admit(each, "default", world.now)[0] for each in pods]
    assert answers[0] is not None
    world.put(*pods)
    assert len(world.schedule(*pods)) == 3
    world.tick(30.0)
    assert sentences(world.lines) == []


def test_every_kind_of_input_replays_equal():
    assert sentences(one_of_each().lines) == []


def test_every_kind_of_input_is_there():
    assert set(calls(one_of_each().lines)) == timed()


@pytest.mark.parametrize("play", [one_of_each, gated_gang_that_loses_a_node])
def test_a_replay_that_is_recorded_writes_the_same_bytes(play):
    lines, again = play().lines, []
    assert sentences(lines, build=lambda said: recorder_of(Engine(said), again.append)) == []
    assert again == lines


def test_whatever_takes_the_time_is_recorded_and_the_rest_only_reads():
    assert timed() == inputs_of(Inputs) == inputs_of(Recorder)
    assert {name for name in _of_engines() if not name.startswith("_")} - timed() == ONLY_READ


def test_records_come_back_as_they_were_in_every_field():
    class Hearing(Engine):
        def __init__(self, settings):
            super().__init__(settings)
            heard.clear()

        def apply(self, event, now):
            heard.append((event, now))
            return []

    heard = []
    shape = Shape(
        selector=(("zone", "a"),),
        terms=(Term((Requirement("k", "In", ("v", "w")),), (Requirement("f", "Exists", ()),)),),
        tolerations=(Toleration("t", "Exists", "", "NoExecute", is_for_a_while=True),),
        preferred=((7, Term()),),
    )
    owner = Owner("batch/v1", "Job", "j", "uid-j")
    template = Template("leader", 1, {"z": "1", "a": "2"}, pod("q"), 1, "corral", 1)
    rule = FailureRule("restarts", ("BackoffLimitExceeded",), ("leader",), is_certain=False)
    full_set = WorkloadRecord(
        "LeaderWorkerSet", "default", "j", "uid-j", "5", {"a": "b"}, {"l": "m"}, owner,
        (template,), succeeded=1, completions=7, failed_for_good=2, gaps=Gaps.of([(2, 4), (8, 8)]),
        is_suspended=True, is_finished=True, gangs=2, restarts=4, restarts_left=3, is_gradual=True,
        failures_left=6, failures=1, restarts_together=True, deadline_seconds=60,
        failure_reasons=("BackoffLimitExceeded",), failure_rules=(rule,),
    )  # fmt: skip
    records = (
        pod("p", shape=shape, owner=owner, gates=("x",), labels={"b": 'é\n"', "a": "\u2028"}),
        node("b/r/n", taints=(Taint("k", "", "NoSchedule"),), cpu=2**63 - 1),
        full_set,
        topology("t", BLOCK, RACK),
    )
    events = [
        *map(Applied, records),
        *map(Deleted, records),
        Listed("Pod", ()),
        Listed("LeaderWorkerSet", (full_set, full_set)),
    ]
    lines: list[bytes] = []
    recorder = recorder_of(Hearing(EngineSettings()), lines.append)
    for number, event in enumerate(events):
        recorder.apply(event, number / 3)
    told = list(heard)
    assert sentences(lines, build=Hearing) == []
    assert heard == told == [(event, number / 3) for number, event in enumerate(events)]
    assert list(heard[0][0].record.labels) == ["b", "a"]


def test_every_kind_that_is_watched_can_be_told_of():
    class Hearing(Engine):
        def apply(self, event, now):
            heard.append(event)
            return []

    heard = []
    lines: list[bytes] = []
    recorder = recorder_of(Hearing(), lines.append)
    for kind in DIALECTS.kinds:
        recorder.apply(Listed(kind, ()), 1.0)
    told = list(heard)
    heard.clear()
    assert sentences(lines, build=Hearing) == []
    assert heard == told
    assert [event.kind for event in told] == list(DIALECTS.kinds)


@given(st.floats(min_value=0.0, allow_infinity=False, allow_nan=False))
def test_the_time_reads_back_exactly(now):
    class Ticking(Engine):
        def tick(self, now):
            ticked.append(now)
            return []

    ticked: list[float] = []
    lines: list[bytes] = []
    recorder_of(Ticking(), lines.append).tick(now)
    assert sentences(lines, build=Ticking) == []
    assert ticked == [now, now]


def test_the_settings_are_those_that_were_recorded():
    packing = TierPacking((("cpu", 5), (GPU, 2)), fading=1 / 3, for_ordinary_pods=False)
    chosen = EngineSettings(
        levels=(BLOCK,), hold_seconds=1 / 3, kinds=("Node", "JobSet"), packing=packing
    )
    _, lines = recorded(chosen)
    built = []
    assert sentences(lines, build=lambda said: built.append(said) or Engine(said)) == []
    assert built == [chosen]


# -- names of nodes --------------------------------------------------------------------------------


def test_the_names_of_the_last_list_again_are_said_by_its_line():
    engine, lines = recorded()
    for names in (["n1", "n2"], ["n1", "n2"], ["n2", "n1"], ["n1", "n2"], ["n1", "n2"]):
        engine.filter(pod("p"), Names(names), 1.0)
    written = [json.loads(line)["args"][1] for line in lines[1::2]]
    assert written == [["n1", "n2"], 2, ["n2", "n1"], ["n1", "n2"], 8]
    assert json.loads(lines[8 - 1])["args"][1] == ["n1", "n2"]
    assert sentences(lines) == []


@pytest.mark.parametrize(
    "candidates",
    [
        NodeNames(b'["n3","n1","n3"]'),
        NodeNames(b'["n\\u00e9","n1"]'),
        FullNodes(b'{"items":[{"metadata":{"name":"n2"}},{"metadata":{"name":"n1"}}]}'),
        Names([]),
    ],
)
def test_candidates_come_back_in_their_order_however_they_were_offered(candidates):
    class Asked(Engine):
        def filter(self, pod, candidates, now):
            offered.append((list(candidates.names()), len(candidates), "n1" in candidates))
            return Pinned("n1"), []

    offered = []
    lines: list[bytes] = []
    recorder_of(Asked(), lines.append).filter(pod("p"), candidates, 1.0)
    assert sentences(lines, build=Asked) == []
    assert offered[0] == offered[1]
    assert offered[0][0] == list(candidates.names())


# -- differences -----------------------------------------------------------------------------------


def changed(lines, call, before, after):
    """The journal with one input of this kind changed: the first that has these words."""
    at = next(
        number
        for number, line in enumerate(lines)
        if f'"call":"{call}"'.encode() in line and before.encode() in line
    )
    return [*lines[:at], lines[at].replace(before.encode(), after.encode(), 1), *lines[at + 1 :]]


@pytest.mark.parametrize(
    ("call", "before", "after"),
    [
        pytest.param("apply", '"nvidia.com/gpu",8', '"nvidia.com/gpu",2', id="a_listed_node"),
        pytest.param("filter", '"uid":"uid-g0"', '"uid":"uid-g7"', id="who_is_asked_for"),
        pytest.param("filter", '"n00","n01"', '"n08","n09"', id="what_is_offered"),
        pytest.param("prioritize", '"nvidia.com/gpu",1', '"nvidia.com/gpu",9', id="what_it_needs"),
        pytest.param("bind_arrived", '"uid-g1"', '"uid-g0"', id="who_arrives"),
        pytest.param("apply", '"uid":"uid-g1"', '"uid":"uid-g7"', id="a_listed_pod"),
    ],
)
def test_an_input_that_is_changed_makes_a_difference(call, before, after):
    lines = one_of_each().lines
    assert sentences(changed(lines, call, before, after)) != []


def test_a_difference_names_the_line_the_input_and_what_comes_of_it_now():
    lines = one_of_each().lines
    (at,) = [n for n, line in enumerate(lines) if b'"call":"prioritize"' in line]
    forged = [*lines]
    forged[at + 1] = b'{"line":"out","digest":"0000000000000000"}\n'
    (difference,) = replay(forged)
    assert (difference.line, difference.call) == (at + 1, "prioritize")
    assert difference.recorded == "0" * 16
    assert difference.replayed == json.loads(lines[at + 1])["digest"]
    assert str(difference).startswith(f"line {at + 1}, prioritize at 1000.1: recorded 0000")
    assert len(json.loads(difference.given)) == len(four_racks())  # a score for each node


def test_an_engine_with_other_settings_differs():
    lines = gated_gang_that_loses_a_node(narrow_nodes=2).lines
    first = lines[0].replace(b'"narrow_nodes":2', b'"narrow_nodes":32')
    assert first != lines[0]
    assert sentences([first, *lines[1:]]) != []


def test_an_engine_that_forgets_an_effect_differs_where_it_does():
    class Forgetful(Engine):
        def bind_arrived(self, *args):
            return [each for each in super().bind_arrived(*args) if not isinstance(each, Bind)]

    lines = one_of_each().lines
    found = next(replay(lines, build=Forgetful))
    assert found.call == "bind_arrived"
    assert found.replayed == ""
    assert found.recorded != ""


def test_effects_of_equal_fields_and_of_another_kind_differ():
    class Removing(Engine):
        kind = Evict

        def tick(self, now):
            return [self.kind("default", "p", "u", "why")]

    class Deleting(Removing):
        kind = Delete

    lines: list[bytes] = []
    recorder_of(Removing(), lines.append).tick(1.0)
    assert sentences(lines, build=Removing) == []
    assert len(sentences(lines, build=Deleting)) == 1


def test_effects_in_another_order_differ():
    class Removing(Engine):
        names = "ab"

        def tick(self, now):
            return [Evict("default", name, name, "why") for name in self.names]

    class Backwards(Removing):
        names = "ba"

    lines: list[bytes] = []
    recorder_of(Removing(), lines.append).tick(1.0)
    assert len(sentences(lines, build=Backwards)) == 1


# -- engines that fail -----------------------------------------------------------------------------


class Failing(Engine):
    """Fails on every tick."""

    def tick(self, now):
        raise KeyError("no such gang")


def failed():
    lines: list[bytes] = []
    recorder = recorder_of(Failing(), lines.append)
    with pytest.raises(KeyError, match="no such gang"):
        recorder.tick(1.0)
    recorder.drain(2.0)
    return lines


def test_an_input_the_engine_fails_on_is_recorded_and_fails_again():
    lines = failed()
    assert calls(lines) == ["tick", "drain"]
    assert sentences(lines, build=Failing) == []


def test_an_engine_that_does_not_fail_any_more_differs():
    (difference,) = replay(failed())
    assert (difference.line, difference.recorded, difference.replayed) == (2, "KeyError", "")


def test_an_input_is_written_before_the_engine_has_it():
    class Looking(Engine):
        def tick(self, now):
            seen.extend(lines)
            return []

    seen: list[bytes] = []
    lines: list[bytes] = []
    recorder_of(Looking(), lines.append).tick(1.0)
    assert calls(seen) == ["tick"]


# -- journals that are cut or wrong ----------------------------------------------------------------


def test_a_last_line_that_is_torn_anywhere_is_left_out_and_said():
    lines = one_of_each().lines
    *before, last, _ = lines
    for at in range(1, len(last) - len(b"}\n") + 1):
        notes: list[str] = []
        assert sentences([*before, last[:at]], note=notes.append) == []
        assert notes == [f"line {len(before) + 1} is torn after {at} bytes and left out"]


def test_a_last_line_that_lacks_nothing_but_its_end_counts():
    *before, last = one_of_each().lines
    notes: list[str] = []
    assert sentences([*before, last.rstrip()], note=notes.append) == []
    assert notes == []


def test_an_input_that_was_never_answered_is_played_and_said():
    lines = one_of_each().lines
    notes: list[str] = []
    assert sentences(lines[:-1], note=notes.append) == []
    assert notes == [f"line {len(lines) - 1}: no answer is recorded, so none is compared"]


def test_an_answer_that_is_missing_between_others_is_said_and_the_rest_is_compared():
    lines = one_of_each().lines
    (at,) = [n for n, line in enumerate(lines) if b'"call":"prioritize"' in line]
    notes: list[str] = []
    assert sentences([*lines[: at + 1], *lines[at + 2 :]], note=notes.append) == []
    assert notes == [f"line {at + 1}: no answer is recorded, so none is compared"]


TICK = b'{"line":"in","now":1.0,"call":"tick","args":[]}\n'
NOTHING = b'{"line":"out"}\n'
DEEP = b"[" * 100_000


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        pytest.param(b"tick\n", "line 4: JSON is malformed", id="no_json"),
        pytest.param(TICK[:20], "line 4: Input data was truncated", id="torn_but_not_the_last"),
        pytest.param(b"\n", "line 4: Input data was truncated", id="an_empty_line"),
        pytest.param(b'"\xff"\n', "line 4: ", id="no_utf_8"),
        pytest.param(NOTHING, "line 4: an answer without an input", id="two_answers"),
        pytest.param(b'{"line":"if"}\n', "line 4: Invalid value 'if'", id="another_kind_of_line"),
        pytest.param(b'{"line":"out","extra":1}\n', "line 4: .*`extra`", id="an_unknown_field"),
        pytest.param(
            TICK.replace(b"1.0", b"null"), "line 4: Expected `float`, got `null`.*now", id="no_time"
        ),
        pytest.param(TICK.replace(b"tick", b"_put"), "line 4: call '_put' is", id="unknown_call"),
        pytest.param(TICK.replace(b"[]", b"[1]"), "line 4: .*length", id="an_argument_too_many"),
        pytest.param(
            TICK.replace(b"tick", b"bind_arrived"), "line 4: .*length", id="arguments_missing"
        ),
        pytest.param(
            TICK.replace(b"tick", b"bind_finished").replace(b"[]", DEEP + b"]" * 100_000),
            "line 4: ",
            id="nested_without_end",
        ),
        pytest.param(
            TICK.replace(b"tick", b"apply").replace(b"[]", b'[["applied","Cat",{}]]'),
            "line 4: kind 'Cat' is not known",
            id="an_unknown_kind_of_record",
        ),
        pytest.param(
            TICK.replace(b"tick", b"apply").replace(b"[]", b'[["listed","Cat",[]]]'),
            "line 4: kind 'Cat' is not known",
            id="an_unknown_kind_of_list",
        ),
        pytest.param(
            TICK.replace(b"tick", b"apply").replace(b"[]", b'[["applied","Pod",{}]]'),
            "line 4: .*missing required field `namespace`",
            id="a_field_missing",
        ),
        pytest.param(
            TICK.replace(b"tick", b"apply").replace(b"[]", b'[["listed","Job",[{}]]]'),
            "line 4: .*missing required field `kind`",
            id="a_field_missing_in_a_list",
        ),
        pytest.param(
            TICK.replace(b"tick", b"apply").replace(
                b"[]", b'[["applied","Pod",' + DEEP + b"]" * 100_000 + b"]]"
            ),
            "line 4: ",
            id="a_record_nested_without_end",
        ),
    ],
)
def test_a_line_that_cannot_be_meant_is_named(bad, sentence):
    _, lines = recorded()
    with pytest.raises(DecodeError, match=f"^journal {sentence}"):
        sentences([*lines, TICK, NOTHING, bad, TICK, NOTHING])


def test_a_malformed_last_line_that_was_written_to_its_end_is_no_torn_one():
    _, lines = recorded()
    with pytest.raises(DecodeError, match=r"^journal line 4: "):
        sentences([*lines, TICK, NOTHING, b'{"line":\n'])


@pytest.mark.parametrize("names", [b"1", b"3", b"-1", b"99"])
def test_names_of_a_line_that_has_no_list_are_an_error(names):
    engine, lines = recorded()
    engine.filter(pod("p"), Names(["n1"]), 1.0)
    asked = lines[1].replace(b'["n1"]', names)
    with pytest.raises(DecodeError, match=f"line 4: line {names.decode()} is not the last list"):
        sentences([*lines, asked])


@pytest.mark.parametrize(
    ("first", "sentence"),
    [
        pytest.param(b"", "line 1: ", id="nothing"),
        pytest.param(b'{"journal":3,"sett', "line 1: ", id="torn"),
        pytest.param(b"[1]", "line 1: Expected `object`", id="no_object"),
        pytest.param(b'{"settings":{}}', "line 1: version None is not known", id="no_version"),
        pytest.param(b'{"journal":1}', "line 1: version 1 is not known, only 3", id="older"),
        pytest.param(b'{"journal":4}', "line 1: version 4 is not known, only 3", id="newer"),
        pytest.param(b'{"journal":"3"}', "line 1: version '3' is not known", id="text"),
        pytest.param(b'{"journal":true}', "line 1: version True is not known", id="true"),
        pytest.param(
            b'{"journal":3}', "line 1: settings: Input should be an object", id="no_settings"
        ),
        pytest.param(
            b'{"journal":3,"settings":{"speed":9}}', "line 1: settings speed", id="unknown_setting"
        ),
        pytest.param(
            b'{"journal":3,"settings":{"hold_seconds":"x"}}',
            "line 1: settings.hold_seconds: Input should be a valid number",
            id="a_setting_of_another_type",
        ),
    ],
)
def test_a_first_line_that_cannot_be_meant_is_named(first, sentence):
    with pytest.raises(DecodeError, match=f"^journal {sentence}"):
        sentences([first, TICK])


def test_a_journal_of_no_lines_at_all_is_none():
    with pytest.raises(DecodeError, match=r"^journal line 1: "):
        sentences([])


@given(st.floats(min_value=0.0, max_value=86_400, exclude_min=True))
def test_settings_read_back_exactly(seconds):
    chosen = EngineSettings(hold_seconds=seconds, levels=(BLOCK, RACK))
    _, (first,) = recorded(chosen)
    assert settings_of(first) == chosen


def test_settings_of_before_one_was_added_have_its_default():
    assert settings_of(b'{"journal":3,"settings":{"narrow_nodes":7}}') == EngineSettings(
        narrow_nodes=7
    )


def test_numbers_that_json_has_not_are_no_settings():
    with pytest.raises(ValidationError, match="hold_seconds"):
        EngineSettings(hold_seconds=float("inf"))
