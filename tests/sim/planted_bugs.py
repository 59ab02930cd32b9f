"""The bugs that the simulator has to find, in the order of their numbers.

Each is the smallest change that breaks what its sentence says.
"""

from __future__ import annotations

from tests.sim.mode import GROWING, PREEMPTING
from tests.sim.planted_syntax import Change, Planted

PLANTED = (
    Planted(
        "app.state.watched.Watched._put_pod",
        Change("condition", "is_new and pod.node in self.books.held_on", becomes="False"),
        "a gang keeps its plan after a pod bound by others took the capacity reserved for it",
    ),
    Planted(
        "app.state.nodes.events.NodeEvents.put",
        Change("condition", "not is_open(node)", becomes="False"),
        "plans keep nodes that no longer accept pods",
    ),
    Planted(
        "app.state.nodes.events.NodeEvents.drop",
        Change(
            "statement",
            'self.invalidation.lose_plans_on(name, f"node {name} has gone", now)',
            becomes="pass",
        ),
        "plans keep nodes that were deleted",
    ),
    Planted(
        "app.state.answers.bind_requests.BindRequests.take",
        Change("condition", "gang.plan.nodes.get(uid) == node", becomes="uid in gang.plan.nodes"),
        "a pod is bound to its planned node even if kube-scheduler chose another node",
    ),
    Planted(
        "app.state.watched.Watched._replace_all",
        Change(
            "expression",
            "[*self.books.bound, *self.gangs.key_of, *self.named_pods.unclaimed,"
            " *self.arrivals.uids, *self.nominations.uids]",
            becomes="[*self.books.bound]",
        ),
        "members deleted while the watch was down are still counted",
    ),
    Planted(
        "app.state.answers.filtering.members.Filtering.answer",
        Change("statement", "requeue.reject(gang, uid, answer.sentence)", becomes="pass"),
        "rejected members are not remembered, so a new plan does not requeue them",
    ),
    Planted(
        "app.state.lifecycle.permit.Permit.arrive",
        Change("expression", "gang.has_started or gang.has_arrived", becomes="True"),
        "the first member at /bind starts without the others",
        is_quick=True,
    ),
    Planted(
        "app.state.lifecycle.permit.Permit.expire",
        Change("statement", "self._end_holds(gang, now)", becomes="pass"),
        "held /bind requests wait forever",
    ),
    Planted(
        "app.state.lifecycle.permit.Permit._end_holds",
        Change(
            "expression",
            "now - self.settings.gang_bind_seconds",
            becomes="now - self.settings.gang_bind_seconds / 2",
        ),
        "held /bind requests are refused too early",
    ),
    Planted(
        "app.state.lifecycle.permit.Permit.expire",
        Change(
            "condition",
            "not gang.has_started and self._is_stuck(gang, now)",
            becomes="False",
        ),
        "a plan that kube-scheduler never uses keeps its reservations forever",
    ),
    Planted(
        "app.state.reserve.reservations.Reservations.give_back",
        Change("expression", "self.books.release(uid)", becomes="None"),
        "the reservations of a lost plan are not released",
        is_quick=True,
    ),
    Planted(
        "app.state.reserve.plans.Plans.lose",
        Change(
            "expression",
            "[uid for uid in gang.plan.nodes if uid not in gang.binding.posted]",
            becomes="list(gang.plan.nodes)",
        ),
        "a lost plan also gives up pods whose binding is in progress",
    ),
    Planted(
        "app.state.reserve.binding.fail",
        Change("statement", "gang.binding.posted.discard(uid)", becomes="pass"),
        "a failed binding still counts as in progress",
    ),
    Planted(
        "app.state.queueing.requeue.Requeues.requeue_planned",
        Change(
            "expression",
            "sorted(gang.rejections.sentences.keys() & gang.plan.nodes.keys())",
            becomes="sorted(gang.rejections.sentences.keys() & gang.plan.nodes.keys())[1:]",
        ),
        "one rejected member of each gang is not requeued",
    ),
    Planted(
        "app.state.queueing.nominating.Nominating.correct",
        Change("condition", "is_due or gang.plan.version != version", becomes="False"),
        "the nominations of members outlive their plan",
    ),
    Planted(
        "app.state.turns.queue.Queue.await_end",
        Change(
            "statement",
            "self._retry_at = min(self._retry_at, gang.back_off.not_before)",
            becomes="pass",
        ),
        "a gang that lost its plan is not tried again after its back-off",
    ),
    Planted(
        "app.state.gang.gang.Gang.has_started",
        Change(
            "expression",
            "self.membership.bound or self.binding.posted",
            becomes="self.membership.bound",
        ),
        "a gang whose bindings are in progress counts as not started",
    ),
    Planted(
        "app.state.gang.members.membership._places",
        Change(
            "expression",
            "spec.pods - len(bound)",
            becomes="spec.pods - 1 if not bound else spec.pods - len(bound)",
        ),
        "a gang starts with one member too few",
    ),
    Planted(
        "app.state.plan.planner.Planner.capacity_grew",
        Change("statement", "self.searches.unfit.grew(nodes)", becomes="pass"),
        "a request that did not fit once is never searched for again",
        is_quick=True,
    ),
    Planted(
        "app.state.plan.question.request.Builder._mask",
        Change("statement", "narrowed[pin.stop :] = False", becomes="pass"),
        "a late member may be placed outside the domain of the running members",
    ),
    Planted(
        "app.state.pods.assumed_pods.AssumedPods._may_take",
        Change(
            "condition",
            "node in self.books.held_on and not room.fits(self.books, node, pod.request)",
            becomes="False",
        ),
        "an ordinary pod is bound to capacity reserved for a gang",
    ),
    Planted(
        "app.state.pods.assumed_pods.AssumedPods.begin",
        Change("statement", "self._expires_at[uid] = now + IN_FLIGHT_SECONDS", becomes="pass"),
        "the capacity reserved for an ordinary pod at /bind never expires",
        is_quick=True,
        first=4,
    ),
    Planted(
        "app.state.pods.assumed_pods.AssumedPods.end",
        Change("expression", "self.books.release(uid) is not None", becomes="True"),
        "the capacity reserved for an ordinary pod at /bind expires but is not released",
    ),
    Planted(
        "app.state.cache.books.Books.bind",
        Change("condition", "uid in self.held", becomes="False"),
        "a bound pod keeps the capacity reserved for it before",
    ),
    Planted(
        "app.state.pods.rejected_pods.RejectedPods.woken",
        Change("condition", "fits[request]", becomes="False"),
        "ordinary pods rejected because of a reservation are never requeued",
    ),
    Planted(
        "app.state.nodes.invalidation.Invalidation.lose_overcommitted",
        Change("condition", "not room.is_overcommitted(self.books, node)", becomes="False"),
        "a gang loses its plan to a foreign binding although both fit",
    ),
    Planted(
        "app.state.lifecycle.roll_call.RollCalls.review_now",
        Change("statement", "self._review_settled(gang, now)", becomes="self.review_all(now)"),
        "a request about one gang plans other gangs too",
    ),
    Planted(
        "app.state.plan.planner.Planner.plan",
        Change(
            "statement",
            "return NoPlan(SearchFailed(type(error).__name__))",
            becomes="raise",
        ),
        "an error in the search for one gang stops the work on all gangs",
    ),
    Planted(
        "app.state.plan.planner.Planner.kept_from",
        Change("expression", "its < rank", becomes="its > rank"),
        "nodes kept for a starving gang are given to gangs behind it in the queue",
    ),
    Planted(
        "app.state.fairness.earmark.Earmark.bars",
        Change(
            "expression",
            "any(resource in self.scarce for resource, _ in pod.request)",
            becomes="False",
        ),
        "ordinary pods are bound to nodes kept for a starving gang",
        is_quick=True,
        first=4,
    ),
    Planted(
        "app.state.fairness.starvation.Starvation.review",
        Change("expression", "self.settings.starvation_seconds", becomes="1e9"),
        "small gangs may overtake a large gang forever",
    ),
    Planted(
        "app.state.reserve.placeholders._expect_declared",
        Change(
            "condition",
            "membership.spec is not None and membership.spec.reserves_all and present",
            becomes="False",
        ),
        "the first pod of a gang starts without placeholders for the pods to come",
        is_quick=True,
    ),
    Planted(
        "app.state.reserve.placeholders._expect_declared",
        Change("condition", "membership.to_come", becomes="False"),
        "a driver starts without placeholders for its workers",
        is_quick=True,
        first=14,
    ),
    Planted(
        "app.state.reserve.placeholders._expect_spares",
        Change(
            "expression", "sum(each.is_spare for each in gang.placeholders.values())", becomes="0"
        ),
        "a gang gets more spares each time its members are counted",
        is_quick=True,
        first=7,
    ),
    Planted(
        "app.dialects.workloads.stateful_set.spec_of",
        Change(
            "expression",
            "gang_of(key, where, leaves, starts_with=1, reserves_all=True)",
            becomes="gang_of(key, where, leaves, starts_with=1)",
        ),
        "the first pod of a StatefulSet starts without placeholders for the others",
    ),
    Planted(
        "app.dialects.workloads.job_set.spec_of",
        Change(
            "condition",
            "len(made) >= expected and len(begun) in (0, len(made))",
            becomes="len(begun) in (0, len(made))",
        ),
        "a JobSet starts before all its Jobs exist",
    ),
    Planted(
        "app.state.lifecycle.permit.Permit._has_opened",
        Change("expression", "gang.has_started or gang.has_arrived", becomes="gang.has_started"),
        "members at /bind wait for one that the gang needs no more",
        is_quick=True,
        test="tests/app/state/lifecycle/test_permit.py::"
        "test_members_at_bind_start_once_their_job_is_made_smaller_and_no_other_is_needed",
    ),
    Planted(
        "app.state.reserve.binding.release",
        Change(
            "statement",
            "del gang.binding.at_bind[uid]",
            becomes="gang.binding.arrived.discard(gang.binding.at_bind.pop(uid) and uid)",
        ),
        "a member's arrival is forgotten when its request was held for long enough",
    ),
    Planted(
        "app.state.reserve.binding.forget",
        Change(
            "expression",
            "(binding.answered, binding.arrived, binding.posted, binding.outdated)",
            becomes="(binding.answered, binding.posted, binding.outdated)",
        ),
        "a member's arrival outlives the reservation it was for",
        is_quick=True,
    ),
    Planted(
        "app.state.reserve.binding.arrive",
        Change("condition", "uid not in binding.arrived", becomes="True"),
        "a plan is kept forever as members that had arrived come again",
    ),
    Planted(
        "app.state.fairness.absent_pods.AbsentPods.why_not",
        Change("expression", "self._taken_in.of(namespace)", becomes="Counter()"),
        "each gang of a namespace may hold as many absent pods as all of them together",
    ),
    Planted(
        "app.state.reserve.placeholders.review",
        Change(
            "statement",
            "absent.too_many, absent.is_cut = (0, False)",
            becomes="absent.too_many = 0",
        ),
        "a gang that was refused its absent pods is remembered when its last pod has gone",
    ),
    Planted(
        "app.state.cache.room._yields",
        Change(
            "expression",
            "books.priority_of.get(uid, 0) < priority",
            becomes="books.priority_of.get(uid, 0) <= priority",
        ),
        "an ordinary pod takes what is held for members of its own priority",
        is_quick=True,
        first=4,
    ),
    Planted(
        "app.state.cache.room._yields",
        Change("expression", "books.priority_of.get(uid, 0) < priority", becomes="False"),
        "what is held never yields to a pod of higher priority",
        mode=PREEMPTING,
    ),
    Planted(
        "app.state.answers.victim_cost.VictimCosts._importance",
        Change("expression", "max(own, gang.highest_priority)", becomes="own"),
        "a member goes for a pod by its own priority, not by that of its gang",
        mode=PREEMPTING,
    ),
    Planted(
        "app.state.preempt.standing.Standing.units",
        Change(
            "expression",
            "max(gang.priority, *(self.occupants[uid].priority for uid in pods))",
            becomes="min(self.occupants[uid].priority for uid in pods)",
        ),
        "a gang goes for another one by the priority of its least important pod",
        test="tests/app/state/preempt/test_making_room.py::"
        "test_a_gang_counts_as_its_most_important_pod",
    ),
    Planted(
        "topology.victims.choose._Choice._answer",
        Change(
            "expression", "thinned(self._problem, ones.tolist())", becomes="(ones.tolist(), True)"
        ),
        "pods go that could stay, as the search for fewer has ended",
        test="tests/topology/victims/test_victims_oracle.py::"
        "test_none_of_a_set_may_stay_where_the_visits_ended_before_all_was_tried[rack-2]",
    ),
    Planted(
        "app.state.answers.preempting.Preempting.answer",
        Change("statement", "self._grant(best, by, best.victims, now)", becomes="pass"),
        "others go for a preemptor while its first victims still end",
    ),
    Planted(
        "app.state.answers.preempting.Preempting.answer",
        Change(
            "condition",
            "self._is_member(pod)",
            becomes="False",
        ),
        "pods go for a member of a gang, which one node does not help",
    ),
    Planted(
        "app.state.pods.nominations.Nominations.drop",
        Change("expression", "self._watched.pop(uid, None)", becomes="self._watched.get(uid)"),
        "a node is kept for a nominated pod that is gone",
    ),
    Planted(
        "app.state.watched.Watched._unbook",
        Change("statement", "self._end_grant(self.grants.forget(uid))", becomes="pass"),
        "the grant of a preemptor outlives it",
    ),
    Planted(
        "app.state.preempt.plans.room_plans.RoomPlans._begin",
        Change("statement", "self.nominations.keep(places)", becomes="pass"),
        "the room that is made for a gang is not kept while pods end",
    ),
    Planted(
        "app.state.preempt.standing.Standing.ending",
        Change(
            "condition", "uid in evicted or self._is_terminating(uid)", becomes="uid in evicted"
        ),
        "others go for a gang though enough pods end already",
    ),
    Planted(
        "app.state.preempt.room.RoomRequest.answer",
        Change("expression", "[units[int(key)] for key in found.keys]", becomes="list(units)"),
        "all pods of a lower priority go, whether or not they are in the way",
    ),
    Planted(
        "app.state.preempt.making_room.MakingRoom.question",
        Change(
            "expression",
            "gang.membership.lowest_priority",
            becomes="gang.membership.highest_priority",
        ),
        "pods go for a gang by the priority of its most important pod",
    ),
    Planted(
        "app.state.preempt.making_room.MakingRoom._may_ask",
        Change(
            "expression",
            "all(member.pod.preempts for member in gang.membership.unbound)",
            becomes="True",
        ),
        "pods go for a gang whose preemptionPolicy is Never",
    ),
    Planted(
        "app.state.preempt.plans.victims.Victims.is_wanted",
        Change(
            "expression",
            "uid not in self.withdrawn and self.is_here(uid)",
            becomes="self.is_here(uid)",
        ),
        "evictions are sent for a gang that is gone",
    ),
    Planted(
        "app.state.preempt.standing.Standing._protected",
        Change(
            "expression",
            "tuple(counted.items())",
            becomes="tuple((name, 1) for name in counted)",
        ),
        "a budget counts each victim once, however many pods it has",
    ),
    Planted(
        "app.state.preempt.plans.limits.Limits.is_full",
        Change(
            "expression",
            "sum(not plan.is_slow for plan in self.of.values()) >= self.settings.preempt_plans",
            becomes="False",
        ),
        "room is made for any number of gangs at a time",
    ),
    Planted(
        "app.state.preempt.plans.kept_room.KeptRoom._fit",
        Change(
            "condition",
            "not room.fits(self.books, node, request, without=leaving, beside=beside)",
            becomes="False",
        ),
        "others go for a gang whose place has been taken meanwhile",
    ),
    Planted(
        "app.state.preempt.left_alone.Recent.often",
        Change("expression", "self._count(at, now) >= most", becomes="False"),
        "the same gang goes for others any number of times",
    ),
    Planted(
        "app.state.preempt.plans.room_plans.RoomPlans._end",
        Change("statement", "self.nominations.end_kept(plan.places)", becomes="pass"),
        "room is kept for a gang that is gone",
    ),
    Planted(
        "app.state.reserve.plans.Plans.hold_spares",
        Change("condition", "gang.ending", becomes="False"),
        "a spare is held again for a gang that ends",
    ),
    Planted(
        "app.state.nodes.invalidation.Invalidation.lose_plans_around",
        Change(
            "statement",
            'self._lose_or_outdate(gang, f"node {node} has moved to another domain", now)',
            becomes="pass",
        ),
        "a gang keeps its plan when one of its nodes moves to another domain",
    ),
    Planted(
        "app.state.nodes.invalidation.Invalidation.lose_plans_by",
        Change("statement", "self._lose_or_outdate(gang, why, now)", becomes="pass"),
        "a gang keeps its plan when a wider level splits its domain",
        test="tests/app/state/histories/test_grove.py"
        "::test_a_plan_is_given_up_when_a_wider_level_splits_its_domain",
    ),
    Planted(
        "app.dialects.volcano.gangs._Parts._make_up",
        Change("expression", "self.group.least - sum(self._needed.values())", becomes="0"),
        "a PodGroup starts with fewer pods than its minMember",
        is_quick=True,
        first=7,
    ),
    Planted(
        "app.dialects.volcano.gangs._Parts._policy_group",
        Change("expression", "min(wanted, len(members))", becomes="min(wanted, 1)"),
        "a PodGroup starts with fewer sub-groups than it needs",
    ),
    Planted(
        "app.dialects.volcano.gangs._Parts._policy_group",
        Change("expression", "policy.within", becomes="None"),
        "the pods of a sub-group are in several HyperNodes",
    ),
    Planted(
        "app.state.domains.tiers.Tiers.constraint",
        Change("expression", "its <= tier", becomes="True"),
        "the pods of a PodGroup are in one HyperNode of a tier above its highestTierAllowed",
    ),
    Planted(
        "app.state.objects.pools.Pools._take",
        Change("statement", "self._freed[draw.pool] = None", becomes="pass"),
        "a PodGroup waits for a queue in which something got free",
    ),
    Planted(
        "app.dialects.volcano.status._names",
        Change("expression", "is_named(each, scheduler)", becomes="True"),
        "the PodGroups of other schedulers are written",
    ),
    Planted(
        "app.dialects.volcano.status._phase",
        Change("expression", "view.bound + view.succeeded", becomes="view.bound"),
        "a PodGroup of which pods have succeeded counts as too few",
    ),
    Planted(
        "app.state.report.statuses.Statuses.review",
        Change("statement", "sent.is_lost = True", becomes="pass"),
        "a status that was lost is never written",
    ),
    Planted(
        "app.state.objects.pools.Pools.put",
        Change("statement", "self._freed[pool.name] = None", becomes="pass"),
        "a PodGroup waits for a queue whose capability grew",
    ),
    Planted(
        "app.dialects.grove.gangs._member",
        Change(
            "statement",
            "leaf = LeafSpec(each.name, max(there, each.least), needed=each.least)",
            becomes="leaf = LeafSpec(each.name, max(there, each.least), needed=min(each.least, 1))",
        ),
        "a PodGang starts with one pod of each pod group, whatever its minReplicas",
    ),
    Planted(
        "app.dialects.grove.gangs.spec_of",
        Change(
            "expression",
            "GroupSpec(key.name, _members(gang, pods), gang.constraint)",
            becomes="GroupSpec(key.name, _members(gang, pods))",
        ),
        "the pods of a PodGang are in several domains of the level that it requires",
        is_quick=True,
        first=7,
    ),
    Planted(
        "app.dialects.grove.gangs._members",
        Change(
            "expression",
            "GroupSpec(group.name, members, group.constraint)",
            becomes="GroupSpec(group.name, members)",
        ),
        "the pods of a scaling group's replica are in several domains",
    ),
    Planted(
        "app.dialects.grove.gangs._member",
        Change("expression", "each.constraint == ANYWHERE", becomes="True"),
        "the pods of a pod group are in several domains",
    ),
    Planted(
        "app.dialects.grove.gangs.spec_of",
        Change(
            "expression",
            "Lifecycle(counts_succeeded=True, ends_together=ends_together(said))",
            becomes="Lifecycle(ends_together=ends_together(said))",
        ),
        "a PodGang of which pods have succeeded lacks these",
    ),
    Planted(
        "app.dialects.grove.status._phase",
        Change("expression", "RUNNING if view.is_scheduled else STARTING", becomes="RUNNING"),
        "a PodGang with too few pods says that it runs",
    ),
    Planted(
        "app.dialects.grove.status._said",
        Change("expression", "is_running and view.is_ready", becomes="is_running"),
        "a PodGang says that it is ready when its pods have nodes",
    ),
    Planted(
        "app.dialects.grove.claims.claim",
        Change("expression", "_named(pod, objects)", becomes="None"),
        "pods that only a PodGang names are ordinary ones",
    ),
    Planted(
        "app.dialects.grove.status._conditions",
        Change(
            "expression",
            "[*others, *found.values()]",
            becomes="[*found.values()]",
        ),
        "the conditions that Grove's operator writes on a PodGang are taken away",
    ),
    Planted(
        "app.state.domains.topologies._without_wider",
        Change("expression", "preferred < required", becomes="False"),
        "a PodGang that prefers a wider level than it requires never starts",
    ),
    Planted(
        "app.state.lifecycle.roll_call.RollCalls._lose_outgrown",
        Change("condition", "was is None or spec.requires_more_than(was)", becomes="False"),
        "a gang keeps its plan when the levels that it requires change",
    ),
    Planted(
        "app.state.report.statuses.Statuses.repeat_lost",
        Change("condition", "sent.patch.version", becomes="False"),
        "a status is sent on every tick while the watch does not show what has been written",
    ),
    Planted(
        "app.dialects.native.trees.around_leaf",
        Change("expression", "Constraint(required=record.level or None)", becomes="ANYWHERE"),
        "the pods of a native PodGroup are in several domains of its key",
    ),
    Planted(
        "app.dialects.native.trees.leaf_of",
        Change(
            "expression",
            "LeafSpec(name, max(there, record.least), constraint if says_it_itself else None,"
            " slices if says_it_itself else (), needed=record.least)",
            becomes="LeafSpec(name, max(there, record.least),"
            " constraint if says_it_itself else None, slices if says_it_itself else (), needed=1)",
        ),
        "a native PodGroup starts with fewer pods than its minCount",
    ),
    Planted(
        "app.dialects.native.status._written",
        Change(
            "condition",
            "said is None or before.get('status') == 'True'",
            becomes="said is None",
        ),
        "the condition of a native PodGroup that has started is taken back",
    ),
    Planted(
        "app.dialects.native.trees.leaf_of",
        Change("expression", "max(there, record.least)", becomes="record.least"),
        "pods beyond the minCount of a native PodGroup never start",
    ),
    Planted(
        "app.dialects.native.trees._group",
        Change(
            "expression",
            "replace(own, required=own.required or level)",
            becomes="own",
        ),
        "the pods of a CompositePodGroup are in several domains of its key",
    ),
    Planted(
        "app.dialects.native.trees._group",
        Change(
            "expression",
            "GroupSpec(record.name, members + absent, constraint, needed=record.least)",
            becomes="GroupSpec(record.name, members + absent, constraint, needed=1)",
        ),
        "a CompositePodGroup starts with fewer groups than its minGroupCount",
    ),
    Planted(
        "app.dialects.native.status._started",
        Change("condition", "view.settled is None", becomes="True"),
        "a PodGroup does not say that it has started before all of its gang has",
    ),
    Planted(
        "app.dialects.kai.gangs.spec_of",
        Change("expression", "group.constraint", becomes="ANYWHERE"),
        "the pods of a PodGroup of KAI's are in several domains of its level",
    ),
    Planted(
        "app.dialects.kai.gangs._segments",
        Change(
            "expression",
            "LeafSpec('', max(there, least), needed=least)",
            becomes="LeafSpec('', max(there, least), needed=1)",
        ),
        "a PodGroup of KAI's starts with fewer pods than its minMember",
    ),
    Planted(
        "app.state.autoscaling.marks.Marks._marks",
        Change(
            "statement",
            "is_marked = wanted and uid in waiting",
            becomes="is_marked = member.pod.is_marked or (wanted and uid in waiting)",
        ),
        "a mark is never taken back",
    ),
    Planted(
        "app.state.autoscaling.marks.Marks._review",
        Change(
            "statement",
            "wanted = self._wanted(gang, now)",
            becomes="wanted = self._wanted(gang, now) or gang.phase is Phase.GATHERING",
        ),
        "the pods of a gang that gathers are marked",
    ),
    Planted(
        "app.state.autoscaling.marks.Marks._marks",
        Change("condition", "now < due", becomes="False"),
        "a mark that does not show yet is sent again at every look",
    ),
    Planted(
        "app.state.autoscaling.marks.Marks._is_due",
        Change(
            "condition",
            "now >= due or (is_certain and self._is_never(gang, now))",
            becomes="is_certain and self._is_never(gang, now) and False",
        ),
        "no gang is ever marked",
    ),
    Planted(
        "app.state.autoscaling.new_nodes.NewNodes.review",
        Change("statement", "taken |= mark.nodes", becomes="pass"),
        "a new node is kept for two gangs",
    ),
    Planted(
        "app.state.autoscaling.new_nodes.NewNodes._is_back",
        Change(
            "expression",
            "gone_at >= since and at < gone_at + BACK_SECONDS",
            becomes="False",
        ),
        "a node that only came back counts as new",
    ),
    Planted(
        "app.state.autoscaling.new_nodes.NewNodes._mark",
        Change("expression", "at >= since", becomes="True"),
        "a node that was there before a gang asked is kept for it",
        mode=GROWING,
    ),
    Planted(
        "topology.pod_set.search.place",
        Change("condition", "not tree.nodes", becomes="False"),
        "a search raises in a cluster that has no node yet",
        is_quick=True,
        mode=GROWING,
    ),
    Planted(
        "app.state.autoscaling.new_nodes.NewNodes._end",
        Change(
            "expression",
            "now >= min(kept.last_at + most, kept.since + MOST_PROLONGED * most)",
            becomes="False",
        ),
        "new nodes are kept without end",
        test="tests/sim/test_grown.py::"
        "test_7_where_the_cloud_is_out_of_stock_nothing_starts_and_what_came_goes_to_others",
    ),
    Planted(
        "app.state.autoscaling.new_nodes.NewNodes.review",
        Change(
            "statement",
            "self.planner.new_nodes = {key: (each.nodes, rank[key])"
            " for key, each in self.of.items()}",
            becomes="pass",
        ),
        "gangs behind in the queue are placed on nodes kept for another one",
    ),
    Planted(
        "app.state.autoscaling.new_nodes.NewNodes.closed_to",
        Change("expression", "each.bars(pod)", becomes="False"),
        "ordinary pods are bound to new nodes that are kept for a gang",
    ),
    Planted(
        "app.state.autoscaling.marks.Marks.note_verdict",
        Change(
            "condition",
            "need.lack is None and not need.is_open and self._has_asked(gang)",
            becomes="False",
        ),
        "what a gang asked for before a restart is left when it does not lack capacity any more",
        test="tests/autoscaling/test_gangs.py::"
        "test_a_level_that_is_gone_when_corral_begins_again_ends_what_was_asked_for",
    ),
    Planted(
        "app.state.autoscaling.requests.Requests._how",
        Change(
            "expression",
            "any(each.pod.is_marked for each in gang.members.values())",
            becomes="False",
        ),
        "a request that nobody serves is made again after a restart",
        test="tests/autoscaling/test_gangs.py::"
        "test_8_killed_after_any_write_a_gang_that_nobody_serves_ends_the_same",
    ),
    Planted(
        "app.state.autoscaling.requests.Requests._by_request",
        Change("condition", "last is None", becomes="last is None or not last.record.is_accepted"),
        "a gang makes a second request before the first is accepted",
        is_quick=True,
        test="tests/autoscaling/test_gangs.py::"
        "test_1_an_empty_cluster_gets_one_rack_and_no_ninth_node",
    ),
    Planted(
        "app.state.autoscaling.marks.Marks._review",
        Change("statement", "wanted = False", becomes="pass"),
        "a gang that asks by a request is marked as well",
        test="tests/autoscaling/test_gangs.py::"
        "test_8_killed_after_any_write_a_gang_with_a_request_ends_the_same",
    ),
    Planted(
        "app.controllers.objects.provisioning.ProvisioningController._end",
        Change(
            "statement",
            "named += [(keys.TEMPLATE_PATH, name, uid) for name, uid in end.templates]",
            becomes="pass",
        ),
        "the templates of a request are left when it is withdrawn",
        test="tests/autoscaling/test_gangs.py::"
        "test_1_an_empty_cluster_gets_one_rack_and_no_ninth_node",
    ),
    Planted(
        "app.state.autoscaling.new_nodes.NewNodes._is_bare",
        Change(
            "expression",
            "not any(amount and resource in scarce for resource, amount in has)",
            becomes="False",
        ),
        "ordinary pods take a new node whose devices kube-scheduler sees before Corral does",
        test="tests/sim/test_grown_levels.py::"
        "test_nodes_whose_level_never_comes_are_let_go_and_taken_by_others",
    ),
    Planted(
        "app.state.born.births.Births.expire",
        Change(
            "condition",
            "is_whole or is_lost or now >= gang.birth.ends_at",
            becomes="is_whole or is_lost",
        ),
        "places for pods that were refused, or only tried, are held for ever",
    ),
    Planted(
        "app.state.born.births.Births._begun",
        Change(
            "condition",
            "self.absent_pods.why_not(gang, list(gang.placeholders)) is not None",
            becomes="False",
        ),
        "a gang that is born has more held than its namespace may have for pods to come",
    ),
    Planted(
        "app.state.born.births.Births._begun",
        Change(
            "condition",
            "self._is_barred(key, now) or self.queue.is_busy(key.namespace)",
            becomes="self.queue.is_busy(key.namespace)",
        ),
        "a gang that was given back is born again at once",
        test="tests/app/state/born/test_giving_back.py::"
        "test_nor_is_its_owner_made_again_under_its_name_born_for_a_while",
    ),
    Planted(
        "app.state.born.births.Births._may_narrow",
        Change("expression", "len(each) <= self.settings.narrow_nodes", becomes="True"),
        "places are held for a gang whose pods all get the gate",
        test="tests/app/state/born/test_births.py::"
        "test_nothing_is_held_for_a_gang_on_more_nodes_than_pods_are_narrowed_to",
    ),
    Planted(
        "app.state.born.births.Births._begun",
        Change(
            "statement",
            "gang.birth.beside = self.single_nodes.beside(gang, founder, node, room)",
            becomes="pass",
        ),
        "pods are narrowed to the rack of their plan alone",
        test="tests/app/state/born/test_births.py::"
        "test_a_gang_that_loses_a_node_before_it_starts_finds_another_rack_beside",
    ),
    Planted(
        "app.state.lifecycle.roll_call._awaits_its_first",
        Change(
            "expression",
            "bool(gang.plan.nodes) and gang.plan.nodes.keys() <= gang.placeholders.keys()",
            becomes="True",
        ),
        "the plan of a gang outlives the only pod of it that has come",
        test="tests/app/state/born/test_births.py::"
        "test_nothing_is_held_when_the_only_pod_that_has_come_is_gone",
    ),
    Planted(
        "app.state.gang.gang.Gang.has_arrived",
        Change(
            "condition",
            "self.is_being_born",
            becomes="False",
        ),
        "a gang that is born starts before all of its pods have come",
    ),
    Planted(
        "app.state.watched.Watched._put_pod",
        Change("statement", "self.unseen.drop(pod.uid)", becomes="pass"),
        "a pod that the watch has shown is forgotten as one that it never shows",
    ),
    Planted(
        "app.state.ticks.Ticking._expire",
        Change("statement", "self.members.forget(uid, now)", becomes="pass"),
        "a pod that the watch never shows keeps its place",
        test="tests/app/state/born/test_births.py::"
        "test_a_pod_that_the_watch_never_shows_has_its_place_for_a_moment",
    ),
    Planted(
        "app.state.born.giving_back.GivingBack._why_kept",
        Change(
            "condition",
            "not all(makes_again(member.pod.owner) for member in going or narrowed)",
            becomes="False",
        ),
        "pods are given back that no controller makes again",
        test="tests/app/state/born/test_giving_back.py::"
        "test_pods_that_nobody_makes_anew_are_kept_and_the_gang_is_told_so",
    ),
    Planted(
        "app.state.born.giving_back.GivingBack.note",
        Change(
            "condition",
            "not pod.node and corral.is_narrowed(pod)",
            becomes="not pod.node and corral.BORN in pod.annotations",
        ),
        "a gang waits where it was narrowed to though one behind the gate would start elsewhere",
        test="tests/app/state/born/test_giving_back.py::"
        "test_pods_that_were_narrowed_as_their_gate_was_taken_off_go_as_well",
    ),
    Planted(
        "app.state.born.giving_back.GivingBack._going",
        Change("expression", "(born if _is_born(each) else later)", becomes="born"),
        "pods that were narrowed as their gate was taken off are given back though it is not set",
        test="tests/app/state/born/test_giving_back.py::"
        "test_as_it_comes_they_stay_and_the_owner_is_told_what_would_help",
    ),
    Planted(
        "app.state.autoscaling.marks.Marks.note_seen",
        Change(
            "statement",
            "(need.marked.add if is_marked else need.marked.discard)(uid)",
            becomes="pass",
        ),
        "a gang stays marked that gathers again, since an earlier Corral has marked it",
        test="tests/app/state/autoscaling/test_marks.py::"
        "test_the_next_to_lead_takes_marks_back_of_a_gang_that_gathers_since_it_follows",
    ),
    Planted(
        "app.state.ticks.Ticking._give_back",
        Change("statement", "self.giving_back.review(now)", becomes="pass"),
        "a gang waits where it was born though one behind the gate would start elsewhere",
        test="tests/app/state/born/test_giving_back.py::"
        "test_a_gang_whose_node_has_gone_is_evicted_made_again_and_starts_elsewhere",
    ),
    Planted(
        "app.main._routes.place",
        Change(
            "condition",
            "not settings.born_seconds or standing.whose()",
            becomes="not settings.born_seconds",
        ),
        "a Corral that does not lead plans the gangs of pods that it is asked about",
        test="tests/app/test_main.py::"
        "test_only_the_corral_whose_neighbour_leads_has_pods_born_in_place",
    ),
    Planted(
        "app.state.queueing.ungating._is_due",
        Change(
            "condition",
            "gang.is_being_born",
            becomes="False",
        ),
        "a pod behind the gate is narrowed before all of its gang that was born are there",
        test="tests/app/state/born/test_births.py::"
        "test_a_member_behind_the_gate_is_not_ungated_before_all_are_there",
    ),
    Planted(
        "app.state.plan.elsewhere.long_search.Answered._placed",
        Change(
            "condition",
            "fits_still(request.capacity, request.gang, *known)",
            becomes="True",
        ),
        "an answer from a thread is applied to books that have changed since",
        test="tests/app/state/plan/elsewhere/test_search_on.py::"
        "test_an_answer_is_not_used_where_others_took_the_place_meanwhile",
    ),
    Planted(
        "app.state.plan.elsewhere.search_on.SearchesOn.answered",
        Change("condition", "gang is None or gang.number != asked.gang", becomes="gang is None"),
        "a gang that was made again gets the answer for the one before it",
        test="tests/app/state/plan/elsewhere/test_search_on.py::"
        "test_an_answer_for_a_gang_that_is_gone_is_dropped",
    ),
    Planted(
        "app.state.plan.elsewhere.search_on.SearchesOn.answered",
        Change(
            "condition",
            "answer is not None and answer.number != asked.number",
            becomes="False",
        ),
        "a late answer is taken for one to the next question",
        test="tests/app/state/plan/elsewhere/test_search_on.py::"
        "test_an_answer_that_never_comes_is_asked_for_again_and_a_late_one_is_not_taken_for_the_next",
    ),
    Planted(
        "app.state.engine.Engine.place_found",
        Change(
            "statement",
            "self.queue.want_turn(self.gangs.by_key[key])",
            becomes="self.plans.make_in_turn(self.gangs.by_key[key], now)",
        ),
        "a gang is planned with an answer before the roll call that a binding calls for",
        test="tests/app/state/plan/elsewhere/test_search_on.py::"
        "test_an_answer_waits_for_the_roll_call_that_a_binding_calls_for",
    ),
    Planted(
        "app.state.plan.elsewhere.long_search.Answered._placed",
        Change(
            "condition",
            "any(_path(tree, node) != path for node, path in its)",
            becomes="False",
        ),
        "an answer from a thread is used though a node has moved to another rack",
        test="tests/app/state/plan/elsewhere/test_search_on.py::"
        "test_a_place_on_a_node_that_changes_meanwhile_is_not_used",
    ),
    Planted(
        "app.state.plan.question.parts.beside",
        Change("condition", "here", becomes="False"),
        "pods of one part of a gang take the room that those of another have been given",
        test="tests/app/state/domains/test_in_parts.py::"
        "test_pods_of_different_parts_share_a_node_as_far_as_it_has_room",
    ),
    Planted(
        "app.state.plan.question.parts._in_domains",
        Change("condition", "part in each.pod_sets", becomes="False"),
        "parts of a gang are in several domains of the level that is required around them",
    ),
    Planted(
        "app.state.plan.in_parts.InParts.requests",
        Change("expression", "self.builder.tree(*part).is_needed", becomes="True"),
        "a part of a gang of which nothing is needed keeps the others from starting",
    ),
    Planted(
        "app.state.plan.in_parts.InParts.requests",
        Change("expression", "self.builder.tree(*part).is_needed", becomes="False"),
        "a gang is planned with those of its parts alone that find a place",
        is_quick=True,
        first=6,
    ),
    Planted(
        "topology.nested.walk.Walk.run",
        Change(
            "condition",
            "self.round is not WHOLE and not options.floor_only",
            becomes="self.round is not WHOLE",
        ),
        "what one part of a gang may do without takes the room that another part needs",
        test="tests/app/state/domains/test_in_parts.py::"
        "test_what_one_part_does_not_need_takes_no_room_from_what_another_needs",
    ),
    Planted(
        "app.state.plan.elsewhere.search_on.SearchesOn.ask",
        Change(
            "condition",
            "not self._is_open or self._is_before(key)",
            becomes="not self._is_open",
        ),
        "a namespace whose gangs come again and again has the thread to itself",
        test="tests/app/state/plan/elsewhere/test_search_on.py::"
        "test_gangs_that_come_again_and_again_do_not_come_before_those_of_others",
    ),
    Planted(
        "app.state.report.reports.Reports.knows_verdict",
        Change(
            "expression",
            "not gang.reporting.is_pending",
            becomes="True",
        ),
        "a gang is searching for ever though one like it has heard that it fits nowhere",
        test="tests/app/state/plan/elsewhere/test_search_on.py::"
        "test_gangs_that_are_alike_hear_the_same_answer_where_none_fits",
    ),
    Planted(
        "app.state.born.giving_back.GivingBack._look",
        Change(
            "condition",
            "gang.suspension is not None and self.suspended.is_shown(gang.suspension)",
            becomes="False",
        ),
        "a Job is suspended that is suspended already",
        test="tests/app/state/born/test_suspended.py::"
        "test_a_job_that_is_suspended_already_is_left_alone",
    ),
    Planted(
        "app.state.born.giving_back.GivingBack._is_first",
        Change(
            "expression",
            "before.uids.issuperset(member.pod.uid for member in narrowed)",
            becomes="True",
        ),
        "pods that were made again for others that were given back are given back as well",
        test="tests/app/state/born/test_giving_back.py::"
        "test_a_pod_that_says_of_itself_that_it_was_born_is_evicted_once",
    ),
    Planted(
        "app.state.objects.declared.Objects.put",
        Change(
            "expression",
            "self.dialects.suspended(record)",
            becomes="before is not None and self.dialects.suspended(record)",
        ),
        "a Job that was suspended before a restart never goes on",
    ),
    Planted(
        "app.state.born.suspended.Suspended.review",
        Change(
            "expression",
            "self._has_pods(uid) and now < since + LONGEST_SECONDS",
            becomes="self._has_pods(uid)",
        ),
        "a Job stays suspended for as long as one of its pods does not end",
        test="tests/app/state/born/test_suspended.py::"
        "test_it_goes_on_after_a_while_though_its_pods_stay",
    ),
    Planted(
        "app.state.born.suspended.Suspended.review",
        Change(
            "expression",
            "now >= sent_at + doubled(AGAIN_SECONDS, times, MOST_SECONDS)",
            becomes="not times",
        ),
        "that a Job goes on is sent once, and never again if that fails",
        test="tests/app/state/born/test_suspended.py::"
        "test_that_it_goes_on_is_sent_again_until_the_watch_shows_it",
    ),
    Planted(
        "app.dialects.workloads.record.is_suspended_by_us",
        Change(
            "expression",
            "SUSPENDED in record.annotations",
            becomes="record.is_suspended",
        ),
        "a Job goes on that its user has suspended",
        test="tests/app/state/born/test_suspended.py::"
        "test_a_job_that_its_user_has_suspended_stays_so",
    ),
    Planted(
        "app.state.born.giving_back.GivingBack.is_suspension_wanted",
        Change(
            "expression",
            "any(member.pod.node for member in gang.members.values())",
            becomes="False",
        ),
        "a Job is suspended one of whose pods has a node by then",
        test="tests/app/state/born/test_suspended.py::"
        "test_it_is_not_suspended_once_its_gang_has_a_place_or_a_pod_of_it_a_node",
    ),
    Planted(
        "app.state.reserve.plans.Plans.make",
        Change(
            "condition",
            "gang.binding.outdated or not (self.planner.leads or gang.is_settled)",
            becomes="gang.binding.outdated",
        ),
        "a Corral that follows keeps places that the one that leads may give to other gangs",
        test="tests/app/state/lifecycle/test_succession.py::"
        "test_who_follows_keeps_no_gated_gang_in_the_way_of_one_that_is_narrowed",
    ),
    Planted(
        "app.state.lifecycle.succession.Succession.lead",
        Change("condition", "gang.plan.nodes and not gang.is_settled", becomes="False"),
        "a Corral that led goes on holding places for gangs that the next one may move",
        test="tests/app/state/lifecycle/test_succession.py::"
        "test_who_led_gives_up_what_it_has_not_narrowed_yet",
    ),
    Planted(
        "app.process.taking_over.TakingOver._shows",
        Change(
            "expression", "set(pod.gates).issuperset(gang.members[uid].pod.gates)", becomes="True"
        ),
        "a Corral leads before its watch has shown the last patches of the one before",
        test="tests/app/process/test_taking_over.py::"
        "test_it_waits_for_what_the_watch_does_not_show_yet",
    ),
)
