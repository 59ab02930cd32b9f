"""The token of another service account, kept in a folder as kubelet would keep it."""

from __future__ import annotations

import asyncio
import os

import pytest

from app.kube.client.token import RENEW_SECONDS, TokenFile
from tests.app.kube.apiserver import refusal, reply


def granted(token: str):
    return reply(201, {"kind": "TokenRequest", "status": {"token": token}})


class Pauses:
    """A sleep that counts and ends the run after so many."""

    def __init__(self, most: int) -> None:
        self.seconds: list[float] = []
        self._most = most

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        if len(self.seconds) == self._most:
            raise asyncio.CancelledError


@pytest.fixture
def file_of(tmp_path, transport):
    (tmp_path / "authority").write_text("CA")
    (tmp_path / "folder").mkdir()

    def made(sleep=asyncio.sleep):
        return TokenFile(
            transport,
            namespace="corral-system",
            name="corral",
            folder=tmp_path / "folder",
            ca=tmp_path / "authority",
            sleep=sleep,
        )

    return made


async def test_the_folder_is_as_kubelet_would_fill_it(server, file_of, tmp_path):
    server.script.append(granted("first"))
    (tmp_path / "folder" / ".token").write_text("half")  # of a run that was killed
    await file_of().renew()
    assert server.asked[0].path == "/api/v1/namespaces/corral-system/serviceaccounts/corral/token"
    assert sorted(os.listdir(tmp_path / "folder")) == ["ca.crt", "token"]
    assert (tmp_path / "folder" / "token").read_text() == "first"
    assert (tmp_path / "folder" / "token").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "folder" / "ca.crt").read_text() == "CA"


async def test_it_is_renewed_and_a_renewal_that_fails_is_tried_again_soon(
    server, file_of, tmp_path
):
    server.script += [
        granted("first"),
        refusal(500),
        reply(201, {"kind": "TokenRequest"}),
        granted("second"),
    ]
    pauses = Pauses(4)
    with pytest.raises(asyncio.CancelledError):
        await file_of(pauses).run()
    assert pauses.seconds[0] == pauses.seconds[3] == RENEW_SECONDS
    assert max(pauses.seconds[1:3]) < RENEW_SECONDS / 10
    assert (tmp_path / "folder" / "token").read_text() == "second"


async def test_what_is_there_stays_while_the_api_server_refuses(server, file_of, tmp_path):
    server.script += [granted("first"), refusal(403)]
    with pytest.raises(asyncio.CancelledError):
        await file_of(Pauses(2)).run()
    assert (tmp_path / "folder" / "token").read_text() == "first"
