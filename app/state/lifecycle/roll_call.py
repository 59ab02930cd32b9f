"""The roll call: a gang's members are sorted out again, and its plan and its phase follow.

    a member comes, goes or changes ──▶ owed ──▶ roll call ──▶ placeholders, plan, phase, reports

A roll call sorts all members of a gang, so it is not taken on every event but when it can matter:
at once when the last declared member appears or a planned one goes, before a verb about the gang
is answered if a member has come, gone or changed, and else on a tick. Large gangs rest between
the roll calls of ticks, which would take all of the engine's time otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from app.dialects.spec import GangSpec, LeafPods, Said
from app.state.domains.topologies import Topologies
from app.state.gang.gang import Gang
from app.state.gang.gangs import Gangs
from app.state.gang.last_places import LastPlaces
from app.state.gang.members.member import Member
from app.state.gang.members.membership import membership_status
from app.state.isolation import confined
from app.state.lifecycle.disruption import Disruptions
from app.state.objects.declared import Objects
from app.state.plan.planner import Planner
from app.state.report.messages import gangs as messages
from app.state.report.notes import Notes
from app.state.report.reports import Reports
from app.state.reserve import binding
from app.state.reserve.plans import Plans
from app.state.reserve.replacements import Replacements
from app.state.turns.budget import GANG, POD, Budget

REST_SECONDS = 1e-4  # per member, between two roll calls of ticks: one takes 4e-6 …
MOST_AT_ONCE = 256  # members of a gang whose roll call is cheap enough for every event
LONG_REST_SECONDS = 1e-3  # … where no other member's place depends on it


@dataclass(frozen=True, slots=True)
class RollCalls:
    """Takes the roll calls that gangs are owed (`Gangs.unreviewed`)."""

    objects: Objects
    topologies: Topologies
    gangs: Gangs
    planner: Planner
    last_places: LastPlaces
    replacements: Replacements
    disruptions: Disruptions
    plans: Plans
    reports: Reports
    notes: Notes
    budget: Budget

    def review_all(self, now: float) -> None:
        """Take the roll calls that are owed, but those of large gangs that had one just now.

        Those beyond the tick's budget are taken on the next one, in turns between namespaces.
        """
        self.budget.begin()
        for key in self.budget.in_turns(self.gangs.unreviewed):
            if self.budget.is_spent:
                return
            gang = self.gangs.by_key.get(key)
            if gang is None:
                self.gangs.end_review(key)
            elif self._is_rested(gang, now):
                with confined(self.planner.on_fault, "roll call of gang {}", key):
                    self._review_settled(gang, now)
                pods = len(gang.members) + len(gang.placeholders)
                self.budget.spend(key.namespace, GANG + POD * pods)

    def _is_rested(self, gang: Gang, now: float) -> bool:
        if len(gang.running) == len(gang.members):
            return True  # no member waits
        rest = REST_SECONDS if self.gangs.unreviewed[gang.key] else LONG_REST_SECONDS
        return now >= gang.reviewed_at + rest * len(gang.members)

    def review_soon(self, gang: Gang, now: float) -> None:
        """Take a roll call, or have it taken on a tick if that of a large gang was just taken.

        Who may write an object of a gang may write it thirty times a second.
        """
        pods = len(gang.members)
        if pods <= MOST_AT_ONCE or now >= gang.reviewed_at + REST_SECONDS * pods:
            self.review(gang, now)
        else:
            self.gangs.owe_review(gang)

    def review_now(self, gang: Gang, now: float) -> None:
        """Take this gang's roll call if it is owed and pressing."""
        if self.gangs.unreviewed.get(gang.key):
            self._review_settled(gang, now)

    def _review_settled(self, gang: Gang, now: float) -> None:
        """Take the roll call between two events, when all pods are as the watch has them."""
        if self.planner.is_ready:  # else some lists are missing
            gang.succeeded.settle()
        self.review(gang, now)

    def review(self, gang: Gang, now: float) -> None:
        """Sort the members out again, drop what of the plan no longer stands, move the phase."""
        self.gangs.end_review(gang.key)
        if gang.birth is not None and not gang.members and _awaits_its_first(gang):
            self.forget_founder(gang)
            return
        if self.planner.is_ready:
            gang.reviewed_at = now
        if gang.succeeded.is_unsettled:  # in the middle of a list
            self.gangs.owe_review(gang)
        gang.roll_calls += 1

        ran, was = bool(gang.membership.bound), gang.membership.spec
        self.sort_out(gang, gang.members.values())
        if _is_another(gang):
            gang.succeeded.begin_anew()
            self.notes.hurry(gang, now)
            self.sort_out(gang, gang.members.values())
        self.planner.families.review(gang)
        self.last_places.note(gang)
        if ran and not gang.membership.bound:
            binding.progress(gang, now)  # what is planned starts from here, as a whole
        if gang.ending or gang.preempted is not None:
            self.disruptions.review(gang, now)
        if gang.ending:  # no pod joins it
            gang.membership = replace(
                gang.membership, unbound=(), apart=(), to_come=(), vacant=0, is_complete=False
            )
        if self.gangs.joining:
            self._await_binding(gang, now)
        self.plans.review_wait(gang, now)
        if self.objects.names_keys:
            self._hold_back(gang, now)
        self._lose_outgrown(gang, was, now)
        self.notes.look(gang, now)
        given_up = self.replacements.review(gang, now)
        if given_up:
            self.reports.places_given_up(gang, given_up)
        self.plans.drop_outdated(gang, now)
        if not gang.members:
            self.gangs.remove(gang)
            self.planner.leave(gang)
            self.reports.forget(gang.key)
            return
        self.reports.roll_call(gang)
        self.plans.marks.note_change(gang)
        self.plans.make_in_turn(gang, now)

    def sort_out(self, gang: Gang, members: Collection[Member]) -> None:
        """Sort out these members of a gang."""

        def spec_of(
            said: Sequence[Said], ended: Sequence[Said], pods: Mapping[str, LeafPods]
        ) -> GangSpec | None:
            spec = self.objects.spec(gang.key, said, ended, pods)
            if spec is None:
                return None
            spec = self.topologies.resolved(spec)
            return spec if gang.birth is None else replace(spec, reserves_all=True)

        gang.membership = membership_status(members, spec_of, gang.succeeded.gone)

    def forget_founder(self, gang: Gang) -> None:
        """Note that the pod is not there by which a gang was sorted out: it is to come, if ever."""
        gang.membership = replace(gang.membership, joining=(), unbound=())

    def _await_binding(self, gang: Gang, now: float) -> None:
        """Keep a gang from starting while a pod that is to join it is being bound."""
        names = (name for key, name in self.gangs.joining.values() if key == gang.key)
        name, status = next(names, None), gang.membership
        if name is None or status.spec is None or gang.has_started:
            return
        if gang.plan.nodes:
            self.plans.lose(
                gang, f"pod {name} is part of it now, and is being bound", now, losses=0
            )
        spec = replace(status.spec, awaits=messages.being_bound(name))
        gang.membership = replace(status, spec=spec, unbound=(), apart=(), is_complete=False)

    def _lose_outgrown(self, gang: Gang, was: GangSpec | None, now: float) -> None:
        """Give up a plan that was made when less was required: by an object, or of its levels."""
        spec = gang.membership.spec
        if spec is None or spec.is_said or spec == was:
            return
        if not gang.plan.nodes.keys() - gang.binding.posted:
            return
        if was is None or spec.requires_more_than(was):
            self.plans.lose(gang, "what it requires of levels has changed", now, losses=0)

    def _hold_back(self, gang: Gang, now: float) -> None:
        """Keep a gang from starting whose pods were read without labels that its objects name."""
        lacking = self.objects.lacking(gang.key)
        if lacking is None:
            return
        problem = gang.membership.problem
        if lacking.refused:
            problem = problem or messages.keys_refused(lacking.refused)
        gang.membership = replace(gang.membership, problem=problem, is_unread=True)
        if gang.plan.nodes.keys() - gang.binding.posted:
            self.plans.lose(gang, "the labels of its pods are read again", now)


def _is_another(gang: Gang) -> bool:
    """Whether the gang has finished, and only pods are there that were made under its name since.

    Until the last pod of the one that has finished is gone they are in excess of that.
    """
    spec = gang.membership.spec
    has_ended = spec is not None and gang.succeeded.is_all_of(spec.pods)
    return has_ended and not gang.membership.bound


def _awaits_its_first(gang: Gang) -> bool:
    """Whether no pod of a gang has come yet: all its places are held for pods to come."""
    return bool(gang.plan.nodes) and gang.plan.nodes.keys() <= gang.placeholders.keys()
