"""A pod's request is what kube-scheduler would subtract from the node."""

from __future__ import annotations

import json
from collections import Counter
from random import Random

import pytest

from app.kube.core.objects import PodRecord
from app.kube.core.quantity import nano_units
from app.kube.decoding.decode import decode_node, decode_pod
from app.kube.decoding.requests import MOST_RESOURCES, NONE_OFFERED, Offered
from tests.work import lines_run


def container(always: bool = False, **requests: str | None) -> dict:
    """One container asking for these; `always` makes an init container a sidecar."""
    policy = {"restartPolicy": "Always"} if always else {}
    return {"name": "c", "resources": {"requests": requests}, **policy}


def record_of(offered: Offered = NONE_OFFERED, **spec: object) -> PodRecord:
    pod = {"metadata": {"namespace": "team", "name": "p"}, "spec": spec}
    return decode_pod(json.dumps(pod).encode(), keep=lambda _key: False, offered=offered)


def request_of(**spec: object) -> dict[str, int]:
    record = record_of(**spec)
    assert record.problem == ""
    assert list(record.request) == sorted(record.request)
    return dict(record.request)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, {}, id="a_pod_without_containers_takes_one_pod_slot"),
        pytest.param(
            {"containers": [container(cpu="1", memory="1Ki"), container(cpu="500m")]},
            {"cpu": 1500, "memory": 1024},
            id="containers_add_up",
        ),
        pytest.param(
            {"containers": [container(memory="0.5"), container(memory="0.5")]},
            {"memory": 1},
            id="halves_are_added_before_rounding",
        ),
        pytest.param(
            {"containers": [container(**{"cpu": "1", "corral.dev/member": "1"})]},
            {"cpu": 1000},
            id="a_marker_is_no_resource_of_nodes",
        ),
        pytest.param(
            {
                "containers": [container(), container(**{"corral.dev/member-bind": "7"})],
                "initContainers": [container(**{"corral.dev/member": "2"})],
            },
            {},
            id="nor_is_the_other_one_wherever_it_stands",
        ),
        pytest.param(
            {
                "containers": [container(cpu="1", memory="1Ki")],
                "initContainers": [container(cpu="3"), container(cpu="2", memory="2Ki")],
            },
            {"cpu": 3000, "memory": 2048},
            id="the_largest_init_container_counts_per_resource",
        ),
        pytest.param(
            {
                "containers": [container(cpu="1")],
                "initContainers": [container(True, cpu="2"), container(True, cpu="4")],
            },
            {"cpu": 7000},
            id="sidecars_stay_beside_the_containers",
        ),
        pytest.param(
            {
                "containers": [container(cpu="1")],
                "initContainers": [
                    container(cpu="8"),
                    container(True, cpu="2"),
                    container(cpu="7"),
                ],
            },
            {"cpu": 9000},
            id="an_init_container_runs_beside_the_sidecars_before_it",
        ),
        pytest.param(
            {
                "containers": [container(cpu="1")],
                "initContainers": [container(cpu="8"), container(True, cpu="2")],
            },
            {"cpu": 8000},
            id="an_init_container_does_not_run_beside_sidecars_after_it",
        ),
        pytest.param(
            {
                "containers": [container(cpu="4", memory="4Ki", **{"nvidia.com/gpu": "2"})],
                "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "9"}},
                "overhead": {"cpu": "250m"},
            },
            {"cpu": 1250, "memory": 4096, "nvidia.com/gpu": 2},
            id="pod_level_resources_replace_and_overhead_adds",
        ),
        pytest.param(
            {"containers": [container(cpu="4")], "overhead": {"cpu": "250m", "memory": "1Ki"}},
            {"cpu": 4250, "memory": 1024},
            id="overhead_adds_to_a_single_container",
        ),
        pytest.param(
            {"containers": [container(cpu="4")], "resources": {"requests": {"cpu": "6"}}},
            {"cpu": 6000},
            id="pod_level_resources_replace_those_of_a_single_container",
        ),
        pytest.param(
            {"containers": [container(cpu="4")], "initContainers": [container(cpu="6")]},
            {"cpu": 6000},
            id="an_init_container_counts_beside_a_single_container",
        ),
        pytest.param(
            {"containers": [container(cpu="4")], "initContainers": [container(memory="1n")]},
            {"cpu": 4000, "memory": 1},
            id="the_least_that_an_init_container_may_ask_for_counts",
        ),
        pytest.param(
            {"containers": [container(cpu="4")], "initContainers": [container(True, memory="1n")]},
            {"cpu": 4000, "memory": 1},
            id="and_the_least_of_a_sidecar",
        ),
        pytest.param(
            {"containers": [container(cpu="4")], "resources": {"limits": {"cpu": "6"}}},
            {"cpu": 4000},
            id="pod_level_limits_are_not_requests",
        ),
        pytest.param(
            {"containers": [container(cpu=None, memory="1Ki")] * 2},
            {"memory": 2048},
            id="null_is_nothing",
        ),
        pytest.param(
            {"containers": [container(cpu=None, memory="1Ki")] * 20},
            {"memory": 20 * 1024},
            id="null_is_nothing_in_many_containers",
        ),
        pytest.param(
            {
                "containers": [container(**{"hugepages-2Mi": "4Mi"})],
                "resources": {"requests": {"hugepages-2Mi": "8Mi", "memory": "1Ki"}},
            },
            {"hugepages-2Mi": 8 * 2**20, "memory": 1024},
            id="pod_level_hugepages_and_memory",
        ),
        pytest.param(
            {"containers": [container(cpu="0", pods="5"), {"resources": None}, None]},
            {},
            id="nothing_asked_is_left_out_and_pods_cannot_be_asked_for",
        ),
        pytest.param(
            {"containers": [{"resources": {"limits": {"cpu": "8"}}}]},
            {},
            id="limits_are_not_requests",
        ),
    ],
)
def test_pod_request(spec, expected):
    assert request_of(**spec) == {**expected, "pods": 1}


def test_equal_requests_are_one_tuple():
    first, second = (
        decode_pod(
            json.dumps({"spec": {"containers": [container(cpu=cpu)]}}).encode(), lambda _: False
        )
        for cpu in ("1", "1000m")
    )
    assert first.request is second.request


def test_an_unreadable_amount_is_reported_and_counts_as_nothing():
    spec = {"containers": [container(cpu="1"), container(cpu="-5", memory="1Ki")]}
    pod = {"metadata": {"namespace": "team", "name": "p"}, "spec": spec}
    record = decode_pod(json.dumps(pod).encode(), keep=lambda _key: False)
    assert dict(record.request) == {"cpu": 1000, "memory": 1024, "pods": 1}
    where = "Pod team/p: spec.containers[1].resources.requests: cpu: '-5'"
    assert record.problem.startswith(where)


def test_ten_thousand_containers_are_added():
    spec = {"containers": [container(cpu="1m")] * 10_000}
    assert request_of(**spec) == {"cpu": 10_000, "pods": 1}


def peak_of(init_containers):
    """What runs at a time, the definition: each init container beside the sidecars before it."""
    sidecars, peak = Counter(), Counter()
    for each in init_containers:
        running = sidecars + Counter(each["resources"]["requests"])
        peak |= running
        if "restartPolicy" in each:
            sidecars = running
    return peak


@pytest.mark.parametrize("seed", range(40))
def test_init_containers_and_sidecars_take_what_runs_at_a_time(seed):
    rng = Random(seed)
    made = [
        container(rng.random() < 0.5, **{name: rng.randint(1, 9) for name in rng.sample("abc", 2)})
        for _ in range(rng.randint(1, 6))
    ]
    assert request_of(initContainers=made) == {**peak_of(made), "pods": 1}


def test_each_sidecar_with_a_resource_of_its_own_costs_the_same():
    def lines(sidecars):
        made = [container(True, **{f"r{at}": "1"}) for at in range(sidecars)]
        return lines_run(lambda: request_of(initContainers=made))

    assert lines(200) < 2.5 * lines(100)


@pytest.mark.parametrize("seed", range(40))
def test_many_containers_ask_for_what_they_ask_for_one_by_one(seed):
    rng = Random(seed)
    amounts = ["0", "1", "250m", "3Ki", "0.5", "7u"]
    made = [
        container(**{name: rng.choice(amounts) for name in rng.sample("abcd", 2)})
        for _ in range(rng.randint(9, 30))
    ]
    one_pod = Counter({"pods": 1})
    nanos = Counter(
        {
            name: sum(
                nano_units(name, each["resources"]["requests"].get(name, "0")) for each in made
            )
            for name in "abcd"
        }
    )
    rounded = Counter({name: -(-nanos[name] // 10**9) for name in nanos if nanos[name]})
    assert request_of(containers=made) == rounded + one_pod


@pytest.mark.parametrize("kind", ["containers", "initContainers"])
@pytest.mark.parametrize("always", [False, True])
def test_a_container_with_amounts_of_its_own_costs_a_few_steps(kind, always):
    """A pod may have 10,000, and the event loop does nothing else meanwhile."""

    def lines(containers):
        made = [
            container(always, cpu=f"{at}m", memory=f"{at}Ki") for at in range(1, containers + 1)
        ]
        return lines_run(lambda: request_of(**{kind: made}))

    per_container = (lines(2_000) - lines(1_000)) / 1_000
    assert per_container < 18


@pytest.mark.parametrize(("kind", "most"), [("containers", 8), ("initContainers", 12)])
def test_a_container_that_asks_for_nothing_costs_next_to_nothing(kind, most):
    def lines(containers):
        made = [container(cpu="1"), *[{"name": "c"}] * containers]
        return lines_run(lambda: request_of(**{kind: made}))

    assert (lines(2_000) - lines(1_000)) / 1_000 <= most


def test_many_containers_are_added_however_their_amounts_are_written():
    """What the API server would write in other words, and what clients of the extender port may."""
    written = ["1", "1000m", "1e0", 1, 1.0, "+1", "01", ".001k"]
    made = [container(cpu=each) for each in written] * 2
    assert request_of(containers=made, initContainers=made) == {"cpu": 16_000, "pods": 1}


@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_an_unreadable_amount_among_many_containers_is_reported_where_it_is(kind):
    made = [*[container(True, cpu="1")] * 20, container(cpu="much"), container(True, cpu="1")]
    record = record_of(**{kind: made})
    assert dict(record.request) == {"cpu": 21_000, "pods": 1}
    assert record.problem.startswith(f"Pod team/p: spec.{kind}[20].resources.requests: cpu: ")


@pytest.mark.parametrize(
    "spread",
    [
        pytest.param(lambda all_of_it: [container(**all_of_it)], id="in_one_container"),
        pytest.param(
            lambda all_of_it: [container(**{name: all_of_it[name]}) for name in all_of_it],
            id="one_in_each_container",
        ),
    ],
)
@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_more_resources_than_any_node_has_are_cut_to_the_first_by_name(spread, kind):
    """cpu and the like count always; a resource of which 0 is asked for does not count as one."""
    asked = {f"example.com/r{at:04}": "2" for at in range(MOST_RESOURCES + 50)}
    nothing = {f"example.com/a{at:04}": "0" for at in range(1_000)}
    record = record_of(**{kind: spread({**nothing, **asked, "memory": "1Ki", "cpu": "1"})})
    counted = dict(record.request)
    assert (counted["cpu"], counted["memory"], counted["pods"]) == (1000, 1024, 1)
    others = [name for name in counted if "/" in name]
    assert others == sorted(asked)[: len(others)]
    assert MOST_RESOURCES - 2 <= len(others) <= MOST_RESOURCES
    assert record.problem.startswith(f"Pod team/p: more than {MOST_RESOURCES} resources requested")


@pytest.mark.parametrize("kind", ["containers", "initContainers"])
@pytest.mark.parametrize("containers", [1, 2, 20])
def test_as_many_resources_as_are_counted_all_count(kind, containers):
    asked = {f"example.com/r{at:04}": "1" for at in range(MOST_RESOURCES)}
    names = sorted(asked)
    made = [
        container(**{name: asked[name] for name in names[at::containers]})
        for at in range(containers)
    ]
    assert request_of(**{kind: made}) == {**dict.fromkeys(names, 1), "pods": 1}


@pytest.mark.parametrize("kind", ["containers", "initContainers"])
@pytest.mark.parametrize("containers", [1, 2, 20])
def test_one_resource_more_than_are_counted_is_left_out_and_told(kind, containers):
    names = [f"example.com/r{at:04}" for at in range(MOST_RESOURCES + 1)]
    made = [container(**dict.fromkeys(names[at::containers], "1")) for at in range(containers)]
    record = record_of(**{kind: made})
    assert dict(record.request) == {**dict.fromkeys(names[:-1], 1), "pods": 1}
    assert record.problem.startswith(f"Pod team/p: more than {MOST_RESOURCES} resources requested")


GPUS = ("nvidia.com/gpu", "pods", "example.com/nic")


@pytest.mark.parametrize("made_up", [MOST_RESOURCES, 10_000])
@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_of_too_many_resources_those_that_nodes_offer_are_counted_first(kind, made_up):
    """A kubelet drops the invented ones and starts the pod, with the GPUs."""
    names = [f"a.com/r{at:05}" for at in range(made_up)]
    asked = {**dict.fromkeys(names, "1"), "nvidia.com/gpu": "8", "cpu": "1"}
    record = record_of(GPUS, **{kind: [container(**asked)]})
    counted = dict(record.request)
    assert (counted["nvidia.com/gpu"], counted["cpu"], counted["pods"]) == (8, 1000, 1)
    assert "example.com/nic" not in counted
    assert names[0] in counted  # of which no node has any: the pod is not planned anywhere
    assert len(counted) <= MOST_RESOURCES + 4
    assert record.offered_then == len(GPUS)
    assert record.problem.startswith(f"Pod team/p: more than {MOST_RESOURCES} resources requested")


def test_the_order_in_which_a_pod_lists_its_resources_makes_no_difference():
    names = [f"a.com/r{at:05}" for at in range(5_000)]

    def lines(listed):
        made = [container(**dict.fromkeys(listed, "1"))]
        return lines_run(lambda: record_of(containers=made))

    assert record_of(containers=[container(**dict.fromkeys(reversed(names), "1"))]) == record_of(
        containers=[container(**dict.fromkeys(names, "1"))]
    )
    assert lines(reversed(names)) < 1.2 * lines(names)


def test_what_is_counted_follows_what_is_offered_at_the_time():
    offered = ["pods", "cpu"]
    asked = dict.fromkeys((f"a.com/r{at:05}" for at in range(1_000)), "1")
    spec = {"containers": [container(**asked, **{"nvidia.com/gpu": "8"})]}
    before = record_of(offered, **spec)
    offered.append("nvidia.com/gpu")
    after = record_of(offered, **spec)
    assert [dict(each.request).get("nvidia.com/gpu") for each in (before, after)] == [None, 8]
    assert [each.offered_then for each in (before, after)] == [2, 3]


def test_a_pod_has_no_more_amounts_than_are_counted_however_much_is_offered():
    offered = [f"b.com/r{at:05}" for at in range(MOST_RESOURCES)]
    names = [*(f"a.com/r{at:05}" for at in range(5_000)), *offered]
    record = record_of(offered, containers=[container(**dict.fromkeys(names, "1"))])
    assert dict(record.request) == {**dict.fromkeys(offered, 1), "pods": 1}


@pytest.mark.parametrize("resources", [1, 20, MOST_RESOURCES])
def test_a_pod_of_which_everything_is_counted_does_not_depend_on_what_is_offered(resources):
    asked = dict.fromkeys((f"a.com/r{at:05}" for at in range(resources)), "1")
    none = dict.fromkeys((f"b.com/r{at:05}" for at in range(1_000)), "0")
    records = [record_of(each, containers=[container(**asked, **none)]) for each in ((), GPUS)]
    assert records[0] == records[1]
    assert records[0].offered_then is None


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"containers": [container(a="x", b="y")]}, id="in_one_container"),
        pytest.param({"containers": [container(a="x"), container(b="y")]}, id="in_two"),
        pytest.param(
            {"containers": [*[container(cpu="1")] * 8, container(a="x"), container(b="y")]},
            id="in_many",
        ),
        pytest.param(
            {"containers": [container(a="x")], "overhead": {"b": "y"}}, id="in_the_overhead_too"
        ),
        pytest.param({"initContainers": [container(a="x"), container(b="y")]}, id="before_them"),
        pytest.param({"resources": {"requests": {"a": "x", "cpu": "y"}}}, id="of_the_pod"),
    ],
)
def test_of_several_unreadable_amounts_the_first_is_reported(spec):
    record = record_of(**spec)
    assert ": a: 'x' is not a quantity" in record.problem
    assert "'y'" not in record.problem


@pytest.mark.parametrize(
    ("spec", "where"),
    [
        ({"overhead": {"cpu": "x"}}, "spec.overhead"),
        ({"resources": {"requests": {"cpu": "x"}}}, "spec.resources.requests"),
        (
            {"initContainers": [container(cpu="1"), container(cpu="1"), container(cpu="x")]},
            "spec.initContainers[2].resources.requests",
        ),
    ],
)
def test_an_unreadable_amount_is_reported_with_its_field(spec, where):
    assert record_of(**spec).problem.startswith(f"Pod team/p: {where}: cpu: 'x'")


def test_zeros_cannot_hide_what_is_asked_for():
    nothing = {f"a.com/r{at}": "0" for at in range(5_000)}
    assert request_of(containers=[container(**nothing, **{"nvidia.com/gpu": "8"})]) == {
        "nvidia.com/gpu": 8,
        "pods": 1,
    }


def test_allocatable_rounds_down_and_defaults_to_capacity():
    node = {"status": {"capacity": {"cpu": "1999.9m", "pods": "110", "memory": "1.9"}}}
    record = decode_node(json.dumps(node).encode())
    assert record.allocatable == (("cpu", 1999), ("memory", 1), ("pods", 110))


def test_a_node_with_an_unreadable_amount_says_so():
    node = {"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "1", "memory": "1e99"}}}
    record = decode_node(json.dumps(node).encode())
    assert record.allocatable == (("cpu", 1000), ("memory", 0))
    assert record.problem.startswith("Node n1: status.allocatable: memory: '1e99'")


def test_of_a_node_null_is_nothing_and_the_first_unreadable_amount_is_reported():
    amounts = {"cpu": None, "memory": "x", "pods": "y"}
    record = decode_node(json.dumps({"status": {"allocatable": amounts}}).encode())
    assert record.allocatable == (("cpu", 0), ("memory", 0), ("pods", 0))
    assert "memory: 'x'" in record.problem
    assert "'y'" not in record.problem


def test_equal_requests_of_one_container_in_other_words_are_read_each_by_itself():
    for amount, expected, problem in (
        (0, {}, ""),
        (-0.0, {}, "spec.containers[0].resources.requests"),
        ("1", {"cpu": 1000}, ""),
        (1, {"cpu": 1000}, ""),
        (1.0, {"cpu": 1000}, ""),
        ("-0", {}, "spec.containers[0].resources.requests"),
        (0, {}, ""),
    ):
        record = record_of(containers=[{"resources": {"requests": {"cpu": amount}}}])
        assert dict(record.request) == {**expected, "pods": 1}
        assert (problem in record.problem) if problem else record.problem == ""
