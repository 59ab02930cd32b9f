"""Why a workload has no place: the numbers in Kueue's sentence and in Corral's, to be compared.

    topology "default" allows to fit only 3 out of 4 pod(s). Total nodes: 9; excluded: taint "t": 2
    gang ns/gang cannot be placed: 3 of 4 pods fit in one l/k; excluded nodes: taint "t" 2

Corral's sentence does not have every number of Kueue's: it names no more than four reasons why
nodes are left out, and no total of nodes; it says no more to fit than is needed, which Kueue does
where it is the leader that does not fit; over several domains it counts the slices of the outer
layer in all of them, Kueue in the best one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

REASONS_MAX = 4  # in a sentence of Corral's

_FITS = re.compile(r"(\d+) of (\d+) (pod|slice)s fit(?: in one (\S+?))?(?=[,;]|$)")
_LAYER = re.compile(r"(\d+) of (\d+) slices in ([^\s,;]+)")
_KUEUE_NONE = re.compile(r"doesn't allow to fit any of (\d+) (pod|slice)\(s\)")
_KUEUE_SOME = re.compile(r"allows to fit only (\d+) out of (\d+) (pod|slice)\(s\)")
_KUEUE_LAYER = re.compile(r"(\d+)/(\d+) slice\(s\) fit on level ([^\s;]+?)(?=[;.]? |;|\.?$)")
_NO_NODES = "no topology domains at level"
_OURS_ALONE = ("without a label of every level", "not ready or unschedulable")
_SAME_REASON = {"outside the domain of the pods that stay": "topologyDomain"}

# Kueue's words for a request that cannot be meant -> Corral's; both name the level.
_MISTAKES = (
    (r"no requested topology level(?: for slices)?: (\S+)", r"topology level not known: ([^;]+);"),
    (r"podset slice topology (\S+) is above", r"slices at level (\S+) are wider than"),
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The numbers of one sentence."""

    fitting: int
    needed: int
    unit: str
    in_one_domain: bool = True
    """Kueue does not say; so its own always do."""
    leads: bool = True
    """False: it is the leader that has no place."""
    layers: tuple[tuple[str, int, int], ...] = ()
    """Below the outermost one: level, slices that fit, slices needed."""
    excluded: tuple[tuple[str, int], ...] = ()
    shown: int = 0
    """How many reasons the sentence names."""


def of_kueue(reason: str) -> Verdict | None:
    """The numbers in a reason of Kueue's; None where it has none."""
    text, _, excluded = reason.partition("; excluded: ")
    pairs = [entry.rpartition(": ") for entry in excluded.split(", ")] if excluded else []
    reasons = tuple((name, int(number)) for name, _, number in pairs)
    layers = [(level, int(fit), int(need)) for fit, need, level in _KUEUE_LAYER.findall(text)]
    if layers:
        (_, fitting, needed), *below = layers
        inner = tuple((level, min(fit, need), need) for level, fit, need in below)
        return Verdict(min(fitting, needed), needed, "slice", layers=inner, excluded=reasons)
    if match := _KUEUE_NONE.search(text):
        return Verdict(0, int(match[1]), match[2], excluded=reasons)
    if match := _KUEUE_SOME.search(text):
        fitting, needed = int(match[1]), int(match[2])
        return Verdict(min(fitting, needed), needed, match[3], excluded=reasons)
    return None


def of_corral(sentence: str) -> Verdict | None:
    """The numbers in a sentence of Corral's; None where it has none."""
    text, _, excluded = sentence.partition("; excluded nodes: ")
    match = _FITS.search(text)
    if match is None:
        return None
    pairs = [entry.rpartition(" ") for entry in excluded.split(", ")] if excluded else []
    return Verdict(
        int(match[1]),
        int(match[2]),
        match[3],
        in_one_domain=bool(match[4]),
        leads="but not with leader" not in text,
        layers=tuple((level, int(fit), int(need)) for fit, need, level in _LAYER.findall(text)),
        excluded=tuple(
            (_kueues_reason(name), int(number))
            for name, _, number in pairs
            if name not in _OURS_ALONE
        ),
        shown=len(pairs),
    )


def _kueues_reason(name: str) -> str:
    if name.startswith("insufficient "):
        return f'resource "{name.removeprefix("insufficient ")}"'
    return _SAME_REASON.get(name, name)


def difference(sentence: str, reason: str) -> str:
    """How Corral's sentence differs from Kueue's reason; empty where it says the same."""
    ours, theirs = of_corral(sentence), of_kueue(reason)
    if reason.startswith(_NO_NODES) and ours is not None and not ours.fitting:
        return ""
    if ours is None or theirs is None:
        return "" if _is_same_mistake(sentence, reason) else f"{sentence}\n    not {reason}"
    wrong = [
        name
        for name, is_wrong in (
            ("fitting", _fitting(ours) != theirs.fitting and not _counts_apart(ours, theirs)),
            ("needed", ours.needed != theirs.needed),
            ("unit", ours.unit != theirs.unit and not theirs.layers),
            ("layers", ours.layers != theirs.layers),
            ("excluded", not _are_excluded_alike(ours, theirs)),
        )
        if is_wrong
    ]
    return f"{', '.join(wrong)}: {sentence}\n    not {reason}" if wrong else ""


def _fitting(ours: Verdict) -> int:
    # Over several domains Kueue counts no worker before the leader has a place.
    return 0 if not ours.leads and not ours.in_one_domain else ours.fitting


def _counts_apart(ours: Verdict, theirs: Verdict) -> bool:
    return bool(theirs.layers) and not ours.in_one_domain


def _are_excluded_alike(ours: Verdict, theirs: Verdict) -> bool:
    if ours.shown < REASONS_MAX:
        return sorted(ours.excluded) == sorted(theirs.excluded)
    return set(ours.excluded) <= set(theirs.excluded)


def _is_same_mistake(sentence: str, reason: str) -> bool:
    for theirs, ours in _MISTAKES:
        told, said = re.search(theirs, reason), re.search(ours, sentence)
        if told and said:
            return told[1] in said[1]
    return False
