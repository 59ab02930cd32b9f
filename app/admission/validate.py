"""An object about to be stored -> everything that is wrong with what it says about gangs.

A change is refused only for what it brings in: whoever takes off a finalizer must not be asked to
mend an annotation first. A Job or StatefulSet that another controller made (a JobSet's Job) has a
part of the pods only, so their number is no bound there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from app import dialects
from app.admission.scope import Scope
from app.admission.templates import Template, controller_of, strings_of, template_of, templates
from app.dialects import validation
from app.dialects.membership import Mistake
from app.dialects.templates import TEMPLATES
from app.dialects.validation import ELASTIC, Flaw, PodSetClaim, Problem
from app.errors import DecodeError
from app.kube.core.decode import decode_pod

MOST_SHOWN = 256  # characters of a value in a message; annotations may have 256 KiB

_REASONS: dict[Problem, str] = {
    "Invalid value": "FieldValueInvalid",
    "Required value": "FieldValueRequired",
    "Forbidden": "FieldValueForbidden",
    "Duplicate value": "FieldValueDuplicate",
}


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing that is wrong, written as Kubernetes writes it."""

    field: str
    flaw: Flaw

    @property
    def reason(self) -> str:
        """The machine's word for it, as in a Status' causes."""
        return _REASONS[self.flaw.problem]

    @property
    def body(self) -> str:
        """The text without the field."""
        flaw = self.flaw
        value = "" if flaw.value is None else f": {_shown(flaw.value)}"
        return f"{flaw.problem}{value}: {flaw.text}"

    def __str__(self) -> str:
        return f"{self.field}: {self.body}"


@dataclass(frozen=True, slots=True)
class Thing:
    """An object as it comes: its kind, where it lives, its JSON decoded."""

    group: str
    kind: str
    namespace: str
    content: object


def validate(thing: Thing, before: object, scope: Scope) -> list[FieldError]:
    """Every error of the object; of a changed one (`before` is not None) those that are new.

    Order: by template, as the object has them.
    """
    errors = list(_errors(thing, scope))
    if before is None:
        return errors
    earlier = Thing(thing.group, thing.kind, thing.namespace, before)
    known = {str(error) for error in _errors(earlier, scope)}
    fresh = [error for error in errors if str(error) not in known]
    return [*fresh, *_changes(thing, before, scope)]


def is_known(group: str, kind: str) -> bool:
    """Whether objects of this kind are pods or make some."""
    return (group, kind) in TEMPLATES or (group, kind) == ("", "Pod")


def _errors(thing: Thing, scope: Scope) -> Iterator[FieldError]:
    ours = _templates(thing, scope)
    # What a controller puts on its pods may not be in the template it gives another one.
    is_part = thing.kind != "Pod" and bool(controller_of(thing.content))
    for template in ours:
        found = validation.flaws(template.labels, template.annotations, template.pods)
        yield from (_located(template.path, flaw) for flaw in found)
        if _is_elastic(thing):
            yield from (
                _located(template.path, flaw) for flaw in validation.elastic(template.annotations)
            )
        if not found and not is_part and (mistake := _mistake(template)) is not None:
            yield _located(template.path, mistake)
    claims = [
        PodSetClaim(_metadata(each.path), each.annotations, each.pods)
        for each in ours
        if each.is_grouped
    ]
    for claim, flaw in validation.together(claims):
        yield FieldError(f"{claim.path}.{flaw.field}", flaw)


def _templates(thing: Thing, scope: Scope) -> Sequence[Template]:
    """The templates that are ours to check: none of an object that Kueue manages."""
    content = thing.content
    if (thing.group, thing.kind) == ("", "Pod"):
        found = [template_of("", content)] if isinstance(content, dict) else []
    else:
        whole = template_of("", content if isinstance(content, dict) else {})
        if scope.is_kueues(whole.labels, whole.annotations):
            return ()
        found = list(templates(content, TEMPLATES.get((thing.group, thing.kind), ())))
    if controller_of(content):
        found = [
            each if each.is_grouped else template_of(each.path, each.content) for each in found
        ]
    return [
        each
        for each in found
        if scope.holds(thing.namespace, each.scheduler, each.labels, each.annotations, _gates(each))
    ]


def _changes(thing: Thing, before: object, scope: Scope) -> Iterator[FieldError]:
    """What a pod may not change any more."""
    if (thing.group, thing.kind) != ("", "Pod") or not isinstance(before, dict):
        return
    earlier = template_of("", before)
    for now in _templates(thing, scope):
        found = validation.change(earlier.labels, earlier.annotations, now.labels, now.annotations)
        yield from (_located(now.path, flaw) for flaw in found)


def _mistake(template: Template) -> Flaw | None:
    """What reading the gang would find wrong, where no rule names the field."""
    try:
        claim = dialects.read(decode_pod(msgspec.json.encode(template.content), dialects.is_kept))
    except DecodeError:
        return None  # not of the types the API server lets in: there is no such object
    if not isinstance(claim, Mistake):
        return None
    return Flaw("annotations", "Invalid value", claim.sentence.partition(": ")[2])


def _gates(template: Template) -> list[str]:
    spec = template.content.get("spec")
    gates = spec.get("schedulingGates") if isinstance(spec, dict) else None
    return [
        str(gate.get("name"))
        for gate in (gates if isinstance(gates, list) else ())
        if isinstance(gate, dict)
    ]


def _is_elastic(thing: Thing) -> bool:
    if (thing.group, thing.kind) != ("batch", "Job") or not isinstance(thing.content, dict):
        return False
    metadata = thing.content.get("metadata")
    whole = strings_of(metadata.get("annotations")) if isinstance(metadata, dict) else {}
    return whole.get(ELASTIC) == "true"


def _located(path: str, flaw: Flaw) -> FieldError:
    return FieldError(f"{_metadata(path)}.{flaw.field}", flaw)


def _metadata(path: str) -> str:
    return f"{path}.metadata" if path else "metadata"


def _shown(value: str | int) -> str:
    """A value as Go's %q and %d write it, cut where it is long."""
    if isinstance(value, int):
        return str(value)[:MOST_SHOWN]
    cut = value if len(value) <= MOST_SHOWN else value[:MOST_SHOWN] + "…"
    return msgspec.json.encode(cut).decode()


__all__ = ["FieldError", "Thing", "is_known", "validate"]
