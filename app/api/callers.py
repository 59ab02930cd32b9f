"""Who may read /v1: clients on this machine or in this pod, such as `kubectl port-forward` there.

Who may forward a port of Corral's pod may read all of it. A web page in a browser on this machine
can have its own name resolved to a loopback address; the Host header shows that name.
"""

from __future__ import annotations

import ipaddress

from fastapi import HTTPException, Request

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


async def on_loopback(request: Request) -> None:
    """Let a client on a loopback address pass. Raises: HTTPException, 403, for any other."""
    client = request.client.host if request.client is not None else ""
    if not _is_loopback(client):
        raise HTTPException(
            403,
            f"/v1 answers clients on a loopback address, and this one is on {client or 'none'}:"
            " use kubectl port-forward",
        )
    if request.url.hostname not in LOOPBACK_NAMES:
        raise HTTPException(
            403, f"Host {request.url.hostname}: /v1 answers to {', '.join(LOOPBACK_NAMES)}"
        )


def _is_loopback(address: str) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).is_loopback
