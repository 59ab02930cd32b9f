"""The answer to simulators, which ask about nodes that may not exist.

An autoscaler that plays kube-scheduler through, with its extenders, asks what would be if. It is
told every candidate on which this pod alone may stand, never the one planned node, since it asks
for "another" of them. The answer is a function of the pod, the nodes sent and the books: nothing is
held, pinned, remembered, woken or brought up to date, and the journal has no line of it.

    a candidate that an autoscaler has marked                         hypothetical
    one that the watch does not show, and the pod has gates           hypothetical
    one that the watch does not show, and the pod is in no gang       kube-scheduler's
      … and the pod is a member whose planned node is a candidate     kube-scheduler's
      … and the pod is any other one of a gang                        fails: it may be either's
    every candidate is known, and none is marked                      kube-scheduler's

kube-scheduler asks about no pod with gates, and has no marked node. But it may see a new node a
moment before Corral's watch does, and sends whole nodes too where it is told to: an unknown name
alone proves nothing. So a member gets its planned node as ever. One whose planned node is missing
keeps its plan, since what such a request leaves out is no refusal; one without a node gets none,
for kube-scheduler would take it. Both fail: then kube-scheduler asks again by itself, after a
second, and no rejection has to be remembered for that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from app.dialects.nvlink import level_value
from app.dialects.spec import Claim
from app.kube.core.objects import Amounts, NodeRecord, PodRecord, Shape
from app.kube.core.turns import turn
from app.state.answers.kept_nodes import KeptNodes
from app.state.answers.scoring import Scoring
from app.state.cache.books import ALL_NODES, Booking, Books, is_open
from app.state.cache.eligibility.one_node import why_not
from app.state.cache.resource_rows import bounded
from app.state.cache.topology_books import TopologyBooks
from app.state.claims.claim_reader import ClaimReader
from app.state.filter_result import Failed, Possible, Rejected, SentNodes
from app.state.gang.gang import Gang
from app.state.gang.gangs import Gangs
from app.state.plan.exclusions import EARMARKED, UNLABELLED
from app.state.plan.planner import Planner
from app.state.plan.question.pod_sets import levels_of
from app.state.plan.single_nodes import with_levels
from app.state.pods.nominations import Nominations
from app.state.report.messages import gangs as messages
from topology.fit.fit import NOT_OPEN

NOT_KNOWN = "the node is not known, and the request has only its name"
TOO_MUCH = "the request takes too many comparisons of nodes with selectors, terms and tolerations"

MOST_COMPARISONS = 2_000_000  # of one request: 5,000 nodes with 32 terms are 320,000
AT_ONCE = 2_000  # comparisons on the event loop: some milliseconds
READING = 20  # comparisons that take as long as reading a node
TAINTS = 100  # of a node that is not read yet; it may have a few hundred


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """All that an answer takes of the engine: it may be found beside the loop."""

    shape: Shape
    request: Amounts
    nodes: tuple[tuple[str, NodeRecord | None, str], ...]
    """Name; the node by the watch, None: as it is sent; what it lacks by the books, as a reason."""
    kept: frozenset[str]
    """Nodes that are kept for gangs which come before the pod."""
    sent: Callable[[str], NodeRecord | None]
    marked: Collection[str]
    levels: tuple[tuple[str, ...], ...]
    """Of each topology that serves the pod: the labels that a node needs for a place in it."""
    claimed: frozenset[str]
    """Resources that kube-scheduler takes from drivers where a node offers none."""
    lines: int
    """Comparisons of one node with the pod's selector and affinity."""

    def __len__(self) -> int:
        """How many comparisons it takes, about."""
        sent = sum(record is None for _, record, _ in self.nodes)
        taints = TAINTS * sent + sum(len(node.taints) for _, node, _ in self.nodes if node)
        tolerations = len(self.shape.tolerations)
        return self.lines * len(self.nodes) + READING * sent + tolerations * taints


def judged(question: Question) -> Possible | Failed:
    """On which nodes the pod may stand. Raises: app.errors.DecodeError for a node as it is sent."""
    possible, why, left = list[str](), dict[str, str](), MOST_COMPARISONS
    tolerations = len(question.shape.tolerations)
    for name, known, lacks in question.nodes:
        turn()
        node = known or question.sent(name)
        left -= question.lines + tolerations * (len(node.taints) if node else 0)
        if left < 0:
            return Failed(TOO_MUCH)
        if known is None:
            reason = _why_not_as_sent(question, node)
        else:
            reason = _why_not_by_books(question, known, lacks)
        if reason:
            why[name] = reason
        else:
            possible.append(name)
    return Possible(tuple(possible), why)


def _why_not_by_books(question: Question, node: NodeRecord, lacks: str) -> str:
    """Why the pod may not stand on a node that the watch shows, "" if it may."""
    if not is_open(node):
        return NOT_OPEN
    if not _has_place(question, node):
        return UNLABELLED
    if node.name in question.kept:
        return EARMARKED
    return why_not(node, question.shape) or lacks


def _why_not_as_sent(question: Question, node: NodeRecord | None) -> str:
    """Why it may not stand on one that is only in the request; whether it is ready says nothing."""
    if node is None:
        return NOT_KNOWN
    if node.problem or node.is_unschedulable:
        return node.problem or NOT_OPEN
    # The rack of a node that does not exist yet is not known.
    if node.name not in question.marked and not _has_place(question, node):
        return UNLABELLED
    allocatable = dict(node.allocatable)
    short = (
        name
        for name, amount in question.request
        if amount > (offers := allocatable.get(name, 0))
        and not (offers == 0 and name in question.claimed)
    )
    return why_not(node, question.shape) or next(map(_insufficient, short), "")


def _has_place(question: Question, node: NodeRecord) -> bool:
    labels = node.labels
    return any(all(level_value(labels, level) for level in levels) for levels in question.levels)


def _labels(topology: TopologyBooks) -> tuple[str, ...]:
    """The labels that a node has a place by; a node that no object names is a domain of its own."""
    return topology.levels[:-1] if topology.values is None else ()


def _insufficient(resource: str) -> str:
    return f"insufficient {resource}"


@dataclass(frozen=True, slots=True)
class Hypothetical:
    """Tells what simulators ask from what kube-scheduler asks; changes nothing."""

    books: Books
    claim_reader: ClaimReader
    gangs: Gangs
    planner: Planner
    nominations: Nominations
    kept_nodes: KeptNodes
    scoring: Scoring

    def asked(self, pod: PodRecord, nodes: SentNodes) -> Question | Rejected | Failed | None:
        """What a request at /filter is about; None: it is for the engine to answer."""
        if not self._is_hypothetical(pod, nodes):
            is_doubtful = self.planner.is_ready and self._is_doubtful(pod, nodes)
            # A failed answer would take away the node that others may have been evicted from.
            doubt = Rejected if pod.nominated_node else Failed
            return doubt(messages.node_not_shown()) if is_doubtful else None
        if not self.planner.is_ready:
            return Failed(messages.not_ready())
        return self._question(pod, nodes)

    def scores(self, pod: PodRecord, nodes: SentNodes) -> list[int] | None:
        """The answer to /prioritize, 0 for nodes that are not known; None: as of `asked`."""
        if not self._is_hypothetical(pod, nodes):
            return None
        names, known = nodes.names(), self.books.nodes
        if not self.planner.is_ready:
            return [0] * len(names)
        given = self.scoring.unchanged(pod, names)
        return [
            score if name in known and name not in nodes.marked else 0
            for name, score in zip(names, given, strict=True)
        ]

    def _is_hypothetical(self, pod: PodRecord, nodes: SentNodes) -> bool:
        return bool(nodes.marked) or (bool(pod.gates) and self._has_unknown(nodes))

    def _is_doubtful(self, pod: PodRecord, nodes: SentNodes) -> bool:
        """Whether it may be a simulator's, and a node for the pod would be wrong if it is not.

        The names are read last: most requests are answered without them.
        """
        gang = self.gangs.of_pod(pod.uid)
        if gang is None:
            return self.claim_reader.claim(pod) is not None and self._has_unknown(nodes)
        planned = gang.plan.nodes.get(pod.uid)
        return (planned is None or planned not in nodes) and self._has_unknown(nodes)

    def _has_unknown(self, nodes: SentNodes) -> bool:
        return not all(map(self.books.nodes.__contains__, nodes.names()))

    # -- the question --------------------------------------------------------------------------

    def _question(self, pod: PodRecord, nodes: SentNodes) -> Question | Rejected:
        gang, claim = self.gangs.of_pod(pod.uid), None
        if gang is not None:
            member = gang.members[pod.uid]
            if (member.pod.namespace, member.pod.name) != (pod.namespace, pod.name):
                return Rejected(messages.another_pod(pod.namespace, pod.name))
            claim = Claim(gang.key, member.leaf, said=member.said, flaw=member.flaw)
        else:
            claim = self.claim_reader.claim(pod)
            gang = None if claim is None else self.gangs.by_key.get(claim.gang)
        if claim is not None and claim.flaw:
            return Rejected(messages.mistaken(claim.gang, claim.flaw))
        levels = _levels(gang, claim)
        name = None
        if gang is not None and claim is not None:
            name = gang.membership.topology_of(claim.leaf)
        topologies = with_levels(self.books, levels, name)
        if not topologies:
            return Rejected(str(self.planner.serving.unknown(levels, name)))
        return Question(
            pod.shape,
            pod.request,
            tuple(self._candidates(pod, gang, nodes)),
            self._kept(pod, gang, claim),
            nodes.sent,
            nodes.marked,
            tuple(map(_labels, topologies)),
            self.books.axis.claimed,
            _lines(pod.shape),
        )

    def _candidates(
        self, pod: PodRecord, gang: Gang | None, nodes: SentNodes
    ) -> Iterator[tuple[str, NodeRecord | None, str]]:
        """Each candidate once, as `Question.nodes` has it."""
        names = tuple(dict.fromkeys(nodes.names()))
        records: Iterable[NodeRecord | None] = map(self.books.nodes.get, names)
        if marked := nodes.marked:
            records = [
                None if name in marked else node for name, node in zip(names, records, strict=True)
            ]
        return zip(names, records, self._lacks(names, pod, gang), strict=True)

    def _kept(self, pod: PodRecord, gang: Gang | None, claim: Claim | None) -> frozenset[str]:
        """Nodes that are kept for gangs which come before the pod."""
        if gang is not None:
            return self.planner.kept_from(gang)
        if claim is None:
            return self.kept_nodes.closed_to(pod)
        return self.planner.kept()

    def _lacks(self, names: Sequence[str], pod: PodRecord, gang: Gang | None) -> list[str]:
        """What each of these nodes has too little of for the pod, as a reason; "" where it fits.

        Of one that the watch does not show it means nothing.
        What is held for its own gang is free for it; what others are nominated for is not.
        """
        every, request = self.books.topologies[ALL_NODES], pod.request
        row_of = {name: row for row, name in enumerate(self.books.axis)}
        needed = [each for each in request if each[1] and each[0] not in self.books.axis.claimed]
        for resource, _ in needed:
            if resource not in row_of:
                return [_insufficient(resource)] * len(names)
        more = self._more(pod, gang)
        asked = [(resource, row_of[resource], amount) for resource, amount in needed]
        counted, resources = self._counted(request), tuple(row_of)
        asked += [
            (resources[row], row, counted[row])
            for row in self.books.axis.of_devices
            if counted[row]
        ]
        slots = np.array([every.tree.slot_of.get(name, -1) for name in names], dtype=np.intp)
        free, in_tree = np.zeros((len(asked), len(names)), dtype=np.int64), slots >= 0
        free[:, in_tree] = every.capacity.free([row for _, row, _ in asked], slots[in_tree])
        reasons = ["", *(_insufficient(resource) for resource, _, _ in asked)]
        wanted = np.array([amount for _, _, amount in asked], dtype=np.int64)
        for column in np.flatnonzero(~in_tree).tolist():
            if names[column] in self.books.nodes:  # it is newer than the tree
                of_node = self._free(names[column])
                free[:, column] = [of_node[row] for _, row, _ in asked]
        for column, name in enumerate(names if more else ()):
            if name in more:
                free[:, column] += [more[name][row] for _, row, _ in asked]
        short = free < wanted[:, np.newaxis]
        first = np.where(short.any(axis=0), short.argmax(axis=0) + 1, 0)
        return [reasons[index] for index in first.tolist()]

    def _more(self, pod: PodRecord, gang: Gang | None) -> dict[str, Counter[int]]:
        """What is free for a pod beside what the books say is free, by node and resource row."""
        held, bound = self.books.held, self.books.bound
        own = {} if gang is None else gang.members
        ours = () if gang is None else (*gang.plan.nodes, *gang.placeholders)
        uids = dict.fromkeys((pod.uid, *ours))
        pods = Counter(held[uid] for uid in uids if uid in held)
        if pod.uid in bound:
            pods[bound[pod.uid]] += 1
        for uid, each in self.nominations.counted.items():
            is_other = uid != pod.uid and uid not in own and uid not in held
            if is_other and each.priority >= pod.priority:
                pods[Booking(each.node, each.request)] -= 1
        more = dict[str, Counter[int]]()
        for booking, times in pods.items():
            of_node = more.setdefault(booking.node, Counter())
            for row, amount in enumerate(self._counted(booking.request)):
                of_node[row] += times * amount
        return more

    def _free(self, name: str) -> list[int]:
        """What is free on one node, by resource row, added up anew."""
        free = list(self.books.axis.offer(self._counted(self.books.nodes[name].allocatable)))
        on = self.books.bound_on.get(name, {}), self.books.held_on.get(name, {})
        for request in chain.from_iterable(each.values() for each in on):
            for row, amount in enumerate(self._counted(request)):
                free[row] -= amount
        return free

    def _counted(self, amounts: Amounts) -> tuple[int, ...]:
        """As `Books.counted`, and nothing is remembered."""
        axis = self.books.axis
        return bounded(axis.taken(amounts)[: len(axis)])


def _levels(gang: Gang | None, claim: Claim | None) -> set[str]:
    """Every level of whose domains the pod has to be in one, or would like to be."""
    spec = None if gang is None else gang.membership.spec
    if claim is None:
        return set()
    constraints = [] if spec is None else list(spec.constraints())
    if spec is not None and spec.parts:
        constraints = [each.constraint for each in spec.path_to(claim.leaf)]
    constraints += [claim.said.constraint, claim.said.together]
    levels = {level for each in constraints for level in levels_of(each)}
    leaves = () if spec is None else spec.leaves()
    slices = chain(claim.said.slices, *(leaf.slices for leaf in leaves))
    return levels.union(each.level for each in slices)


def _lines(shape: Shape) -> int:
    """What a node is compared with: a term, a requirement and each of its values count one."""
    lines = (
        1 + sum(1 + len(line.values) for line in (*term.expressions, *term.fields))
        for term in shape.terms
    )
    return 1 + len(shape.selector) + sum(lines)
