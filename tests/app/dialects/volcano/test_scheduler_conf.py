"""The plugin's arguments in the file of Volcano's scheduler.

Source: volcano pkg/scheduler/plugins/network-topology-aware/network_topology_aware_test.go (v1.14),
TestNew; installer/helm/chart/volcano/config/volcano-scheduler.conf.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from app.dialects.spec import TierPacking
from app.dialects.volcano.scheduler_conf import packing_in
from app.errors import DecodeError

PLUGIN = "network-topology-aware"
BINPACK = "hypernode.binpack"
WRITTEN = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
- plugins:
  - name: binpack
    arguments:
      binpack.weight: ten
  - name: network-topology-aware
    arguments:
      weight: 10
      hypernode.binpack.cpu: 5
      hypernode.binpack.memory: 1
      hypernode.binpack.resources: nvidia.com/gpu, example.com/foo
      hypernode.binpack.resources.nvidia.com/gpu: 2
      hypernode.binpack.resources.example.com/foo: 3
      hypernode.binpack.normal-pod.enable: true
      hypernode.binpack.normal-pod.fading: 0.5
configurations: []
"""
READ = (("nvidia.com/gpu", 2), ("example.com/foo", 3), ("cpu", 5), ("memory", 1))


def conf(arguments: object = None, **plugin: object) -> str:
    """The file of a scheduler with this plugin beside another one."""
    mine = {"name": PLUGIN, "arguments": arguments, **plugin}
    return yaml.safe_dump({"tiers": [{"plugins": [{"name": "gang"}, mine]}]})


def test_the_plugins_arguments_are_read_and_those_of_others_are_not() -> None:
    assert packing_in(WRITTEN) == TierPacking(READ, 0.5, for_ordinary_pods=True)


def test_the_config_map_around_the_file_is_read_too() -> None:
    around = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "volcano-scheduler-configmap"},
        "data": {"volcano-scheduler.conf": WRITTEN},
    }
    assert packing_in(yaml.safe_dump(around)) == packing_in(WRITTEN)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(conf(), id="null"),
        pytest.param(conf({}), id="empty"),
        pytest.param(f"tiers: [{{plugins: [{{name: {PLUGIN}}}]}}]", id="none"),
    ],
)
def test_without_arguments_cpu_and_memory_count_alike_and_tiers_fade(text: str) -> None:
    expected = TierPacking((("cpu", 1), ("memory", 1)), 0.8, for_ordinary_pods=True)
    assert packing_in(text) == expected


@pytest.mark.parametrize(
    ("arguments", "resources"),
    [
        pytest.param({f"{BINPACK}.cpu": 0}, {"cpu": 0, "memory": 1}, id="zero"),
        pytest.param(
            {f"{BINPACK}.resources": "a.com/x"},
            {"cpu": 1, "memory": 1, "a.com/x": 1},
            id="listed_without_a_weight",
        ),
        pytest.param(
            {f"{BINPACK}.resources": " a.com/x ,, a.com/y,", f"{BINPACK}.resources.a.com/y": 7},
            {"cpu": 1, "memory": 1, "a.com/x": 1, "a.com/y": 7},
            id="several",
        ),
        pytest.param(
            {f"{BINPACK}.resources": "cpu", f"{BINPACK}.resources.cpu": 9, f"{BINPACK}.cpu": 2},
            {"cpu": 2, "memory": 1},
            id="cpu_has_an_argument_of_its_own",
        ),
    ],
)
def test_resources_have_weights(arguments: Any, resources: dict[str, int]) -> None:
    found = packing_in(conf(arguments)).resources
    assert found is not None
    assert dict(found) == resources


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(conf({f"{BINPACK}.normal-pod.enable": False}), id="not_for_normal_pods"),
        pytest.param(conf({"weight": 0}), id="weight_0"),
        pytest.param(conf(enableNodeOrder=False), id="node_order_off"),
    ],
)
def test_ordinary_pods_may_be_left_out(text: str) -> None:
    found = packing_in(text)
    assert not found.for_ordinary_pods
    assert found.resources == (("cpu", 1), ("memory", 1))


@pytest.mark.parametrize(("fading", "read"), [(0, 0.0), (1, 1.0), (0.25, 0.25), (3, 3.0)])
def test_fading_is_a_number_whole_or_not(fading: float, read: float) -> None:
    found = packing_in(conf({f"{BINPACK}.normal-pod.fading": fading})).fading
    assert (found, type(found)) == (read, float)


def test_what_bounds_evictions_of_volcanos_own_actions_is_let_through() -> None:
    assert packing_in(conf({"hypernode.gradient.evict.max-hypernodes": 4})) == packing_in(conf())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"weight": -1}, "weight: -1 is not a whole number from 0 to 1000000"),
        (
            {f"{BINPACK}.cpu": "5"},
            f"{BINPACK}.cpu: '5' is not a whole number from 0 to 1000000",
        ),
        (
            {f"{BINPACK}.memory": True},
            f"{BINPACK}.memory: True is not a whole number from 0 to 1000000",
        ),
        (
            {f"{BINPACK}.resources": "a.com/x", f"{BINPACK}.resources.a.com/x": 1.5},
            f"{BINPACK}.resources.a.com/x: 1.5 is not a whole number from 0 to 1000000",
        ),
        (
            {f"{BINPACK}.resources": ["a.com/x"]},
            f"{BINPACK}.resources: ['a.com/x'] is not names between commas",
        ),
        (
            {f"{BINPACK}.resources.a.com/x": 5},
            f"{BINPACK}.resources.a.com/x: 5: {BINPACK}.resources does not list a.com/x",
        ),
        (
            {f"{BINPACK}.normal-pod.enable": "yes"},
            f"{BINPACK}.normal-pod.enable: 'yes' is not true or false",
        ),
        (
            {f"{BINPACK}.normal-pod.fading": -0.5},
            f"{BINPACK}.normal-pod.fading: -0.5 is not a number from 0 to 1000000",
        ),
        (
            {f"{BINPACK}.normal-pod.fading": float("nan")},
            f"{BINPACK}.normal-pod.fading: nan is not a number from 0 to 1000000",
        ),
        (
            {f"{BINPACK}.normal-pod.fading": None},
            f"{BINPACK}.normal-pod.fading: None is not a number from 0 to 1000000",
        ),
        (
            {f"{BINPACK}.gpu": 5},
            f"no argument '{BINPACK}.gpu' (5); known: weight, {BINPACK}.cpu, {BINPACK}.memory,"
            f" {BINPACK}.resources, {BINPACK}.resources.NAME, {BINPACK}.normal-pod.enable,"
            f" {BINPACK}.normal-pod.fading, hypernode.gradient.evict.max-hypernodes",
        ),
        (["cpu"], "arguments: a mapping is required, not ['cpu']"),
        ([], "arguments: a mapping is required, not []"),
    ],
)
def test_what_is_wrong_is_told_with_its_argument_and_value(arguments: Any, told: str) -> None:
    with pytest.raises(DecodeError) as error:
        packing_in(conf(arguments))
    assert str(error.value) == f"{PLUGIN}: {told}"


def test_a_switch_that_is_none_is_told() -> None:
    with pytest.raises(DecodeError) as error:
        packing_in(conf(enableNodeOrder="no"))
    assert str(error.value) == f"{PLUGIN}: enableNodeOrder: 'no' is not true or false"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "tiers: a list is required, not None"),
        ("tiers: 3", "tiers: a list is required, not 3"),
        ("tiers: [gang]", "tiers[].plugins: a list is required, not None"),
        ("tiers: [{plugins: [gang, {name: binpack}]}]", f"no tier has the plugin {PLUGIN}"),
        ("kind: ConfigMap", "ConfigMap: data[volcano-scheduler.conf]: a text is required"),
        ("kind: ConfigMap\ndata: x", "ConfigMap: data[volcano-scheduler.conf]: a text is required"),
    ],
)
def test_a_file_without_the_plugin_is_told(text: str, told: str) -> None:
    with pytest.raises(DecodeError) as error:
        packing_in(text)
    assert str(error.value) == told


@pytest.mark.parametrize("text", ["tiers: [", "a: \x00", "[" * 5_000])
def test_a_file_that_is_no_yaml_is_told(text: str) -> None:
    with pytest.raises(DecodeError, match=r"^not YAML: .+$"):
        packing_in(text)
