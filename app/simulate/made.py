"""What follows from the objects of a body: other objects and pods, checked and read.

object ──webhook's rules──▶ maker ──▶ objects, as the watch reads them
                              └─────▶ pods, as the webhook lets them in
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from app.dialects.grove.pod_gangs import PodGangRecord
from app.dialects.making import GANG, MAKERS, Misfit, Object, Part
from app.errors import DecodeError
from app.kube.core.objects import Record
from app.kube.core.turns import turn
from app.kube.watch.resource import Resource
from app.simulate.admitting import MOST_VALUE, Admission
from app.simulate.given import Given
from app.simulate.notes import notes_of
from app.simulate.view import Error
from app.state.engine import Engine

MOST_PODS = 10_000  # of one simulation
MOST_PARTS = 2 * MOST_PODS  # with the objects that are made beside them
MOST_MADE_BYTES = 64 * 2**20  # of all parts as JSON: 10,000 pods have 6 KB each


class TooLarge(DecodeError):
    """The objects would make more pods than are simulated."""


@dataclass(slots=True)
class Made:
    """What follows from one object of the body."""

    given: Given
    pods: list[bytes] = field(default_factory=list)
    """As JSON: read into objects they would take some times as much."""
    records: list[Record] = field(default_factory=list)
    errors: list[Error] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unread: str = ""
    """Why a part of it cannot be read."""


def resources_of(engine: Engine) -> Sequence[Resource]:
    """How objects of each kind are read for an engine; pods with the labels it keeps by now."""
    labels = engine.kept_keys.labels
    return engine.dialects.resources(engine.dialects.keeps, labels, engine.books.axis)


def _resource_of(resources: Iterable[Resource], content: Object) -> Resource | None:
    """How the watch reads an object of this kind and version; None: it is not watched."""
    version, kind = str(content.get("apiVersion", "")), content.get("kind")
    for each in resources:
        if each.kind.partition(".")[0] != kind:
            continue
        for one in (each, *each.older):
            root, _, _ = one.path.rpartition("/")
            if root in (f"/apis/{version}", f"/api/{version}"):
                return one
    return None


def with_scheduler(found: list[Made], ours: str) -> list[Made]:
    """A gang in Corral's own words is for Corral's scheduler, if it names no other."""
    for each in found:
        spec = each.given.content.get("spec")
        if each.given.kind == GANG and isinstance(spec, dict) and ours:
            spec.setdefault("schedulerName", ours.partition(",")[0].strip())
    return found


def make(found: Iterable[Made], admission: Admission, resources: Sequence[Resource]) -> None:
    """Objects and pods of each, checked and read as the webhook and the watch would.

    Raises: TooLarge.
    """
    pods = parts = made_bytes = 0
    for each in found:
        given = each.given
        each.errors.extend(admission.errors(given.group, given.kind, str(given), given.content))
        if each.errors:
            continue
        try:
            for part in MAKERS[given.group, given.kind](given.content):
                turn()
                parts, pods = parts + 1, pods + part.is_pod
                if pods > MOST_PODS or parts > MOST_PARTS:
                    raise TooLarge(f"{given}: with it there are more than {MOST_PODS} pods")
                made_bytes += len(msgspec.json.encode(part.content))
                if made_bytes > MOST_MADE_BYTES:
                    raise TooLarge(
                        f"{given}: with it there are more than {MOST_MADE_BYTES} bytes of pods and"
                        " what is made beside them"
                    )
                _take(each, part, admission, resources)
                if each.errors:
                    break
        except Misfit as error:
            value = str(error.value)[:MOST_VALUE]
            each.errors.append(
                Error(object=str(given), field=error.field, value=value, message=error.problem)
            )
        except TooLarge:
            raise
        except DecodeError as error:
            each.unread = each.unread or str(error)
        if each.unread and not each.errors:
            each.errors.append(Error(object=str(given), field="", message=each.unread))
        each.notes = list(dict.fromkeys(each.notes))
        if _is_suspended(given.content):
            each.notes.append(f"{given} is suspended: this is what becomes of it once it is not")


def _is_suspended(content: Object) -> bool:
    """Whether the controller of an object makes no pods of it for now; Kubeflow's has a policy."""
    spec = content.get("spec")
    policy = spec.get("runPolicy") if isinstance(spec, dict) else None
    places = (each for each in (spec, policy) if isinstance(each, dict))
    return any(each.get("suspend") is True for each in places)


def _take(made: Made, part: Part, admission: Admission, resources: Sequence[Resource]) -> None:
    """Read one part as the webhook and the watch would. Raises: Misfit."""
    try:
        if part.is_pod:
            _check_first(made, part.content, admission)
            if not made.errors:
                made.notes.extend(notes_of(part.content))
                made.pods.append(msgspec.json.encode(admission.pod(part.content)))
        elif (resource := _resource_of(resources, part.content)) is not None:
            record = resource.decode(msgspec.json.encode(part.content))
            made.records.append(record)
            if isinstance(record, PodGangRecord):
                admission.note_named(record.priority_class)
        elif part.content is made.given.content:
            version = made.given.content["apiVersion"]
            made.notes.append(f"{made.given.kind} of {version} is not read as Corral is set")
    except Misfit:
        raise
    except DecodeError as error:  # what is made after it may tell of which field
        made.unread = made.unread or str(error)


def _check_first(made: Made, pod: Object, admission: Admission) -> None:
    """The webhook checks the pods that a controller makes as well; they are alike."""
    if not made.pods and made.given.kind != "Pod":
        name = f"Pod {pod['metadata'].get('namespace')}/{pod['metadata'].get('name')}"
        made.errors.extend(admission.errors("", "Pod", name, pod))
