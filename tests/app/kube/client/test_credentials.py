"""Who we are comes from a kubeconfig or from the pod, and follows its files."""

from __future__ import annotations

import asyncio
import os
import shutil
import ssl
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import certifi
import pytest
import yaml
from kubernetes_asyncio.client import Configuration

from app.errors import SettingsError
from app.kube.client.credentials import RENEW_SECONDS, Credentials
from app.kube.client.transport import Transport
from tests.app.kube.apiserver import reply
from tests.certificates import HOST, Pair, pair


def kubeconfig(folder, user: dict, server: str = "http://127.0.0.1:1", **cluster) -> str:
    path = folder / "kubeconfig"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        "clusters": [{"name": "here", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "me", "user": user}],
    }
    path.write_text(yaml.safe_dump(config))
    return str(path)


def presented(client: ssl.SSLContext, server: Pair, trusted: tuple[Pair, ...]) -> str:
    """The name in the certificate that a client shows to this server in a handshake in memory."""
    asks = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    asks.verify_mode = ssl.CERT_REQUIRED
    with TemporaryDirectory() as folder:
        asks.load_cert_chain(*server.write(Path(folder)))
    for each in trusted:
        asks.load_verify_locations(cadata=each.certificate.decode())
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = (
        client.wrap_bio(to_client, to_server, server_hostname=HOST),
        asks.wrap_bio(to_server, to_client, server_side=True),
    )
    for side in sides * 2:
        with suppress(ssl.SSLWantReadError):
            side.do_handshake()
    (((_, name),),) = sides[1].getpeercert()["subject"]
    return name


async def test_a_transport_from_a_kubeconfig_uses_its_server_and_token(server, tmp_path):
    server.script = [reply(200, {"ok": 1})]
    path = kubeconfig(tmp_path, {"token": "secret"}, f"{server.url}/")
    transport = await Transport.from_kubeconfig(path)
    assert await transport.request("GET", "/version") == b'{"ok": 1}'
    await transport.close()
    assert server.asked[0].headers["Authorization"] == "Bearer secret"
    assert server.asked[0].path == "/version"


def with_second_context(file: str) -> str:
    path = Path(file)
    config = yaml.safe_load(path.read_text())
    config["clusters"].append({"name": "there", "cluster": {"server": "http://127.0.0.1:2"}})
    config["contexts"].append({"name": "there", "context": {"cluster": "there", "user": "me"}})
    path.write_text(yaml.safe_dump(config))
    return file


async def test_a_context_that_is_named_counts_before_the_current_one(tmp_path):
    path = with_second_context(kubeconfig(tmp_path, {}))
    assert (await Credentials.from_kubeconfig(path)).url == "http://127.0.0.1:1"
    assert (await Credentials.from_kubeconfig(path, context="there")).url == "http://127.0.0.1:2"
    with pytest.raises(SettingsError, match="nowhere"):
        await Credentials.from_kubeconfig(path, context="nowhere")


async def test_a_user_without_credentials_is_anonymous(tmp_path):
    credentials = await Credentials.from_kubeconfig(kubeconfig(tmp_path, {}))
    assert await credentials.headers() == {}


async def test_a_token_file_is_read_again_every_minute(tmp_path, clock):
    token = tmp_path / "token"
    token.write_text("first\n")
    path = kubeconfig(tmp_path, {"tokenFile": str(token)})
    credentials = await Credentials.from_kubeconfig(path, clock=clock)
    token.write_text("second\n")
    assert await credentials.headers() == {"Authorization": "Bearer first"}
    clock.now += RENEW_SECONDS
    assert await credentials.headers() == {"Authorization": "Bearer second"}


async def test_a_refused_identity_is_never_renewed_later(tmp_path, clock):
    token = tmp_path / "token"
    token.write_text("first")
    path = kubeconfig(tmp_path, {"tokenFile": str(token)})
    credentials = await Credentials.from_kubeconfig(path, clock=clock)
    token.write_text("second")
    clock.now += RENEW_SECONDS - 1
    for _ in range(9):
        credentials.expire()
    clock.now += 1
    assert await credentials.headers() == {"Authorization": "Bearer second"}


async def test_a_server_is_verified_by_its_name_and_authority_unless_told_not_to(tmp_path):
    verified, unverified = [
        await Credentials.from_kubeconfig(kubeconfig(tmp_path, {}, f"https://{HOST}:1", **cluster))
        for cluster in ({}, {"insecure-skip-tls-verify": True})
    ]
    assert (verified.tls.verify_mode, verified.tls.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert (unverified.tls.verify_mode, unverified.tls.check_hostname) == (ssl.CERT_NONE, False)


async def test_a_server_without_tls_needs_no_context(tmp_path):
    credentials = await Credentials.from_kubeconfig(kubeconfig(tmp_path, {}))
    assert credentials.tls is None


async def test_of_a_server_without_tls_no_authority_is_read(tmp_path, clock):
    gone = str(tmp_path / "gone.crt")
    path = kubeconfig(tmp_path, {"token": "t"}, **{"certificate-authority": gone})
    credentials = await Credentials.from_kubeconfig(path, clock=clock)
    clock.now += RENEW_SECONDS
    assert await credentials.headers() == {"Authorization": "Bearer t"}


async def test_a_refused_identity_is_renewed_earlier(tmp_path, clock):
    token = tmp_path / "token"
    token.write_text("first")
    path = kubeconfig(tmp_path, {"tokenFile": str(token)})
    credentials = await Credentials.from_kubeconfig(path, clock=clock)
    token.write_text("second")
    credentials.expire()
    assert await credentials.headers() == {"Authorization": "Bearer first"}
    clock.now += RENEW_SECONDS / 10
    assert await credentials.headers() == {"Authorization": "Bearer second"}


async def test_a_renewal_that_fails_keeps_what_was_valid(tmp_path, clock):
    token = tmp_path / "token"
    token.write_text("first")
    path = kubeconfig(tmp_path, {"tokenFile": str(token)})
    credentials = await Credentials.from_kubeconfig(path, clock=clock)
    token.unlink()
    clock.now += RENEW_SECONDS
    assert await credentials.headers() == {"Authorization": "Bearer first"}


async def test_a_renewal_goes_on_where_the_request_that_began_it_is_given_up(clock):
    configuration, renewals, answers = Configuration(), [], asyncio.Event()
    configuration.api_key["BearerToken"] = "Bearer first"

    async def renew():
        renewals.append(clock.now)
        await answers.wait()
        configuration.api_key["BearerToken"] = "Bearer second"

    credentials = Credentials(configuration, renew, clock)
    clock.now += RENEW_SECONDS
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await credentials.headers()
    assert await credentials.headers() == {"Authorization": "Bearer first"}
    answers.set()
    await asyncio.sleep(0.01)
    assert await credentials.headers() == {"Authorization": "Bearer second"}
    assert len(renewals) == 1


async def test_a_client_certificate_that_is_replaced_is_presented_from_then_on(tmp_path, clock):
    server, first, second = pair("server"), pair("first"), pair("second")
    authority = tmp_path / "ca.crt"
    authority.write_bytes(server.certificate)
    certificate, key = map(str, first.write(tmp_path))
    path = kubeconfig(
        tmp_path,
        {"client-certificate": certificate, "client-key": key},
        f"https://{HOST}:1",
        **{"certificate-authority": str(authority)},
    )
    credentials = await Credentials.from_kubeconfig(path, clock=clock)
    assert presented(credentials.tls, server, trusted=(first, second)) == "first"
    second.write(tmp_path)
    clock.now += RENEW_SECONDS
    await credentials.headers()
    assert presented(credentials.tls, server, trusted=(first, second)) == "second"


async def test_a_client_certificate_that_is_put_back_is_presented_again(tmp_path, clock):
    server, first, second = pair("server"), pair("first"), pair("second")
    authority = tmp_path / "ca.crt"
    authority.write_bytes(server.certificate)
    mounted = tmp_path / "mounted"  # a link that is moved, as the kubelet updates a secret
    for written_at, (name, each) in enumerate({"first": first, "second": second}.items()):
        (tmp_path / name).mkdir()
        certificate, _ = each.write(tmp_path / name)
        os.utime(certificate, (written_at, written_at))
    mounted.symlink_to(tmp_path / "first")
    path = kubeconfig(
        tmp_path,
        {"client-certificate": f"{mounted}/tls.crt", "client-key": f"{mounted}/tls.key"},
        f"https://{HOST}:1",
        **{"certificate-authority": str(authority)},
    )
    credentials = await Credentials.from_kubeconfig(path, clock=clock)
    for name in ("second", "first"):
        mounted.unlink()
        mounted.symlink_to(tmp_path / name)
        clock.now += RENEW_SECONDS
        await credentials.headers()
        assert presented(credentials.tls, server, trusted=(first, second)) == name


@pytest.mark.slow
async def test_an_exec_plugin_gives_the_token(tmp_path):
    answer = (
        '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",'
        '"status":{"token":"from-plugin"}}'
    )
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": ["-c", f"print({answer!r})"],
        "interactiveMode": "Never",
    }
    credentials = await Credentials.from_kubeconfig(kubeconfig(tmp_path, {"exec": plugin}))
    assert await credentials.headers() == {"Authorization": "Bearer from-plugin"}


@pytest.mark.parametrize("text", ["", "[", "a: b", "{}", "current-context: x"])
async def test_a_kubeconfig_that_says_nothing_is_a_settings_error(tmp_path, text):
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    with pytest.raises(SettingsError, match="kubeconfig"):
        await Credentials.from_kubeconfig(path)


@pytest.mark.parametrize("text", ["", "- a", "word"])
async def test_a_file_that_is_no_kubeconfig_is_told_in_words_about_it(tmp_path, text):
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    with pytest.raises(SettingsError) as told:
        await Credentials.from_kubeconfig(path)
    assert str(told.value) == f"kubeconfig {path}: it has no clusters, contexts and users"


async def test_a_folder_is_not_called_absent(tmp_path):
    with pytest.raises(SettingsError, match="not a file"):
        await Credentials.from_kubeconfig(tmp_path)


def other_kubeconfig(folder, context: str, server: str) -> str:
    """One whose context, cluster and user have another name."""
    path = folder / context
    config = {
        "current-context": context,
        "contexts": [{"name": context, "context": {"cluster": context, "user": context}}],
        "clusters": [{"name": context, "cluster": {"server": server}}],
        "users": [{"name": context, "user": {}}],
    }
    path.write_text(yaml.safe_dump(config))
    return str(path)


async def test_of_several_files_the_first_current_context_counts_as_for_kubectl(tmp_path):
    first = kubeconfig(tmp_path, {})
    second = other_kubeconfig(tmp_path, "other", "http://127.0.0.1:2")
    path = os.pathsep.join([str(tmp_path / "absent"), first, second])
    assert (await Credentials.from_kubeconfig(path)).url == "http://127.0.0.1:1"
    assert (await Credentials.from_kubeconfig(path, context="other")).url == "http://127.0.0.1:2"
    turned = os.pathsep.join([second, first])
    assert (await Credentials.from_kubeconfig(turned)).url == "http://127.0.0.1:2"


async def test_several_files_of_which_none_is_there_are_a_settings_error(tmp_path):
    path = os.pathsep.join([str(tmp_path / "a"), str(tmp_path / "b")])
    with pytest.raises(SettingsError, match="no such file"):
        await Credentials.from_kubeconfig(path)


async def test_a_missing_kubeconfig_is_a_settings_error(tmp_path):
    with pytest.raises(SettingsError, match="no such file"):
        await Credentials.from_kubeconfig(tmp_path / "absent")


async def test_a_pod_uses_its_service_account_and_follows_its_rotation(
    tmp_path, monkeypatch, clock
):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    shutil.copy(certifi.where(), tmp_path / "ca.crt")
    (tmp_path / "token").write_text("first\n")
    credentials = Credentials.in_cluster(tmp_path, clock=clock)
    assert credentials.url == "https://[::1]:6443"
    assert credentials.tls is not None
    assert credentials.tls.verify_mode is ssl.CERT_REQUIRED
    assert await credentials.headers() == {"Authorization": "Bearer first"}
    (tmp_path / "token").write_text("second")
    clock.now += RENEW_SECONDS
    assert await credentials.headers() == {"Authorization": "Bearer second"}


def test_outside_a_pod_there_is_no_service_account(monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(SettingsError, match=r"service account.*KUBERNETES_SERVICE_HOST is not set"):
        Credentials.in_cluster("/absent")
