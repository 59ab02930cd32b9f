"""The least set of victims in one domain: greedy first, then branch and bound.

    greedy    in the order given until the domain takes the gang; then the dearest that may stay do
    branch    each in turn goes, or stays for good
              cut where as much goes as with the best known set, or where all that may still go
              would not be enough

Visits have a bound that is counted, a lower one for the branches. Where it ends, the best set so
far stands, and is not proven.
Sets that differ only in the work that is lost are compared for fewer visits: it is a guess.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from topology.model.request import PODS_MAX
from topology.victims.table import Table
from topology.victims.trial import Books, Domain
from topology.victims.victim import NOTHING, Loss, loss_of

TINY = 1e-9  # what sums of fractions may be off by
WORK_VISITS = 250  # of one domain, once no set can be less but in work


@dataclass(frozen=True, slots=True)
class _Least:
    """What goes at least with some of a number of victims; in each list the cheapest come first."""

    places: list[float]
    """Places that the best 1, 2, … of them make at most."""
    alone: int
    """How many of them are in no gang."""
    pods: list[int]
    """Pods of the smallest 0, 1, … of them."""
    work: list[int]

    def loss(self, lacks: float) -> Loss | None:
        """With those that make so many places, and at least one; None if all of them do not."""
        number = max(bisect_left(self.places, lacks - TINY) + 1, 1)
        if number > len(self.places):
            return None
        return Loss(0, max(0, number - self.alone), self.pods[number], self.work[number])


class Branch:
    """One search in one domain."""

    def __init__(
        self,
        domain: Domain,
        table: Table,
        ones: Sequence[int],
        allowed: Mapping[str, int],
        bound: Loss,
        best_loss: Loss | None,
        greedy_visits: int,
        branch_visits: int,
        *,
        ends_none: bool = False,
    ) -> None:
        """`ones`: who may go, in the order in which they are tried.

        `allowed`: how many pods each budget lets go. `bound`: so much goes at least. `best_loss`:
        with the best set known elsewhere. `greedy_visits`, `branch_visits`: up to so many of the
        problem's it goes on. `ends_none`: no owner may give up.
        """
        self._domain = domain
        self._victims = table.candidates
        self._ones = ones
        self._allowed = allowed
        self._lasts = table.lasts
        self._ends_none = ends_none
        self._bound = bound
        self._greedy_visits, self._branch_visits = greedy_visits, branch_visits
        self._begun_at = domain.problem.visits
        self._losses = {one: table.loss(one) for one in ones}
        self._spent = Counter[str]()  # pods that go, by the budget that counts them …
        self._failed = Counter[str]()  # … and by the owner that does
        self._chosen: list[int] = []
        self._now = Books(domain)
        self._rest = Books(domain)  # as if all about whom nothing is decided were gone
        self._places = dict.fromkeys(ones, math.inf)  # more pods of the gang with each, at most
        self._lacks = 1.0  # so many places, and so many more of `_places` have to go
        self._least: dict[int, _Least] = {}  # of what goes with some of those from here on
        self._each: tuple[list[float], list[bool], list[int], list[int]] = ([], [], [], [])
        # ^ what `_least` is of, in the order of `_ones`: places, in no gang, pods, work
        self.best: list[int] | None = None
        self.best_loss = best_loss
        self.is_enough = True
        """The domain may take the gang without all of them."""
        self.is_cut_short = False
        """A set with which fewer end for good, or fewer gangs or pods go, may have been missed."""

    def run(self) -> list[int] | None:
        """The set with which the least goes, less than `best_loss`; None if there is none."""
        if self._now.fits():
            self._note(())
            return self.best
        for one in self._ones:
            self._rest.turn(one)
        self.is_enough = self._rest.may_fit()
        if self.is_enough and self._domain.problem.is_plain:
            self._places = self._domain.most_places(self._now, self._rest)
            self._lacks = self._domain.needed[0] - self._now.totals[0]
            useful = self._domain.useful(self._rest)
            self._ones = [one for one in self._ones if one in useful]
        self._begin_greedily()
        if self.is_enough:
            losses = [self._losses[one] for one in self._ones]
            self._each = (
                [self._places[one] for one in self._ones],
                [not loss.gangs for loss in losses],
                [loss.pods for loss in losses],
                [loss.lost_work for loss in losses],
            )
            self._walk()
        return self.best

    def _least_from(self, at: int) -> _Least:
        known = self._least.get(at)
        if known is None:
            places, alone, pods, work = self._each
            known = self._least[at] = _Least(
                list(accumulate(sorted(places[at:], reverse=True))),
                sum(alone[at:]),
                list(accumulate(sorted(pods[at:]), initial=0)),
                list(accumulate(sorted(work[at:]), initial=0)),
            )
        return known

    def _begin_greedily(self) -> None:
        gone: list[int] = []
        for one in self._ones:
            if self._is_used_up(self._greedy_visits):
                break
            if self._may_go(one):
                self._take(one)
                gone.append(one)
                if self._now.fits():
                    self._note(self._thinned(gone))
                    break
        for one in gone:
            self._give_back(one)

    def _thinned(self, gone: list[int]) -> list[int]:
        """Those that must go beside the others; leaves the books as they were."""
        stay: list[int] = []
        for one in sorted(gone, key=self._losses.__getitem__, reverse=True):
            if self._is_used_up(self._greedy_visits):
                break
            self._now.turn(one)
            if self._now.fits():
                stay.append(one)
            else:
                self._now.turn(one)
        for one in stay:
            self._now.turn(one)
        return [one for one in gone if one not in stay]

    def _walk(self) -> None:
        """Decide about one after the other; a stack, since there may be thousands."""
        # Of each that is decided about: what was lost and lacked before it, and whether it goes.
        decided: list[tuple[Loss, float, bool]] = []
        loss, lacks = NOTHING, self._lacks
        while True:
            if self._is_worth_it(len(decided), loss, lacks):
                one = self._ones[len(decided)]
                more = self._let_go(one, loss)
                if more is not None:
                    decided.append((loss, lacks, True))
                    loss, lacks = loss.plus(more), lacks - self._places[one]
                    continue
                if self._let_stay(one):
                    decided.append((loss, lacks, False))
                    continue
            while decided:
                loss, lacks, goes = decided.pop()
                one = self._ones[len(decided)]
                if not goes:
                    self._rest.turn(one)
                    continue
                self._chosen.pop()
                self._give_back(one)
                if self._let_stay(one):
                    decided.append((loss, lacks, False))
                    break
            else:
                return

    def _is_worth_it(self, at: int, loss: Loss, lacks: float) -> bool:
        """Whether something less may come of those from `at` on; those chosen do not suffice."""
        if at == len(self._ones) or self._is_over():
            return False
        least = self._least_from(at).loss(lacks)
        return least is not None and self._is_less(loss, least)

    def _let_go(self, one: int, loss: Loss) -> Loss | None:
        """What goes with one more that is gone from now on; None: it stays, or was the last."""
        if not (self._is_less(loss, self._losses[one]) and self._may_go(one)):
            return None
        owners = self._owners_lost(one)
        self._take(one)
        self._chosen.append(one)
        if not self._now.fits():
            own = self._losses[one]
            return own.plus(Loss(owners, 0, 0, 0)) if owners else own
        self._note(self._chosen)
        self._chosen.pop()
        self._give_back(one)
        return None

    def _let_stay(self, one: int) -> bool:
        """Have one stay for good, if the others may be enough."""
        self._rest.turn(one)
        if self._rest.may_fit():
            return True
        self._rest.turn(one)
        return False

    @property
    def _visits(self) -> int:
        return self._domain.problem.visits

    def _is_over(self) -> bool:
        """Whether the visits are used up."""
        is_least = self.best_loss is not None and self.best_loss[:3] <= self._bound[:3]
        if is_least and self._visits - self._begun_at >= WORK_VISITS:
            return True
        return self._is_used_up(self._branch_visits)

    def _is_used_up(self, most: int) -> bool:
        self.is_cut_short |= self._visits >= most
        return self.is_cut_short

    def _is_less(self, loss: Loss, more: Loss) -> bool:
        best = self.best_loss
        if best is None:
            return True
        # As `loss.plus(more) < best`, without the object: most of a walk is this.
        return (loss[0] + more[0], loss[1] + more[1], loss[2] + more[2], loss[3] + more[3]) < best

    def _note(self, chosen: Sequence[int]) -> None:
        loss = loss_of((self._victims[one] for one in chosen), self._lasts)
        if self.best_loss is None or loss < self.best_loss:
            self.best, self.best_loss = sorted(chosen), loss

    def _may_go(self, one: int) -> bool:
        """Whether budgets and owners let this one go beside those that are gone."""
        if self._ends_none and self._owners_lost(one):
            return False
        protected = self._victims[one].protected
        return not protected or all(
            self._spent[budget] + pods <= self._allowed.get(budget, 0) for budget, pods in protected
        )

    def _owners_lost(self, one: int) -> int:
        """How many owners give up if this one goes beside those that are gone, and not before."""
        return sum(
            self._failed[owner] <= self._lasts.get(owner, PODS_MAX) < self._failed[owner] + pods
            for owner, pods in self._victims[one].counted
        )

    def _take(self, one: int) -> None:
        self._now.turn(one)
        for owner, pods in self._victims[one].counted:
            self._failed[owner] += pods
        for budget, pods in self._victims[one].protected:
            self._spent[budget] += pods

    def _give_back(self, one: int) -> None:
        self._now.turn(one)
        for owner, pods in self._victims[one].counted:
            self._failed[owner] -= pods
        for budget, pods in self._victims[one].protected:
            self._spent[budget] -= pods
