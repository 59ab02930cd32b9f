"""What pods usually request of devices: bounded, fair between namespaces, and soon up to date."""

from __future__ import annotations

from app.state.pods.usual_requests import (
    ANEW_AFTER,
    MOST_BYTES,
    MOST_NAMESPACES,
    MOST_REQUESTS,
    MOST_USUAL,
    MOST_WEIGHT,
    UsualRequests,
)
from tests.records import GPU


def asks(gpus: int, cpu: int = 1_000):
    return (("cpu", cpu), (GPU, gpus), ("pods", 1))


def largest() -> dict[str, int]:
    """What nodes have, which is as much as the pods here request."""
    return {"cpu": 10**6, GPU: 2**62, "pods": 110}


def noted(*pods, times: int = 1) -> UsualRequests:
    """After (namespace, request) pairs, so often, and so many more that all of them are counted."""
    usual = UsualRequests(largest)
    for namespace, request in pods * times:
        usual.note(namespace, request)
    return usual


def weights(usual: UsualRequests) -> dict:
    return dict(usual.usual)


def test_the_first_pods_count_at_once():
    assert weights(noted(("a", asks(8)))) == {asks(8): 1}
    assert weights(noted(("a", asks(8)), ("b", asks(8)))) == {asks(8): 2}


def test_pods_without_devices_have_nothing_to_say():
    assert len(noted(("a", (("cpu", 1_000), ("pods", 1))), ("a", ((GPU, 0), ("pods", 1))))) == 0


def test_the_same_pods_in_the_same_order_say_the_same():
    pods = [(f"ns{n % 3}", asks(1 + n % 8, cpu=n % 97)) for n in range(3_000)]
    first, second = noted(*pods), noted(*pods)
    assert first.usual == second.usual
    assert list(first.usual) == list(second.usual)


def test_what_is_not_requested_any_more_is_forgotten():
    usual = noted(("a", asks(8)), times=MOST_WEIGHT)
    for _ in range(11 * MOST_WEIGHT):
        usual.note("a", asks(1))
    assert asks(8) not in weights(usual)
    assert weights(usual)[asks(1)] <= MOST_WEIGHT


def test_a_namespace_that_starts_nothing_is_not_forgotten_for_one_that_starts_many():
    usual = noted(("gangs", asks(8)), times=MOST_WEIGHT // 2)
    for _ in range(20 * MOST_WEIGHT):
        usual.note("many", asks(1))
    assert weights(usual)[asks(8)] == MOST_WEIGHT // 2


def test_made_up_requests_take_neither_memory_nor_the_say_of_others():
    usual = noted(("honest", asks(8)), times=MOST_WEIGHT // 2)
    for number in range(40_000):
        usual.note("hostile", asks(1 + number % 7, cpu=number))
    assert len(usual) <= MOST_REQUESTS + 1
    assert len(usual.usual) <= MOST_USUAL
    assert usual.usual[0] == (asks(8), MOST_WEIGHT // 2)
    assert sum(weights(usual).values()) - MOST_WEIGHT // 2 < MOST_WEIGHT


def test_a_huge_request_is_one_of_many():
    """However much it asks for: what no node has counts for every node alike."""
    usual = noted(("honest", asks(8)), times=MOST_WEIGHT // 4)
    usual.note("hostile", asks(2**61))
    for _ in range(ANEW_AFTER):
        usual.note("honest", asks(8))
    assert weights(usual)[asks(2**61)] == 1
    assert weights(usual)[asks(8)] > MOST_WEIGHT // 4


def test_requests_of_many_resources_are_not_kept():
    many = tuple((f"example.com/device-{n}", 1) for n in range(MOST_BYTES))
    assert len(noted(("hostile", many))) == 0


def test_so_many_namespaces_are_kept_and_the_idlest_goes_first():
    usual = UsualRequests(largest)
    for number in range(3 * MOST_NAMESPACES):
        usual.note("often", asks(8))
        usual.note(f"ns{number}", asks(1, cpu=number))
    assert len(usual) == MOST_NAMESPACES
    assert weights(usual)[asks(8)] > MOST_NAMESPACES


def test_what_no_node_has_takes_no_place_of_what_pods_request():
    has = {"cpu": 64_000, GPU: 8, "pods": 110}
    usual = UsualRequests(lambda: has)
    for _ in range(ANEW_AFTER):
        usual.note("honest", asks(8))
    for number in range(2 * MOST_USUAL):
        usual.note("hostile", ((f"example.com/device-{number}", 1), ("pods", 1)))
        usual.note("hostile", asks(9 + number))
    assert weights(usual) == {asks(8): ANEW_AFTER}


def test_requests_are_usual_once_nodes_have_what_they_name():
    has = {"cpu": 64_000, "pods": 110}
    usual = UsualRequests(lambda: has)
    usual.note("a", asks(8))
    assert weights(usual) == {}
    has[GPU] = 8
    usual.catch_up(len(has))
    assert weights(usual) == {asks(8): 1}
