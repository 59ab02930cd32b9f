"""The listening socket."""

from __future__ import annotations

import socket

import pytest

from app.errors import SettingsError
from app.extender.server import listen, url_of
from app.setting_values import Address


def test_small_answers_are_sent_at_once():
    with listen("extender_listen", Address("127.0.0.1", 0)) as listener:
        assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_port_0_takes_a_free_one():
    with listen("extender_listen", Address("127.0.0.1", 0)) as listener:
        assert url_of(listener) == f"http://127.0.0.1:{listener.getsockname()[1]}"
        assert listener.getsockname()[1] > 0


@pytest.mark.parametrize("host", ["192.0.2.1", "a" * 300])
def test_an_address_that_cannot_be_had_is_named(host):
    with pytest.raises(SettingsError, match=rf"^extender_listen: {host}:0: "):
        listen("extender_listen", Address(host, 0))


def test_a_port_in_use_is_named():
    with listen("api_listen", Address("127.0.0.1", 0)) as taken:
        address = Address("127.0.0.1", taken.getsockname()[1])
        with pytest.raises(SettingsError, match=f"api_listen: {address}: .*in use"):
            listen("api_listen", address)
