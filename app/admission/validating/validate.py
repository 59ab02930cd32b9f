"""An object about to be stored -> everything that is wrong with what it says about gangs.

A change is refused only for what it brings in: an update that takes off a finalizer must not
require that an annotation be mended first. An error that was there before at another place of a
list, with the same value, is not new. A Job or StatefulSet that another controller made (a JobSet's
Job) has a part of the pods only, so their number is no bound there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import msgspec

from app.admission.scope import Scope
from app.admission.validating.templates import Template, controller_of, template_of, templates
from app.dialects.dialect import Known, PodSetClaim, PodsMade, TemplateOwner, none_known
from app.dialects.flaw import Flaw, FlawKind
from app.dialects.registry import Dialects, Reading
from app.errors import DecodeError
from app.kube.core.objects import PodRecord
from app.kube.decoding.decode import decode_pod

_REASONS: dict[FlawKind, str] = {
    "Invalid value": "FieldValueInvalid",
    "Required value": "FieldValueRequired",
    "Forbidden": "FieldValueForbidden",
    "Duplicate value": "FieldValueDuplicate",
    "Unsupported value": "FieldValueNotSupported",
    "Too long": "FieldValueTooLong",
    "Too many": "FieldValueTooMany",
}
# Of one object, at 5 us each. Of a change of an object with so many it cannot be told which are
# new: it is let in.
MOST_ERRORS = 256
_NUMBER = re.compile(r"\[[0-9]+\]")  # of an entry of a list, in a field


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing that is wrong, written as Kubernetes writes it."""

    field: str
    flaw: Flaw

    @property
    def reason(self) -> str:
        """The machine's word for it, as in a Status' causes."""
        return _REASONS[self.flaw.kind]

    @property
    def body(self) -> str:
        """The text without the field."""
        return self.flaw.body

    @property
    def wherever(self) -> tuple[str, str]:
        """The error, wherever in a list it is."""
        return _NUMBER.sub("[]", self.field), self.body

    def __str__(self) -> str:
        return f"{self.field}: {self.body}"


POD = ("", "Pod")  # group and kind


@dataclass(frozen=True, slots=True)
class Thing:
    """An object as it comes: its kind, where it lives, its JSON decoded."""

    group: str
    kind: str
    namespace: str
    content: object


@dataclass(frozen=True, slots=True)
class Validator:
    """Checks objects by the rules of every vocabulary."""

    scope: Scope
    dialects: Dialects
    topology: Known = none_known
    """The topologies that objects may name, as the watch shows them."""

    def is_known(self, group: str, kind: str) -> bool:
        """Whether objects of this kind are pods or make some, or have rules of their own."""
        return (
            (group, kind) == POD
            or bool(self.dialects.templates(group, kind))
            or self.dialects.object_rules(group, kind) is not None
        )

    def errors(self, thing: Thing, before: object = None) -> list[FieldError]:
        """Every error of the object; of a changed one (`before` is not None) those that are new.

        Order: by template, as the object has them; those of all templates together; those of the
        object itself. MOST_ERRORS at most, and then what a pod may not change any more.
        Raises: DecodeError for an object with rules that is not as the API server would send it.
        """
        if before is None:
            return self._first_errors(thing)
        errors = self._first_errors(thing, before)
        if errors:
            earlier = self._first_errors(Thing(thing.group, thing.kind, thing.namespace, before))
            errors = _new(errors, earlier) if len(earlier) < MOST_ERRORS else []
        return [*errors, *self._changes(thing, before)]

    def pod_errors(
        self, pod: PodRecord, namespace: str, reading: Reading | None = None
    ) -> list[FieldError]:
        """Every error of a pod that is about to be created there: the same, at less cost.

        `reading`: of a pod that is known to be ours, what it says.
        """
        if reading is None and not self._is_ours_to_check(pod, namespace):
            return []
        found = (_located("", flaw) for flaw in self.dialects.rules(pod, None, reading))
        return list(islice(found, MOST_ERRORS))

    def _is_ours_to_check(self, pod: PodRecord, namespace: str) -> bool:
        return self.scope.covers(
            namespace, pod.scheduler, pod.labels
        ) and not self.dialects.is_managed(pod.labels, pod.annotations, pod.gates, pod.pod_group)

    def _first_errors(self, thing: Thing, before: object = None) -> list[FieldError]:
        return list(islice(self._errors(thing, before), MOST_ERRORS))

    def _errors(self, thing: Thing, before: object) -> Iterator[FieldError]:
        ours = self._templates(thing)
        for template in ours:
            for flaw in self._flaws(template):
                yield _located(template.path, flaw)
        pod_sets = tuple(
            PodSetClaim(
                _metadata(each.path), each.annotations, each.pods, each.is_grouped, each.scheduler
            )
            for each in ours
        )
        content = thing.content if isinstance(thing.content, dict) else {}
        annotations = template_of("", content).annotations
        owner = TemplateOwner(thing.group, thing.kind, annotations, pod_sets, content)
        for claim, flaw in self.dialects.rules_together(owner):
            yield FieldError(f"{claim.path}.{flaw.field}", flaw)
        yield from (FieldError(flaw.path, flaw) for flaw in self._object_flaws(thing, before))

    def _object_flaws(self, thing: Thing, before: object) -> Iterator[Flaw]:
        """Every rule of its kind that an object breaks, if it is ours."""
        rules = self.dialects.object_rules(thing.group, thing.kind)
        if rules is None:
            return iter(())
        was = None if before is None else msgspec.json.encode(before)
        checked = rules.check(msgspec.json.encode(thing.content), was, self.topology)
        return checked.flaws if self._are_ours(thing, checked.pods) else iter(())

    def _are_ours(self, thing: Thing, made: Sequence[PodsMade] | None) -> bool:
        """Whether an object that makes these pods is checked; None: it does not say which."""
        if made is None:
            return not thing.namespace or self.scope.namespaces.selects(thing.namespace)
        return any(self.scope.covers(thing.namespace, pods.scheduler, pods.labels) for pods in made)

    def _flaws(self, template: Template) -> Iterator[Flaw]:
        return self.dialects.rules(_pod_of(template), template.pods)

    def _templates(self, thing: Thing) -> Sequence[Template]:
        """The templates that are ours to check: none of an object that another controller has."""
        content = thing.content
        if (thing.group, thing.kind) == POD:
            found = [template_of("", content)] if isinstance(content, dict) else []
        else:
            whole = template_of("", content if isinstance(content, dict) else {})
            if self.dialects.is_managed(whole.labels, whole.annotations):
                return ()
            places = self.dialects.templates(thing.group, thing.kind)
            found = list(templates(content, places))
        if controller_of(content):
            found = [
                each if each.is_grouped else template_of(each.path, each.content) for each in found
            ]
        return [each for each in found if self._is_ours(thing, each)]

    def _is_ours(self, thing: Thing, template: Template) -> bool:
        return self.scope.covers(
            thing.namespace, template.scheduler, template.labels
        ) and not self.dialects.is_managed(
            template.labels, template.annotations, _gates(template), _pod_group(template)
        )

    def _changes(self, thing: Thing, before: object) -> Iterator[FieldError]:
        """What a pod may not change any more."""
        if (thing.group, thing.kind) != POD or not isinstance(before, dict):
            return
        earlier = _pod_of(template_of("", before))
        for template in self._templates(thing):
            found = self.dialects.change(earlier, _pod_of(template))
            yield from (_located(template.path, flaw) for flaw in found)


def _new(errors: list[FieldError], earlier: list[FieldError]) -> list[FieldError]:
    """The errors that were not there before, or not so often."""
    left = Counter(error.wherever for error in earlier)
    found = []
    for error in errors:
        left[error.wherever] -= 1
        if left[error.wherever] < 0:
            found.append(error)
    return found


def _pod_of(template: Template) -> PodRecord:
    """The pod that a template makes; of one with a field of another type, what its metadata says.

    Objects of custom resources may have such fields: not every schema looks into templates.
    """
    try:
        return decode_pod(msgspec.json.encode(template.content), _everything)
    except DecodeError:
        metadata = {"labels": template.labels, "annotations": template.annotations}
        return decode_pod(msgspec.json.encode({"metadata": metadata}), _everything)


def _everything(_key: str) -> bool:
    return True


def _gates(template: Template) -> list[str]:
    spec = template.content.get("spec")
    gates = spec.get("schedulingGates") if isinstance(spec, dict) else None
    return [
        str(gate.get("name"))
        for gate in (gates if isinstance(gates, list) else ())
        if isinstance(gate, dict)
    ]


def _pod_group(template: Template) -> str:
    spec = template.content.get("spec")
    group = spec.get("schedulingGroup") if isinstance(spec, dict) else None
    return str(group.get("podGroupName") or "") if isinstance(group, dict) else ""


def _located(path: str, flaw: Flaw) -> FieldError:
    return FieldError(f"{_metadata(path)}.{flaw.field}", flaw)


def _metadata(path: str) -> str:
    return f"{path}.metadata" if path else "metadata"


__all__ = ["FieldError", "Thing", "Validator"]
