"""The least of all sets of victims: which domain, and who there.

    all gone ─▶ fits nowhere: no victims            else the lowest priority that is enough
    end no owner for good ─▶ if there is such a set, it is less than any other
    every domain, lowest bound first ─▶ `branch` in it, for a part of what is left of the visits
        ─▶ stop where the bound is the best loss
    those not searched to the end ─▶ `branch` again, for the rest
    the best ─▶ `thin`: those that may stay beside it stay ─▶ placed by the search itself

Every domain is compared, not the first that works. How narrow a domain is plays no part: a gang
that prefers a level and would fit without it has no victims, and where it needs some, the fewest
go.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np

from topology.fit.view import Options
from topology.model.answer import NoFit, Placement
from topology.model.capacity import Capacity
from topology.model.request import Gang
from topology.model.resources import Mask, Rows
from topology.model.tree import Tree
from topology.nested.parts import root_of
from topology.nested.walk import is_too_varied, not_tried
from topology.victims.branch import Branch
from topology.victims.outlook import Outlook, Prospect
from topology.victims.table import Table
from topology.victims.thin import thinned
from topology.victims.trial import Domain, Problem
from topology.victims.victim import NOTHING, Loss, NoVictims, Victims, loss_of

VISITS = 9_000  # of one call: nodes whose books change; a search counts for a hundred and more
SHARE = 8  # one part in so many of the visits left is for the branches of one domain at first
MOST_ONES = 64  # victims of one domain that are tried against each other; of more, the cheapest
MOST_ALIKE = 8  # domains that are tried where only less work could be lost than in the best …
ALIKE_SHARE = 3  # … until one part in so many of the visits is used up
NUMBERS = 4  # kept for each kind of the gang's pods and each node

_NO_OPTIONS = Options()


def victims(
    tree: Tree,
    capacity: Capacity,
    gang: Gang,
    masks: Mapping[Hashable, Mask],
    table: Table,
    allowed: Mapping[str, int],
    options: Options = _NO_OPTIONS,
    visits: int = VISITS,
) -> Victims | NoVictims:
    """Who has to go so that the gang has a place; no victims if it has one.

    `table`: who may go, of these books. `allowed`: how many pods of each budget may go; of one
    that is not named, none.
    Raises: as `walk.find`.
    """
    if is_too_varied(tree, root_of(tree, gang, options.unconstrained), NUMBERS):
        return NoVictims(not_tried(gang, None), is_cut_short=True)
    return _Choice(Problem(tree, capacity, gang, masks, options, table), allowed, visits).run()


class _Choice:
    def __init__(self, problem: Problem, allowed: Mapping[str, int], visits: int) -> None:
        self._problem = problem
        self._table = problem.table
        self._allowed = allowed
        self._most_visits = visits
        self._is_cut_short = False

    def run(self) -> Victims | NoVictims:
        now = self._problem.without(np.zeros(0, dtype=np.intp))
        if isinstance(now, Placement):
            return Victims((), 0, NOTHING, now)
        everyone = np.arange(len(self._table.candidates))
        why = self._problem.without(everyone)
        if isinstance(why, NoFit):
            return NoVictims(why)
        is_walled, budgets = self._table.walled(self._allowed)
        free = everyone[~is_walled]
        if free.size < everyone.size:
            why = self._problem.without(free)
            if isinstance(why, NoFit):
                return NoVictims(why, budgets)
        for priority in self._priorities(free):
            best = self._least(free[self._table.ranks[free] <= priority])
            if best is not None:
                return self._answer(best)
        return NoVictims(now, budgets, self._problem.visits, self._is_cut_short)

    def _is_over(self) -> bool:
        """Whether the visits are used up."""
        return self._problem.visits >= self._most_visits

    # -- who may go ------------------------------------------------------------------------------

    def _priorities(self, ones: Rows) -> list[int]:
        """Those at and below which enough may go, the lowest first."""
        ranks = np.unique(self._table.ranks[ones])
        too_low, enough = -1, ranks.size - 1
        while enough - too_low > 1 and not self._is_over():
            middle = (too_low + enough) // 2
            if self._is_enough(ones[self._table.ranks[ones] <= ranks[middle]]):
                enough = middle
            else:
                too_low = middle
        found: list[int] = ranks[enough:].tolist()
        return found

    def _is_enough(self, gone: Rows) -> bool:
        return isinstance(self._problem.without(gone), Placement)

    def _least(self, ones: Rows) -> Rows | None:
        """The least set of these, one with which no owner gives up if there is one."""
        spared = ones[~self._table.ends[ones]]
        may_end = spared.size < ones.size or bool(self._table.is_counted[ones].any())
        if may_end and self._is_enough(spared):
            best = self._in_domains(spared, ends_none=True)
            if best is not None:
                return best
        return self._in_domains(ones)

    # -- which of them ---------------------------------------------------------------------------

    def _in_domains(self, ones: Rows, *, ends_none: bool = False) -> Rows | None:
        best: Rows | None = None
        best_loss: Loss | None = None
        alike = 0
        unproven: list[Prospect] = []
        for prospect in Outlook(self._problem, ones).prospects():
            if best_loss is not None:
                if prospect.bound[:3] > best_loss[:3] or alike == MOST_ALIKE:
                    break  # and no later one could be less, or in more than work
                if not prospect.bound < best_loss:
                    continue
                if prospect.bound[:3] == best_loss[:3]:
                    if self._problem.visits * ALIKE_SHARE >= self._most_visits:
                        break
                    alike += 1
            if self._is_over():
                self._is_cut_short = True
                break
            found, loss, is_proven = self._in_domain(
                prospect, best_loss, self._share(), ends_none=ends_none
            )
            if found is not None:
                best, best_loss = found, loss
            if not is_proven:
                unproven.append(prospect)
        for prospect in unproven:
            if best_loss is not None and prospect.bound[:3] >= best_loss[:3]:
                continue
            if self._is_over():
                self._is_cut_short = True
                break
            found, loss, is_proven = self._in_domain(
                prospect, best_loss, self._most_visits, ends_none=ends_none
            )
            if found is not None:
                best, best_loss = found, loss
            self._is_cut_short |= not is_proven
        return best

    def _share(self) -> int:
        """Up to so many visits the branches of the next domain go on, where there are others."""
        if self._problem.level < 0:
            return self._most_visits
        return self._problem.visits + (self._most_visits - self._problem.visits) // SHARE

    def _in_domain(
        self,
        prospect: Prospect,
        best_loss: Loss | None,
        branch_visits: int,
        *,
        ends_none: bool,
    ) -> tuple[Rows | None, Loss | None, bool]:
        """The least set in one domain, what goes with it, and whether that is proven."""
        most = MOST_ONES
        while not prospect.bound.gangs and most < prospect.bound.pods:
            most *= 4  # at once: so many pods in no gang, and that is what goes at least
        while True:
            ones = prospect.ones[:most]
            branch = Branch(
                Domain(self._problem, prospect.subtree, ones),
                self._table,
                ones,
                self._allowed,
                prospect.bound,
                best_loss,
                self._most_visits,
                branch_visits,
                ends_none=ends_none,
            )
            found = branch.run()
            is_all = len(ones) == len(prospect.ones)
            if found is not None or is_all or (branch.is_enough and best_loss is not None):
                break
            most *= 4
        best = branch.best_loss
        is_least = best is not None and best[:3] <= prospect.bound[:3]
        is_proven = is_least or (is_all and not branch.is_cut_short)
        if found is None:
            return None, None, is_proven
        gone = np.array(found, dtype=np.intp)
        if not (self._problem.is_plain or self._is_enough(gone)):
            return None, None, False
        return gone, best, is_proven

    # -- the answer ------------------------------------------------------------------------------

    def _answer(self, ones: Rows) -> Victims | NoVictims:
        """The set, without those that the gang does not need to be gone."""
        gone, is_thin = thinned(self._problem, ones.tolist())
        answer = self._problem.without(np.array(gone, dtype=np.intp))
        if isinstance(answer, NoFit):
            return NoVictims(answer, (), self._problem.visits, is_cut_short=True)
        chosen = [self._table.candidates[one] for one in sorted(gone)]
        return Victims(
            tuple(victim.key for victim in chosen),
            max(victim.rank for victim in chosen),
            loss_of(chosen, self._table.lasts),
            answer,
            self._problem.visits,
            is_proven=is_thin and not self._is_cut_short,
        )
