"""Who may read /v1, and how much of it.

    a client on loopback, such as `kubectl port-forward`       all of it: the API server has asked
                                                               whether it may forward that port
    any other, over TLS and with a bearer token                what the API server lets it list:
      pods of a namespace                                      the gangs of that namespace
      pods of every namespace                                  all gangs, and the names of all pods
      nodes                                                    what is about the whole cluster

Each route says what it takes, by one of the dependencies below; a test finds those that do not:

    @router.get("/gangs/{namespace}/{name}", dependencies=[SeesNamespace])     path or query
    @router.get("/topology", dependencies=[SeesCluster])
    @router.get("/dump", dependencies=[SeesEverything])     or Depends(on_loopback)

A page in a browser on this machine can have its own name resolved to a loopback address; the Host
header shows that name. A proxy beside Corral makes every client one on loopback; what it adds to
a request shows it, and then there has to be a token.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Awaitable

from fastapi import Depends, HTTPException, Request

from app.api.access.permissions import Asker, Permissions, Unknown

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
LONGEST_TOKEN = 16 * 1024  # characters; one of a ServiceAccount has 1,000, of a person 4,000
PODS, NODES = "pods", "nodes"
RETRY_SECONDS = "1"
LONGEST_NAMESPACE = 63  # characters, as Kubernetes has it
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # RFC 6750
_FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto")


class Reader:
    """Who asks. `asker` None: a client on loopback, who sees everything.

    `token`: its own, for as long as the request lasts.
    """

    def __init__(
        self,
        permissions: Permissions | None = None,
        asker: Asker | None = None,
        token: str = "",
    ) -> None:
        self._permissions, self._asker, self._token = permissions, asker, token

    @property
    def name(self) -> str:
        """The user's name; "": a client on loopback."""
        return self._asker.user.username if self._asker is not None else ""

    async def sees(self, namespace: str) -> bool:
        """Whether it sees a namespace's gangs and pods; "": those of all. Raises: Unknown.

        At most two reviews: of all namespaces first.
        """
        if await self._may_list(PODS, ""):
            return True
        return bool(namespace) and await self._may_list(PODS, namespace)

    async def sees_nodes(self) -> bool:
        """Whether it sees what is about the whole cluster, without pods. Raises: Unknown."""
        return await self._may_list(NODES, "")

    async def is_known(self) -> bool:
        """Whether its token is still valid, and of the same user. Raises: Unknown."""
        if self._asker is None or self._permissions is None:
            return True
        found = await self._permissions.asker(self._token, self._asker.address)
        return found is not None and found.user == self._asker.user

    async def _may_list(self, resource: str, namespace: str) -> bool:
        if self._asker is None or self._permissions is None:
            return True
        return await self._permissions.may_list(self._asker, resource, namespace)


class Callers:
    """The dependency of all of /v1: finds out who asks, for the others below.

    `permissions`: whom tokens are shown to; None: clients on loopback alone are answered.
    """

    def __init__(self, permissions: Permissions | None = None) -> None:
        self._permissions = permissions

    async def __call__(self, request: Request) -> None:
        """Raises: HTTPException for who is not answered at all."""
        request.state.reader = await self._reader(request)

    async def _reader(self, request: Request) -> Reader:
        client = request.client.host if request.client is not None else ""
        if len(request.headers.getlist("host")) != 1:
            raise HTTPException(400, "a request has one Host header")
        if _is_loopback(client) and not any(each in request.headers for each in _FORWARDED):
            if request.url.hostname not in LOOPBACK_NAMES:
                raise HTTPException(
                    403, f"Host {request.url.hostname}: /v1 answers to {', '.join(LOOPBACK_NAMES)}"
                )
            return Reader()
        if self._permissions is None or request.scope["scheme"] != "https":
            raise HTTPException(
                403,
                f"/v1 answers clients on a loopback address, and this one is on {client or 'none'}"
                f"{' behind a proxy' if _is_loopback(client) else ''}: use kubectl port-forward;"
                " over TLS (api_cert, api_key) it answers others who have a token",
            )
        return await self._with_token(request, self._permissions, client)

    async def _with_token(self, request: Request, permissions: Permissions, client: str) -> Reader:
        token = _token(request)
        try:
            asker = await permissions.asker(token, client)
        except Unknown as error:
            raise unavailable(error) from error
        if asker is None:
            raise _unauthorized("the API server does not know this token")
        return Reader(permissions, asker, token)


on_loopback = Callers()
"""The dependency of what clients on loopback alone get: no right opens it to others."""


def reader_of(request: Request) -> Reader:
    """Who asks."""
    reader: Reader = request.state.reader
    return reader


async def sees_namespace(request: Request, namespace: str = "") -> None:
    """The `namespace` of the path or the query is one that the client sees; "": all namespaces are.

    Raises: HTTPException, 403, 422 or 503.
    """
    reader = reader_of(request)
    if len(namespace) > LONGEST_NAMESPACE:
        raise HTTPException(
            422, f"namespace: {len(namespace)} characters, of {LONGEST_NAMESPACE} at most"
        )
    if await answered(reader.sees(namespace)):
        return
    if namespace:
        raise HTTPException(403, f"user {reader.name} may not list pods in namespace {namespace}")
    raise HTTPException(
        403,
        f"user {reader.name} may not list pods in every namespace: namespace= names one of those"
        " where they may",
    )


async def sees_cluster(request: Request) -> None:
    """The client sees what is about the whole cluster. Raises: HTTPException, 403 or 503."""
    reader = reader_of(request)
    if not await answered(reader.sees_nodes()):
        raise HTTPException(403, f"user {reader.name} may not list nodes")


async def sees_everything(request: Request) -> None:
    """The client sees nodes, and the pods of every namespace. Raises: as the two above."""
    await sees_cluster(request)
    await sees_namespace(request)


SeesNamespace = Depends(sees_namespace)
SeesCluster = Depends(sees_cluster)
SeesEverything = Depends(sees_everything)


async def may_still_see(reader: Reader, namespace: str) -> str:
    """Why the client may not any more, or ""; the API server is asked unless it just answered."""
    try:
        if not await reader.is_known():
            return "the API server does not know this token any more"
        if not await reader.sees(namespace):
            return f"user {reader.name} may not list these pods any more"
    except Unknown as error:
        return str(error)
    return ""


async def answered(question: Awaitable[bool]) -> bool:
    """The answer. Raises: HTTPException, 503, where the API server has none."""
    try:
        return await question
    except Unknown as error:
        raise unavailable(error) from error


def unavailable(error: Unknown) -> HTTPException:
    """A user whose rights are not known is not answered."""
    return HTTPException(503, str(error), {"Retry-After": RETRY_SECONDS})


def _token(request: Request) -> str:
    """The bearer token of a request. Raises: HTTPException, 400 or 401."""
    said = request.headers.getlist("authorization")
    if not said:
        raise _unauthorized("a client beyond loopback sends Authorization: Bearer TOKEN")
    if len(said) > 1:
        raise HTTPException(400, f"{len(said)} Authorization headers: a request has one")
    scheme, _, token = said[0].partition(" ")
    if scheme.lower() != "bearer":
        raise _unauthorized("Authorization: only Bearer is known")
    token = token.strip()
    if len(token) > LONGEST_TOKEN:
        raise HTTPException(
            400, f"Authorization: a token of {len(token)} characters, of {LONGEST_TOKEN} at most"
        )
    if not _TOKEN.fullmatch(token):
        raise HTTPException(400, "Authorization: the token has characters that no token has")
    return token


def _unauthorized(why: str) -> HTTPException:
    return HTTPException(401, why, {"WWW-Authenticate": "Bearer"})


def _is_loopback(address: str) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).is_loopback
