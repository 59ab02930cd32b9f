"""Gangs that ask by requests, and the autoscaler that answers: the scenarios of `gang_plays.py`.

In all of them Corral may be killed after any write of its own.
"""

from __future__ import annotations

from itertools import pairwise

import pytest

from app.dialects.provisioning import keys
from app.state.autoscaling import requests
from tests.autoscaling.cluster_autoscaler.loop import ClusterAutoscaler, Settings
from tests.autoscaling.growing import Growing
from tests.autoscaling.machines.groups import NodeGroup
from tests.autoscaling.objects import ATOMIC_SCALE_UP
from tests.cluster import BLOCK, GPU, RACK, Object, node, pod
from tests.workloads import asking, behind_gate, members

REQUEST, TEMPLATE = "ProvisioningRequest", "PodTemplate"
MACHINE = {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: "8"}
QUICK = Settings(unneeded=120.0, delay_after_add=0.0)
LONG = 900.0  # until whatever is to happen has happened


def rack(name: str, most: int = 8, **fields: object) -> NodeGroup:
    """A node group that is one rack; its nodes get their labels and devices late."""
    late = {"late_labels": ({RACK: name},), "tags": {RACK: name}}
    delays = {"ready_seconds": 20.0, "label_seconds": 40.0, "resource_seconds": 60.0}
    return NodeGroup(name, **{"max": most, "allocatable": MACHINE, **late, **delays, **fields})  # type: ignore[arg-type]


def gang(name: str = "g", pods: int = 8, **fields: object) -> list[Object]:
    return [
        behind_gate(each)
        for each in members(name, pods, annotations=asking(required=RACK), **fields)
    ]


def free(name: str, number: int) -> list[Object]:
    return [node(f"{name}-old{n}", labels={RACK: name}, gpus=8) for n in range(number)]


def world(*groups: NodeGroup, settings: Settings = QUICK, **more: object) -> Growing:
    return Growing(
        ClusterAutoscaler(groups, settings), **{"provisioning_class": ATOMIC_SCALE_UP, **more}
    )


def racks_of(made: Growing) -> set[str]:
    labels = {each["metadata"]["name"]: each["metadata"]["labels"] for each in made.all("Node")}
    return {labels[on][RACK] for on in made.bound().values()}


def left(made: Growing) -> list[str]:
    return [*made.names(REQUEST), *made.names(TEMPLATE)]


def test_1_an_empty_cluster_gets_one_rack_and_no_ninth_node():
    made = world(rack("r0", most=12), rack("r1", most=12))
    made.create(*gang())
    made.run(LONG)
    assert len(set(made.bound().values())) == 8
    assert len(racks_of(made)) == 1
    assert made.ever.total() == 8 + 8 + 2, "pods, nodes, one request, one template"
    assert left(made) == []


def test_3_room_in_two_racks_is_excluded_and_a_whole_rack_comes():
    made = world(rack("r2"))
    made.create(*free("r0", 5), *free("r1", 3), *gang())
    made.run(LONG)
    assert racks_of(made) == {"r2"}
    assert made.told("NoNodesCome") == []
    assert left(made) == []


def test_3_with_marks_alone_no_node_comes():
    made = world(rack("r2"), provisioning_class="")
    made.create(*free("r0", 5), *free("r1", 3), *gang())
    made.run(LONG)
    assert (made.bound(), len(made.all("Node"))) == ({}, 8)
    assert len(made.told("NoNodesCome")) == 1


def test_11_without_requests_in_the_autoscaler_the_gang_is_marked_and_gets_its_nodes():
    made = world(rack("r0"), settings=Settings(provisioning_requests=False))
    made.create(*gang())
    made.run(requests.ACCEPT_SECONDS)
    assert made.all("Node") == []
    made.run(LONG)
    assert len(made.bound()) == 8
    assert len(made.all("Node")) == 8
    assert len(made.told("NodesNotRequested")) == 1
    assert left(made) == []


def test_12_nodes_found_in_two_racks_are_told_and_the_next_attempt_excludes_them():
    made = world(rack("r2"))
    full = [*free("r0", 5), *free("r1", 3)]
    names = [each["metadata"]["name"] for each in full]
    taken = [pod(f"on-{name}", requests={GPU: 8}, nodeName=name) for name in names]
    made.create(*full, *taken)
    made.run(1)
    made.create(*gang())
    made.run(2)
    assert len(made.names(REQUEST)) == 1
    for each in taken:
        made.delete("Pod", each["metadata"]["name"])
    made.run(LONG)
    assert racks_of(made) == {"r2"}
    assert len(made.requests_ever()) == 2
    assert f"not in one {RACK}" in made.told("NodesNotProvided")[0]


def test_13_a_booking_that_ends_before_the_devices_come_is_followed_by_another_attempt():
    made = world(rack("r0", resource_seconds=1500.0))
    made.create(*gang())
    made.run(1400)
    assert made.bound() == {}
    assert len(made.requests_ever()) >= 2
    assert len(made.all("Node")) == 8
    made.run(LONG)
    assert (len(made.bound()), len(made.all("Node"))) == (8, 8)
    assert left(made) == []


def test_20_nodes_that_come_in_the_wrong_racks_are_asked_for_no_faster_than_the_pauses():
    """One group whose nodes are in a rack each, though it says that they are in one."""
    wrong = tuple({RACK: f"w{n}"} for n in range(40))
    made = world(rack("r0", most=24, late_labels=wrong))
    made.create(*gang())
    times = []
    for _ in range(240):
        before = len(made.requests_ever())
        made.run(30)
        times += [made.now] * (len(made.requests_ever()) - before)
    assert made.bound() == {}
    assert len(made.all("Node")) <= 24
    assert 1 < len(times) <= requests.MOST_ATTEMPTS
    pauses = [later - first for first, later in pairwise(times)]
    assert all(pause >= requests.RETRY_SECONDS for pause in pauses)


# -- levels that are declared by an object -------------------------------------------------------


def levels(*keys_: str) -> Object:
    """Kueue's Topology of these levels."""
    spec = {"levels": [{"nodeLabel": each} for each in keys_]}
    metadata = {"name": "racks"}
    return {"kind": "Topology", "metadata": metadata, "spec": spec}


def declared(*bodies: Object, **settings: object) -> Growing:
    """A world whose levels an object declares, and in which a gang has asked for nodes."""
    made = world(rack("r0", register_seconds=300.0), levels=(), **settings)
    made.create(levels(RACK), *bodies)
    made.run(1)
    made.create(*gang(pods=4))
    made.run(30)
    return made


@pytest.mark.parametrize("other", [(), (BLOCK,)], ids=["deleted", "without_the_level"])
def test_the_marks_of_a_gang_whose_level_is_gone_are_taken_back_until_it_is_back(other):
    made = declared(provisioning_class="")
    assert len(made.marked()) == 4
    made.delete("Topology", "racks")
    if other:
        made.create(levels(*other))
    made.run(60)
    assert made.marked() == []
    assert [RACK in each for each in made.told("GangMistaken")] == [True], "told by its name"
    made.delete("Topology", "racks")
    made.create(levels(RACK))
    made.run(60)
    assert len(made.marked()) == 4
    made.run(LONG)
    assert len(made.bound()) == 4
    assert racks_of(made) == {"r0"}


@pytest.mark.parametrize("other", [(), (BLOCK,)], ids=["deleted", "without_the_level"])
def test_the_request_of_a_gang_whose_level_is_gone_is_withdrawn_until_it_is_back(other):
    made = declared()
    assert len(made.names(REQUEST)) == 1
    made.delete("Topology", "racks")
    if other:
        made.create(levels(*other))
    made.run(60)
    assert left(made) == []
    assert made.marked() == []
    made.delete("Topology", "racks")
    made.create(levels(RACK))
    made.run(60)
    assert len(made.names(REQUEST)) == 1
    made.run(LONG)
    assert len(made.bound()) == 4
    assert racks_of(made) == {"r0"}
    assert left(made) == []


def test_nodes_are_kept_no_more_for_a_gang_whose_level_is_gone():
    made = declared(provisioning_class="")
    made.create(*free("r1", 2))
    made.run(3)
    assert made.engine.new_nodes.nodes() == {"r1-old0", "r1-old1"}
    made.delete("Topology", "racks")
    made.run(20)
    assert made.engine.new_nodes.nodes() == frozenset()
    made.create(levels(RACK))
    made.run(10)
    made.create(*free("r2", 3))
    made.run(10)
    assert made.engine.new_nodes.nodes() == {"r2-old0", "r2-old1", "r2-old2"}


@pytest.mark.parametrize("provisioning_class", ["", ATOMIC_SCALE_UP], ids=["marks", "request"])
def test_a_level_that_is_gone_when_corral_begins_again_ends_what_was_asked_for(provisioning_class):
    made = declared(provisioning_class=provisioning_class)
    assert len(made.marked()) + 4 * len(made.names(REQUEST)) == 4
    made.delete("Topology", "racks")
    made.restart()
    made.run(60)
    assert made.marked() == []
    assert left(made) == []


# -- 8: killed after each single write -----------------------------------------------------------


@pytest.mark.parametrize("class_name", ["", ATOMIC_SCALE_UP], ids=["marks", "request"])
def test_8_killed_after_any_write_a_gang_ends_the_same(class_name):
    def play(kill_after: int) -> Growing:
        made = world(rack("r0", most=12), kill_after=kill_after, provisioning_class=class_name)
        made.create(*gang(pods=4))
        made.run(400)
        return made

    whole = play(0)
    assert len(whole.bound()) == 4
    for number in range(1, len(whole.writes) + 1):
        made = play(number)
        what = f"killed after {number}: {whole.writes[number - 1]}"
        assert made.end() == whole.end(), what
        assert made.ever == whole.ever, what
        assert sorted(made.writes) == sorted(whole.writes), f"nothing is written twice; {what}"


def test_8_killed_after_any_write_a_gang_that_nobody_serves_ends_the_same():
    def play(kill_after: int) -> Growing:
        made = world(rack("r0"), settings=Settings(provisioning_requests=False))
        made.kill_after = kill_after
        made.create(*gang(pods=4))
        made.run(2 * requests.ACCEPT_SECONDS + 300)
        return made

    whole = play(0)
    assert len(whole.bound()) == 4
    for number in range(1, len(whole.writes) + 1):
        made = play(number)
        what = f"killed after {number}: {whole.writes[number - 1]}"
        assert made.end() == whole.end(), what
        assert made.ever == whole.ever, what
        assert not made.names(REQUEST), what
        assert len(made.requests_ever()) == 1, what


def test_8_killed_after_any_write_of_a_gang_that_goes_while_nodes_boot_nothing_is_left():
    def play(kill_after: int) -> Growing:
        made = world(rack("r0"), kill_after=kill_after)
        made.create(*gang(pods=4))
        made.run(40)
        for n in range(4):
            made.delete("Pod", f"g-{n}")
        made.run(700)
        return made

    whole = play(0)
    assert left(whole) == []
    for number in range(1, len(whole.writes) + 1):
        made = play(number)
        what = f"killed after {number}: {whole.writes[number - 1]}"
        assert left(made) == [], what
        assert made.all("Node") == [], what
        assert len(made.requests_ever()) == 1, what


@pytest.mark.parametrize("at", range(1, 7))
def test_8_a_gang_that_goes_at_the_same_time_leaves_nothing(at):
    """Corral is killed, and before the next one begins the gang is gone."""
    made = world(rack("r0"), kill_after=at)
    made.create(*gang(pods=4))
    while len(made.writes) < at and made.now < 300:
        made.run(1)
    for n in range(4):
        made.delete("Pod", f"g-{n}")
    made.run(300)
    assert left(made) == []


def test_9_a_gang_deleted_while_nodes_boot_leaves_none_of_them():
    made = world(rack("r0"))
    made.create(*gang())
    made.run(45)
    assert made.all("Node")
    for n in range(8):
        made.delete("Pod", f"g-{n}")
    made.run(LONG)
    assert (made.all("Node"), left(made)) == ([], [])


def test_two_gangs_get_a_rack_each_and_every_request_goes():
    made = world(rack("r0"), rack("r1"))
    made.create(*gang("a"), *gang("b"))
    made.run(LONG)
    assert len(made.bound()) == 16
    assert (len(made.all("Node")), len(made.requests_ever()), left(made)) == (16, 2, [])


def test_from_nothing_to_a_gang_and_back_three_times():
    made = world(rack("r0"))
    for turn in range(3):
        made.create(*gang(f"g{turn}"))
        made.run(LONG)
        assert len(made.bound()) == 8
        for n in range(8):
            made.delete("Pod", f"g{turn}-{n}")
        made.run(LONG)
        assert (made.all("Node"), left(made)) == ([], [])
    assert len(made.requests_ever()) == 3


def test_a_gang_on_two_racks_gets_no_nodes_by_a_request_is_told_so_and_gets_them_by_marks():
    """cluster-autoscaler takes one node group for a request, and here each rack is one."""
    made = world(rack("r0"), rack("r1"))
    made.create(*map(behind_gate, members("g", 16)))
    made.run(LONG)
    assert made.all("Node") == []
    assert len(made.told("NodesNotProvided")) == 1
    for n in range(16):
        made.delete("Pod", f"g-{n}")
    made.create(*map(behind_gate, members("g", 16, annotations={keys.CLASS: ""})))
    made.run(LONG)
    assert (len(made.bound()), len(made.all("Node"))) == (16, 16)


def test_the_class_of_check_capacity_waits_for_room_and_makes_no_node():
    made = world(rack("r0"), provisioning_class="check-capacity.autoscaling.x-k8s.io")
    made.create(*gang())
    made.run(LONG)
    assert (made.all("Node"), made.bound()) == ([], {})
    made.create(*free("r9", 8))
    made.run(30)
    assert racks_of(made) == {"r9"}
    assert left(made) == []
    assert keys.CONSUME in made.all("Pod")[0]["metadata"]["annotations"]
