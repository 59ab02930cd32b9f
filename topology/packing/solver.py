"""Packs what the tables are too small for, where HiGHS is installed: `pip install corral[exact]`.

A mixed integer program with nothing to optimise: a column per shape and node that takes it, a row
per resource and node and per shape. A solver works in floating point: it may find a packing,
which is checked in integers, and it never proves that there is none. It runs on one thread and is
bounded by branches, never by time, so that equal questions get equal answers.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from topology.model.resources import Counts
from topology.packing.patterns import Problem, Work

_BRANCHES = 20  # branches that may be tried
_COLUMN = 50_000  # cells it counts as, for each shape on each node


def solve(problem: Problem, work: Work) -> Counts | None:
    """A packing (S, M) as HiGHS finds it, if it is installed; None also where it finds none."""
    try:
        highspy: Any = import_module("highspy")
    except ImportError:
        return None
    free = np.repeat(problem.free, problem.nodes, axis=1)
    most = np.repeat(problem.most, problem.nodes, axis=1)
    shapes, nodes = most.nonzero()
    if not work.spend(shapes.size * _COLUMN):
        return None
    solver = highspy.Highs()
    for option, setting in (
        ("output_flag", False),
        ("threads", 1),
        ("mip_max_nodes", _BRANCHES),
        ("mip_max_stall_nodes", _BRANCHES),
    ):
        solver.setOptionValue(option, setting)
    solver.passModel(_model(highspy, problem, free, most))
    solver.run()
    found = solver.getSolution().col_value
    if len(found) != shapes.size:
        return None
    placed = np.zeros_like(most)
    placed[shapes, nodes] = np.rint(np.clip(found, 0, most[shapes, nodes])).astype(np.int64)
    return placed if _is_packing(problem, free, placed) else None


def _model(highspy: Any, problem: Problem, free: Counts, most: Counts) -> Any:
    """The question as HiGHS has it: whole numbers of pods, nothing to be made small."""
    shapes, nodes = most.nonzero()
    resources, width = free.shape
    # Per column its entries: one for its shape, one for each resource it may run out of.
    row = np.arange(resources)[None, :] * width + nodes[:, None]
    amount = problem.requests[shapes] / np.maximum(free[:, nodes].T, 1)
    row = np.column_stack([row, resources * width + shapes])
    amount = np.column_stack([amount, np.ones(shapes.size)])
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = shapes.size, resources * width + problem.pods.size
    model.col_cost_ = np.zeros(shapes.size)
    model.col_lower_ = np.zeros(shapes.size)
    model.col_upper_ = most[shapes, nodes].astype(np.float64)
    model.integrality_ = [highspy.HighsVarType.kInteger] * shapes.size
    pods = problem.pods.astype(np.float64)
    model.row_lower_ = np.concatenate([np.full(free.size, -highspy.kHighsInf), pods])
    model.row_upper_ = np.concatenate([np.minimum(free.ravel(), 1).astype(np.float64), pods])
    is_entry = amount != 0
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = np.append(0, np.cumsum(is_entry.sum(axis=1)))
    model.a_matrix_.index_ = row[is_entry]
    model.a_matrix_.value_ = amount[is_entry]
    return model


def _is_packing(problem: Problem, free: Counts, placed: Counts) -> bool:
    """All pods are placed and fit, in whole numbers. Shapes: free (R, M), placed (S, M)."""
    if (placed.sum(axis=1) != problem.pods).any():
        return False
    left = free.copy()
    for shape, request in enumerate(problem.requests):
        left -= request[:, None] * placed[shape]
        np.maximum(left, -1, out=left)
    return bool((left >= 0).all())
