"""The self-audit finds books that are wrong, and healing makes them right again."""

from __future__ import annotations

import pytest

from app.dialects.spec import GangKey
from app.state.audit.differences import NODES_A_PIECE
from app.state.gang.gang import Phase
from tests.app.state.fairness.test_absent_pods import first_of
from tests.app.state.world import World, four_racks, members
from tests.records import node, pod


@pytest.fixture
def world():
    ordinary = pod("o", on="n33", phase="Running")
    world = World(four_racks(), [ordinary, *members("g", 4), *members("h", 2)])
    world.schedule(*(world.pods[f"uid-h{i}"] for i in range(2)))
    assert differences(world) == []
    return world


def differences(world):
    return world.engine.differences()


def rows(world):
    return [
        (topology.capacity.used.tolist(), topology.capacity.held.tolist())
        for topology in world.engine.books.topologies.values()
    ]


def test_wrong_sums_are_found_with_their_nodes_and_healed(world):
    right = rows(world)
    capacity = next(iter(world.engine.books.topologies.values())).capacity
    capacity.used[0, 3] += 1
    (difference,) = differences(world)
    assert "used is not the sum of pods in 1 slots: n03" in difference
    world._take(world.engine.heal(world.now))
    assert rows(world) == right


def test_a_pod_that_is_missing_in_the_index_by_node_is_found_and_healed(world):
    world.engine.books.bound_on["n33"].clear()
    assert differences(world)[0] == "bound pods by node differ from bound pods"
    world._take(world.engine.heal(world.now))
    assert differences(world) == []


def test_a_hold_that_nobody_owns_is_released(world):
    world.engine.books.hold("leaked", "n22", (("pods", 1),))
    assert any("leaked" in each for each in differences(world))
    world._take(world.engine.heal(world.now))
    assert "leaked" not in world.held


def test_a_hold_of_another_size_than_its_pod_is_made_what_that_requests(world):
    before = rows(world)
    world.engine.books.resize_hold("uid-g1", (("pods", 1),))
    assert any("uid-g1 is not what it requests" in each for each in differences(world))
    world._take(world.engine.heal(world.now))
    assert rows(world) == before


def test_a_plan_without_its_hold_is_made_again(world):
    world.engine.books.release("uid-g1")
    assert any("uid-g1 is not held" in each for each in differences(world))
    world._take(world.engine.heal(world.now))
    for _ in range(30):
        world.tick()
    assert sorted(world.held) == ["uid-g0", "uid-g1", "uid-g2", "uid-g3"]


def test_healing_books_that_are_right_changes_nothing(world):
    before, plans = rows(world), dict(world.held)
    effects = world._take(world.engine.heal(world.now))
    assert effects == []
    assert (rows(world), dict(world.held)) == (before, plans)


# Each thing that the audit looks at, wrong for once. "g" is planned, "h" runs, "o" is ordinary.


def book_twice(engine):
    engine.books.held["uid-o"] = engine.books.bound["uid-o"]


def lose_the_index_of_holds(engine):
    engine.books.held_on.pop(engine.books.held["uid-g0"].node)


def hold_for_nobody(engine):
    engine.books.hold("leaked", "n22", (("pods", 1),))


def hold_elsewhere(engine):
    g(engine).plan.nodes["uid-g0"] = "n22"


def take_one_for_a_member(engine):
    engine.gangs.key_of["stray"] = g(engine).key


def plan_for_a_stranger(engine):
    g(engine).plan.nodes["stray"] = "n00"


def forget_the_phase(engine):
    g(engine).phase = Phase.DONE


def plan_a_part(engine):
    del g(engine).plan.nodes["uid-g0"]


def hold_at_bind_without_arrival(engine):
    g(engine).binding.at_bind["uid-g0"] = 0.0


def hold_at_bind_what_is_being_bound(engine):
    binding = g(engine).binding
    binding.at_bind["uid-g0"] = 0.0
    binding.arrived.add("uid-g0")
    binding.posted.add("uid-g0")


def remember_an_arrival_without_a_place(engine):
    g(engine).binding.arrived.add("stray")


def outdate_a_binding_that_is_not_under_way(engine):
    g(engine).binding.outdated.add("uid-g0")


def remember_a_strangers_rejection(engine):
    g(engine).rejections.sentences["stray"] = "why"


def correct_what_was_not_rejected(engine):
    rejections = g(engine).rejections
    rejections.sentences.clear()
    rejections.outdated["uid-g0"] = None


def g(engine):
    return engine.gangs.by_key[GangKey("default", "g", "group")]


AT_BIND = "gang default/g: members at /bind differ from planned ones"
REJECTED = "gang default/g: pods are remembered as rejected that are no members"


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (book_twice, "pod uid-o is both bound and held"),
        (lose_the_index_of_holds, "held pods by node differ from held pods"),
        (hold_for_nobody, "pod leaked is held, and is in no plan"),
        (hold_elsewhere, "gang default/g: pod uid-g0 is not held on its node n22"),
        (take_one_for_a_member, "pod stray is no member of its gang default/g"),
        (plan_for_a_stranger, "gang default/g: the plan covers pods that are not waiting"),
        (forget_the_phase, "gang default/g is Phase.DONE, not Phase.PLACED"),
        (plan_a_part, "gang default/g: only a part of it is planned"),
        (hold_at_bind_without_arrival, AT_BIND),
        (hold_at_bind_what_is_being_bound, AT_BIND),
        (remember_an_arrival_without_a_place, AT_BIND),
        (
            outdate_a_binding_that_is_not_under_way,
            "gang default/g: bindings of an older plan are not under way",
        ),
        (remember_a_strangers_rejection, REJECTED),
        (correct_what_was_not_rejected, REJECTED),
    ],
)
def test_whatever_is_wrong_has_its_sentence(world, wrong, sentence):
    wrong(world.engine)
    assert sentence in differences(world)


def forget_what_runs(engine):
    engine.gangs.running_in.remove("default", (("pods", 1),))


def count_a_place_for_a_lost_pod(engine):
    engine.owed_places.held["gone"] = ("default", ())


def count_one_for_a_lost_pod_twice(engine):
    engine.owed_places._in.add("default", (("pods", 1),))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (forget_what_runs, "what running members of namespaces request is not the sum of them"),
        (
            count_a_place_for_a_lost_pod,
            "the places that are counted for lost pods are not those in plans",
        ),
        (
            count_one_for_a_lost_pod_twice,
            "what namespaces hold for lost pods is not the sum of those",
        ),
    ],
)
def test_whatever_is_wrong_about_lost_pods_has_its_sentence(world, wrong, sentence):
    wrong(world.engine)
    assert sentence in differences(world)


# The places of pods that do not exist.


def place_of(engine):
    """A placeholder that holds a place."""
    return next(iter(engine.absent_pods.held))


def forget_a_place(engine):
    engine.absent_pods.release(place_of(engine))


def keep_a_place_that_is_gone(engine):
    engine.absent_pods.held["gone"] = engine.absent_pods.held[place_of(engine)]


def count_a_place_twice(engine):
    counted = engine.absent_pods._of_namespace["default"]
    counted[next(iter(counted))] += 1


def count_what_it_takes_twice(engine):
    engine.absent_pods._taken_in.add("default", (("cpu", 1),))


def keep_a_gang_that_is_gone(engine):
    engine.absent_pods._awaited[GangKey("default", "gone", "group")] = 1


def forget_who_is_awaited(engine):
    engine.absent_pods._awaited_in["default"] -= 1


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (forget_a_place, "gang default/a: the place of {} is not counted"),
        (keep_a_place_that_is_gone, "the place of gone is counted, and is in no plan"),
        (count_a_place_twice, "what namespaces hold for absent pods is not the sum of those"),
        (count_what_it_takes_twice, "what namespaces hold for absent pods is not the sum of those"),
        (keep_a_gang_that_is_gone, "gang default/gone is gone, and its placeholders are counted"),
        (
            forget_who_is_awaited,
            "what gangs of namespaces wait for is not the sum of their placeholders",
        ),
    ],
)
def test_whatever_is_wrong_about_absent_pods_has_its_sentence(wrong, sentence):
    world = World(four_racks(), [first_of("a", 3)], absent_share_per_namespace=1.0)
    place = place_of(world.engine)
    assert differences(world) == []
    wrong(world.engine)
    assert sentence.format(place) in differences(world)


def test_a_plan_for_a_pod_that_does_not_wait_is_found(world):
    gang = world.gang("g")
    runs = world.pods["uid-h0"]
    gang.plan.nodes["uid-h0"] = runs.node
    found = differences(world)
    assert f"gang {gang.key}: the plan covers pods that are not waiting" in found
    del gang.plan.nodes["uid-h0"]
    assert differences(world) == []


def test_the_books_are_checked_a_few_nodes_at_a_time():
    few, many = (
        World([node(f"b/r/n{number:05}") for number in range(nodes)])
        for nodes in (1, 4 * NODES_A_PIECE)
    )
    pieces = [len(list(each.engine.checks())) for each in (few, many)]
    sums = 2 * len(many.engine.books.topologies)  # of what is used and of what is held
    assert pieces[1] - pieces[0] == 3 * sums


def test_what_comes_between_two_pieces_is_no_difference(world):
    pieces = 0
    for found in world.engine.checks():
        assert found == []
        pieces += 1
        world.put(node(f"b0/r0/new-{pieces}"), pod(f"p{pieces}", on="n33"))
        if pieces > 1:
            world.delete(world.pods[f"uid-p{pieces - 1}"])
    assert pieces > 10
