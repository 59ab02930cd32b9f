"""A Corral acts only while the kube-scheduler of its own pod surely holds the Lease."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from app.kube.leading.lease import (
    LEASE_SECONDS,
    POLLS_PER_LEASE,
    UNDER_WAY_SECONDS,
    NeighbourLease,
)
from app.kube.log_limit import AGAIN_SECONDS
from tests.app.kube.apiserver import refusal, reply

DURATION = 15


def held_by(holder, renewed="12:00:00", duration=DURATION):
    spec = {"holderIdentity": holder, "leaseDurationSeconds": duration, "renewTime": renewed}
    return reply(200, {"kind": "Lease", "spec": spec})


@pytest.fixture
def lease(transport, clock):
    return NeighbourLease(
        transport, namespace="corral-system", name="lease", pod_name="corral-abc", clock=clock
    )


@pytest.mark.parametrize(
    ("answer", "is_ours"),
    [
        pytest.param(held_by("corral-abc_1f2e"), True, id="our_neighbour"),
        pytest.param(held_by("corral-abc_1f2e", duration=None), True, id="of_no_known_duration"),
        pytest.param(held_by("corral-abcd_1f2e"), False, id="a_pod_whose_name_only_begins_so"),
        pytest.param(held_by("corral-xyz_1f2e"), False, id="the_other_replica"),
        pytest.param(held_by(""), False, id="released"),
        pytest.param(held_by(None), False, id="never_held"),
        pytest.param(refusal(404, "NotFound"), False, id="not_there_yet"),
    ],
)
async def test_the_holder_decides(server, lease, answer, is_ours):
    server.script.append(answer)
    await lease.read()
    assert lease.is_ours is is_ours
    assert server.asked[0].path.endswith("/namespaces/corral-system/leases/lease")


@pytest.mark.parametrize(
    ("answer", "whose"),
    [
        pytest.param(held_by("corral-x-1_f_2"), "pod corral-x-1_f holds Lease", id="a_pod"),
        pytest.param(held_by("by-hand"), "pod by-hand holds Lease", id="without_a_suffix"),
        pytest.param(held_by(""), "no pod holds Lease", id="released"),
        pytest.param(refusal(404, "NotFound"), "no pod holds Lease", id="not_there_yet"),
    ],
)
async def test_who_holds_it_is_told(server, lease, answer, whose):
    assert lease.whose == "Lease corral-system/lease has not been read yet"
    server.script.append(answer)
    await lease.read()
    assert lease.whose == f"{whose} corral-system/lease"


@pytest.mark.parametrize(
    ("answer", "leader"),
    [
        pytest.param(held_by("corral-abc_1f2e"), "", id="our_neighbour"),
        pytest.param(held_by("corral-xyz_1f2e"), "corral-xyz", id="the_other_replica"),
        pytest.param(held_by("a_pod_1f2e"), "a_pod", id="up_to_the_last_underscore"),
        pytest.param(held_by("by-hand"), "", id="no_pod"),
        pytest.param(held_by(""), "", id="released"),
        pytest.param(refusal(404, "NotFound"), "", id="not_there_yet"),
        pytest.param(refusal(500), "", id="not_read"),
    ],
)
async def test_another_pod_that_leads_is_named(server, lease, answer, leader):
    assert lease.leader == ""
    server.script.append(answer)
    await lease.read()
    assert lease.leader == leader


@pytest.mark.parametrize(
    "answer", [pytest.param(refusal(500), id="broken"), pytest.param(reply(200, "<"), id="garbage")]
)
async def test_without_an_answer_the_last_one_stands(server, lease, answer):
    server.script += [held_by("corral-abc_1"), answer]
    await lease.read()
    await lease.read()
    assert lease.is_ours


@pytest.mark.parametrize(
    "answer",
    [pytest.param(refusal(403, "Forbidden"), id="no_right"), pytest.param(reply(200, "<"), id="<")],
)
async def test_why_it_is_not_read_is_logged_once_a_minute(server, lease, clock, answer):
    server.script += [answer] * 4
    with capture_logs() as logs:
        for seconds in (0.0, 0.5, AGAIN_SECONDS - 0.6, 0.2):
            clock.now += seconds
            await lease.read()
    assert [(each["event"], each["lease"]) for each in logs] == [
        ("lease", "corral-system/lease")
    ] * 2
    assert all(each["problem"] for each in logs)


async def test_it_is_ours_for_as_long_as_a_holder_leads_without_renewing_it(server, lease, clock):
    server.script += [held_by("corral-abc_1", "12:00:00"), held_by("corral-abc_1", "12:00:02")]
    await lease.read()
    first = clock.now
    clock.now += 2
    await lease.read()
    clock.now = first + 2 / 3 * DURATION - 0.1
    assert lease.is_ours
    clock.now = first + 2 / 3 * DURATION + 0.1
    assert not lease.is_ours
    assert lease.names_us


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [
        pytest.param(60, 60, id="its_own"),
        pytest.param(1, 1, id="of_one_second"),
        pytest.param(None, LEASE_SECONDS, id="none"),
        pytest.param(0, LEASE_SECONDS, id="zero"),
        pytest.param(-5, LEASE_SECONDS, id="negative"),
    ],
)
async def test_how_long_it_is_ours_follows_the_leases_own_duration(
    server, lease, clock, duration, seconds
):
    server.script.append(held_by("corral-abc_1", duration=duration))
    await lease.read()
    began = clock.now
    clock.now = began + seconds / 3 - 0.01
    assert lease.is_ours
    clock.now = began + seconds / 3 + 0.01
    assert not lease.is_ours


async def test_one_that_is_not_renewed_is_not_ours_for_longer_however_often_it_is_read(
    server, lease, clock
):
    server.script += [
        held_by("corral-abc_1", "12:00:00"),
        *[held_by("corral-abc_1", "12:00:02")] * 9,
    ]
    for _ in range(9):
        await lease.read()
        clock.now += 2
    assert not lease.is_ours
    await lease.read()
    assert not await lease.confirm()


async def test_a_pair_that_stood_still_leads_again_only_once_it_sees_a_renewal(
    server, lease, clock
):
    server.script += [held_by("corral-abc_1", "12:00:00"), held_by("corral-abc_1", "12:00:02")]
    await lease.read()
    await lease.read()
    clock.now += 60  # nobody else took it meanwhile
    server.script += [held_by("corral-abc_1", "12:00:02"), held_by("corral-abc_1", "12:01:03")]
    assert not await lease.confirm()
    clock.now += 1
    assert await lease.confirm()


async def test_a_lease_that_was_anothers_at_the_last_read_is_ours_from_there(server, lease, clock):
    server.script += [held_by("corral-xyz_1"), held_by("corral-abc_1", "12:00:09")]
    await lease.read()
    clock.now += 2
    assert await lease.confirm()
    clock.now += DURATION - 2
    assert not lease.is_ours


async def test_one_that_was_released_between_two_polls_is_read_before_the_next_write(
    server, lease, clock
):
    server.script += [held_by("corral-abc_1"), held_by("corral-xyz_1")]
    await lease.read()
    clock.now += 4.9  # ours for 5 s, and not read for two polls
    assert lease.is_ours
    assert not await lease.confirm()
    assert not lease.names_us


async def test_a_former_leader_with_much_to_write_reads_it_twice_a_second(server, lease, clock):
    server.script += [held_by("corral-xyz_1")] * 9
    await lease.read()
    assert [await lease.confirm() for _ in range(3)] == [False] * 3  # waits for the rest each time
    clock.now += 60
    await asyncio.gather(*(lease.confirm() for _ in range(50)))
    assert len(server.asked) <= 5


async def test_it_is_polled_as_often_however_long_a_read_takes(server, transport, clock):
    slept, poll = [], LEASE_SECONDS / POLLS_PER_LEASE

    async def sleep(seconds):
        slept.append(seconds)
        if len(slept) == 3:
            raise asyncio.CancelledError

    async def slow(request):
        clock.now += 0.75 * poll
        return await held_by("corral-abc_1")(request)

    server.script += [slow] * 3
    lease = NeighbourLease(
        transport, namespace="n", name="l", pod_name="corral-abc", sleep=sleep, clock=clock
    )
    with pytest.raises(asyncio.CancelledError):
        await lease.run()
    assert slept == pytest.approx([0.25 * poll] * 3)


async def test_all_who_ask_at_once_share_one_read(server, lease):
    server.script += [held_by("corral-xyz_1")] * 2
    assert await asyncio.gather(*(lease.confirm() for _ in range(9))) == [False] * 9
    assert len(server.asked) == 1


async def test_one_known_to_be_ours_is_read_again_once_two_polls_are_missing(server, lease, clock):
    server.script += [held_by("corral-abc_1", "12:00:00"), held_by("corral-abc_1", "12:00:02")]
    assert await lease.confirm()
    poll = DURATION / POLLS_PER_LEASE
    clock.now += 2 * poll - 0.1
    assert await lease.confirm()
    assert len(server.asked) == 1
    clock.now += 0.2
    assert await lease.confirm()
    assert len(server.asked) == 2


async def test_one_known_to_be_ours_is_not_read_again(server, lease):
    server.script += [held_by("corral-abc_1")]
    assert await lease.confirm()
    assert await lease.confirm()
    assert len(server.asked) == 1


async def test_each_read_is_told_of_when_it_is_over(server, lease):
    told = []
    lease.on_read = lambda: told.append(lease.names_us)
    server.script += [held_by("corral-abc_1f2e"), refusal(500, "InternalError"), held_by("other_1")]
    for _ in range(3):
        await lease.read()
    assert told == [True, True, False]


@pytest.mark.parametrize(
    ("transitions", "acquired", "renewed", "seconds"),
    [
        pytest.param(None, "12:00:00Z", "12:00:00Z", 0.0, id="no_other_one_had_it"),
        pytest.param(0, "12:00:00Z", "12:00:00Z", 0.0, id="nor_here"),
        pytest.param(3, "12:00:00.5Z", "12:00:00.5Z", 2.0, id="just_acquired"),
        pytest.param(3, "12:00:00Z", "12:00:00.750000Z", 1.25, id="acquired_a_while_ago"),
        pytest.param(3, "12:00:00Z", "12:07:00Z", 0.0, id="long_held"),
        pytest.param(3, "12:07:00Z", "12:00:00Z", 2.0, id="a_clock_was_set_back"),
        pytest.param(3, "12:00:00", "12:07:00Z", 2.0, id="without_a_zone"),
        pytest.param(3, "long ago", "12:07:00Z", 2.0, id="no_time"),
    ],
)
async def test_what_the_one_before_may_write_is_waited_for_until_it_has_taken_effect(
    server, lease, transitions, acquired, renewed, seconds
):
    spec = {"holderIdentity": "corral-abc_1", "leaseTransitions": transitions}
    spec |= {"acquireTime": f"2026-11-27T{acquired}", "renewTime": f"2026-11-27T{renewed}"}
    server.script.append(reply(200, {"kind": "Lease", "spec": spec}))
    assert lease.overlap_seconds == 0.0
    await lease.read()
    assert lease.overlap_seconds == seconds


async def test_without_any_times_it_is_waited_for(server, lease):
    spec = {"holderIdentity": "corral-abc_1", "leaseTransitions": 1, "leaseDurationSeconds": 15}
    server.script.append(reply(200, {"kind": "Lease", "spec": spec}))
    await lease.read()
    assert lease.overlap_seconds == 2 * LEASE_SECONDS / POLLS_PER_LEASE + UNDER_WAY_SECONDS
