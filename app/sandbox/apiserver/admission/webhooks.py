"""Calls the configured webhooks, mutating ones one after the other, validating ones at once.

Source: kubernetes 1.36 apiserver admission/plugin/webhook/{mutating,validating}/dispatcher.go.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ssl
from dataclasses import replace
from functools import lru_cache

import aiohttp

from app.sandbox.apiserver.admission.attributes import Attributes
from app.sandbox.apiserver.admission.matching import kind_to_send, labels_in
from app.sandbox.apiserver.admission.review import Answer, InvalidAnswer, answer_of, request_body
from app.sandbox.apiserver.rules.registry import Registry
from app.sandbox.apiserver.storage import json_patch
from app.sandbox.apiserver.storage.failures import Refused, internal_error
from app.sandbox.apiserver.storage.kinds import MUTATING, NAMESPACE, VALIDATING, Kind, Object


class _CallFailed(Exception):
    """The call failed; the webhook's failure policy decides what that means."""


class Webhooks:
    """The webhooks of one cluster; `close` ends the connections to them."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def are_configured(self) -> bool:
        return any(self._configured(kind) for kind in (MUTATING, VALIDATING))

    async def mutate(self, attributes: Attributes) -> Object:
        """The object after all mutating webhooks, by the names of their configurations.

        A webhook with the reinvocation policy `IfNeeded` is called once more if a later one
        changed the object. Raises: Refused.
        """
        invoked: list[Object] = []
        again: list[Object] = []
        for webhook in self._configured(MUTATING):
            kind = self._kind_to_send(webhook, attributes)
            if kind is None:
                continue
            changed = await self._changed(webhook, kind, attributes)
            if changed is not attributes.after:
                again = list(invoked)
                attributes = replace(attributes, after=changed)
            if webhook["reinvocationPolicy"] == "IfNeeded":
                invoked.append(webhook)
        for webhook in again:
            if (kind := self._kind_to_send(webhook, attributes)) is not None:
                changed = await self._changed(webhook, kind, attributes)
                attributes = replace(attributes, after=changed)
        return attributes.after

    async def validate(self, attributes: Attributes) -> None:
        """Raises: Refused, by the first webhook in order of those that refuse."""
        calls = [
            self._ask(webhook, kind, attributes, is_mutating=False)
            for webhook in self._configured(VALIDATING)
            if (kind := self._kind_to_send(webhook, attributes)) is not None
        ]
        for outcome in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    def _configured(self, kind: Kind) -> list[Object]:
        configurations = [stored.body for stored in self._registry.store.values(kind)]
        configurations.sort(key=lambda each: str(each["metadata"]["name"]))
        return [webhook for each in configurations for webhook in each["webhooks"]]

    def _kind_to_send(self, webhook: Object, attributes: Attributes) -> Kind | None:
        return kind_to_send(webhook, attributes, self._registry.kinds, self._labels_of)

    def _labels_of(self, namespace: str) -> Object:
        stored = self._registry.store.get(NAMESPACE, ("", namespace))
        return labels_in(stored.body) if stored else {}

    async def _changed(self, webhook: Object, kind: Kind, attributes: Attributes) -> Object:
        """The object with the webhook's patch; the same object if it has none.

        Raises: Refused, also for a patch that does not apply, whatever the failure policy.
        """
        answer = await self._ask(webhook, kind, attributes, is_mutating=True)
        if answer is None or not answer.patch:
            return attributes.after
        try:
            changed: Object = json_patch.apply(attributes.after, answer.patch)
        except json_patch.InvalidPatch as error:
            raise internal_error(str(error)) from error
        return changed

    async def _ask(
        self, webhook: Object, kind: Kind, attributes: Attributes, *, is_mutating: bool
    ) -> Answer | None:
        """The answer that allows the write; None if the call failed and failures are ignored.

        Raises: Refused.
        """
        name, uid = webhook["name"], self._registry.uid()
        body = request_body(uid, kind, attributes)
        try:
            answer = answer_of(await self._post(webhook, body), uid, is_mutating=is_mutating)
        except (_CallFailed, InvalidAnswer) as error:
            if webhook["failurePolicy"] == "Ignore":
                return None
            raise internal_error(f'failed calling webhook "{name}": {error}') from error
        if not answer.is_allowed:
            raise _denied(name, answer.status)
        return answer

    async def _post(self, webhook: Object, body: bytes) -> bytes:
        """Raises: _CallFailed."""
        client, seconds = webhook["clientConfig"], webhook["timeoutSeconds"]
        if (service := client.get("service")) is not None:
            raise _CallFailed(f'failed to call webhook: service "{service.get("name")}" not found')
        url = f"{client['url']}?timeout={seconds}s"
        try:
            async with self._opened().post(
                url,
                data=body,
                headers={"Content-Type": "application/json"},
                ssl=_trusting(client.get("caBundle") or ""),
                timeout=aiohttp.ClientTimeout(total=seconds),
                allow_redirects=False,
            ) as answer:
                raw = await answer.read()
                if answer.status != 200:
                    text = raw[:200].decode("utf-8", "replace")
                    why = f'an error on the server ("{text}") has prevented the request from'
                    raise _CallFailed(f"failed to call webhook: {why} succeeding")
                return raw
        except TimeoutError as error:
            why = "context deadline exceeded"
            raise _CallFailed(f'failed to call webhook: Post "{url}": {why}') from error
        except (aiohttp.ClientError, ValueError) as error:
            raise _CallFailed(f'failed to call webhook: Post "{url}": {error}') from error

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            # No connections are kept: after a restart of the webhook they would fail.
            connector = aiohttp.TCPConnector(limit=0, force_close=True)
            self._session = aiohttp.ClientSession(connector=connector)
        return self._session


def _denied(name: str, status: Object) -> Refused:
    """The refusal with the webhook's message. Source: webhook/errors/statuserror.go."""
    text = f'admission webhook "{name}" denied the request'
    if why := status.get("message") or status.get("reason"):
        text = f"{text}: {why}"
    else:
        text = f"{text} without explanation"
    code = max(int(status.get("code") or 0), 400)
    return Refused(code, status.get("reason", ""), text, details=status.get("details"))


@lru_cache(maxsize=32)
def _trusting(ca_bundle: str) -> ssl.SSLContext:
    """Trusts the authorities of a caBundle (base64 of PEM), else those of the system.

    Raises: ValueError, ssl.SSLError if it holds none.
    """
    if not ca_bundle:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cadata=base64.b64decode(ca_bundle).decode("ascii"))
    except (binascii.Error, ssl.SSLError) as error:
        raise ValueError(f"unable to load root certificates: {error}") from error
