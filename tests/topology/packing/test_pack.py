"""Several shapes on the same nodes: held against brute force, planted packings and sentences
that hold for every question."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hash_seeds import patient, printed
from tests.questions import GIB, Question, asked, check, fits, planted, small_question
from topology.model.resources import AMOUNT_MAX
from topology.packing import pack as packing
from topology.packing.pack import NoPacking, Packing, pack

SEEDS, CASES = 8, 1250


# Brute force


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_small_questions_are_answered_as_brute_force_answers_them(seed: int) -> None:
    chance, answers = random.Random(seed), Counter[bool]()
    for _ in range(CASES):
        question = small_question(chance)
        answer = pack(*question)
        check(question, answer)
        is_packed = isinstance(answer, Packing)
        assert is_packed == fits(question), f"{question}"
        assert isinstance(answer, Packing) or answer.is_proven
        answers[is_packed] += 1
    assert min(answers[True], answers[False]) > CASES // 4


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_with_any_budget_a_proof_is_never_wrong(seed: int) -> None:
    chance, answers = random.Random(100 + seed), Counter[str]()
    for _ in range(CASES // 2):
        question = small_question(chance)
        answer = pack(*question, budget=chance.choice([0, 30_000, 100_000, 1_000_000]))
        check(question, answer)
        if isinstance(answer, Packing):
            answers["packed"] += 1
        elif answer.is_proven:
            answers["proven"] += 1
            assert not fits(question)
        else:
            answers["not found"] += 1
    assert min(answers.values()) > 0
    assert len(answers) == 3


# Planted packings


@pytest.mark.slow
@pytest.mark.parametrize("slack", [0.0, 0.05, 0.3])
@pytest.mark.parametrize("factor", [0.97, 1.0])
def test_every_planted_packing_of_64_nodes_is_found(factor: float, slack: float) -> None:
    for seed in range(12):
        question = planted(64, factor, seed, slack=slack)
        answer = pack(*question)
        check(question, answer)
        assert isinstance(answer, Packing), f"seed {seed}"


@pytest.mark.slow
@pytest.mark.parametrize("slack", [0.0, 0.05, 0.3])
def test_three_percent_more_than_planted_is_packed_or_proven_not_to_fit(slack: float) -> None:
    for seed in range(12):
        question = planted(64, 1.03, seed, slack=slack)
        answer = pack(*question)
        check(question, answer)
        assert isinstance(answer, Packing) or answer.is_proven, f"seed {seed}"


@pytest.mark.slow
@pytest.mark.parametrize("shapes", [2, 4, 5])
def test_other_numbers_of_shapes_are_packed_too(shapes: int) -> None:
    for seed in range(4):
        question = planted(64, 1.0, seed, slack=0.1, shapes=shapes)
        answer = pack(*question)
        check(question, answer)
        assert isinstance(answer, Packing), f"seed {seed}"


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.97, 1.0])
def test_a_thousand_nodes_are_packed(factor: float) -> None:
    question = planted(1000, factor, seed=1, slack=0.05)
    answer = pack(*question)
    check(question, answer)
    assert isinstance(answer, Packing)


def test_the_pods_of_ten_thousand_member_gangs_on_alike_nodes_are_packed() -> None:
    node = [110, 64_000, 512 * GIB, 8]
    requests = [[1, 16_000, 100 * GIB, 2], [1, 4_000, 30 * GIB, 1], [1, 2_000, 8 * GIB, 0]]
    # Each node holds 3 + 2 + 4 pods: all of its GPUs, and all of its cores.
    question = asked([node] * 1200, requests, 3 * 1200, 2 * 1200, 4 * 1200)
    answer = pack(*question)
    check(question, answer)
    assert isinstance(answer, Packing)
    one_more = pack(*question._replace(pods=(3600, 2401, 4800)))
    assert isinstance(one_more, NoPacking)
    assert one_more.is_proven


# Sentences

amounts = st.integers(0, 9)
questions = st.builds(lambda seed: small_question(random.Random(seed)), st.integers(0, 2**32))


@pytest.mark.slow
@settings(max_examples=300)
@given(questions, st.data())
def test_adding_capacity_never_turns_a_packing_into_none(
    question: Question, data: st.DataObject
) -> None:
    resources, nodes = question.free.shape
    more = data.draw(st.lists(amounts, min_size=question.free.size, max_size=question.free.size))
    roomier = question.free + np.array(more, dtype=np.int64).reshape(resources, nodes)
    before, after = pack(*question), pack(*question._replace(free=roomier))
    assert isinstance(after, Packing) or isinstance(before, NoPacking)


@pytest.mark.slow
@settings(max_examples=300)
@given(questions, st.randoms(use_true_random=False), st.sampled_from([50_000, 300_000_000]))
def test_the_order_of_nodes_decides_nothing_but_ties(
    question: Question, chance: random.Random, budget: int
) -> None:
    order = list(range(question.free.shape[1]))
    chance.shuffle(order)
    permuted = question._replace(free=question.free[:, order], may_host=question.may_host[:, order])
    first, second = pack(*question, budget=budget), pack(*permuted, budget=budget)
    check(permuted, second)
    if isinstance(first, NoPacking):
        assert first == second
    else:
        assert isinstance(second, Packing)


@pytest.mark.slow
def test_nodes_in_another_order_hold_the_same_unless_they_are_alike() -> None:
    question = planted(64, 1.0, seed=3, slack=0.05)
    assert len({tuple(node) for node in question.free.T.tolist()}) == 64
    order = np.random.default_rng(1).permutation(64)
    first, second = pack(*question), pack(*question._replace(free=question.free[:, order]))
    assert isinstance(first, Packing)
    assert isinstance(second, Packing)
    placed = first.pods_by_shape_and_node[:, order]
    assert placed.tolist() == second.pods_by_shape_and_node.tolist()


@pytest.mark.slow
@patient
def test_equal_questions_get_equal_bytes_in_every_process() -> None:
    script = (
        "from tests.questions import planted\n"
        "from topology.packing.pack import pack\n"
        "for seed in range(3):\n"
        "    answer = pack(*planted(64, 1.0, seed, slack=0.05))\n"
        "    print(answer.pods_by_shape_and_node.tobytes().hex())\n"
    )
    first, second = printed(script)
    assert first == second
    assert len(first) > 1000


# Amounts and edges


def test_amounts_up_to_the_largest_do_not_overflow() -> None:
    node = [110, AMOUNT_MAX]
    requests = [[1, AMOUNT_MAX // 2], [1, AMOUNT_MAX // 4 - 1], [1, AMOUNT_MAX]]
    question = asked([node] * 40, requests, 20, 40, 20)
    assert not packing._is_refuted(packing._problem(*question))
    answer = pack(*question)
    check(question, answer)
    assert isinstance(answer, Packing)
    for shape in range(3):
        pods = tuple(n + (100 if row == shape else 0) for row, n in enumerate(question.pods))
        refused = pack(*question._replace(pods=pods))
        assert isinstance(refused, NoPacking)
        assert refused.is_proven


def test_many_shapes_of_the_largest_amounts_do_not_overflow() -> None:
    shapes = 9
    requests = [[1, AMOUNT_MAX - shape] for shape in range(shapes)]
    question = asked([[110, AMOUNT_MAX]] * shapes, requests, *(1,) * shapes)
    answer = pack(*question)
    check(question, answer)
    assert isinstance(answer, Packing)


def test_a_node_short_of_what_a_shape_does_not_ask_for_still_hosts_it() -> None:
    question = asked([[110, -5, 3]], [[1, 0, 1], [1, 1, 0]], 3, 0)
    answer = pack(*question)
    check(question, answer)
    assert isinstance(answer, Packing)
    refused = pack(*question._replace(pods=(3, 1)))
    assert refused == NoPacking(pods_by_shape=(3, 0), is_proven=True)


def test_pods_go_only_where_their_shape_may_be() -> None:
    question = asked([[2], [2], [2]], [[1], [1]], 2, 4)
    mask = np.array([[False, True, True], [True, True, False]])
    answer = pack(*question._replace(may_host=mask))
    assert isinstance(answer, Packing)
    assert answer.pods_by_shape_and_node.tolist() == [[0, 0, 2], [2, 2, 0]]


def test_shapes_that_share_too_few_nodes_are_proven_not_to_fit() -> None:
    question = asked([[2], [2], [9]], [[1], [1], [1]], 2, 3, 1)
    mask = np.array([[True, True, False], [True, True, False], [False, False, True]])
    answer = pack(*question._replace(may_host=mask))
    assert isinstance(answer, NoPacking)
    assert answer.is_proven
    assert sum(answer.pods_by_shape) == 5


def test_nothing_asked_for_fits_even_without_nodes() -> None:
    answer = pack(*asked([], [[1]], 0)._replace(free=np.zeros((1, 0), dtype=np.int64)))
    assert isinstance(answer, Packing)
    assert answer.pods_by_shape_and_node.shape == (1, 0)


def test_without_nodes_nothing_fits_and_that_is_proven() -> None:
    question = asked([], [[1]], 1)._replace(free=np.zeros((1, 0), dtype=np.int64))
    assert pack(*question) == NoPacking(pods_by_shape=(0,), is_proven=True)


@pytest.mark.parametrize(
    "question",
    [
        pytest.param(asked([[1]], [[1, 1]], 1), id="rows_of_free_and_requests_differ"),
        pytest.param(asked([[1]], [[1]], 1, 1), id="more_numbers_than_shapes"),
        pytest.param(asked([[1]], [[1]], -1), id="fewer_than_no_pods"),
        pytest.param(asked([[1]], [[-1]], 1), id="a_request_below_0"),
    ],
)
def test_arrays_that_do_not_belong_together_are_refused(question: Question) -> None:
    with pytest.raises(ValueError, match=r"shapes|mask"):
        pack(*question)
