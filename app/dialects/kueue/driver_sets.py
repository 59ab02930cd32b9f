"""The pod sets that a driver declares before their pods exist.

Source: KEP-976 "Groups of pods where driver generates workers".
"""

from __future__ import annotations

import re
from typing import ClassVar

import msgspec
import yaml

from app.dialects.kueue import annotations as topology
from app.dialects.kueue.annotations import PREFIX
from app.dialects.kueue.rules import pod_set_flaws
from app.dialects.rules import BadValue
from app.dialects.spec import MOST_PODS, Expected, LeafSpec
from app.errors import DecodeError
from app.kube.core.cached import KIB, cached
from app.kube.core.node_requirements import too_many
from app.kube.core.objects import PodRecord
from app.kube.decoding import wire
from app.kube.decoding.decode import decode_pod, decoded, pod_record
from app.kube.decoding.template import Container, PodSpec, Resources, Template, fill_in

SETS = PREFIX + "pod-group-sets"
DRIVER = "(driver)"  # a leaf of its own; no set can have this name
MOST_SETS = 18  # roles of one pod group, as in Kueue
MOST_NESTED = 100  # of a template; a pod's own fields nest a dozen deep
MOST_TEXT = 65_536  # characters; a template of a pod has a few thousand
MOST_OBJECTS = 4_096  # of all templates together; each takes up to 1 us
MOST_YAML = 2_048  # of those that are YAML: each takes 2 us, a hundred times what JSON takes
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML whose plain words are what they are in JSON: decimal numbers, truth values, null.

    YAML itself has more, and some of it is dear: reading 1:1:1:… in base 60 takes quadratic time.
    The parser is the one in C, where there is one.
    """

    yaml_implicit_resolvers: ClassVar[dict[str, list[object]]] = {}


for _tag, _words, _first in (
    ("int", r"-?(?:0|[1-9][0-9]{0,17})", "-0123456789"),
    ("float", r"-?[0-9]{1,18}\.[0-9]{1,18}", "-0123456789"),
    ("bool", "true|false", "tf"),
    ("null", "null|~|", ["n", "~", ""]),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_words})\Z", re.ASCII), list(_first)
    )


class _Set(msgspec.Struct, frozen=True):
    name: str
    count: int
    template: msgspec.Raw = msgspec.Raw(b"null")


class _Container(Container):
    """A container of a template, also in the KEP's short form: requests outside of resources."""

    requests: wire.Quantities = None


class _PodSpec(PodSpec):
    containers: list[_Container | None] | None = None


class _Template(Template):
    spec: _PodSpec | None = None


_TEMPLATE = msgspec.json.Decoder(_Template)
_EMPTY = (b"", b"null", b"{}")
_SETS = msgspec.json.Decoder(tuple[_Set, ...])


def pod_sets(pod: PodRecord, said_role: str = "") -> tuple[LeafSpec, ...]:
    """The pod sets that a driver declares before their pods exist.

    Of JSON or a short YAML text; a set without a template is one of pods like the driver itself.
    Where each has one, the driver is of the set of one pod that is like it, or of the one that it
    names (`said_role`); else it is a leaf of its own.
    Raises: BadValue naming the set and the field.
    """
    text = pod.annotations.get(SETS)
    if text is None:
        return ()
    sets = _sets(text)
    if isinstance(sets, str):
        raise BadValue(sets[:200])
    if not 1 <= len(sets) <= MOST_SETS:
        raise BadValue(f"must have 1 to {MOST_SETS} sets")
    if len({each.name for each in sets}) < len(sets):
        raise BadValue("two sets have the same name")
    likes: dict[bytes, PodRecord] = {}
    found = tuple(_leaf(pod, each, likes) for each in sets)
    if not said_role and not any(is_drivers(leaf, pod) for leaf in found):
        # Only what the driver will make is declared: it is beside these, not one of them.
        found = (_driver(pod), *found)
    pods = sum(leaf.pods for leaf in found)
    if pods > MOST_PODS:
        raise BadValue(f"must have at most {MOST_PODS} pods together, got {pods}")
    shapes = ((leaf.like.pod.shape, f"set {leaf.name}") for leaf in found if leaf.like is not None)
    if flaw := too_many(shapes):
        raise BadValue(flaw)
    return found


def plain_sets(text: str) -> list[dict[str, object]] | None:
    """Name, count and template of each set that such a text declares; None: it cannot be read."""
    sets = _sets(text)
    if isinstance(sets, str):
        return None
    driver, likes = decode_pod(b"{}", is_read), dict[bytes, PodRecord]()
    try:
        for each in sets:
            _leaf(driver, each, likes)
    except BadValue:
        return None
    return [
        {"name": each.name, "count": each.count, "template": msgspec.json.decode(each.template)}
        for each in sets
    ]


@cached(8, 256 * KIB)  # every pod of a gang may have the same text
def _sets(text: str) -> tuple[_Set, ...] | str:
    """The sets as they are written, or what is wrong with the text."""
    if len(text) > MOST_TEXT:
        return f"must have at most {MOST_TEXT} characters, got {len(text)}"
    if (objects := text.count("{")) > MOST_OBJECTS:
        return f"must have at most {MOST_OBJECTS} objects, got {objects}"
    try:
        return _SETS.decode(text)
    except msgspec.ValidationError as error:
        return str(error)
    except (ValueError, RecursionError):  # no JSON: perhaps YAML
        pass
    if len(text) > MOST_YAML:
        return f"{len(text)} characters of YAML: more than {MOST_YAML} have to be JSON"
    try:
        return _SETS.decode(msgspec.json.encode(_plain_yaml(text)))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        return f"neither JSON nor YAML, line {line}: {error.problem}"
    except msgspec.ValidationError as error:
        return str(error)
    except (
        yaml.YAMLError,
        ValueError,
        TypeError,
        RecursionError,
    ) as error:  # keys need be no texts
        return f"neither JSON nor YAML: {(str(error).splitlines() or [''])[0]}"


def _plain_yaml(text: str) -> object:
    """What a YAML text says that has no more to it than JSON has.

    An alias can stand for ten others, and so on: such a text is small and its meaning is not.
    Raises: yaml.YAMLError, ValueError.
    """
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "tag", None):
            raise ValueError("aliases and tags are not allowed")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MOST_NESTED:
            raise ValueError(f"nested deeper than {MOST_NESTED}")
    return yaml.load(text, Loader=_Loader)  # a safe loader


def is_drivers(leaf: LeafSpec, driver: PodRecord) -> bool:
    """Whether a set is that of the driver itself, as far as its template tells."""
    like = leaf.like.pod if leaf.like is not None else None
    if like is None or like is driver:
        return like is driver
    return leaf.pods == 1 and (like.request, like.shape) == (driver.request, driver.shape)


def _driver(pod: PodRecord) -> LeafSpec:
    annotations = pod.annotations
    constraint, slices = topology.constraint(annotations), topology.slices(annotations)
    return LeafSpec(DRIVER, 1, constraint, slices, like=Expected(pod))


def _leaf(pod: PodRecord, declared: _Set, likes: dict[bytes, PodRecord]) -> LeafSpec:
    """The leaf of a set; `likes`: of templates that are read, which sets may have in common."""
    where = f"set {declared.name[:63]!r}"
    if not _NAME.fullmatch(declared.name):
        raise BadValue(f"{where}: the name must be a DNS label")
    if not 1 <= declared.count <= MOST_PODS:
        raise BadValue(
            f"{where}: count must be a whole number from 1 to {MOST_PODS}, got {declared.count}"
        )
    is_empty = bytes(memoryview(declared.template)[:64]).translate(None, b" \t\r\n") in _EMPTY
    template = b"" if is_empty else bytes(declared.template)
    like = pod if is_empty else likes.get(template) or _like(where, declared.template, pod)
    likes[template] = like
    return LeafSpec(
        declared.name,
        declared.count,
        topology.constraint(like.annotations),
        topology.slices(like.annotations),
        like=Expected(like),
    )


def _like(where: str, raw: msgspec.Raw, driver: PodRecord) -> PodRecord:
    """A pod of a set with a template, which says as its driver does where it says nothing."""
    try:
        found = decoded(_TEMPLATE, raw, "template")
        for each in (found.spec and found.spec.containers) or ():
            if each is not None and each.requests is not None and each.resources is None:
                each.resources = Resources(each.requests)
        fill_in(found)
        like = pod_record(found, raw, is_read)
    except DecodeError as error:
        raise BadValue(f"{where}: template: {error}") from error
    if like.problem:
        raise BadValue(f"{where}: template: {like.problem}")
    if not any(key in like.annotations for key in (*topology.MODES, *topology.SLICES)):
        return msgspec.structs.replace(like, annotations=driver.annotations)
    for flaw in pod_set_flaws(like.annotations, None):
        raise BadValue(f"{where}: template: {flaw}")
    return like


def is_read(key: str) -> bool:
    """Whether an annotation of a template counts."""
    return key in topology.MODES or key in topology.SLICES
