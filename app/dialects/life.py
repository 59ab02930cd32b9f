"""What a gang's members say about its life: retries, serving, early starts, spares, later roles.

Source: KEP-976, "Retrying Failed Pods" and "Groups of pods where driver generates workers";
reference kueue.md 5.1 and 5.6 for the annotations that came after it.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec
import yaml

from app.dialects import corral, kueue
from app.dialects.kueue import MOST_PODS, PREFIX, WrongAnnotation
from app.dialects.membership import ORDINARY_LIFE, Life, PodTemplate
from app.errors import DecodeError
from app.kube.core.decode import decode_pod
from app.kube.core.objects import PodRecord

RETRIABLE = PREFIX + "retriable-in-group"
SERVING = PREFIX + "pod-group-serving"
FAST = PREFIX + "pod-group-fast-admission"
SETS = PREFIX + "pod-group-sets"
ROLE = PREFIX + "pod-group-role"
SPARES = corral.PREFIX + "spare-pods"
KEPT = (RETRIABLE, SERVING, FAST, SETS, ROLE, SPARES)

MOST_SETS = 18  # roles of one pod group, as in Kueue
MOST_SPARES = 100  # of one gang: each is searched for by itself, and others go without it
MOST_NESTED = 100  # of a template; a pod's own fields nest a dozen deep
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the parser in C, where there is one
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)


def life(pod: PodRecord) -> Life:
    """Translate what the pod says about its group's life.

    Raises: WrongAnnotation.
    """
    if not any(key in pod.annotations for key in KEPT):
        return ORDINARY_LIFE
    return Life(
        is_retriable=_flag(pod, RETRIABLE, default=True),
        is_serving=_flag(pod, SERVING),
        is_fast=_flag(pod, FAST),
        spares=_spares(pod),
        templates=templates(pod),
    )


def role(pod: PodRecord) -> str:
    """The pod set a pod belongs to, of those that a driver declares; "" if it names none.

    A driver that does not say is of the set that has no template of its own, else of the first.
    Raises: WrongAnnotation.
    """
    said = pod.labels.get(ROLE, pod.annotations.get(ROLE, ""))
    declared = templates(pod)
    if said or not declared:
        return said
    return next((each for each in declared if each.like is pod), declared[0]).pod_set


def total(pod: PodRecord) -> int:
    """How many pods the driver declares, itself included; 0 where it declares none.

    Raises: WrongAnnotation.
    """
    return sum(template.pods for template in templates(pod))


def templates(pod: PodRecord) -> tuple[PodTemplate, ...]:
    """The pod sets that a driver declares before their pods exist.

    Of JSON and YAML alike; a set without a template is one of pods like the driver itself.
    Raises: WrongAnnotation naming the set and the field.
    """
    text = pod.annotations.get(SETS)
    if text is None:
        return ()
    sets = _sets(text)
    if isinstance(sets, str):
        raise WrongAnnotation(f"annotation {SETS}: {sets[:200]}")
    if not 1 <= len(sets) <= MOST_SETS:
        raise WrongAnnotation(f"annotation {SETS}: must have 1 to {MOST_SETS} sets")
    if len({each.name for each in sets}) < len(sets):
        raise WrongAnnotation(f"annotation {SETS}: two sets have the same name")
    found = tuple(_template(pod, each) for each in sets)
    pods = sum(template.pods for template in found)
    if pods > MOST_PODS:
        raise WrongAnnotation(
            f"annotation {SETS}: must have at most {MOST_PODS} pods together, got {pods}"
        )
    return found


class _Set(msgspec.Struct, frozen=True):
    name: str
    count: int
    template: dict[str, object] | None = None


_SETS = msgspec.json.Decoder(tuple[_Set, ...])


@lru_cache(maxsize=64)  # asked for several times per event, and YAML takes its time
def _sets(text: str) -> tuple[_Set, ...] | str:
    """The sets as they are written, or what is wrong with the text."""
    try:
        return _SETS.decode(text)
    except msgspec.ValidationError as error:
        return str(error)
    except (ValueError, RecursionError):  # no JSON: perhaps YAML
        pass
    try:
        return _SETS.decode(msgspec.json.encode(_plain_yaml(text)))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        return f"neither JSON nor YAML, line {line}: {error.problem}"
    except msgspec.ValidationError as error:
        return str(error)
    # What looks like a date or a number in YAML need not be one; keys need not be texts.
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        return f"neither JSON nor YAML: {(str(error).splitlines() or [''])[0]}"


def _plain_yaml(text: str) -> object:
    """What a YAML text says that has no more to it than JSON has.

    An alias can stand for ten others, and so on: such a text is small and its meaning is not.
    Raises: yaml.YAMLError, ValueError.
    """
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "tag", None):
            raise ValueError("aliases and tags are not allowed")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MOST_NESTED:
            raise ValueError(f"nested deeper than {MOST_NESTED}")
    return yaml.load(text, Loader=_LOADER)  # a safe loader


def _template(pod: PodRecord, declared: _Set) -> PodTemplate:
    where = f"annotation {SETS}: set {declared.name[:63]!r}"
    if not _NAME.fullmatch(declared.name):
        raise WrongAnnotation(f"{where}: the name must be a DNS label")
    if not 1 <= declared.count <= MOST_PODS:
        raise WrongAnnotation(
            f"{where}: count must be a whole number from 1 to {MOST_PODS}, got {declared.count}"
        )
    if not declared.template:
        return PodTemplate(
            declared.name, declared.count, pod, kueue.constraint(pod), kueue.slices(pod)
        )
    try:
        record = decode_pod(msgspec.json.encode(_with_resources(declared.template)), _is_ours)
    except DecodeError as error:
        raise WrongAnnotation(f"{where}: template: {error}") from error
    if record.problem:
        raise WrongAnnotation(f"{where}: template: {record.problem}")
    if not any(key in record.annotations for key in (*kueue.MODES, *kueue.SLICES)):
        record = msgspec.structs.replace(record, annotations=pod.annotations)
    try:
        constraint, slices = kueue.constraint(record), kueue.slices(record)
    except WrongAnnotation as error:
        raise WrongAnnotation(f"{where}: template: {error}") from error
    return PodTemplate(declared.name, declared.count, record, constraint, slices)


def _with_resources(template: dict[str, object]) -> dict[str, object]:
    """The template with the KEP's own short form, requests outside of resources, spelled out."""
    spec = template.get("spec")
    containers = spec.get("containers") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(containers, list):
        return template
    spelled = [
        {**each, "resources": {"requests": each["requests"]}}
        if isinstance(each, dict) and "requests" in each and "resources" not in each
        else each
        for each in containers
    ]
    return {**template, "spec": {**spec, "containers": spelled}}


def _is_ours(key: str) -> bool:
    return key in kueue.MODES or key in kueue.SLICES


def _flag(pod: PodRecord, key: str, *, default: bool = False) -> bool:
    text = pod.annotations.get(key)
    if text is None:
        return default
    value = kueue.boolean(text)
    if value is None:
        raise WrongAnnotation(f"annotation {key}: must be a boolean, got {text!r}")
    return value


def _spares(pod: PodRecord) -> int:
    text = pod.annotations.get(SPARES, "0")
    spares = kueue.whole_number(text)
    if spares is None or spares > MOST_SPARES:
        raise WrongAnnotation(
            f"annotation {SPARES}: must be a whole number from 0 to {MOST_SPARES}, got {text!r}"
        )
    return spares
