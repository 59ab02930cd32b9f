"""The way to a Corral that the options name: an address, and who asks there."""

from __future__ import annotations

import os
import ssl
import urllib.parse
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from http.client import HTTPMessage, HTTPResponse
from pathlib import Path
from typing import IO, cast
from urllib.error import HTTPError

from app.api.http.leader import LEADER, POD_NAME
from app.cli.common.options import HOME_KUBECONFIG, NO_NAMESPACE, namespace_at
from app.cli.reach.forward import Forward, NoWay, place_in
from app.cli.reach.identity import of_kubeconfig, token_in, trusting
from app.errors import SettingsError

LOCAL = "http://127.0.0.1:8888"  # where `corral serve` listens if nothing else is set
NO_TOKEN = "a token, and what a kubeconfig says, is for no other address"
LEADER_TRIES = 8  # a Service leads to any of its pods
_NO_HEADERS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Asked:
    """What the options say; "": nothing."""

    server: str = ""
    context: str = ""
    kubeconfig: str = ""
    at: str = "corral-system/deployment/corral"
    token_file: str = ""
    certificate_authority: str = ""


class Corral:
    """Opened with the first request, and again after what it leads to has ended.

    Raises: SettingsError for options that do not go together.
    """

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._forward: Forward | None = None
        self._has_been_led = False
        """An answer has named the pod that leads, and it was tried."""
        self._token = ""
        self._tls: ssl.SSLContext | None = None
        self._check()

    @property
    def named(self) -> str:
        """How messages name it."""
        if self._asked.server or self._forward is None:
            return self._asked.server or LOCAL
        return f"{self._asked.at}, by {self._forward.url}"

    @property
    def is_named(self) -> bool:
        """Whether an option or a kubeconfig leads to it; else it is the one of this machine."""
        asked = self._asked
        return bool(asked.server or asked.kubeconfig or asked.context or _has_kubeconfig())

    @property
    def namespace(self) -> str:
        """Where its user looks if no option says so: in that of the context, as with kubectl."""
        asked = self._asked
        if asked.server and not (asked.kubeconfig or asked.context):
            return NO_NAMESPACE
        return namespace_at(asked.kubeconfig, asked.context)

    @property
    def hint(self) -> str:
        """What to do where it does not answer."""
        if self._asked.server:
            return "without --server kubectl port-forward leads to Corral in the cluster"
        return "--context, --kubeconfig or --server name another one"

    def open(
        self,
        path: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] = _NO_HEADERS,
        timeout: float,
    ) -> HTTPResponse:
        """The answer to a GET of a path, such as `/v1/gangs`, or to a POST of the body.

        Raises: NoWay; SettingsError; as `urllib.request.urlopen`.
        """
        answer = self._answered(path, body, headers, timeout)
        for _ in range(LEADER_TRIES):
            leader = answer.headers.get(LEADER, "")
            if not (POD_NAME.fullmatch(leader) and self._leads_on(leader)):
                break
            answer.close()
            answer = self._answered(path, body, headers, timeout)
        if isinstance(answer, HTTPError):
            raise answer
        return answer

    def _answered(
        self, path: str, body: bytes | None, headers: Mapping[str, str], timeout: float
    ) -> HTTPResponse | HTTPError:
        """What is answered; another Corral than the one that leads refuses some questions."""
        try:
            return self._sent(path, body, headers, timeout)
        except HTTPError as refusal:
            return refusal

    def _leads_on(self, leader: str) -> bool:
        """Whether the next request may reach the Corral that leads: the pod, or a Service's."""
        if self._forward is None:
            return self._asked.server.startswith("https:")
        place = place_in(self._asked.at)
        if self._has_been_led or place.target.startswith(("pod/", "pods/", "po/")):
            return False
        to_leader = replace(place, target=f"pod/{leader}")
        self.close()
        self._has_been_led = True
        with suppress(NoWay):  # then the first one is asked once more
            self._forward = Forward(to_leader, self._asked.kubeconfig, self._asked.context)
        return True

    def _sent(
        self, path: str, body: bytes | None, headers: Mapping[str, str], timeout: float
    ) -> HTTPResponse:
        request = urllib.request.Request(self._opened() + path, body, dict(headers))
        handlers: list[urllib.request.BaseHandler] = [
            urllib.request.ProxyHandler({}),  # for the internet, and has no way to loopback
            _NoRedirects(),
        ]
        if self._tls is not None:
            handlers.append(urllib.request.HTTPSHandler(context=self._tls))
        if self._token:
            request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        opener = urllib.request.build_opener(*handlers)
        return cast(HTTPResponse, opener.open(request, timeout=timeout))

    def close(self) -> None:
        """Stop what was started for it; the next request begins anew."""
        if self._forward is not None:
            self._forward.close()
        self._forward, self._has_been_led = None, False

    def _check(self) -> None:
        asked = self._asked
        scheme = urllib.parse.urlsplit(asked.server).scheme
        if asked.server and scheme not in ("http", "https"):
            raise SettingsError(f"--server {asked.server}: no http:// or https:// address")
        own = {
            "--token-file": asked.token_file,
            "--certificate-authority": asked.certificate_authority,
        }
        named = {"--context": asked.context, "--kubeconfig": asked.kubeconfig}
        for flag, value in {**own, **(named if asked.server else {})}.items():
            if value and scheme != "https":
                raise SettingsError(f"{flag} {value}: needs --server https://…: {NO_TOKEN}")

    def _opened(self) -> str:
        """Where requests go now."""
        asked = self._asked
        if asked.server:
            if self._tls is None and asked.server.startswith("https:"):
                self._identify()
            return asked.server.rstrip("/")
        if not self.is_named:
            return LOCAL
        if self._forward is not None and not self._forward.is_open:
            self.close()
        if self._forward is None:
            self._forward = Forward(place_in(asked.at), asked.kubeconfig, asked.context)
        return self._forward.url

    def _identify(self) -> None:
        """Find a token and an authority for --server."""
        asked, authority = self._asked, self._asked.certificate_authority
        if asked.context or asked.kubeconfig:
            token, theirs = of_kubeconfig(asked.kubeconfig, asked.context)
            authority = authority or theirs
            if not (token or asked.token_file):
                raise SettingsError("the kubeconfig has no token for this context: --token-file")
            self._token = token
        if asked.token_file:
            self._token = token_in(asked.token_file)
        self._tls = trusting(authority)


def _has_kubeconfig() -> bool:
    """Whether kubectl has one to read."""
    return bool(os.environ.get("KUBECONFIG")) or Path(HOME_KUBECONFIG).expanduser().is_file()


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Corral redirects no client: a server that does is not Corral, and gets no token."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> None:
        """Follow nothing."""
