"""A search that takes the loop too long goes on elsewhere, and its answer is held to the books."""

from __future__ import annotations

import gc
from dataclasses import replace as replaced

import pytest
from msgspec.structs import replace

from app.explain.gangs import reason_of
from app.state.effects import EmitEvent, SeekPlace
from app.state.gang.gang import Phase
from app.state.gang.reasons import Reason
from app.state.journal.record import Recorder
from app.state.journal.replay import replay
from app.state.plan.elsewhere.long_search import LongSearch
from app.state.plan.elsewhere.search_on import LOST_SECONDS, MOST_IN_VAIN
from tests.app.state.world import World
from tests.records import BLOCK, RACK, SLICE_LEVEL, SLICE_SIZE, group, node, pod, topology
from topology.model.levels import NODE_LEVEL
from topology.model.request import Constraint, Slice


def nodes(n1=3, n2=7):
    return [node("b0/r0/n1", gpus=n1), node("b0/r0/n2", gpus=n2)]


def roles(name="g", uid="", required=None):
    """A gang that fits on these nodes if its pods are packed together, and not one by one."""
    said = group(name, 4, required)
    return [
        replace(pod(f"{name}{i}", gpus=gpu, annotations=said), uid=f"{uid}{name}{i}")
        for i, gpu in enumerate((3, 3, 2, 2))
    ]


class Searched(World):
    """A world in which the loop may search hardly anything."""

    def __init__(self, *records, **settings):
        super().__init__(*records, **{"visits_per_search": 1_000, **settings})
        self.asked = 0

    def search_on(self):
        """The tests say when a search ends."""

    def questions(self):
        """What was asked since."""
        new = self.told(SeekPlace)[self.asked :]
        self.asked += len(new)
        return [(each.gang, self.engine.searches_on.request(each.gang)) for each in new]

    def give(self, key, answer, seconds=0.1):
        self._take(self.inputs.place_found(key, answer, seconds, self.now))

    def answer(self):
        """What was asked since, answered, and gangs planned with it."""
        for key, question in self.questions():
            self.give(key, None if question is None else question.answer())
        self.tick()

    def found(self):
        """The gang that asked, and where it has a place; whoever asked has not heard yet."""
        ((key, question),) = self.questions()
        answer = question.answer()
        assert answer.places
        return key, answer

    def reason(self, name="g"):
        return reason_of(self.gang(name), self.now)


def waiting(**settings):
    world = Searched(nodes(), **settings)
    world.put(*roles())
    world.tick()
    return world


def test_a_gang_waits_for_a_search_that_takes_long_and_its_verdict_says_so():
    world = waiting()
    assert world.told(SeekPlace) == [SeekPlace(world.gang().key)]
    assert world.reason() is Reason.SEARCHING
    assert "is not over" in world.gang().reporting.sentence
    assert not world.held


def test_it_is_placed_when_the_answer_comes():
    world = waiting()
    world.answer()
    assert sorted(world.held.values()) == ["n1", "n2", "n2", "n2"]
    assert world.gang().phase is Phase.PLACED


IN_ORDER, REVERSED = (BLOCK, RACK), (RACK, BLOCK)


def on_both(n2, *orders):
    """A gang of slices in racks, inside one block, and topologies of these levels."""
    topologies = [topology(f"t{at}", *levels) for at, levels in enumerate(orders)]
    world = Searched(nodes(n2=n2), topologies=topologies, levels=())
    said = {SLICE_LEVEL: RACK, SLICE_SIZE: "1"}
    for each in roles(required=BLOCK):
        world.put(replace(each, annotations={**each.annotations, **said}))
    world.tick()
    return world


@pytest.mark.parametrize("orders", [(IN_ORDER, REVERSED), (REVERSED, IN_ORDER)])
def test_a_topology_that_the_gang_cannot_be_put_to_keeps_it_off_no_other(orders):
    assert set(on_both(7, *orders).held.values()) == {"n1", "n2"}
    full = on_both(2, *orders)
    assert full.reason() is Reason.DOES_NOT_FIT
    assert "1 of 2 pods fit in one" in full.gang().reporting.sentence


def test_only_where_no_topology_takes_it_a_gang_is_invalid():
    world = on_both(7, REVERSED)
    assert world.reason() is Reason.INVALID
    assert "are wider than the level" in world.gang().reporting.sentence


@pytest.mark.parametrize("at", [0, 1], ids=["first", "last"])
@pytest.mark.parametrize("n2", [7, 6], ids=["place", "none"])
def test_such_a_topology_is_left_out_elsewhere_as_well(at, n2):
    world = Searched(nodes(n2=n2))
    world.put(*roles())
    world.tick()
    ((key, question),) = world.questions()
    (name, request) = question.searches[0]
    narrow = (Slice(1, RACK),)
    root = request.gang.root
    wide = tuple(
        replaced(each, constraint=Constraint(NODE_LEVEL), slices=narrow) for each in root.members
    )
    invalid = replaced(request, gang=replaced(request.gang, root=replaced(root, members=wide)))
    searches = [(name, request)]
    searches.insert(at, ("another", invalid))
    world.give(key, LongSearch(tuple(searches), question.number).answer())
    world.tick()
    assert len(world.held) == (4 if n2 == 7 else 0)
    assert world.reason() is (Reason.AWAITING_SCHEDULER if n2 == 7 else Reason.DOES_NOT_FIT)


@pytest.mark.parametrize(("seconds", "reported"), [(0.5, 0), (1.5, 1)])
def test_that_a_gang_is_searched_for_is_reported_only_where_it_takes_long(seconds, reported):
    world = waiting()
    world.tick(seconds)
    said = [each.sentence for each in world.told(EmitEvent) if each.reason == "GangNotPlaced"]
    assert ["is not over" in message for message in said] == [True] * reported


def test_where_the_loop_has_time_none_is_asked():
    world = Searched(nodes(), visits_per_search=40_000)
    world.put(*roles())
    world.tick()
    assert len(world.held) == 4
    assert not world.told(SeekPlace)


def test_ticks_neither_search_nor_ask_again_while_an_answer_is_awaited():
    world = waiting()
    before = world.engine.node_table.visits.total
    for _ in range(20):
        world.engine.queue.want_pass()
        world.tick()
    assert len(world.told(SeekPlace)) == 1
    assert world.engine.node_table.visits.total == before


def test_an_answer_is_not_used_where_others_took_the_place_meanwhile():
    world = waiting()
    key, answer = world.found()
    world.put(pod("other", gpus=3, on="n1"))
    world.give(key, answer)
    world.tick()
    assert not world.held
    world.tick(1.0)
    world.answer()
    assert world.reason() is Reason.DOES_NOT_FIT


def test_an_answer_waits_for_the_roll_call_that_a_binding_calls_for():
    """Another scheduler has bound a pod that the gang's last roll call knows as waiting."""
    world = Searched([*nodes(), node("b0/r0/closed", is_cordoned=True)])
    world.put(*roles())
    world.tick()
    key, answer = world.found()
    world.put(replace(roles()[0], node="closed"))
    world.give(key, answer)
    for _ in range(5):
        world.tick(1.0)
        world.answer()
    assert world.engine.books.bound["g0"].node == "closed"
    assert sorted(world.held) == ["g1", "g2", "g3"]


def _closes(node):
    return replace(node, is_unschedulable=True)


def _moves(node):
    return replace(node, labels={**node.labels, RACK: "r1"})


@pytest.mark.parametrize("change", [_closes, _moves])
def test_a_place_on_a_node_that_changes_meanwhile_is_not_used(change):
    world = Searched(nodes())
    world.put(*roles(required=RACK))
    world.tick()
    key, answer = world.found()
    world.put(change(nodes()[0]))
    world.give(key, answer)
    world.tick()
    assert not world.held


def test_a_place_on_a_node_that_goes_meanwhile_is_not_used():
    world = waiting()
    key, answer = world.found()
    world.delete(nodes()[0])
    world.give(key, answer)
    world.tick()
    assert not world.held


def test_an_answer_outlasts_changes_of_other_nodes():
    world = Searched([*nodes(), node("b0/r0/gone", gpus=1)])
    world.put(*roles())
    world.tick()
    key, answer = world.found()
    world.delete(node("b0/r0/gone", gpus=1))
    world.put(node("a0/r0/new", gpus=1))  # in front of all others
    world.give(key, answer)
    world.tick()
    assert sorted(world.held.values()) == ["n1", "n2", "n2", "n2"]


@pytest.mark.parametrize("is_made_again", [False, True])
def test_an_answer_for_a_gang_that_is_gone_is_dropped(is_made_again):
    world = waiting()
    ((key, question),) = world.questions()
    world.delete(*roles())
    if is_made_again:
        world.put(*roles(uid="again-"))
    world.give(key, question.answer())
    world.tick()
    assert not world.held
    assert not world.engine.searches_on.has_answer(key)


def test_an_answer_is_forgotten_that_is_to_what_the_gang_was_before():
    world = waiting()
    key, answer = world.found()
    world.delete(roles()[0])
    world.put(pod("other", gpus=1, annotations=group("g", 4)))
    world.give(key, answer)
    world.tick()
    assert not world.engine.searches_on.has_answer(key)
    for _ in range(5):
        world.tick(1.0)
        world.answer()
    assert sorted(world.held) == ["g1", "g2", "g3", "uid-other"]


def test_a_gang_of_which_a_pod_has_gone_is_not_placed_by_an_answer():
    world = waiting()
    key, answer = world.found()
    world.delete(roles()[0])
    world.give(key, answer)
    world.tick()
    assert not world.held
    world.put(roles()[0])  # one like it
    for _ in range(5):
        world.tick(1.0)
        world.answer()
    assert sorted(world.held) == ["g0", "g1", "g2", "g3"]


def test_a_corral_that_stops_places_no_gang_for_an_answer():
    world = waiting()
    key, answer = world.found()
    world.engine.drain(world.now)
    world.give(key, answer)
    for _ in range(20):
        world.tick()
    assert not world.held
    assert not world.questions()


def test_a_gang_whose_answers_are_over_again_and_again_is_put_off():
    world = waiting()
    for turn in range(MOST_IN_VAIN + 1):
        world.tick(1.0)
        ((key, question),) = world.questions()
        answer = question.answer()
        assert answer.places, turn
        thief = pod(f"thief{turn}", gpus=3, on="n1")
        world.put(thief)
        world.give(key, answer)
        world.tick()
        # As long as it is there, the gang has no place: what is asked meanwhile comes to nothing.
        world.questions()
        world.delete(thief)
        world.engine.searches_on._under_way = None
    assert world.reason() is Reason.BACKING_OFF
    assert not world.held


def test_a_gang_that_does_not_fit_is_told_so_and_not_asked_about_again():
    world = Searched(nodes(3, 6))
    world.put(*roles())
    world.tick()
    world.answer()
    assert world.reason() is Reason.DOES_NOT_FIT
    for _ in range(50):
        world.engine.queue.want_pass()
        world.tick()
    assert len(world.told(SeekPlace)) == 1


def test_gangs_that_are_alike_hear_the_same_answer_where_none_fits():
    world = Searched(nodes(3, 6))
    world.put(*roles("g"), *roles("h"))
    world.tick()
    assert world.reason("h") is Reason.SEARCHING
    world.answer()
    for _ in range(10):
        world.answer()
    assert {world.reason("g"), world.reason("h")} == {Reason.DOES_NOT_FIT}
    assert len(world.told(SeekPlace)) == 1


def test_it_is_searched_for_again_where_room_was_freed_while_the_search_went_on():
    blocker = pod("blocker", gpus=1, on="n2")
    world = Searched(nodes(), [blocker])
    world.put(*roles())
    world.tick()
    ((key, question),) = world.questions()
    answer = question.answer()
    world.delete(blocker)
    world.tick()
    world.give(key, answer)
    assert answer.why is not None
    for _ in range(30):
        world.answer()
    assert len(world.held) == 4


def test_a_search_that_fails_puts_the_gang_off():
    world = waiting()
    ((key, _),) = world.questions()
    world.give(key, None)
    world.tick()
    assert world.gang().reporting.reason is Reason.SEARCH_FAILED
    assert world.reason() is Reason.BACKING_OFF


def test_an_answer_that_never_comes_is_asked_for_again_and_a_late_one_is_not_taken_for_the_next():
    world = waiting()
    ((key, question),) = world.questions()
    late = question.answer()
    world.tick()
    world.tick(LOST_SECONDS)
    world.tick()
    ((_, again),) = world.questions()
    world.give(key, late)
    world.tick()
    assert not world.held
    world.give(key, again.answer())
    world.tick()
    assert len(world.held) == 4


def crowded(**other):
    """Two dozen gangs of one namespace, then one of another, of which one has asked."""
    world = Searched(nodes())
    world.put(*(each for at in range(24) for each in roles(f"a{at:02}")))
    world.tick()
    world.put(*(replace(each, namespace="other") for each in roles("z")))
    world.tick()
    return world


def test_one_search_is_under_way_at_a_time_however_many_gangs_ask():
    world = crowded()
    for _ in range(50):
        world.tick()
    assert len(world.told(SeekPlace)) == 1
    assert len(world.engine.searches_on) == 25


def test_one_copy_of_the_books_is_kept_though_no_answer_ever_comes():
    before = _copies()
    world = crowded()
    for _ in range(5):
        world.tick(LOST_SECONDS)
        world.tick()
    assert len(world.told(SeekPlace)) >= 5
    assert _copies() == before + 1


def _copies():
    gc.collect()
    return sum(isinstance(each, LongSearch) for each in gc.get_objects())


@pytest.mark.parametrize("seconds", [0.01, 1.0, 30.0])
def test_namespaces_take_turns_however_long_searches_take(seconds):
    world = crowded()
    ((first, _),) = world.questions()
    assert first.namespace == "default"
    world.give(first, None, seconds)  # so that the others have the place still
    asked = []
    while not asked:
        world.tick(0.5)
        asked = world.questions()
    assert asked[0][0].namespace == "other"


def test_gangs_that_come_again_and_again_do_not_come_before_those_of_others():
    world = crowded()
    asked = []
    for turn in range(400):
        if asked and asked[-1].namespace == "other":
            break
        world.engine.queue.want_pass()  # so that it is planned in its turn, before all others
        world.put(*(replace(each, priority=9) for each in roles(f"b{turn}")))
        world.tick()
        for key, _ in world.questions():
            asked.append(key)
            world.give(key, None, 0.2)
    assert [key.namespace for key in asked] == ["default", "other"]


def test_a_filter_call_does_not_have_a_search_gone_on_with():
    world = waiting()
    world.answer()
    asked = len(world.told(SeekPlace))
    member = next(each for each in world.pods.values() if world.held[each.uid] == "n1")
    world.filter(member, ["n2"])
    assert len(world.told(SeekPlace)) == asked


def test_what_follows_from_answers_is_replayed_from_a_journal():
    lines = []
    recorded = _Recorded(lines)
    recorded.put(*roles())
    recorded.tick()
    recorded.answer()
    assert len(recorded.held) == 4
    assert list(replay(lines)) == []
    assert any(b"place_found" in line for line in lines)


class _Recorded(Searched):
    def __init__(self, lines):
        self._lines = lines
        super().__init__(nodes())

    def built(self):
        engine = super().built()
        self.recorder = Recorder(engine, self.settings, self._lines.append)
        return engine
