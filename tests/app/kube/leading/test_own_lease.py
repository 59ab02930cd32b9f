"""Of several Corrals one holds their Lease: on the sandbox, with clocks that are set."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from app.errors import Conflict, Forbidden, Unreachable
from app.kube.client.transport import Transport
from app.kube.leading.lease import LEASE_SECONDS
from app.kube.leading.own_lease import OwnLease
from app.sandbox import Sandbox
from tests.app.kube.conftest import LocalAccess

PATH = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


class Candidate:
    """One Corral's view of the Lease, its clock, and what it was told."""

    def __init__(self, transport, name):
        self.now, self.is_ready, self.held = 1000.0, True, []
        self.lease = OwnLease(
            transport,
            namespace="default",
            name="corral",
            pod_name=name,
            may_take=lambda: self.is_ready,
            on_held=self._note,
            sleep=self._sleep,
            clock=lambda: self.now,
        )

    async def _note(self, is_new):
        self.held.append(is_new)

    async def _sleep(self, seconds):
        self.now += seconds


class Access(LocalAccess):
    """An identity for the sandbox."""

    token = ""

    async def headers(self):
        return {"Authorization": f"Bearer {self.token}"}


@pytest.fixture
async def api():
    async with Sandbox() as sandbox:
        access = Access(sandbox.url)
        access.token = sandbox.token
        transport = Transport(access)
        yield transport
        await transport.close()


@pytest.fixture
def first(api):
    return Candidate(api, "corral-a")


@pytest.fixture
def second(api):
    return Candidate(api, "corral-b")


async def test_the_first_one_holds_it_and_the_other_knows_whose_it_is(first, second):
    await first.lease.read()
    await second.lease.read()
    assert (first.lease.is_ours, second.lease.is_ours) == (True, False)
    assert first.lease.leader == ""
    assert second.lease.leader == "corral-a"
    assert second.lease.whose == "pod corral-a holds Lease default/corral"
    assert not await second.lease.confirm()


async def test_of_two_that_take_it_at_the_same_time_one_holds_it(first, second):
    await asyncio.gather(first.lease.read(), second.lease.read())
    assert sorted([first.lease.is_ours, second.lease.is_ours]) == [False, True]


async def test_it_is_told_once_that_it_is_new_and_then_that_it_is_kept(first):
    for _ in range(3):
        await first.lease.read()
        first.now += 2
    assert first.held == [True, False, False]


class Lossy:
    """Loses the answer to the first write, which is carried out."""

    def __init__(self, transport):
        self.transport, self.is_lossy = transport, True

    async def request(self, method, path, **how):
        answer = await self.transport.request(method, path, **how)
        if method != "GET" and self.is_lossy:
            self.is_lossy = False
            raise Unreachable("cut")
        return answer


async def test_one_whose_taking_was_not_answered_is_new_when_it_is_seen_to_be_ours(api):
    only = Candidate(Lossy(api), "corral-a")
    await only.lease.read()
    assert not only.lease.is_ours
    assert only.held == []
    for _ in range(2):
        await only.lease.read()
    assert only.lease.is_ours
    assert only.held == [True, False]


async def test_one_that_was_anothers_meanwhile_is_new(first, second):
    await first.lease.read()
    await second.lease.read()
    second.now += LEASE_SECONDS
    await second.lease.read()
    await first.lease.read()
    first.now += LEASE_SECONDS
    await first.lease.read()
    assert first.held == [True, True]


async def test_one_that_is_released_is_taken_at_the_next_look(first, second):
    await first.lease.read()
    await second.lease.read()
    await first.lease.release()
    assert not first.lease.names_us
    await second.lease.read()
    assert second.lease.is_ours
    await first.lease.read()
    assert not await first.lease.confirm()  # it is over


async def test_a_renewal_under_way_gives_no_right_to_write_once_it_is_released(api, first):
    await first.lease.read()
    may_answer, real = asyncio.Event(), api.request

    async def slowly(method, path, **more):
        answer = await real(method, path, **more)
        if method == "PUT" and more["body"]["spec"]["holderIdentity"]:
            await may_answer.wait()
        return answer

    api.request = slowly
    first.now += 2
    renewing = asyncio.create_task(first.lease.read())
    await asyncio.sleep(0.05)
    releasing = asyncio.create_task(first.lease.release())
    await asyncio.sleep(0)
    may_answer.set()
    await asyncio.gather(renewing, releasing)
    assert not first.lease.names_us
    assert not first.lease.is_ours
    assert not await first.lease.confirm()


async def test_one_that_is_not_renewed_is_taken_after_its_whole_duration_and_not_before(
    first, second
):
    await first.lease.read()
    await second.lease.read()
    second.now += LEASE_SECONDS - 0.1
    await second.lease.read()
    assert not second.lease.is_ours
    second.now += 0.2
    await second.lease.read()
    assert second.lease.is_ours


async def test_one_that_is_renewed_is_not_taken_however_long_it_lasts(first, second):
    for _ in range(10):
        await first.lease.read()
        await second.lease.read()
        first.now += 6
        second.now += 6
    assert not second.lease.is_ours
    assert second.held == []


async def test_a_holder_that_stood_still_does_not_take_itself_for_the_leader(first, second):
    await first.lease.read()
    await second.lease.read()
    first.now += LEASE_SECONDS
    second.now += LEASE_SECONDS
    await second.lease.read()
    assert first.lease.names_us  # as far as it knows
    assert not first.lease.is_ours
    assert not await first.lease.confirm()
    assert first.lease.leader == "corral-b"


async def test_a_holder_that_cannot_renew_it_stops_before_another_one_may_take_it(first):
    await first.lease.read()
    first.now += LEASE_SECONDS * 2 / 3 - 0.1
    assert first.lease.is_ours
    first.now += 0.2
    assert not first.lease.is_ours
    assert await first.lease.confirm()  # it still is, and is renewed


async def test_one_that_is_not_ready_takes_none_and_keeps_what_it_has(first, second):
    second.is_ready = False
    await second.lease.read()
    assert not second.lease.is_ours
    second.is_ready = True
    await second.lease.read()
    second.is_ready = False
    await second.lease.read()
    assert second.held == [True, False]


async def test_what_others_wrote_on_it_stays_and_changes_of_holder_are_counted(api, first, second):
    await first.lease.read()
    patch = {"metadata": {"labels": {"team": "a"}}}
    merge = "application/merge-patch+json"
    await api.request("PATCH", f"{PATH}/corral", body=patch, content_type=merge)
    await first.lease.release()
    await second.lease.read()
    stored = await second.lease._known()
    assert stored["metadata"]["labels"] == {"team": "a"}
    assert stored["spec"]["leaseTransitions"] == 2
    assert stored["spec"]["leaseDurationSeconds"] == LEASE_SECONDS
    assert stored["spec"]["holderIdentity"].startswith("corral-b_")


async def test_the_same_pod_started_anew_is_another_holder(api, first):
    await first.lease.read()
    again = Candidate(api, "corral-a")
    await again.lease.read()
    assert not again.lease.is_ours


class Refusing:
    """Lets nothing be written."""

    def __init__(self, transport, error):
        self.transport, self.error = transport, error

    async def request(self, method, path, **how):
        if method != "GET":
            raise self.error
        return await self.transport.request(method, path, **how)


@pytest.mark.parametrize(
    ("error", "lines"),
    [
        pytest.param(Forbidden(403, "Forbidden", "no"), 1, id="no_right"),
        pytest.param(Conflict(409, "Conflict", "outrun"), 0, id="another_one_was_first"),
    ],
)
async def test_why_it_cannot_be_taken_is_logged_unless_another_one_has_it(api, error, lines):
    only = Candidate(Refusing(api, error), "corral-a")
    with capture_logs() as logs:
        await only.lease.read()
        await only.lease.read()
    assert [each["event"] for each in logs] == ["lease"] * lines
