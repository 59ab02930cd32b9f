"""What labels and annotations must say for Corral to keep its promise: rules, and nothing else.

    topology(annotations, pods)      kueue.md 1.3: the topology annotations of one pod set
    membership(labels, annotations)  kueue.md 5.3: groups of plain pods
    change(before, after)            kueue.md 5.3: what may not change any more
    together(pod sets)               kueue.md 1.3: leader and workers of one pod set group

Each returns every rule that is broken, not only the first. The paths are those below `metadata`;
`app.admission` puts the object's own path before them; `templates.py` says where templates are.
Where Kueue has a sentence for a rule, ours says the same at the same field: users know it already.

Source: kueue.md 1.3 and 5.3 (`tas_validation.go`, `pod_webhook.go`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import msgspec

from app.dialects import corral, kueue, life, pod_groups
from app.dialects.in_charge import MANAGED
from app.dialects.kueue import (
    INDEX_OFFSET,
    MOST_LAYERS,
    MOST_NAME,
    MOST_PODS,
    POD_SET_GROUP,
    PREFIX,
)

INDEX_LABEL = PREFIX + "pod-group-pod-index-label"  # annotation: the label that holds the index
ELASTIC = PREFIX + "elastic-job"
PREBUILT = PREFIX + "prebuilt-workload-name"
Strings = Mapping[str, str]


Problem = Literal["Invalid value", "Required value", "Forbidden", "Duplicate value"]

INT32 = 2**31 - 1
_LABEL_KEY = "must be the key of a node label, such as topology.kubernetes.io/rack"
_SUBDOMAIN = re.compile(
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII
)
_WHOLE = re.compile(r"-?[0-9]{1,20}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Flaw:
    """One rule that is broken. `field` is below metadata; `value` None: the field itself is it."""

    field: str
    problem: Problem
    text: str
    value: str | int | None = None


def annotation(key: str) -> str:
    """The path of an annotation below metadata."""
    return f"annotations[{key}]"


def label(key: str) -> str:
    """The path of a label below metadata."""
    return f"labels[{key}]"


def flaws(labels: Strings, annotations: Strings, pods: int | None = None) -> list[Flaw]:
    """Every rule that one pod, or one template of so many pods, breaks; None: not known."""
    return [*topology(annotations, pods), *membership(labels, annotations)]


def topology(annotations: Strings, pods: int | None) -> Iterator[Flaw]:
    """Section 1.3, for one pod set. `pods` is how many it has, None where that is not known."""
    modes = [key for key in kueue.MODES if key in annotations]
    if len(modes) > 1:
        named = ", ".join(f'"{key}"' for key in kueue.MODES)
        yield Flaw(
            "annotations",
            "Invalid value",
            f"must not contain more than one topology annotation: [{named}]",
        )
    for key in (kueue.REQUIRED, kueue.PREFERRED, kueue.SLICE_LEVEL):
        if not kueue.is_label_key(annotations.get(key, "ok")):
            yield _invalid(annotation(key), annotations[key], _LABEL_KEY)
    said = annotations.get(kueue.UNCONSTRAINED, "true")
    if kueue.boolean(said) is None:
        yield _invalid(annotation(kueue.UNCONSTRAINED), said, "must be a boolean value")
    yield from _pod_set_group(annotations)
    yield from _offset(annotations)
    yield from _slices(annotations, pods)
    if kueue.SLICE_LAYERS in annotations:
        yield from _layers(annotations, pods)


def membership(labels: Strings, annotations: Strings) -> Iterator[Flaw]:
    """Section 5.3, for one pod: the group it names, the group's size, its number in it."""
    if labels.get(MANAGED, "true") != "true":
        yield Flaw(label(MANAGED), "Forbidden", "managed label value can only be 'true'")
    if labels.get(corral.MANAGED, "true") not in ("true", "false"):
        yield _invalid(label(corral.MANAGED), labels[corral.MANAGED], "must be 'true' or 'false'")
    named = {
        where(pod_groups.GROUP_NAME): strings[pod_groups.GROUP_NAME]
        for where, strings in ((annotation, annotations), (label, labels))
        if pod_groups.GROUP_NAME in strings
    }
    total = annotations.get(pod_groups.TOTAL_COUNT)
    yield from _names(named)
    yield from _both_or_none(named, total, labels, annotations)
    total_pods = None if total is None else _whole(total)
    if total is not None:
        field = annotation(pod_groups.TOTAL_COUNT)
        yield from _size_flaws(field, total, total_pods)
    yield from _index(labels, total_pods)
    for where, strings in ((label, labels), (annotation, annotations)):
        prebuilt = strings.get(PREBUILT)
        if prebuilt is not None and named and prebuilt not in named.values():
            yield _invalid(where(PREBUILT), prebuilt, "must be equal to the name of the pod group")


def change(
    labels_before: Strings, annotations_before: Strings, labels: Strings, annotations: Strings
) -> Iterator[Flaw]:
    """Section 5.3, for one pod that is changed: what it said earlier must still hold."""
    key = pod_groups.GROUP_NAME
    before = annotations_before.get(key, labels_before.get(key, ""))
    name = annotations.get(key, labels.get(key, ""))
    if before and before != name:
        was_label = key in labels_before and key not in annotations_before
        yield _invalid((label if was_label else annotation)(key), name, "field is immutable")
    is_last, was_last = (
        kueue.boolean(strings.get(life.RETRIABLE, "true")) is False
        for strings in (annotations, annotations_before)
    )
    if name and was_last and not is_last:
        yield Flaw(
            annotation(life.RETRIABLE),
            "Forbidden",
            "unretriable pod group can't be converted to retriable",
        )


@dataclass(frozen=True, slots=True)
class PodSetClaim:
    """One pod set of an object; `path` is that of its metadata, `pods` None: not known."""

    path: str
    annotations: Strings
    pods: int | None


def together(claims: Sequence[PodSetClaim]) -> Iterator[tuple[PodSetClaim, Flaw]]:
    """Section 1.3, for all pod sets of an object: a group is one leader and its workers."""
    groups: dict[str, list[PodSetClaim]] = {}
    for claim in claims:
        if POD_SET_GROUP in claim.annotations:
            groups.setdefault(claim.annotations[POD_SET_GROUP], []).append(claim)
    field = annotation(POD_SET_GROUP)
    for name, members in groups.items():
        if len(members) != 2:
            text = f"can only define groups of exactly 2 pod sets, got: {len(members)} pod set(s)"
            yield from ((member, _invalid(field, name, text)) for member in members)
            continue
        sizes = [member.pods for member in members]
        if None not in sizes and 1 not in sizes:
            text = (
                "can only define groups where at least one pod set has only 1 replica, "
                f"got: {sizes[0]} replica(s) and {sizes[1]} replica(s) in the group"
            )
            yield from ((member, _invalid(field, name, text)) for member in members)
        if _levels(members[0]) != _levels(members[1]):
            for member, other in (members, members[::-1]):
                text = (
                    f"must specify '{kueue.REQUIRED}' or '{kueue.PREFERRED}' topology "
                    f"consistent with '{other.path}.annotations' in group '{name}'"
                )
                yield member, Flaw("annotations", "Invalid value", text)


def elastic(annotations: Strings) -> Iterator[Flaw]:
    """Section 1.3, for the template of an elastic Job: it may not ask for one domain."""
    for key in (kueue.REQUIRED, kueue.PREFERRED):
        if key in annotations:
            yield _forbidden(annotation(key), f"may not be set when '{ELASTIC}' is 'true'")


def _levels(claim: PodSetClaim) -> tuple[str | None, str | None]:
    return claim.annotations.get(kueue.REQUIRED), claim.annotations.get(kueue.PREFERRED)


def _pod_set_group(annotations: Strings) -> Iterator[Flaw]:
    name = annotations.get(POD_SET_GROUP)
    if name is None:
        return
    field = annotation(POD_SET_GROUP)
    if name.isascii() and name.isdecimal():
        yield _invalid(field, name, "must not be a number")
    elif not 1 <= len(name) <= MOST_NAME:
        yield _invalid(field, name, f"must have 1 to {MOST_NAME} characters")
    for key in kueue.SLICES:
        if key in annotations:
            yield _forbidden(field, f"may not be set when '{key}' is specified")
    if kueue.REQUIRED not in annotations and kueue.PREFERRED not in annotations:
        neither = f"neither '{kueue.PREFERRED}' nor '{kueue.REQUIRED}'"
        yield _forbidden(field, f"may not be set when {neither} is specified")


def _offset(annotations: Strings) -> Iterator[Flaw]:
    text = annotations.get(INDEX_OFFSET)
    if text is None:
        return
    if kueue.whole_number(text) is None:
        yield _invalid(annotation(INDEX_OFFSET), text, "must be a non-negative integer")


def _slices(annotations: Strings, pods: int | None) -> Iterator[Flaw]:
    level, text = (annotations.get(key) for key in (kueue.SLICE_LEVEL, kueue.SLICE_SIZE))
    field = annotation(kueue.SLICE_SIZE)
    if text is None:
        if level is not None:
            yield Flaw(
                field, "Required value", f"must be set when '{kueue.SLICE_LEVEL}' is specified"
            )
        return
    size = _whole(text)
    yield from _size_flaws(field, text, size)
    if size is not None and pods is not None and size > pods:
        yield _invalid(field, text, f"must not be greater than pod set count {pods}")
    if level is None:
        yield _forbidden(field, f"may not be set when '{kueue.SLICE_LEVEL}' is not specified")


class _Layer(msgspec.Struct):
    topology: str = ""
    size: int = 0


def _layers(annotations: Strings, pods: int | None) -> Iterator[Flaw]:
    text, field = annotations[kueue.SLICE_LAYERS], annotation(kueue.SLICE_LAYERS)
    for key in (kueue.SLICE_LEVEL, kueue.SLICE_SIZE):
        if key in annotations:
            yield _forbidden(field, f"may not be set when '{key}' is specified")
    try:
        layers = msgspec.json.decode(text, type=list[_Layer])
    except (ValueError, RecursionError) as error:
        yield _invalid(field, text, f"must be a valid JSON array: {error}")
        return
    if not 1 <= len(layers) <= MOST_LAYERS:
        yield _invalid(field, text, "topology constraints must contain between 1 and 3 entries")
        return
    levels = [layer.topology for layer in layers]
    for index, layer in enumerate(layers):
        if not kueue.is_label_key(layer.topology):
            yield _invalid(f"{field}[{index}].topology", layer.topology, _LABEL_KEY)
        if layer.topology in levels[:index]:
            also = f"also at index {levels.index(layer.topology)}"
            yield Flaw(f"{field}[{index}].topology", "Duplicate value", also, layer.topology)
        yield from _bounds(f"{field}[{index}].size", layer.size, layer.size)
    for index, (above, below) in enumerate(pairwise(layers), start=1):
        if below.size > 0 and above.size % below.size:
            parent = f"must evenly divide the parent layer size {above.size}"
            yield _invalid(f"{field}[{index}].size", below.size, parent)
    if pods is not None and layers[0].size > pods:
        yield _invalid(field, layers[0].size, f"must not be greater than pod set count {pods}")


def _names(named: Strings) -> Iterator[Flaw]:
    for field, name in named.items():
        if len(name) > 253 or not _SUBDOMAIN.fullmatch(name):
            subdomain = "must be a lowercase RFC 1123 subdomain, such as training-1.team"
            yield _invalid(field, name, subdomain)
    if len(set(named.values())) > 1:
        first, second = named.values()
        yield _invalid(
            label(pod_groups.GROUP_NAME), second, f'must be equal to the annotation "{first}"'
        )


def _both_or_none(
    named: Strings, total: str | None, labels: Strings, annotations: Strings
) -> Iterator[Flaw]:
    text = (
        f"both the '{pod_groups.TOTAL_COUNT}' annotation and the '{pod_groups.GROUP_NAME}' label "
        "should be set"
    )
    if total is not None and not named:
        yield Flaw(label(pod_groups.GROUP_NAME), "Required value", text)
    # A driver declares its workers, and they leave the size to it (KEP-976, story 3).
    counts_elsewhere = life.SETS in annotations or life.ROLE in labels or life.ROLE in annotations
    if named and total is None and not counts_elsewhere:
        yield Flaw(annotation(pod_groups.TOTAL_COUNT), "Required value", text)


def _index(labels: Strings, total: int | None) -> Iterator[Flaw]:
    text = labels.get(pod_groups.POD_INDEX)
    if text is None:
        return
    field = label(pod_groups.POD_INDEX)
    index = int(text) if text.isascii() and text.isdecimal() and len(text) <= 20 else None
    if index is None or index >= 2**64:
        yield _invalid(field, text, "must be an unsigned integer")
    elif total is not None and index >= total > 0:
        yield _invalid(field, text, f"must be less than {total}, the size of the pod group")


def _size_flaws(field: str, text: str, size: int | None) -> Iterator[Flaw]:
    """A number of pods: an int32 of at least 1, and no more than Corral takes for a gang."""
    if size is None or abs(size) > INT32:
        yield _invalid(field, text, "must be a numeric value")
    else:
        yield from _bounds(field, text, size)


def _bounds(field: str, value: str | int, size: int) -> Iterator[Flaw]:
    if size < 1:
        yield _invalid(field, value, "must be greater than or equal to 1")
    elif size > MOST_PODS:
        yield _invalid(field, value, f"must be less than or equal to {MOST_PODS}")


def _whole(text: str) -> int | None:
    """The number in a decimal string, negative ones too; None for anything else."""
    return int(text) if _WHOLE.fullmatch(text) else None


def _invalid(field: str, value: str | int, text: str) -> Flaw:
    return Flaw(field, "Invalid value", text, value)


def _forbidden(field: str, text: str) -> Flaw:
    return Flaw(field, "Forbidden", text)
