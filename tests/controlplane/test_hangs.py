"""Lists and watches that hang: the connection stays, and nothing comes any more.

No answer tells Corral so, and healing helps no request that hangs already: it has to give the
connection up by itself. A watch after `watch_silence_seconds`, a page of a list after PAGE_SECONDS.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from app.kube.watch.pages import PAGE_OBJECTS, PAGE_SECONDS
from tests.cluster import GPU, RACK, Cluster, grid
from tests.controlplane.chronicle import Chronicle
from tests.controlplane.fault_proxy import PAGES, WATCHES, Fault, FaultProxy
from tests.controlplane.plane import ControlPlane
from tests.controlplane.seen import clear
from tests.controlplane.test_faults import (
    BACK_OFF_SECONDS,
    FAULT_SECONDS,
    HEALED_SECONDS,
    REPEATED,
    SEEN_SECONDS,
    SIZE,
    gangs,
    has_met,
    whole,
    whole_history,
)
from tests.corral_process import READY_SECONDS, CorralProcess
from tests.workloads import asking, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

EVER = 3600.0  # longer than any test
SILENCE_SECONDS = 2.0  # instead of 75: the API server says something once a minute
RACKS, NODES = 27, 20  # more nodes than a page has


@pytest.mark.timeout(60 + 40 * REPEATED)
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Fault("silent", WATCHES, path="/pods"), id="silent"),
        pytest.param(Fault("hung", WATCHES, path="/pods", seconds=EVER), id="unanswered"),
    ],
)
def test_a_watch_on_which_nothing_comes_is_given_up_and_gangs_are_whole(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path, fault: Fault
) -> None:
    plane.nodes(grid(racks=6, nodes=4, gpus=8))
    with (
        FaultProxy(plane) as proxy,
        Chronicle(plane, gpus_per_node=8) as chronicle,
        ExitStack() as stack,
    ):
        kubeconfig = proxy.kubeconfig(plane.kubeconfig("corral"))
        corral = stack.enter_context(
            CorralProcess(kubeconfig, tmp_path, watch_silence_seconds=SILENCE_SECONDS)
        )
        plane.start_scheduler(extender=corral.url)
        for round in range(REPEATED):
            before = proxy.faulted
            proxy.begin(fault)
            if fault.what == "hung":  # the next one, once the one there is has been silent
                cluster.wait(partial(has_met, proxy, before), SEEN_SECONDS, "the fault")
            cluster.create_all(gangs(round))
            cluster.wait(partial(has_met, proxy, before), SEEN_SECONDS, "the fault")
            time.sleep(FAULT_SECONDS)
            proxy.heal()
            whole(cluster, SILENCE_SECONDS + HEALED_SECONDS)
            clear(cluster)
        whole_history(cluster, chronicle, REPEATED)
        assert corral.bugs() == {}


@pytest.mark.thorough
@pytest.mark.timeout(60 + 2 * PAGE_SECONDS)
def test_a_list_whose_second_page_never_comes_is_no_list_and_is_read_anew(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    assert RACKS * NODES > PAGE_OBJECTS
    plane.nodes(grid(racks=RACKS, nodes=NODES, gpus=8))
    with (
        FaultProxy(plane) as proxy,
        Chronicle(plane, gpus_per_node=8) as chronicle,
        ExitStack() as stack,
    ):
        proxy.begin(Fault("hung", PAGES, path="/nodes", seconds=EVER))
        corral = CorralProcess(proxy.kubeconfig(plane.kubeconfig("corral")), tmp_path)
        stack.push(corral)
        corral.start_unready()
        began = time.monotonic()
        plane.start_scheduler(extender=corral.url)
        cluster.create_all(
            members("gang", SIZE, requests={GPU: 8}, annotations=asking(required=RACK))
        )
        cluster.wait(lambda: proxy.faulted, SEEN_SECONDS, "the second page to be asked for")
        proxy.heal()

        corral.wait_ready(PAGE_SECONDS + READY_SECONDS)
        assert time.monotonic() - began >= PAGE_SECONDS, "it was ready on half a list"
        seconds = BACK_OFF_SECONDS + HEALED_SECONDS
        cluster.wait(lambda: len(cluster.bound()) == SIZE, seconds, "the gang whole")
        assert chronicle.problems == []
