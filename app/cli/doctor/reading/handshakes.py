"""Whether the API server would trust what the webhook's port serves, tried as it does: by TLS.

    address of the Service's pods, or the URL ─┐
    caBundle ──────────────────────────────────┴─▶ a handshake ──▶ "" | why it fails

No Secret is read for it. Where the addresses of pods are not reached, as from most desks, it is not
known; the canary has the API server itself call the port.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ssl
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from app.cli.doctor.installed import called, webhooks_of
from app.cli.doctor.seen import Handshake, Object, Unread, Webhooks

SECONDS = 3.0  # of one handshake; pods that are not reached do not answer at all
MOST_ADDRESSES = 2  # of one Service: they serve the same
HTTPS = 443


async def handshakes(webhooks: Webhooks) -> Mapping[tuple[str, str], Handshake] | Unread:
    """Every address that Corral's webhooks name, by what is called and the caBundle."""
    wanted: dict[tuple[str, str], list[tuple[str, int, str]]] = {}
    for configuration in (*webhooks.mutating, *webhooks.validating):
        for each in webhooks_of(configuration):
            bundle = each["clientConfig"].get("caBundle") or ""
            if bundle:
                wanted[called(each), bundle] = list(_addresses(webhooks, each))
    tried = [(key, address) for key, addresses in wanted.items() for address in addresses]
    answers = await asyncio.gather(*(_tried(key[1], *address) for key, address in tried))
    found: dict[tuple[str, str], Handshake] = {}
    missed = ""
    for (key, (host, port, _)), answer in zip(tried, answers, strict=True):
        if isinstance(answer, Unread):
            missed = missed or answer.why
        elif key not in found or answer:
            found[key] = Handshake(f"{host}:{port}", answer)
    if found or not wanted:
        return found
    why = missed or "no address of a pod is known"
    return Unread(f"{why}; --canary has the API server call the webhook")


def _addresses(webhooks: Webhooks, webhook: Object) -> Iterable[tuple[str, int, str]]:
    """(host, port, name in the certificate)."""
    client = webhook["clientConfig"]
    service = client.get("service")
    if not service:
        url = urlsplit(str(client.get("url", "")))
        return [(url.hostname, url.port or HTTPS, url.hostname)] if url.hostname else []
    behind = webhooks.services.get(called(webhook))
    if behind is None or isinstance(behind, Unread):
        return []
    name = f"{service['name']}.{service['namespace']}.svc"
    return [(host, port, name) for host, port in behind.addresses[:MOST_ADDRESSES]]


async def _tried(bundle: str, host: str, port: int, name: str) -> str | Unread:
    """Why the certificate is not trusted, "" if it is; or why the port is not reached."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # As Go does: every certificate in the bundle is trusted, not the roots of it alone.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cadata=_text(bundle))
    except (ssl.SSLError, ValueError):
        return ""  # the check of the bundle itself says so
    try:
        async with asyncio.timeout(SECONDS):
            _, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=name)
        writer.transport.abort()
    except ssl.SSLCertVerificationError as wrong:
        return wrong.verify_message or str(wrong)
    except ssl.SSLError as wrong:
        # What comes of a certificate that we do not have comes after its own is trusted.
        is_refusal = "ALERT" in (wrong.reason or "").upper()
        return "" if is_refusal else f"{wrong.reason or wrong}"
    except (OSError, TimeoutError) as wrong:
        why = str(wrong) or "no answer"
        return Unread(f"the webhook's port {host}:{port} is not reached from here: {why}")
    return ""


def _text(base64_text: str) -> str:
    try:
        return base64.b64decode(base64_text).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""
