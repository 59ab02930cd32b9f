"""The values that settings have: how each is written as a text, and what it is once it is read.

Flags and environment variables are texts; a settings file has lists and mappings as well. What is
parsed already passes, as where settings are made of others. An invalid value is a
ValueError that says what was expected; `app/settings.py` names the setting and its source.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Annotated

from pydantic import BeforeValidator, Field
from pydantic_settings import NoDecode

from app.labels import LabelSelector, is_label_value, selector_from_text

MIB = 1024 * 1024
MOST_METRIC_SHAPES = 8  # four series each, and two more for each level
MOST_SHARED = 4  # resources that count parts of devices: 0.7 MiB each at 5,000 nodes


@dataclass(frozen=True, slots=True)
class Address:
    """Where a port listens; port 0 takes any free one."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def address_from_text(value: object) -> object:
    """`HOST:PORT` or `[IPV6]:PORT` as an Address; anything already parsed passes."""
    if value is None or isinstance(value, Address):
        return value
    host, colon, port = str(value).rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    bare_ipv6 = ":" in host and not str(value).startswith("[")
    if not colon or not host or bare_ipv6 or not (port.isascii() and port.isdecimal()):
        raise ValueError("expected HOST:PORT, such as 127.0.0.1:8888 or [::1]:8888")
    if int(port) > 65535:
        raise ValueError("the port is above 65535")
    return Address(host, int(port))


def names_from_text(value: object) -> object:
    """A list, or its text with commas, as a tuple; empty parts are dropped, so "" is no name."""
    if isinstance(value, list):
        return tuple(value)
    if not isinstance(value, str):
        return value
    return tuple(part.strip() for part in value.split(",") if part.strip())


def ip_address(text: str) -> str:
    """The text, which is an address, or empty."""
    if text:
        ipaddress.ip_address(text)
    return text


def scheduler_names(text: str) -> str:
    """The text, in which every name between commas is one."""
    if text and not all(part.strip() for part in text.split(",")):
        raise ValueError("expected names between commas, such as corral,kai-scheduler")
    return text


def selector_parsed(value: object) -> object:
    """The text of a label selector as a LabelSelector; one that is parsed already passes."""
    if isinstance(value, LabelSelector):
        return value
    if not isinstance(value, str):
        raise ValueError("expected a label selector, such as: team in (a,b),!legacy")
    return selector_from_text(value)


def pairs_in(value: object, *, between: str = ",", sign: str = "=") -> object:
    """A text `NAME=VALUE,…` as pairs; anything else passes."""
    if not isinstance(value, str):
        return value
    return [part.strip().partition(sign)[::2] for part in value.split(between) if part.strip()]


def pods_by_namespace(value: object) -> object:
    """A mapping, or its text `NAMESPACE=PODS,…`, as pairs; pairs pass."""
    value = pairs_in(value)
    pairs = list(value.items()) if isinstance(value, dict) else value
    if not isinstance(pairs, list | tuple):
        raise ValueError("expected NAMESPACE=PODS,…, such as team-a=512,team-b=0")
    found = []
    for name, pods in pairs:
        if not (name and str(pods).isascii() and str(pods).isdecimal() and len(str(pods)) <= 6):
            raise ValueError(f"{name}={pods}: expected a namespace and a number of pods")
        found.append((name, int(pods)))
    return tuple(found)


def parts_by_resource(value: object) -> object:
    """A mapping, or its text `RESOURCE=PARTS,…`, as pairs; pairs pass."""
    value = pairs_in(value)
    pairs = list(value.items()) if isinstance(value, dict) else value
    if not isinstance(pairs, list | tuple):
        raise ValueError("expected RESOURCE=PARTS,…, such as example.com/gpu-milli=1000")
    found = {}
    for name, parts in pairs:
        is_number = str(parts).isascii() and str(parts).isdecimal() and len(str(parts)) <= 7
        if "/" not in str(name) or not is_number or int(parts) < 2:
            raise ValueError(f"{name}={parts}: expected a resource of devices, and 2 parts or more")
        found[str(name)] = int(parts)
    if len(found) > MOST_SHARED:
        raise ValueError(f"{len(found)} resources: at most {MOST_SHARED}")
    return tuple(found.items())


def vocabularies(value: object) -> object:
    """A mapping of lists, or its text `NAME=VOCABULARY,…`, as pairs; pairs pass."""
    value = pairs_in(value)
    if isinstance(value, dict):
        value = [
            (name, each)
            for name, said in value.items()
            for each in (said if isinstance(said, list) else [said])
        ]
    is_paired = isinstance(value, list | tuple) and all(
        isinstance(pair, list | tuple) and len(pair) == 2 for pair in value
    )
    if not is_paired or not isinstance(value, list | tuple):
        raise ValueError("expected NAME=VOCABULARY,…, such as default-scheduler=grove")
    for name, vocabulary in value:
        if not (isinstance(vocabulary, str) and name and vocabulary):
            raise ValueError(f"{name}={vocabulary}: expected a schedulerName and a vocabulary")
    return tuple((str(name), vocabulary) for name, vocabulary in value)


def shapes_named(value: object) -> object:
    """A mapping, or its text `NAME:RESOURCE=AMOUNT,…; …`, as pairs; pairs pass."""
    value = pairs_in(value, between=";", sign=":")
    pairs = list(value.items()) if isinstance(value, dict) else value
    if not isinstance(pairs, list | tuple) or not all(
        isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs
    ):
        raise ValueError("expected NAME:RESOURCE=AMOUNT,…; such as node:nvidia.com/gpu=8")
    found = {}
    for name, text in pairs:
        if not is_label_value(str(name)) or not name or not text:
            raise ValueError(f"{name}:{text}: expected a name, as of a label, and a request")
        found[str(name)] = str(text).strip()
    if len(found) > MOST_METRIC_SHAPES:
        raise ValueError(f"{len(found)} shapes: at most {MOST_METRIC_SHAPES}")
    return tuple(found.items())


ListenAddress = Annotated[Address, NoDecode, BeforeValidator(address_from_text)]
Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(names_from_text)]
PodsByNamespace = Annotated[
    tuple[tuple[str, int], ...], NoDecode, BeforeValidator(pods_by_namespace)
]
Shapes = Annotated[tuple[tuple[str, str], ...], NoDecode, BeforeValidator(shapes_named)]
Selector = Annotated[LabelSelector, NoDecode, BeforeValidator(selector_parsed)]
Vocabularies = Annotated[tuple[tuple[str, str], ...], NoDecode, BeforeValidator(vocabularies)]
DeviceParts = Annotated[tuple[tuple[str, int], ...], NoDecode, BeforeValidator(parts_by_resource)]
Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
Bytes = Annotated[int, Field(ge=1024, le=1024 * MIB)]
