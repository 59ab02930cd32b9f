"""README's pictures of the places that are chosen: drawn anew from the recorded data, as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.quality import allocation, locality
from topology import DomainOrder

ORDER = 0  # of the pods
EVERY = 20  # pods: a point of a curve
MOST_EXTRA = 6  # switches over the least that have a column of their own
OURS, OTHER = "#1f6feb", "#9a6700"
# Letters stay text, and the same data make the same file.
SVG = {"svg.fonttype": "none", "svg.hashsalt": "corral", "font.family": "sans-serif"}
NO_DATE = {"Date": None}


def racks(traces: Mapping[str, allocation.Trace], settings: Mapping[str, Any], to: Path) -> None:
    """Racks in which nothing runs, and GPUs given out, as pods ask for more and more of them."""
    with mpl.rc_context(SVG):
        figure = Figure(figsize=(9, 5), layout="constrained")
        axes = figure.subplots(2, len(traces), sharex=True, sharey="row", squeeze=False)
        for (free, given), (name, of) in zip(axes.T, traces.items(), strict=True):
            for label, colour, chosen in (
                (", ".join(settings), OURS, settings),
                ("by domains alone", OTHER, {}),
            ):
                course = allocation.replayed(of, ORDER, **chosen).course
                points = (*course[:-1:EVERY], course[-1])
                asked = [100 * each.asked for each in points]
                free.plot(asked, [each.free_racks for each in points], colour, label=label)
                given.plot(asked, [100 * each.given for each in points], colour)
            free.set_title(f"pods of the {name} trace", fontsize=10)
            free.set_ylim(bottom=0)
            given.plot([0, 100], [0, 100], ":", color="grey")
            given.set_xlabel("GPUs asked for, %")
        axes[0, 0].set_ylabel("racks in which nothing runs")
        axes[1, 0].set_ylabel("GPUs given out, %")
        axes[0, 0].legend()
        _write(figure, to)


def switches(replays: Mapping[str, tuple[locality.Partition, float]], to: Path) -> None:
    """How many jobs get so many leaf switches more than the least there can be.

    Of each partition with a share of its hosts closed.
    """
    with mpl.rc_context(SVG):
        figure = Figure(figsize=(9, 3), layout="constrained")
        each_axes = figure.subplots(1, len(replays), sharey=True, squeeze=False)[0]
        for axes, (case, (of, closed)) in zip(each_axes, replays.items(), strict=True):
            least = locality.least(of)
            for offset, label, colour, order in (
                (-0.2, "fewest_domains", OURS, DomainOrder.FEWEST),
                (0.2, "as Kueue chooses", OTHER, DomainOrder.TIGHTEST),
            ):
                found = locality.replayed(of, order, closed=closed)
                extra = [more - few for more, few in zip(found, least, strict=True)]
                _columns(axes, extra, offset, colour, label)
            axes.set_title(f"{case}: {len(of.jobs)} jobs", fontsize=10)
            axes.set_xlabel("leaf switches over the least")
        each_axes[0].set_ylabel("jobs")
        each_axes[0].legend()
        _write(figure, to)


def _columns(axes: Axes, extra: Sequence[int], offset: float, colour: str, label: str) -> None:
    """Columns of the jobs with one switch too many and more; the others are in place."""
    at = range(1, MOST_EXTRA + 1)
    counted = [sum(min(each, MOST_EXTRA) == more for each in extra) for more in at]
    axes.bar([more + offset for more in at], counted, 0.4, color=colour, label=label)
    axes.set_xticks(at, [*map(str, at[:-1]), f"{MOST_EXTRA}+"])


def _write(figure: Figure, to: Path) -> None:
    figure.savefig(to, format="svg", metadata=NO_DATE)
