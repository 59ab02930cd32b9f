"""What Kueue's topology annotations must say: rules, and nothing else.

    pod_set_flaws(annotations, pods)   of one pod, or one template of so many pods
    together(owner)                    of all templates of an object, and of the object itself

Each returns every rule that is broken, not only the first. Where Kueue has a text for a rule, ours
says the same at the same field: users know it already.
Source: kueue pkg/controller/jobframework/tas_validation.go (v0.16).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from app.dialects import pod_set_groups, workload_level
from app.dialects.corral import WORKLOAD
from app.dialects.dialect import PodSetClaim, TemplateOwner
from app.dialects.flaw import Flaw
from app.dialects.kueue.annotations import (
    INDEX_OFFSET,
    LAYERS,
    MODES,
    MOST_LAYERS,
    MOST_LAYERS_TEXT,
    MOST_NAME,
    POD_SET_GROUP,
    PREFERRED,
    PREFIX,
    REQUIRED,
    SLICE_LAYERS,
    SLICE_LEVEL,
    SLICE_SIZE,
    SLICES,
    UNCONSTRAINED,
    Strings,
    asks_for_topology,
)
from app.dialects.rules import (
    annotation,
    boolean,
    forbidden,
    invalid,
    required,
    too_small,
    whole_number,
)
from app.dialects.spec import MOST_PODS
from app.labels import is_label_key
from topology.model.request import must_divide, must_divide_layer

ELASTIC = PREFIX + "elastic-job"
INT32 = 2**31 - 1
_LABEL_KEY = "must be the key of a node label, such as topology.kubernetes.io/rack"
_WHOLE = re.compile(r"-?[0-9]{1,20}", re.ASCII)


def pod_set_flaws(annotations: Strings, pods: int | None) -> Iterator[Flaw]:
    """The rules of one pod set. `pods` is how many it has, None where that is not known."""
    modes = [key for key in MODES if key in annotations]
    if len(modes) > 1:
        named = ", ".join(f'"{key}"' for key in MODES)
        yield Flaw(
            "annotations",
            "Invalid value",
            f"must not contain more than one topology annotation: [{named}]",
        )
    yield from level_flaws(annotations, (REQUIRED, PREFERRED, SLICE_LEVEL, *WORKLOAD))
    said = annotations.get(UNCONSTRAINED, "true")
    if boolean(said) is None:
        yield invalid(annotation(UNCONSTRAINED), said, "must be a boolean value")
    yield from _pod_set_group(annotations)
    yield from _offset(annotations)
    yield from _slices(annotations, pods)
    if SLICE_LAYERS in annotations:
        yield from _layers(annotations, pods)


def level_flaws(annotations: Strings, keys: Iterable[str]) -> Iterator[Flaw]:
    """The rule of annotations that name a level, those of these keys."""
    for key in keys:
        if not is_label_key(annotations.get(key, "ok")):
            yield invalid(annotation(key), annotations[key], _LABEL_KEY)


def together(owner: TemplateOwner) -> Iterator[tuple[PodSetClaim, Flaw]]:
    """The rules of all templates of an object."""
    if (owner.group, owner.kind) == ("batch", "Job") and owner.annotations.get(ELASTIC) == "true":
        for claim in owner.pod_sets:
            yield from ((claim, flaw) for flaw in _elastic(claim.annotations))
    yield from _workload_levels(owner)
    grouped = [claim for claim in owner.pod_sets if claim.is_grouped]
    yield from _every_one(grouped, owner.annotations)
    yield from _pod_set_groups(grouped)


def _workload_levels(owner: TemplateOwner) -> Iterator[tuple[PodSetClaim, Flaw]]:
    """An object and its templates name one level of the whole workload, if they name any."""
    own = PodSetClaim("metadata", owner.annotations, None)
    if owner.pod_sets and owner.kind != "Pod":
        yield from ((own, flaw) for flaw in level_flaws(owner.annotations, WORKLOAD))
    claims = {claim.path: claim for claim in (own, *owner.pod_sets)}
    named = (
        workload_level.Named(workload_level.levels_in(claim.annotations), claim.path)
        for claim in claims.values()
    )
    for each, flaw in workload_level.contradictions(named):
        yield claims[each.path], flaw


def _every_one(
    claims: Sequence[PodSetClaim], of_owner: Strings
) -> Iterator[tuple[PodSetClaim, Flaw]]:
    """If one template of a workload says where its pods go, every template does.

    So it is if the workload itself does: it is no gang while none of its pods says anything. One
    that says "false" says nothing: no pod of it is a member. Kueue takes the word and then admits
    no such workload, since it names no level.
    Source: KEP-2724 "Validation"; kueue pkg/cache/scheduler/tas_flavor_snapshot.go (v0.16),
    levelKey.
    """
    asking = [claim for claim in claims if asks_for_topology(claim.annotations)]
    said = next((key for key in WORKLOAD if key in of_owner), "")
    for claim in claims if asking or said else ():
        if claim not in asking:
            why = (
                f"as '{asking[0].path}.annotations' does" if asking else f"beside the {said} above"
            )
            yield claim, _silent(claim.annotations, why)


def _silent(annotations: Strings, why: str) -> Flaw:
    """What is wrong with a template that requests nothing where it must."""
    if UNCONSTRAINED in annotations:
        problem = f"must be true: every template must request a topology, {why}"
        return invalid(annotation(UNCONSTRAINED), annotations[UNCONSTRAINED], problem)
    named = ", ".join(f"'{key}'" for key in MODES)
    return required("annotations", f"must contain one of {named}, {why}")


def _pod_set_groups(claims: Sequence[PodSetClaim]) -> Iterator[tuple[PodSetClaim, Flaw]]:
    """The rules of all templates that name one pod set group."""
    groups: dict[str, list[PodSetClaim]] = {}
    for claim in claims:
        if POD_SET_GROUP in claim.annotations:
            groups.setdefault(claim.annotations[POD_SET_GROUP], []).append(claim)
    for name, members in groups.items():
        parts = [
            pod_set_groups.Part(
                claim.pods,
                claim.annotations.get(REQUIRED),
                claim.annotations.get(PREFERRED),
                f"'{claim.path}.annotations'",
            )
            for claim in members
        ]
        yield from ((members[at], flaw) for at, flaw in pod_set_groups.flaws(name, parts))


def _elastic(annotations: Strings) -> Iterator[Flaw]:
    """The template of an elastic Job may not require or prefer a level."""
    for key in (REQUIRED, PREFERRED):
        if key in annotations:
            yield forbidden(annotation(key), f"may not be set when '{ELASTIC}' is 'true'")


def _pod_set_group(annotations: Strings) -> Iterator[Flaw]:
    name = annotations.get(POD_SET_GROUP)
    if name is None:
        return
    field = annotation(POD_SET_GROUP)
    if name.isascii() and name.isdecimal():
        yield invalid(field, name, "must not be a number")
    elif not 1 <= len(name) <= MOST_NAME:
        yield invalid(field, name, f"must have 1 to {MOST_NAME} characters")
    for key in SLICES:
        if key in annotations:
            yield forbidden(field, f"may not be set when '{key}' is specified")
    if REQUIRED not in annotations and PREFERRED not in annotations:
        neither = f"neither '{PREFERRED}' nor '{REQUIRED}'"
        yield forbidden(field, f"may not be set when {neither} is specified")


def _offset(annotations: Strings) -> Iterator[Flaw]:
    text = annotations.get(INDEX_OFFSET)
    if text is None:
        return
    if whole_number(text) is None:
        yield invalid(annotation(INDEX_OFFSET), text, "must be a non-negative integer")


def _slices(annotations: Strings, pods: int | None) -> Iterator[Flaw]:
    level, text = (annotations.get(key) for key in (SLICE_LEVEL, SLICE_SIZE))
    field = annotation(SLICE_SIZE)
    if text is None:
        if level is not None:
            yield required(field, f"must be set when '{SLICE_LEVEL}' is specified")
        return
    size = whole(text)
    yield from size_flaws(field, text, size)
    if size is not None and pods is not None and size > pods:
        yield invalid(field, text, f"must not be greater than pod set count {pods}")
    elif size is not None and size > 0 and pods is not None and pods % size:
        yield invalid(field, text, must_divide(pods))
    if level is None:
        yield forbidden(field, f"may not be set when '{SLICE_LEVEL}' is not specified")


def _layers(annotations: Strings, pods: int | None) -> Iterator[Flaw]:
    text, field = annotations[SLICE_LAYERS], annotation(SLICE_LAYERS)
    for key in (SLICE_LEVEL, SLICE_SIZE):
        if key in annotations:
            yield forbidden(field, f"may not be set when '{key}' is specified")
    if len(text) > MOST_LAYERS_TEXT:
        yield invalid(field, text, f"must have at most {MOST_LAYERS_TEXT} characters")
        return
    try:
        layers = LAYERS.decode(text)
    except (ValueError, RecursionError) as error:
        yield invalid(field, text, f"must be a valid JSON array: {error}")
        return
    if not 1 <= len(layers) <= MOST_LAYERS:
        yield invalid(field, text, "topology constraints must contain between 1 and 3 entries")
        return
    levels = [layer.topology for layer in layers]
    for index, layer in enumerate(layers):
        if not is_label_key(layer.topology):
            yield invalid(f"{field}[{index}].topology", layer.topology, _LABEL_KEY)
        if layer.topology in levels[:index]:
            also = f"also at index {levels.index(layer.topology)}"
            yield Flaw(f"{field}[{index}].topology", "Duplicate value", also, layer.topology)
        yield from _bounds(f"{field}[{index}].size", layer.size, layer.size)
    for index, (above, below) in enumerate(pairwise(layers), start=1):
        if below.size > 0 and above.size % below.size:
            yield invalid(f"{field}[{index}].size", below.size, must_divide_layer(above.size))
    coarsest = layers[0].size
    if pods is not None and coarsest > pods:
        yield invalid(field, coarsest, f"must not be greater than pod set count {pods}")
    elif pods is not None and coarsest > 0 and pods % coarsest:
        yield invalid(field, coarsest, must_divide(pods))


def size_flaws(field: str, text: str, size: int | None) -> Iterator[Flaw]:
    """A number of pods: an int32 of at least 1, and no more than Corral takes for a gang."""
    if size is None or abs(size) > INT32:
        yield invalid(field, text, "must be a numeric value")
    else:
        yield from _bounds(field, text, size)


def _bounds(field: str, value: str | int, size: int) -> Iterator[Flaw]:
    if size < 1:
        yield too_small(field, value, 1)
    elif size > MOST_PODS:
        yield invalid(field, value, f"must be less than or equal to {MOST_PODS}")


def whole(text: str) -> int | None:
    """The number in a decimal string, negative ones too; None for anything else."""
    return int(text) if _WHOLE.fullmatch(text) else None
